import pathlib

from manila_lite.share.drivers.local.access import format_exports
from tests.unit.share.drivers.local.local_driver import access_rule

TOP = pathlib.Path('/srv/share')


def rule(access_to, access_type='ip', access_level='rw'):
    return access_rule(access_to, access_type, access_level)


def line(*rules, directory=TOP, **options):
    text, _ = format_exports(directory, rules, 'sync', **options)
    head, line = text.splitlines()
    assert head.startswith('#')
    return line


def test_clients_follow_the_directory():
    assert line(rule('10.0.0.1'), rule('10.1.0.0/16', access_level='ro')) == (
        '/srv/share 10.0.0.1(rw,sync) 10.1.0.0/16(ro,sync)'
    )


def test_snapshots_are_read_only_whatever_a_rule_says():
    assert line(rule('10.0.0.1'), read_only=True) == ('/srv/share 10.0.0.1(ro,sync)')


def test_two_rules_for_one_network_are_one_client():
    assert line(rule('10.1.2.3/8'), rule('10.0.0.0/8', access_level='ro')) == (
        '/srv/share 10.0.0.0/8(ro,sync)'
    )


def test_rule_that_a_server_cannot_apply_is_not_written():
    odd, good = rule('fe80::1%eth0 *(rw)'), rule('10.0.0.1')
    text, replies = format_exports(TOP, [odd, good], 'sync')
    assert {id: reply['state'] for id, reply in replies.items()} == {
        odd.id: 'error',
        good.id: 'active',
    }
    assert odd['access_to'] not in text
    assert format_exports(TOP, [odd], 'sync')[0] is None


def test_special_characters_of_the_path_are_escaped():
    odd = pathlib.Path('/srv/a b#c"d\\e')
    assert line(rule('10.0.0.1'), directory=odd) == (
        '/srv/a\\040b\\043c\\042d\\134e 10.0.0.1(rw,sync)'
    )
