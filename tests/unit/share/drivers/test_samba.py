import pathlib

import pytest

from manila_lite.share.drivers import samba
from tests.unit.share.drivers.local.local_driver import access_rule

TOP = pathlib.Path('/srv/a share')


def rule(access_to, access_type='user', access_level='rw'):
    return access_rule(access_to, access_type, access_level)


def test_section_of_a_share():
    text, replies = samba.format_section(
        'share-1',
        TOP,
        [rule('bob smith'), rule('@staff'), rule('alice', access_level='ro')],
    )
    assert text == (
        '# Written by manila_lite. What is changed here will be lost.\n'
        '[share-1]\n'
        '    path = /srv/a share\n'
        '    guest ok = no\n'
        '    read only = yes\n'
        '    valid users = "@staff" "alice" "bob smith"\n'
        '    write list = "@staff" "bob smith"\n'
    )
    assert {reply['state'] for reply in replies.values()} == {'active'}


@pytest.mark.parametrize(
    'rules, read_only',
    [([rule('alice')], True), ([rule('alice', access_level='ro')], False)],
)
def test_read_only_section_has_no_write_list(rules, read_only):
    text, _ = samba.format_section('share-1', TOP, rules, read_only=read_only)
    assert 'write list' not in text
    assert 'read only = yes' in text


@pytest.mark.parametrize(
    'access_type, access_to',
    [
        ('ip', '10.0.0.1'),
        ('cert', 'common name'),
        ('cephx', 'alice'),
        ('user', '%U%U'),
        ('user', 'a" "eve'),
        ('user', 'a\npath = /'),
        ('user', 'ends in \\'),
        ('user', ' eve'),
        ('user', ''),
    ],
)
def test_unsupported_or_unsafe_rule_is_an_error(access_type, access_to):
    odd, good = rule(access_to, access_type), rule('alice')
    text, replies = samba.format_section('share-1', TOP, [odd, good])
    assert replies[odd.id]['state'] == 'error'
    assert 'not take' in replies[odd.id]['reason'] or (
        'type user only' in replies[odd.id]['reason']
    )
    assert replies[good.id] == {'state': 'active'}
    assert 'valid users = "alice"\n' in text
    assert samba.format_section('share-1', TOP, [odd])[0] is None


@pytest.mark.parametrize(
    'path', ['/srv/%U', '/srv/a\nread only = no', '/srv/a ', '/srv/a\\']
)
def test_path_with_special_characters_is_not_exported(path):
    alice = rule('alice')
    text, replies = samba.format_section('share-1', pathlib.Path(path), [alice])
    assert text is None
    assert replies[alice.id]['state'] == 'error'
    assert 'paths' in replies[alice.id]['reason']


def test_index_includes_every_file():
    files = [pathlib.Path('/srv/exports/a.smb'), pathlib.Path('/srv/exports/b.smb')]
    assert samba.format_index(files).splitlines()[1:] == [
        'include = /srv/exports/a.smb',
        'include = /srv/exports/b.smb',
    ]
