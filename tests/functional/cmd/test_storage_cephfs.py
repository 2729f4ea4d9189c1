"""manila-lite-manage storage check --driver cephfs."""

import contextlib
import json
import re
import shlex

from tests.support import ceph as ceph_support
from tests.support.manage_command import run

pytestmark = [ceph_support.limited, ceph_support.on_cluster]


CHECK = ('storage', 'check', '--driver', 'cephfs')


def check(tmp_path, options, code):
    """Run the check with a configuration file; return what it prints."""
    file = tmp_path / 'manila_lite.conf'
    lines = [f'{name} = {value}' for name, value in options.items()]
    file.write_text(
        '\n'.join(
            [
                '[DEFAULT]\nenabled_share_backends = local, ceph',
                '[local]\nshare_driver = local\ndriver_handles_share_servers = false',
                '[ceph]\nshare_driver = cephfs',
                *lines,
            ]
        )
    )
    return run(*CHECK, '--config-file', str(file), code=code).out


def test_printed_command_gives_the_user_what_it_lacks(ceph, tmp_path):
    with ceph.user(mon='allow r', mgr='allow r') as user:
        options = ceph.options(
            cephfs_auth_id=user.name, cephfs_keyring_path=user.keyring
        )
        printed = check(tmp_path, options, 1)
        assert printed.startswith('ceph: ')
        command = shlex.split(re.search('ceph (auth caps .*)', printed)[1])
        with contextlib.suppress(json.JSONDecodeError):  # it says nothing
            ceph.admin.mon('auth caps', entity=command[2], caps=command[3:])
        assert check(tmp_path, options, 0) == 'ceph: ok\n'


def test_without_such_a_back_end_nothing_is_checked(tmp_path):
    file = tmp_path / 'manila_lite.conf'
    file.write_text('[DEFAULT]\nenabled_share_backends =\n')
    ended = run(*CHECK, '--config-file', str(file), code=1)
    assert 'names no back end' in ended.out
