"""Contract of drivers that migrate shares.

The source and the destination are two back ends of the same driver, whose
sections are in one file. A driver that migrates none says so.
"""

import contextlib

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.contract.migrations import ShareMigrationCompatibility
from tests.drivers.driver_harness import (
    CTX,
    DirectoryUsers,
    DriverHarness,
    DummyUsers,
    names_on,
)
from tests.drivers.replication_backends import new_ports
from tests.support import storage, tenant_network

REPLY_KEYS = set(ShareMigrationCompatibility.__annotations__)
METHODS = ('start', 'continue', 'complete', 'cancel', 'get_progress')
MAX_POLLS = 20
CLIENT = '10.0.0.1'

KINDS = {
    'dummy': ('dummy', 'NFS'),
    'btrfs': ('btrfs', 'NFS'),
    'btrfs-cifs': ('btrfs', 'CIFS'),
    'btrfs-servers': ('btrfs', 'NFS'),
    'btrfs-cifs-servers': ('btrfs', 'CIFS'),
}
"""Drivers that migrate shares, and the protocols of these."""

_COMMON = """
[{name}]
share_driver = {driver}
driver_handles_share_servers = {with_servers}
"""
_OPTIONS = {
    'dummy': """
dummy_driver_state_path = {folder}/{name}
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
dummy_driver_share_migration_steps = 3
""",
    'btrfs': """
btrfs_root = {folder}/{name}
btrfs_pools = pool:{folder}/{name}.img
btrfs_nfs_port = {port}
btrfs_bridge = {bridge}
btrfs_cifs = {cifs}
btrfs_smb_port = {smb_port}
""",
}
_POOL_SIZE = 2 << 30


class SharePair:
    """A back end with a share, and another one that it can migrate to."""

    def __init__(self, folder, kind):
        self._resources = contextlib.ExitStack()
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.driver, self.share_proto = KINDS[kind]
        with_servers = kind.endswith('servers')
        bridge = self._add_bridge() if with_servers else ''
        if self.driver == 'btrfs':
            for name in ('here', 'there'):
                storage.create_pool(folder / f'{name}.img', _POOL_SIZE)
        self.file = folder / 'pair.conf'
        self.file.write_text(
            ''.join(
                (_COMMON + _OPTIONS[self.driver]).format(
                    name=name,
                    driver=self.driver,
                    folder=folder,
                    **new_ports(self.driver),
                    cifs=self.share_proto == 'CIFS',
                    with_servers=with_servers,
                    bridge=bridge,
                )
                for name in ('here', 'there')
            )
        )
        self.made = {
            name: DriverHarness(
                self.driver,
                lambda name=name: Configuration(
                    manila_lite.conf.new(files=[str(self.file)]), name
                ),
            )
            for name in ('here', 'there')
        }
        self.restart()
        here, there = self.made.values()
        self.share = here.share(
            host='host@here#pool', share_proto=self.share_proto, status='migrating'
        )
        self.moved = there.share(
            host='host@there#pool',
            share_proto=self.share_proto,
            share_id=self.share.share_id,
        )
        self.servers = (
            (
                self._set_up(here, self.source, '10.20.0.5'),
                self._set_up(there, self.target, '10.20.0.9'),
            )
            if with_servers
            else (None, None)
        )
        self.source.create_share(CTX, self.share, self.servers[0])
        self.snapshot = here.snapshot(self.share)
        self.moved_snapshot = there.snapshot(self.moved)
        self.write('earlier')
        self.source.create_snapshot(CTX, self.snapshot)
        self.rules = [here.rule(self.share, CLIENT)]
        if self.share_proto == 'NFS':
            self.allow(self.source, self.share)
        self.write('content')

    def _add_bridge(self):
        """Return a bridge of share servers."""
        storage.require_servers()
        return self._resources.enter_context(tenant_network.bridge())

    def _set_up(self, harness, driver, address):
        info = harness.network_info(address)
        return harness.server(info, driver.setup_server(info))

    def restart(self):
        """Start both drivers as new processes would."""
        self.source, self.target = (made.start() for made in self.made.values())

    def clean_up(self):
        self.restart()
        for driver, share, snapshot in (
            (self.source, self.share, self.snapshot),
            (self.target, self.moved, self.moved_snapshot),
        ):
            try:
                driver.delete_snapshot(CTX, snapshot)
                driver.delete_share(CTX, share)
            except exception.ShareResourceNotFound:
                continue
        for driver, server in zip(
            (self.source, self.target), self.servers, strict=True
        ):
            if server:
                driver.teardown_server({'server_id': server.id})
        self._resources.close()

    # Clients

    def allow(self, driver, share):
        driver.update_access(CTX, share, self.rules, [], [], [])

    def clients(self):
        """Return the clients of the source."""
        return self.made['here'].clients(self.source, self.share)

    def users(self, driver, share):
        if isinstance(driver, BtrfsDriver):
            pool, record = driver.backend.get_share(share.name)
            return DirectoryUsers(pool.path(Kind.SHARE, record['volume']))
        return DummyUsers(driver, share)

    def write(self, text):
        self.users(self.source, self.share).write(text)

    def read(self):
        """Return what is in the share at its destination."""
        return self.users(self.target, self.moved).read()

    def has_share(self, driver, share):
        try:
            return driver.get_share_status(share)['status'] == 'available'
        except exception.ShareResourceNotFound:
            return False

    def has_snapshot(self, driver, snapshot):
        """Return whether there is a snapshot with its content."""
        try:
            status = driver.get_snapshot_status(snapshot)['status']
        except exception.SnapshotResourceNotFound:
            return False
        if status != 'available' or not isinstance(driver, BtrfsDriver):
            return status == 'available'
        pool, record = driver.backend.get_snapshot(snapshot)
        path = pool.path(Kind.SNAPSHOT, record['volume'])
        return DirectoryUsers(path).read() == 'earlier'

    def traces(self):
        """Return which names the wrong back ends know."""
        return _known(self.source, self.moved, self.moved_snapshot) | _known(
            self.target, self.share, self.snapshot
        )

    def left_at_source(self):
        """Return what is left of the share on the source."""
        return _known(self.source, self.share, self.snapshot)

    def left_at_destination(self):
        return _known(self.target, self.moved, self.moved_snapshot)

    # Calls

    def call(self, operation):
        return getattr(self.source, f'migration_{operation}')(
            CTX,
            self.share,
            self.moved,
            [self.snapshot],
            {self.snapshot.id: self.moved_snapshot},
            *self.servers,
        )

    def check(self, **values):
        destination = self.made['there'].share(
            **{'host': 'host@there#pool', 'share_proto': self.share_proto} | values
        )
        self.made['there'].shares.remove(destination)
        return self.source.migration_check_compatibility(
            CTX, self.share, destination, *self.servers
        )

    def copy(self):
        """Run the first phase; return the progress that was reported."""
        progress = []
        self.call('start')
        for _ in range(MAX_POLLS):
            is_done = self.call('continue')
            progress.append(self.call('get_progress')['total_progress'])
            if is_done:
                return progress
        raise AssertionError('the first phase does not end')

    def complete(self):
        """Run the second phase; return the paths of the export locations."""
        reply = self.call('complete')
        return [
            one['path'] for one in normalise_export_locations(reply['export_locations'])
        ]


def _known(driver, share, snapshot):
    """Return what a back end knows of a share and its snapshot."""
    if isinstance(driver, BtrfsDriver):
        return {share.name, snapshot.name} & names_on(driver)
    return {share.id, snapshot.id} & (
        set(driver.inventory()) | set(driver.snapshot_inventory())
    )


class ShareMigrationContract:
    """For every driver: it reports correctly whether it migrates shares."""

    def test_share_of_an_unknown_back_end_has_no_way(self, harness):
        driver = harness.start()
        share = harness.share()
        elsewhere = harness.share(host='host@elsewhere#pool')
        driver.create_share(CTX, share)
        reply = driver.migration_check_compatibility(CTX, share, elsewhere)
        assert set(reply) <= REPLY_KEYS
        assert all(isinstance(value, bool) for value in reply.values())
        assert not any(reply.values())

    def test_methods_are_there_if_one_of_them_is(self, harness):
        driver = harness.start()
        share = harness.share()
        elsewhere = harness.share(host='host@elsewhere#pool')
        missing = set()
        for method in METHODS:
            with contextlib.suppress(exception.ManilaLiteError):
                try:
                    getattr(driver, f'migration_{method}')(
                        CTX, share, elsewhere, [], {}
                    )
                except NotImplementedError:
                    missing.add(method)
        assert missing in (set(), set(METHODS))


class MigratedSharesContract:
    """For drivers that migrate shares, between two of their back ends."""

    def test_every_method_may_be_called_twice(self, share_pair):
        share_pair.call('start')
        share_pair.copy()
        assert share_pair.call('continue')
        locations = share_pair.complete()
        assert locations
        assert share_pair.complete() == locations
        assert share_pair.read() == 'content'
        assert not share_pair.has_share(share_pair.source, share_pair.share)
        assert not share_pair.left_at_source()
        assert not share_pair.traces()
        assert share_pair.has_snapshot(share_pair.target, share_pair.moved_snapshot)
        assert share_pair.call('continue')

    def test_moved_share_can_be_used(self, share_pair):
        share_pair.copy()
        share_pair.complete()
        users = share_pair.users(share_pair.target, share_pair.moved)
        users.write('more')
        assert share_pair.read() == 'more'
        share_pair.target.extend_share(share_pair.moved, 2)
        status = share_pair.target.get_share_status(share_pair.moved)
        assert (status['status'], status['size']) == ('available', 2)
        share_pair.target.delete_snapshot(CTX, share_pair.moved_snapshot)
        share_pair.target.delete_share(CTX, share_pair.moved)
        assert not share_pair.left_at_destination()

    def test_until_the_second_phase_the_source_is_untouched(self, share_pair):
        clients = share_pair.clients()
        progress = share_pair.copy()
        assert progress == sorted(progress)
        assert all(0 <= one <= 100 for one in progress)
        assert share_pair.clients() == clients
        assert share_pair.has_share(share_pair.source, share_pair.share)
        share_pair.write('more')
        for _ in range(2):
            share_pair.call('cancel')
        assert not share_pair.left_at_destination()
        assert not share_pair.traces()
        assert share_pair.clients() == clients
        users = share_pair.users(share_pair.source, share_pair.share)
        assert users.read() == 'more'
        assert share_pair.has_snapshot(share_pair.source, share_pair.snapshot)

    def test_what_clients_write_between_the_phases_is_moved(self, share_pair):
        share_pair.copy()
        share_pair.write('more')
        share_pair.complete()
        assert share_pair.read() == 'more'

    def test_cancelled_migration_is_not_continued(self, share_pair):
        share_pair.call('start')
        share_pair.call('cancel')
        with pytest.raises(exception.ManilaLiteError):
            share_pair.call('continue')
        assert not share_pair.left_at_destination()

    def test_migration_can_be_cancelled_and_begun_again(self, share_pair):
        share_pair.copy()
        share_pair.call('cancel')
        share_pair.copy()
        share_pair.complete()
        assert share_pair.read() == 'content'

    def test_it_says_where_it_can_migrate_to(self, share_pair):
        assert share_pair.check()['compatible']
        assert share_pair.check()['preserve_snapshots']
        assert set(share_pair.check()) <= REPLY_KEYS
        for host in ('host@there#elsewhere', 'host@elsewhere#pool'):
            assert not any(share_pair.check(host=host).values())
