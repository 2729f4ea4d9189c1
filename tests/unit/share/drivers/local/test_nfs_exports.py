import pathlib

import pytest

from manila_lite.share.drivers.local.nfs_exports import format_exports
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
    assert line(rule('10.0.0.1'), read_only=True) == (
        '/srv/share 10.0.0.1(ro,sync)'
    )


@pytest.mark.parametrize(
    'access_to, written',
    [
        ('10.0.0.1/32', '10.0.0.1'),
        ('0.0.0.0/0', '0.0.0.0/0'),
        ('2001:DB8::1', '2001:db8::1'),
        ('2001:db8::/64', '2001:db8::/64'),
        ('::/0', '::/0'),
    ],
)
def test_client_has_its_usual_spelling(access_to, written):
    assert line(rule(access_to)) == f'/srv/share {written}(rw,sync)'


def test_narrowest_network_comes_first():
    rules = [
        rule(to)
        for to in (
            '0.0.0.0/0',
            '10.0.0.0/8',
            '10.0.0.7',
            '::/0',
            '10.0.0.5',
            'fe80::/10',
        )
    ]
    assert [
        client.partition('(')[0] for client in line(*rules).split()[1:]
    ] == [
        '10.0.0.5',
        '10.0.0.7',
        '10.0.0.0/8',
        '0.0.0.0/0',
        'fe80::/10',
        '::/0',
    ]


@pytest.mark.parametrize(
    'access_type, access_to',
    [
        ('ip', 'fe80::1%eth0 *(rw)'),
        ('user', 'alice'),
        ('cert', 'common name'),
        ('cephx', 'alice'),
        ('ip', 'a b(rw)'),
    ],
)
def test_unsupported_access_type_is_an_error(access_type, access_to):
    odd, good = rule(access_to, access_type), rule('10.0.0.1')
    text, replies = format_exports(TOP, [odd, good], 'sync')
    assert replies == {
        odd.id: {
            'state': 'error',
            'reason': 'NFS takes rules of the type ip only',
        },
        good.id: {'state': 'active'},
    }
    assert access_to not in text
    assert format_exports(TOP, [odd], 'sync')[0] is None


def test_special_characters_of_the_path_are_escaped():
    odd = pathlib.Path('/srv/a b#c"d\\e')
    assert line(rule('10.0.0.1'), directory=odd) == (
        '/srv/a\\040b\\043c\\042d\\134e 10.0.0.1(rw,sync)'
    )
