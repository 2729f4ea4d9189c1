"""Shares that migrate from one share server to another."""

import logging

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import storage, tenant_network
from tests.support.nfs_client import NfsError
from tests.support.processes import free_port, wait_until
from tests.support.record_writer import RECORD, Writer
from tests.unit.share.drivers.btrfs.tenants import (
    ADDRESS,
    CLIENT,
    PORT,
    SEGMENTS,
    ServedSite,
    Tenant,
    tenants_of,
)

OTHER_ADDRESS = '10.20.0.9'


class Backend(ServedSite):
    """A back end of several that have sections in one file."""

    def __init__(self, folder, name):
        self.name, self.root = name, folder / name
        self.harness = DriverHarness(
            'btrfs',
            lambda: Configuration(
                manila_lite.conf.new(files=[str(folder / 'sites.conf')]), name
            ),
        )
        self.driver = self.harness.start()


class Sites:
    """Two back ends with share servers, and one without."""

    pools = {'near': ('one', 'two'), 'far': ('three',), 'plain': ('four',)}

    def __init__(self, folder, bridge):
        pools = {
            pool: storage.create_pool(folder / f'{pool}.img')
            for names in self.pools.values()
            for pool in names
        }
        self.plain_port = free_port()
        (folder / 'sites.conf').write_text(
            ''.join(
                f'[{name}]\n'
                'share_driver = btrfs\n'
                f'driver_handles_share_servers = {name != "plain"}\n'
                f'btrfs_root = {folder / name}\n'
                'btrfs_pools = '
                + ','.join(f'{pool}:{pools[pool]}' for pool in names)
                + f'\nbtrfs_bridge = {bridge}{{segmentation_id}}\n'
                'btrfs_nfs_port = '
                + f'{self.plain_port if name == "plain" else PORT}\n'
                for name, names in self.pools.items()
            )
        )
        self.near, self.far, self.plain = (Backend(folder, name) for name in self.pools)

    def share(self, place='near#one', **values):
        return self.near.harness.share(host=f'host@{place}', **values)

    def create(self, server):
        """Create a share that its tenant's client has access to."""
        share = self.share(status='migrating')
        self.near.driver.create_share(CTX, share, server)
        self.near.allow(share, CLIENT)
        return share

    def call(self, operation, share, moved, servers, pairs=()):
        return getattr(self.near.driver, f'migration_{operation}')(
            CTX,
            share,
            moved,
            [one for one, _ in pairs],
            {one.id: copy for one, copy in pairs},
            *servers,
        )

    def call_check(self, share, moved, servers):
        return self.near.driver.migration_check_compatibility(
            CTX, share, moved, *servers
        )

    def copy(self, *arguments):
        self.call('start', *arguments)
        wait_until(lambda: self.call('continue', *arguments), 'all is copied')

    def traces(self):
        return [
            path
            for site in (self.near, self.far, self.plain)
            for pool in site.driver.backend.pools.values()
            for name in ('copies', 'records/[las]*')
            for path in pool.top.glob(f'{name}/*')
        ]


@pytest.fixture(scope='module')
def bridge():
    storage.require_servers()
    name = tenant_network.new_name()
    with (
        tenant_network.bridge(f'{name}{SEGMENTS[0]}'),
        tenant_network.bridge(f'{name}{SEGMENTS[1]}'),
    ):
        yield name


@pytest.fixture(scope='module')
def sites(bridge):
    with storage.folder() as folder:
        yield Sites(folder, bridge)


@pytest.fixture(scope='module')
def tenants(sites):
    with tenants_of(sites.near) as tenants:
        yield tenants


@pytest.fixture
def tenant(tenants) -> Tenant:
    return tenants[0]


@pytest.fixture(autouse=True)
def no_traces(sites):
    yield
    assert not sites.traces()


def paths_in(reply):
    return [
        one['path'] for one in normalise_export_locations(reply['export_locations'])
    ]


@pytest.mark.parametrize('place', ['near#one', 'near#two', 'far#three'])
def test_no_acknowledged_record_is_lost_between_servers(sites, tenant, place):
    there = sites.near if 'near' in place else sites.far
    with (
        sites.near.server(tenant) as source,
        there.server(tenant, OTHER_ADDRESS) as target,
    ):
        share, moved = sites.create(source), sites.share(place)
        path = f'/shares/{share.name}'
        writer = Writer(tenant.nfs(), path)
        servers = (source, target)
        sites.copy(share, moved, servers)
        wait_until(lambda: writer.acknowledged > 200, 'it has written')
        reply = sites.call('complete', share, moved, servers)
        assert paths_in(reply) == [f'{OTHER_ADDRESS}:/shares/{moved.name}']
        assert sites.call('complete', share, moved, servers) == reply
        writer.join()
        there.allow(moved, CLIENT)
        client, path = tenant.nfs(OTHER_ADDRESS), f'/shares/{moved.name}'
        data = client.read(path, 'records')
        assert writer.read_back(data) == list(range(writer.acknowledged))
        assert len(data) <= (writer.acknowledged + 1) * RECORD
        client.write(path, 'notes', b'it can be written to')
        with pytest.raises(NfsError):
            tenant.nfs().look_up(path)
        there.driver.delete_share(CTX, moved)


def test_share_moves_to_the_network_of_another_server(sites, tenants):
    first, second = tenants
    with sites.near.server(first) as source, sites.near.server(second) as target:
        share, moved = sites.create(source), sites.share()
        first.write(f'/shares/{share.name}', b'content')
        pair = (sites.near.harness.snapshot(share), sites.near.harness.snapshot(moved))
        sites.near.driver.create_snapshot(CTX, pair[0], source)
        first.write(f'/shares/{share.name}', b'changed')
        arguments = share, moved, (source, target), [pair]
        sites.copy(*arguments)
        reply = sites.call('complete', *arguments)
        assert paths_in(reply) == [f'{ADDRESS}:/shares/{moved.name}']
        rule = sites.near.harness.rule(share, CLIENT)
        driver = sites.near.driver
        sites.near.allow(moved, CLIENT)
        driver.snapshot_update_access(CTX, pair[1], [rule], [], [])
        (location,) = reply['snapshot_updates'][pair[1].id]['export_locations']
        mounted = location['path'].partition(':')[2]
        assert second.read(mounted) == b'content'
        assert second.read(f'/shares/{moved.name}') == b'changed'
        with pytest.raises(NfsError):
            first.nfs().look_up(f'/shares/{moved.name}')
        driver.delete_snapshot(CTX, pair[1], target)
        driver.delete_share(CTX, moved, target)


def test_share_leaves_its_server_and_returns_to_another(sites, tenant):
    with sites.near.server(tenant) as source:
        share, moved = sites.create(source), sites.share('plain#four')
        tenant.write(f'/shares/{share.name}', b'content')
        sites.copy(share, moved, (source, None))
        reply = sites.call('complete', share, moved, (source, None))
        assert paths_in(reply) == [f'127.0.0.1:/shares/{moved.name}']
    pool, record = sites.plain.driver.backend.get_share(moved.name)
    volume = pool.path(Kind.SHARE, record['volume'])
    assert (volume / 'notes').read_bytes() == b'content'
    with sites.far.server(tenant) as target:
        back = sites.share('far#three')
        arguments = CTX, moved, back, [], {}, None, target
        driver = sites.plain.driver
        driver.migration_start(*arguments)
        wait_until(lambda: driver.migration_continue(*arguments), 'all is copied')
        driver.migration_complete(*arguments)
        sites.far.allow(back, CLIENT)
        assert tenant.read(f'/shares/{back.name}') == b'content'
        sites.far.driver.delete_share(CTX, back)


def test_cancelled_migration_leaves_the_share_on_its_server(sites, tenant):
    with (
        sites.near.server(tenant) as source,
        sites.far.server(tenant, OTHER_ADDRESS) as target,
    ):
        share, moved = sites.create(source), sites.share('far#three')
        client, path = tenant.nfs(), f'/shares/{share.name}'
        file = client.open(path, 'notes', create=True)
        sites.copy(share, moved, (source, target))
        for _ in range(2):
            sites.call('cancel', share, moved, (source, target))
        client.write_at(file, 0, b'still open')
        assert client.read(path, 'notes') == b'still open'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.far.driver.get_share_status(moved)


def test_share_whose_server_is_missing_is_not_migrated(sites, tenant, caplog):
    caplog.set_level(logging.INFO)
    with sites.near.server(tenant) as source:
        share = sites.create(source)
        gone = sites.far.set_up(tenant, OTHER_ADDRESS)
        moved = sites.share('far#three')
        servers = (source, gone)
        check = sites.call_check
        assert check(share, moved, servers)['compatible']
        sites.far.tear_down(gone)
        for server, reason in (
            (gone, f'share server {gone.id} does not exist'),
            (None, 'a share needs a share server'),
        ):
            caplog.clear()
            assert not any(check(share, moved, (source, server)).values())
            assert reason in caplog.text
        sites.call('start', share, moved, servers)
        with pytest.raises(exception.ShareBackendException, match='does not exist'):
            sites.call('complete', share, moved, servers)
        path = f'/shares/{share.name}'
        tenant.write(path, b'still here')
        sites.call('cancel', share, moved, servers)
        assert tenant.read(path) == b'still here'
