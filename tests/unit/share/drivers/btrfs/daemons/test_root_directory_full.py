"""What happens when nothing can be written to `btrfs_root`."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from manila_lite import exception
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.driver_site import (
    MIB,
    WRITER,
    Site,
    path_of,
    refused,
)
from tests.unit.share.drivers.btrfs.nfs_site import eventually

OTHER = '127.0.0.3'


class SmallRoot(Site):
    """A back end with a small file system for its own files."""

    def __init__(self, folder: pathlib.Path):
        self.root = folder / 'root'
        self.root.mkdir()
        subprocess.run(
            ['mount', '-t', 'tmpfs', '-o', f'size={4 * MIB}', 'none', self.root],
            check=True,
        )
        super().__init__(folder)

    def allow(self, share, *addresses):
        self.change_rules(share, addresses or [WRITER])

    def change_rules(self, share, addresses, lost=()):
        """Let clients of these addresses in, and no longer the lost ones."""
        rules, old = (
            [self.harness.rule(share, address) for address in each]
            for each in (addresses, lost)
        )
        new = [] if lost else rules
        return self.driver.update_access(CTX, share, rules, new, old, [])

    def fill(self) -> None:
        """Leave no space, not even for a small file."""
        with (
            contextlib.suppress(OSError),
            (self.root / 'ballast').open('wb', buffering=0) as file,
        ):
            while file.write(bytes(4096)):
                pass

    def empty(self) -> None:
        """Remove what `fill` has written."""
        (self.root / 'ballast').unlink()


@pytest.fixture
def site():
    storage.require()
    with storage.folder() as folder:
        yield SmallRoot(folder)


def unwritable(site):
    return pytest.raises(
        exception.StorageUnavailable,
        match=f'file system of btrfs_root, {site.root},.*No space left',
    )


def test_deny_that_cannot_be_written_changes_nothing(site):
    share = site.create()
    site.allow(share, WRITER, OTHER)
    site.client().write(path_of(share), 'notes', b'kept')
    site.fill()
    with unwritable(site):
        site.change_rules(share, [WRITER], lost=[OTHER])
    for address in (WRITER, OTHER):
        client = site.client(address)
        assert client.read(path_of(share), 'notes') == b'kept'
    site.empty()
    site.change_rules(share, [WRITER], lost=[OTHER])
    assert site.client().read(path_of(share), 'notes') == b'kept'
    with refused('NOENT'):
        site.client(OTHER).look_up(path_of(share))


def test_report_says_that_the_root_cannot_be_written(site):
    share = site.create()
    site.driver.check_health()
    site.fill()
    with unwritable(site):
        site.driver.check_health()
    site.client().write(path_of(share), 'notes', b'kept')
    site.empty()
    site.driver.check_health()


@pytest.mark.parametrize('name', ['server', 'bus'])
def test_killed_server_is_started_again(site, name):
    share = site.create()
    site.client().write(path_of(share), 'notes', b'kept')
    site.driver.check_health()
    site.fill()
    record = site.root / 'nfs' / f'{name}.json'
    pid = json.loads(record.read_text())['pid']
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: json.loads(record.read_text())['pid'] != pid)
    eventually(lambda: is_served(site, share))
    with refused('NOENT'):
        site.client(OTHER).look_up(path_of(share))
    with unwritable(site):
        site.driver.check_health()
    site.empty()
    site.driver.check_health()


@pytest.mark.parametrize('also', [[], ['server'], ['server', 'bus']])
def test_killed_supervisor_is_started_again(site, also):
    """So are the daemons that are killed together with it."""
    share = site.create()
    site.client().write(path_of(share), 'notes', b'kept')
    site.driver.check_health()
    site.fill()
    killed = {name: kill(site, name) for name in ('supervisor', *also)}
    for name, pid in killed.items():
        eventually(lambda name=name, pid=pid: is_replaced(site, name, pid))
    eventually(lambda: is_served(site, share))
    with unwritable(site):
        site.driver.check_health()
    site.empty()
    site.driver.check_health()


def test_share_service_starts(site):
    share = site.create()
    site.client().write(path_of(share), 'notes', b'kept')
    site.driver.check_health()
    site.fill()
    for name in ('supervisor', 'server', 'bus'):
        kill(site, name)
    site.driver = site.start()
    eventually(lambda: is_served(site, share))
    with unwritable(site):
        site.driver.check_health()


def is_replaced(site, name, pid):
    site.driver.backend.watch()  # as the service does every second
    return pid_of(site, name) != pid


def pid_of(site, name):
    record = site.root / 'nfs' / f'{name}.json'
    return json.loads(record.read_text())['pid']


def kill(site, name):
    pid = pid_of(site, name)
    os.kill(pid, signal.SIGKILL)
    return pid


def is_served(site, share):
    try:
        return site.client().read(path_of(share), 'notes') == b'kept'
    except (ConnectionError, NfsError):
        return False
