"""The commands that mount a share: complete, and safe to paste."""

import shlex

import pytest

from manila_lite.api.ui import mounting

ID = '0b6e8a3e-6a2f-4a0c-9d59-0f6c3b1f8a11'
FOLDER = f'/mnt/{ID}'
PATHS = {
    'NFS': '10.0.0.10:/shares/a',
    'CIFS': '\\\\10.0.0.10\\share_a',
    'CEPHFS': '10.0.0.1:6789,10.0.0.2:6789:/volumes/_nogroup/a',
}


def commands(protocol, *rules, path=None):
    share = {'id': ID, 'share_proto': protocol}
    found = [{'access_type': kind, 'access_to': to} for kind, to in rules]
    return [
        step.command for step in mounting.steps(share, path or PATHS[protocol], found)
    ]


@pytest.mark.parametrize('protocol', PATHS)
def test_client_is_prepared_before_it_mounts_and_unmounts(protocol):
    found = commands(protocol)
    mount = next(one for one in found if ' mount -t ' in one)
    assert found.index(f'sudo mkdir -p {FOLDER}') < found.index(mount)
    assert found[0].startswith('sudo apt install ')
    assert found[-1] == f'sudo umount {FOLDER}'


def test_nfs():
    found = commands('NFS', ('ip', '10.0.0.0/24'))
    assert f"sudo mount -t nfs '10.0.0.10:/shares/a' {FOLDER}" in found
    assert f'10.0.0.10:/shares/a {FOLDER} nfs _netdev 0 0' in found


@pytest.mark.parametrize(
    'rules, options, account',
    [
        ([('user', 'alice')], 'username=alice', ' /user:alice'),
        ([('user', 'alice'), ('ip', '10.0.0.1')], 'username=alice', ' /user:alice'),
        ([('user', 'alice'), ('user', 'bob')], 'username=USER', ' /user:USER'),
        ([('user', 'a; rm -r /')], 'username=USER', ' /user:USER'),
        ([('ip', '10.0.0.1')], 'guest', ''),
        ([], 'username=USER', ' /user:USER'),
    ],
)
def test_cifs_names_the_user_of_the_rule(rules, options, account):
    found = commands('CIFS', *rules)
    assert f"sudo mount -t cifs '//10.0.0.10/share_a' {FOLDER} -o {options}" in found
    assert f'net use * "\\\\10.0.0.10\\share_a"{account}' in found


def test_cephfs_names_the_user_and_its_secret():
    found = commands('CEPHFS', ('cephx', 'alice'))
    secret = '/etc/ceph/alice.secret'
    assert (
        f"sudo mount -t ceph '{PATHS['CEPHFS']}' {FOLDER} "
        f'-o name=alice,secretfile={secret}'
    ) in found
    assert f'sudo install -D -m 600 /dev/stdin {secret}' in found
    (fuse,) = [one for one in found if 'ceph-fuse' in one]
    assert "-m '10.0.0.1:6789,10.0.0.2:6789'" in fuse
    assert "--client-mountpoint='/volumes/_nogroup/a'" in fuse


@pytest.mark.parametrize('protocol', PATHS)
def test_paths_are_one_word_of_a_shell(protocol):
    path = PATHS[protocol] + ' $(reboot) `x` & y'
    for command in commands(protocol, path=path):
        if 'mount -t' in command:
            assert any('$(reboot) `x` & y' in word for word in shlex.split(command))


@pytest.mark.parametrize('path', ["a:/b'c", 'a:/b"c', 'a:/b\nc', '/ a'])
def test_path_that_cannot_be_quoted_has_no_commands(path):
    assert commands('NFS', path=path) == []


def test_protocol_without_known_commands_has_none():
    assert commands('HDFS', path='10.0.0.1:/a') == []
