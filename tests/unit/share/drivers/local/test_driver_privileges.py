"""Files that only their users may read, under a service that is not root."""

import logging
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

import pytest

from manila_lite import exception
from manila_lite.share.drivers import capabilities
from tests.drivers import content
from tests.drivers.driver_harness import CTX
from tests.support import ordinary_user
from tests.unit.share.drivers.local.local_driver import directory, make, start

SERVICE, TENANT = 65534, 4711
CAPABILITIES = '+chown,+dac_override,+fowner'


def live_with_private_files(root):
    """Run the life of a share whose files are of another user."""
    driver, share = start(root), make.share()
    top, snapshot = directory(driver, share), make.snapshot(share)
    assert capabilities.missing(capabilities.FOR_FILES_OF_USERS) == []
    closed = top / 'closed'
    closed.mkdir()
    for path in (closed / 'secret', top / 'key'):
        path.write_text(path.name)
        path.chmod(0o600)
        os.chown(path, TENANT, TENANT)
    os.chown(closed, TENANT, TENANT)
    closed.chmod(0o700)
    then = content.describe(top)
    driver.create_snapshot(CTX, snapshot)
    (closed / 'secret').unlink()
    driver.revert_to_snapshot(CTX, snapshot, [], [])
    assert content.describe(top) == then
    assert (closed / 'secret').stat().st_uid == TENANT
    driver.extend_share(share, 2)
    driver.shrink_share(share, 1)
    driver.delete_snapshot(CTX, snapshot)
    driver.delete_share(CTX, share)
    assert not top.exists()


def test_private_files_need_three_privileges_and_not_root(tmp_path):
    ordinary_user.require()
    code = (
        'import pathlib, sys\n'
        f'from {__name__} import live_with_private_files\n'
        'live_with_private_files(pathlib.Path(sys.argv[1]))\n'
    )
    subprocess.run(
        [
            'setpriv',
            f'--reuid={SERVICE}',
            f'--regid={SERVICE}',
            '--clear-groups',
            f'--inh-caps={CAPABILITIES}',
            f'--ambient-caps={CAPABILITIES}',
            sys.executable,
            '-c',
            code,
            tmp_path / 'root',
        ],
        check=True,
        timeout=60,
        cwd=ordinary_user.ROOT,
    )


def start_without_privileges(**options):
    """Start a driver as an ordinary user; return the ended process."""
    code = (
        'import logging, sys\n'
        'logging.basicConfig()\n'
        'from tests.unit.share.drivers.local.local_driver import start\n'
        f'start(sys.argv[1], **{options!r})\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        as_another = []
        if os.geteuid() == 0:
            ordinary_user.require()
            os.chown(folder, SERVICE, SERVICE)
            as_another = [
                'setpriv',
                f'--reuid={SERVICE}',
                f'--regid={SERVICE}',
                '--clear-groups',
                '--inh-caps=-all',
            ]
        return subprocess.run(
            [*as_another, sys.executable, '-c', code, pathlib.Path(folder, 'root')],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=ordinary_user.ROOT,
        )


@pytest.mark.parametrize(
    'options',
    [{}, {'local_export_host': '192.0.2.1', 'local_require_privileges': False}],
)
def test_missing_privileges_are_named_at_the_start(options):
    ended = start_without_privileges(**options)
    assert ended.returncode == 0
    assert 'CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER' in ended.stderr


def test_shares_that_clients_mount_are_not_served_without_privileges():
    ended = start_without_privileges(local_export_host='192.0.2.1')
    assert ended.returncode == 1
    *_, error = ended.stderr.splitlines()
    assert 'BadConfiguration' in error
    assert 'CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER' in error
    assert 'local_require_privileges = false' in error


def test_nothing_is_warned_of_with_all_privileges(root, caplog, monkeypatch):
    monkeypatch.setattr(capabilities, 'missing', lambda names: [])
    with caplog.at_level(logging.WARNING):
        start(root)
    assert caplog.records == []


# New shares


def test_clients_can_use_new_shares(root):
    mask = os.umask(0o077)
    try:
        top = directory(start(root), make.share())
    finally:
        os.umask(mask)
    assert stat.S_IMODE(top.stat().st_mode) == 0o777
    # Other users of this machine do not learn the names of shares.
    assert stat.S_IMODE((root / 'shares').stat().st_mode) == 0o711


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives files away')
@pytest.mark.parametrize(
    'owner, ids', [('4711', (4711, 0)), ('nobody:4712', (65534, 4712))]
)
def test_mode_and_owner_are_configured(root, owner, ids):
    driver = start(root, local_share_mode='2770', local_share_owner=owner)
    found = directory(driver, make.share()).stat()
    assert stat.S_IMODE(found.st_mode) == 0o2770
    assert (found.st_uid, found.st_gid) == ids


def test_unknown_owner_is_refused_at_the_start(root):
    with pytest.raises(exception.BadConfiguration, match='no-such-user'):
        start(root, local_share_owner='no-such-user')
