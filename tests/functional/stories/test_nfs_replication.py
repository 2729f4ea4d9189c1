"""Replicas of a share that NFS clients mount, on two btrfs back ends.

Requests use the official command line; the clients are real ones.
"""

import pytest

from tests.functional.stories.conftest import new_installation
from tests.support import storage
from tests.support.cli import Cli
from tests.support.nfs_client import NfsClient
from tests.support.nfs_client import NfsError
from tests.support.processes import free_port
from tests.support.processes import wait_until

WRITER = '127.0.0.2'
SIDES = ('north', 'south')


class Site:
    def __init__(self, installation, style, ports):
        self.installation, self.ports = installation, ports
        self.cli = Cli(
            '--os-auth-type', 'none', '--os-endpoint', installation.url
        )
        self.rest = installation.rest('admin')
        self.cli(
            *('share type create', 'mirrored', 'false'),
            *('--extra-specs', f'replication_type={style}'),
            *('--snapshot-support', 'true'),
            *('--revert-to-snapshot-support', 'true'),
        )

    def replica(self, id):
        return self.rest.get(f'/share-replicas/{id}')['share_replica']

    def wait(self, id, state):
        return wait_until(
            lambda: (
                (found := self.replica(id))['replica_state'] == state
                and found['status'] == 'available'
                and self.installation.pending_work() == 0
                and found
            ),
            f'replica {id} is {state}',
        )

    def mount(self, id):
        """Return a client of a replica, and the path that it mounts."""
        locations = self.rest.get(f'/share-replicas/{id}/export-locations')
        (path,) = (one['path'] for one in locations['export_locations'])
        side = self.replica(id)['host'].partition('@')[2].partition('#')[0]
        client = NfsClient('127.0.0.1', self.ports[side], WRITER)
        return client, path.partition(':')[2]

    def sees(self, id, name, text):
        """Return whether clients of a replica read a text."""
        client, path = self.mount(id)
        try:
            return client.read(path, name) == text
        except NfsError:
            return False

    def promote(self, id):
        self.cli('share replica promote', id)
        self.wait(id, 'active')


@pytest.fixture(params=['readable', 'dr'])
def site(request, tmp_path):
    storage.require()
    with storage.folder() as folder:
        ports = {side: free_port() for side in SIDES}
        backends = {
            side: {
                'share_driver': 'btrfs',
                'driver_handles_share_servers': False,
                'replication_domain': 'domain',
                'backend_availability_zone': side,
                'btrfs_replication_type': request.param,
                'btrfs_root': str(folder / side),
                'btrfs_pools': 'pool:'
                + str(storage.create_pool(folder / f'{side}.img')),
                'btrfs_export_addresses': '127.0.0.1',
                'btrfs_nfs_port': ports[side],
            }
            for side in SIDES
        }
        with new_installation(
            tmp_path / 'installation',
            options='default_share_type = mirrored\n'
            'replica_state_update_interval = 1',
            backends=backends,
        ) as installation:
            installation.start()
            yield Site(installation, request.param, ports)


def test_share_is_promoted_there_and_back(site, request):
    style = request.node.callspec.params['site']
    share = site.cli('share create', 'NFS', 1)['id']
    site.rest.wait_at_rest(share)
    site.cli('share access create', share, 'ip', WRITER)
    (first,) = (
        one['id'] for one in site.rest.get('/share-replicas')['share_replicas']
    )
    client, path = site.mount(first)
    wait_until(lambda: _looks_up(client, path), 'the client has access')
    client.write(path, 'notes', b'one')

    second = site.cli('share replica create', share)['id']
    site.wait(second, 'in_sync')
    snapshot = site.cli('share snapshot create', share)['id']
    wait_until(
        lambda: (
            site.rest.get(f'/snapshots/{snapshot}')['snapshot']['status']
            == 'available'
        ),
        'the snapshot is on both sides',
    )
    client.write(path, 'notes', b'two')
    site.cli('share replica resync', second)
    there, there_path = site.mount(second)
    if style == 'readable':
        wait_until(lambda: site.sees(second, 'notes', b'two'), 'it is read')
        with pytest.raises(NfsError, match='NFS4ERR_ROFS'):
            there.write(there_path, 'notes', b'no!')
    else:
        with pytest.raises(NfsError, match='NFS4ERR_NOENT'):
            there.look_up(there_path)

    client.write(path, 'notes', b'last')
    site.promote(second)
    wait_until(lambda: site.sees(second, 'notes', b'last'), 'it is read')
    with pytest.raises(NfsError):
        client.write(path, 'notes', b'lost')
    there, there_path = site.mount(second)
    there.write(there_path, 'more', b'three')

    site.cli('share replica resync', first)
    site.wait(first, 'in_sync')
    site.promote(first)
    wait_until(lambda: site.sees(first, 'more', b'three'), 'it is read')
    client, path = site.mount(first)
    client.write(path, 'more', b'four!')
    assert client.read(path, 'notes') == b'last'

    site.cli('share revert', snapshot)
    site.rest.wait_at_rest(share)
    wait_until(lambda: site.sees(first, 'notes', b'one'), 'it is reverted')
    site.cli('share replica delete', second)
    wait_until(
        lambda: len(site.rest.get('/share-replicas')['share_replicas']) == 1,
        'the replica is gone',
    )
    assert site.sees(first, 'notes', b'one')


def _looks_up(client, path):
    try:
        return client.look_up(path)
    except NfsError:
        return False
