"""Contract of drivers to which share servers can migrate.

The source and the destination are two back ends of the same driver, whose
sections are in one file. A driver that accepts no server says so.
"""

import contextlib
import dataclasses

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.contract import migrations
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import driver_harness
from tests.drivers.driver_harness import CTX
from tests.support import storage, tenant_network

METHODS = ('start', 'continue', 'complete', 'cancel', 'get_progress')
REPLY_KEYS = set(migrations.ServerMigrationCompatibility.__annotations__)
MAX_POLLS = 20

_FILE = """
[{name}]
share_driver = dummy
driver_handles_share_servers = true
dummy_driver_state_path = {folder}/{name}
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
dummy_driver_server_migration_steps = 3
"""

_POOL_SIZE = 2 << 30
_BTRFS_FILE = """
[{name}]
share_driver = btrfs
driver_handles_share_servers = true
btrfs_root = {root}
btrfs_pools = pool:{pool}
btrfs_bridge = {bridge}
btrfs_nfs_port = 2049
btrfs_cifs = {has_cifs}
"""


class MigrationPair:
    """A back end with a server and a share, and a destination."""

    driver = 'dummy'
    nondisruptive = True
    share_proto = 'NFS'

    def __init__(self, folder):
        file = folder / 'pair.conf'
        file.write_text(
            ''.join(self.section(folder, name) for name in ('here', 'there'))
        )
        self.made = {
            name: driver_harness.DriverHarness(
                self.driver,
                lambda name=name: Configuration(
                    manila_lite.conf.new(files=[str(file)]), name
                ),
            )
            for name in ('here', 'there')
        }
        self.source, self.target = (
            self.made[name].start() for name in ('here', 'there')
        )
        here = self.made['here']
        info = here.network_info('10.20.0.5')
        self.server = here.server(info, self.source.setup_server(info))
        self.server = dataclasses.replace(self.server, host='host@here')
        self.share = here.share(host='host@here#pool', share_proto=self.share_proto)
        self.source.create_share(CTX, self.share, self.server)
        self.write('content')
        self.snapshot = here.snapshot(self.share)
        self.source.create_snapshot(CTX, self.snapshot, self.server)

    def section(self, folder, name):
        """Return the configuration of a back end."""
        return _FILE.format(name=name, folder=folder)

    def write(self, text):
        """Write to the share on the source."""
        self.source.write(self.share.id, text)

    def has_share(self, driver=None):
        """Return whether a back end, or the source, has the whole share."""
        driver = driver or self.source
        return (
            driver.inventory() == {self.share.id: self.share.size}
            and driver.read(self.share.id) == 'content'
        )

    def is_empty(self, driver):
        """Return whether a back end has neither shares nor copies."""
        return not driver.inventory() and not driver.incoming()

    @contextlib.contextmanager
    def failing_completion(self):
        """Let the next completion fail when it has begun."""
        self.target.half_fail_next('share_server_migration_complete')
        yield

    def destination(self, *addresses):
        """Return a destination server; without addresses it is not set up."""
        there = self.made['there']
        self.info = there.network_info(*addresses)
        details = self.target.setup_server(self.info) if addresses else {}
        return dataclasses.replace(there.server(self.info, details), host='host@there')

    def arguments(self, destination):
        return (CTX, self.server, destination, [self.share], [self.snapshot])

    def run_first_phase(self, destination):
        """Run the first phase and return the progress it reported."""
        arguments, progress = self.arguments(destination), []
        self.target.share_server_migration_start(*arguments)
        for _ in range(MAX_POLLS):
            if self.target.share_server_migration_continue(*arguments):
                return progress
            progress.append(
                self.target.share_server_migration_get_progress(*arguments)[
                    'total_progress'
                ]
            )
        raise AssertionError('the first phase does not end')

    def check(self, server=None, host='host@there'):
        network = {'id': 'network', 'share_network_subnets': []}
        return self.target.share_server_migration_check_compatibility(
            CTX,
            server or self.server,
            host,
            network,
            network,
            {
                'shares_size': 1,
                'snapshots_size': 1,
                'shares_req_spec': [{'share_proto': self.share_proto}],
            },
        )


class BtrfsPair(MigrationPair):
    """The same with real servers, which are on one bridge."""

    driver = 'btrfs'
    nondisruptive = False
    pool_sizes: dict[str, int] = {}

    def __init__(self, folder, bridge):
        self.bridge = bridge
        folder.mkdir(exist_ok=True)
        super().__init__(folder)

    def section(self, folder, name):
        (folder / name).mkdir()
        pool = storage.create_pool(
            folder / name / 'pool.img', self.pool_sizes.get(name, _POOL_SIZE)
        )
        return _BTRFS_FILE.format(
            name=name,
            root=folder / name / 'r',
            pool=pool,
            bridge=self.bridge,
            has_cifs=self.share_proto == 'CIFS',
        )

    def volume(self, driver, item=None):
        item = item or self.share
        kind = 'snapshots' if 'share_name' in item else 'shares'
        return driver.backend.pools['pool'].path(kind, item.name)

    def write(self, text):
        (self.volume(self.source) / 'notes').write_text(text)

    def has_share(self, driver=None):
        driver = driver or self.source
        status = driver.get_share_status(self.share)
        return (
            status['status'] == 'available'
            and status['size'] == self.share.size
            and all(
                (self.volume(driver, item) / 'notes').read_text() == 'content'
                for item in (self.share, self.snapshot)
            )
        )

    def is_empty(self, driver):
        return not self.remains(driver)

    def remains(self, driver):
        """Return what a back end has, except files written in part."""
        root = driver.backend.root
        tops = [pool.top for pool in driver.backend.pools.values()]
        records = [
            *(root / each for each in ('arriving', 'leaving')),
            *(
                top / 'records' / each
                for top in tops
                for each in ('shares', 'snapshots')
            ),
        ]
        volumes = [
            top / each
            for top in tops
            for each in ('moving', 'copies', 'shares', 'snapshots')
        ]
        return [
            path
            for folder, pattern in (
                *((each, '*.json') for each in records),
                *((each, '[!.]*') for each in volumes),
            )
            for path in folder.glob(pattern)
        ]

    @contextlib.contextmanager
    def failing_completion(self):
        """Let it find a snapshot that it cannot create."""
        catalog = self.target.backend.pools['pool'].catalog
        catalog.put('snapshots', self.snapshot.name, {'volume': 'other'})
        yield
        catalog.drop('snapshots', self.snapshot.name)


@pytest.fixture(params=['dummy', 'btrfs'])
def pair(request, tmp_path):
    if request.param == 'dummy':
        yield MigrationPair(tmp_path)
        return
    storage.require_servers()
    with tenant_network.bridge() as bridge, storage.folder() as folder:
        yield BtrfsPair(folder, bridge)


class MigrationContract:
    """For every driver: it reports correctly whether it accepts servers."""

    def test_compatibility_has_the_published_keys(self, harness):
        driver = harness.start()
        reply = driver.share_server_migration_check_compatibility(
            CTX,
            harness.server(harness.network_info('10.20.0.5')),
            'host@backend',
            {},
            {},
            {'shares_size': 1, 'snapshots_size': 0, 'shares_req_spec': []},
        )
        assert set(reply) <= REPLY_KEYS
        assert all(isinstance(value, bool) for value in reply.values())
        # No server can come from an unknown back end.
        assert not reply['compatible']

    def test_what_is_not_offered_is_not_implemented(self, harness):
        driver = harness.start()
        if harness.driver == 'dummy':
            pytest.skip('it migrates servers in every mode')
        for method in METHODS:
            more = [[]] if method == 'complete' else []
            with pytest.raises(NotImplementedError):
                getattr(driver, f'share_server_migration_{method}')(
                    CTX, {}, {}, [], [], *more
                )
        assert (
            driver.choose_share_server_compatible_for_migration(CTX, [], {}, [], [])
            is None
        )


class MigratedServersContract:
    """For drivers that accept servers, between two of their back ends."""

    def test_every_method_may_be_called_twice(self, pair):
        destination = pair.destination('10.20.0.9')
        arguments = pair.arguments(destination)
        for _ in range(2):
            pair.target.share_server_migration_start(*arguments)
        pair.run_first_phase(destination)
        assert pair.target.share_server_migration_continue(*arguments)
        replies = [
            pair.target.share_server_migration_complete(*arguments, pair.info)
            for _ in range(2)
        ]
        assert replies[0] == replies[1]
        assert pair.has_share(pair.target)
        assert pair.is_empty(pair.source)
        pair.source.teardown_server({'server_id': pair.server.id})

    def test_exports_are_those_of_the_destination(self, pair):
        destination = pair.destination('10.20.0.9')
        pair.run_first_phase(destination)
        reply = pair.target.share_server_migration_complete(
            *pair.arguments(destination), pair.info
        )
        exports = normalise_export_locations(
            reply['share_updates'][pair.share.id]['export_locations']
        )
        assert any('10.20.0.9' in one['path'] for one in exports)
        assert not any('10.20.0.5' in one['path'] for one in exports)
        assert set(reply['snapshot_updates']) == {pair.snapshot.id}

    def test_without_addresses_those_of_the_source_are_taken_over(self, pair):
        if not pair.nondisruptive:
            pytest.skip('the driver needs addresses')
        destination = pair.destination()
        pair.run_first_phase(destination)
        reply = pair.target.share_server_migration_complete(
            *pair.arguments(destination), pair.info
        )
        exports = normalise_export_locations(
            reply['share_updates'][pair.share.id]['export_locations']
        )
        assert any('10.20.0.5' in one['path'] for one in exports)

    def test_until_the_second_phase_the_source_is_untouched(self, pair):
        destination = pair.destination('10.20.0.9')
        progress = pair.run_first_phase(destination)
        assert progress == sorted(progress)
        assert all(0 <= one <= 100 for one in progress)
        with pytest.raises(exception.ShareResourceNotFound):
            pair.target.get_share_status(pair.share)
        assert pair.has_share()
        for _ in range(2):
            pair.target.share_server_migration_cancel(*pair.arguments(destination))
        assert pair.is_empty(pair.target)
        assert pair.has_share()

    def test_interrupted_completion_loses_nothing(self, pair):
        destination = pair.destination('10.20.0.9')
        pair.run_first_phase(destination)
        arguments = pair.arguments(destination)
        with pair.failing_completion(), pytest.raises(exception.ManilaLiteError):
            pair.target.share_server_migration_complete(*arguments, pair.info)
        assert pair.has_share()
        pair.target.share_server_migration_complete(*arguments, pair.info)
        assert pair.has_share(pair.target)

    def test_server_out_of_reach_is_not_compatible(self, pair):
        reply = pair.check()
        assert reply.pop('nondisruptive') == pair.nondisruptive
        assert all(reply.values())
        assert not pair.check(host='host@there#elsewhere')['compatible']
        for values in ({'host': 'host@elsewhere'}, {'id': 'elsewhere'}):
            stranger = dataclasses.replace(pair.server, **values)
            assert not any(pair.check(stranger).values())

    def test_partial_capabilities_are_reported(self, pair):
        if pair.driver != 'dummy':
            pytest.skip('the driver offers the same for all servers')
        pair.target.set_migration_capabilities({'compatible', 'writable'})
        assert {name for name, value in pair.check().items() if value} == {
            'compatible',
            'writable',
        }

    def test_torn_down_server_leaves_no_copies(self, pair):
        destination = pair.destination('10.20.0.9')
        pair.run_first_phase(destination)
        pair.target.teardown_server({'server_id': destination.id})
        assert pair.is_empty(pair.target)
        assert pair.has_share()
