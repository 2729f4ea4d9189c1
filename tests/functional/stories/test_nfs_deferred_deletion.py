"""A deletion is deferred while the disk of a share is read-only.

The client is a real one; requests use the official command line.
"""

import subprocess

import pytest

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import storage
from tests.support.cli import Cli
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.processes import wait_until

pytestmark = suites.clients

SIZE = 64 << 20


@pytest.fixture
def folder():
    storage.require()
    with storage.folder() as path:
        yield path


def test_deferred_deletion_ends_when_the_pool_can_be_written_to(tmp_path, folder):
    options = storage.options(folder)
    top = folder / 'root/pools/pool'
    with new_installation(
        tmp_path / 'installation',
        options='default_share_type = nfs\n'
        'is_deferred_deletion_enabled = true\n'
        'periodic_deferred_delete_interval = 1\n',
        backends={
            'nfs': {
                **options,
                'share_driver': 'btrfs',
                'btrfs_pools': f'pool:{options["btrfs_pools"]["pool"]}',
                'btrfs_export_addresses': '127.0.0.1',
            }
        },
    ) as installation:
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        cli('share type create', 'nfs', 'false')
        share = cli('share create', 'NFS', 1)['id']
        wait_until(lambda: not installation.pending_work(), 'it is there')
        cli('share access create', share, 'ip', '127.0.0.1')
        wait_until(lambda: not installation.pending_work(), 'it has access')
        (location,) = cli('share export location list', share)
        path = location['Path'].partition(':')[2]
        client = NfsClient('127.0.0.1', options['btrfs_nfs_port'])
        client.write(path, 'notes', bytes(SIZE))
        (volume,) = (top / 'shares').iterdir()

        subprocess.run(['mount', '-o', 'remount,ro', top], check=True)
        cli('share delete', share)
        wait_until(
            lambda: cli('share show', share)['status'] == 'error_deferred_deleting',
            'the deletion has failed',
        )
        assert volume.exists()
        subprocess.run(['mount', '-o', 'remount,rw', top], check=True)
        wait_until(lambda: cli('share list') == [], 'the share is deleted')
        assert not volume.exists()
        with pytest.raises(NfsError, match='NFS4ERR_'):
            client.look_up(path)
        assert installation.in_flight() == []
