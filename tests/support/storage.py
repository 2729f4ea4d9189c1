"""A btrfs back end with a real NFS server, for tests on this machine.

Pools are files in memory. What a test run that was killed has left behind,
such as mounts and daemons, is removed by the next one.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shutil
import tempfile
import typing

import pytest

from manila_lite import exception
from manila_lite.share.drivers import file_locks
from manila_lite.share.drivers.btrfs import kernel, machine
from manila_lite.share.drivers.btrfs.daemons import daemons
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD
from manila_lite.share.drivers.btrfs.servers import servers
from tests.support import requirements, sampling, tenant_network
from tests.support.processes import free_port

beside_daemons = sampling.suite('the btrfs driver beside its daemons', 40)
"""Marks tests that start NFS and CIFS servers: they take most of the time."""

PREFIX = 'manila-btrfs-'
POOL_SIZE = 8 << 30
_FOLDERS = pathlib.Path('/tmp'), pathlib.Path('/dev/shm')


def missing() -> str | None:
    """Return why this machine cannot run a btrfs back end, or None.

    The guard of NFS file handles is built from the sources under test.
    """
    if os.geteuid() == 0 and GUARD.find_plugin() is not None:
        with contextlib.suppress(exception.InvalidInput, OSError):
            GUARD.build()
    for requirement in machine.REQUIREMENTS:
        if not requirement.is_met():
            return f'{requirement.name} is missing; {requirement.remedy}'
    return None


def require() -> None:
    """Skip without what a back end needs; fail if CI is set."""
    reason = missing()
    if reason is not None:
        requirements.missing(reason)


def require_cifs() -> None:
    """Do the same for one with CIFS shares."""
    require()
    for requirement in machine.CIFS_REQUIREMENTS:
        if not requirement.is_met():
            requirements.missing(f'{requirement.name} is missing')


def require_servers() -> None:
    """Do the same for one with share servers."""
    require()
    for requirement in machine.SERVER_REQUIREMENTS:
        if not requirement.is_met():
            requirements.missing(f'{requirement.name} is missing')


@contextlib.contextmanager
def folder() -> Iterator[pathlib.Path]:
    """Provide a folder; finally end and unmount what is in it."""
    _remove_leftovers()
    memory = pathlib.Path('/dev/shm')
    path = pathlib.Path(
        tempfile.mkdtemp(
            prefix=f'{PREFIX}{os.getpid()}-',
            dir=memory if os.access(memory, os.W_OK) else None,
        )
    )
    try:
        yield path
    finally:
        remove(path)


@pytest.fixture(scope='session')
def btrfs_options():
    """Provide the options of a back end that all tests of a process use."""
    require()
    with folder() as path:
        yield options(path)


@pytest.fixture(scope='session')
def btrfs_server_options():
    """Provide those of a back end with share servers."""
    require_servers()
    with tenant_network.bridge() as bridge, folder() as path:
        yield options(
            path,
            driver_handles_share_servers=True,
            btrfs_bridge=bridge,
            btrfs_nfs_port=2049,
        )


@pytest.fixture(scope='session')
def btrfs_cifs_options():
    """Provide those of a back end with CIFS shares."""
    require_cifs()
    with folder() as path:
        yield options(path, btrfs_cifs=True, btrfs_smb_port=free_port())


class CifsServers(typing.NamedTuple):
    """The options of a back end with CIFS shares on share servers."""

    options: dict
    client: tenant_network.TenantClient


@pytest.fixture(scope='session')
def btrfs_cifs_servers():
    """Provide those of one with share servers, and a client of these."""
    require_cifs()
    require_servers()
    with (
        tenant_network.bridge() as bridge,
        tenant_network.client_on(bridge, '10.20.0.99/24') as client,
        folder() as path,
    ):
        yield CifsServers(
            options(
                path,
                driver_handles_share_servers=True,
                btrfs_bridge=bridge,
                btrfs_nfs_port=2049,
                btrfs_cifs=True,
            )
            | {'btrfs_smb_port': 445},
            client,
        )


def create_pool(path: pathlib.Path, size: int = POOL_SIZE) -> pathlib.Path:
    """Create a file that holds an empty btrfs."""
    machine.create_image(path, size)
    return path


def options(path: pathlib.Path, **values) -> dict:
    """Return the options of a back end with one pool in a folder."""
    pool = path / 'pool.img'
    if not pool.exists():
        create_pool(pool)
    return {
        'driver_handles_share_servers': False,
        'btrfs_root': str(path / 'root'),
        'btrfs_pools': {'pool': str(pool)},
        'btrfs_export_addresses': ['127.0.0.1'],
        'btrfs_nfs_port': free_port(),
        **values,
    }


def stop(root: pathlib.Path) -> None:
    """End the daemons of a back end."""
    daemons.Daemons(root / 'nfs', root / 'exports', 0, []).stop()
    servers.stop_all(root)


def remove(path: pathlib.Path) -> None:
    """End and unmount what is in a folder, and remove it."""
    for nfs in (*path.glob('*/nfs'), *path.glob('*/*/nfs')):
        stop(nfs.parent)
    kernel.unmount_below(path)
    shutil.rmtree(path)


def _remove_leftovers() -> None:
    # Two workers would unmount the same folders, and one of them fail.
    with file_locks.locked(_FOLDERS[0], lambda path: os.open(path, os.O_RDONLY)):
        for parent in _FOLDERS:
            for path in parent.glob(f'{PREFIX}*'):
                pid = path.name.removeprefix(PREFIX).partition('-')[0]
                if pid.isdigit() and not pathlib.Path('/proc', pid).exists():
                    with contextlib.suppress(FileNotFoundError):
                        remove(path)
