"""Contract of drivers that replicate shares, for each type.

Replicas are on several back ends of the same driver. For third-party drivers
their sections are in one file; the first has the share.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import uuid

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract import values
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.drivers import driver_harness
from tests.drivers.contract import call_or_skip
from tests.drivers.driver_harness import CTX
from tests.drivers.driver_harness import DirectoryUsers
from tests.drivers.driver_harness import DummyUsers

REPLICA_REPLY_KEYS = {
    'export_locations',
    'replica_state',
    'access_rules_status',
    'share_access_rules',
}
PROMOTION_KEYS = {
    'id',
    'export_locations',
    'replica_state',
    'access_rules_status',
}
SNAPSHOT_REPLY_KEYS = set(values.ReplicatedSnapshotReply.__annotations__)
STATES = {'active', 'in_sync', 'out_of_sync', 'error'}
STYLES = ('writable', 'readable', 'dr')
NAMES = ('here', 'there', 'beyond')
CLIENT = '10.0.0.1'

_COMMON = """
[{name}]
share_driver = {driver}
driver_handles_share_servers = {servers}
replication_domain = domain
"""
_OPTIONS = {
    'dummy': """
dummy_driver_replication_type = {style}
dummy_driver_state_path = {folder}/{name}
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
{more}
""",
    'local': """
local_replication_type = {style}
local_replication_recovery_point = 0
local_root = {folder}/{name}
{more}
""",
}


def _backends():
    """Yield the package's replicating drivers: name, type, servers."""
    for style in STYLES:
        yield 'dummy', style, ''
        yield 'dummy', style, 'servers'
        if style != 'writable':
            yield 'local', style, ''


BACKENDS = list(_backends())


class Site:
    """A back end and the replica that it may hold."""

    def __init__(self, name, harness, servers, backend):
        self.name = name
        self.harness = harness
        self.servers = servers
        self.server = None
        self.is_unreachable = False
        self.state = None
        self.status = 'creating'
        self.locations = []
        self.restart()
        if servers:
            self.server = dataclasses.replace(
                harness.set_up_server(self.driver, self.address),
                host=f'host@{backend}',
            )
        pools = self.driver.get_share_stats(refresh=True)['pools']
        self.host = f'host@{backend}' + (
            f'#{pools[0]["pool_name"]}' if pools else ''
        )
        self.id = str(uuid.uuid4())

    @property
    def address(self):
        return f'10.20.0.{5 + sum(self.name.encode()) % 200}'

    def restart(self):
        """Restart the driver as a new process would."""
        self.driver = self.harness.start()

    def make_unreachable(self):
        """Make the back end unreachable."""
        self.is_unreachable = True
        if hasattr(self.driver, 'make_unreachable'):
            self.driver.make_unreachable()
        elif hasattr(self.driver.configuration, 'local_root'):
            root = pathlib.Path(self.driver.configuration.local_root)
            root.rename(root.with_name(root.name + '.away'))
        else:
            pytest.skip('tests cannot make the back end unreachable')

    def make_reachable(self):
        """Make the back end reachable again and restart its driver."""
        self.is_unreachable = False
        if hasattr(self.driver, 'make_reachable'):
            self.driver.make_reachable()
        else:
            root = pathlib.Path(self.driver.configuration.local_root)
            root.with_name(root.name + '.away').rename(root)
        self.restart()

    def users(self, replica):
        """Return users of the replica who need no access rules."""
        if isinstance(self.driver, LocalDriver):
            path = base.normalise_export_locations(self.locations)[0]['path']
            if os.path.isdir(path):
                return DirectoryUsers(path)
        if hasattr(self.driver, 'write'):
            return DummyUsers(self.driver, replica)
        return pytest.skip('tests cannot access the content of its shares')


class Sites:
    """A share on the first back end, and what a manager knows of it.

    Methods call drivers as a manager does and record the replies.
    """

    def __init__(
        self, folder, driver, style, servers=False, more='', names=NAMES
    ):
        file = folder / 'sites.conf'
        file.write_text(
            f'[DEFAULT]\nstate_path = {folder}\n'
            + ''.join(
                (_COMMON + _OPTIONS[driver]).format(
                    name=name,
                    driver=driver,
                    folder=folder,
                    style=style,
                    servers=servers,
                    more=more,
                )
                for name in names
            )
        )
        self._open(driver, [(name, file, name) for name in names], servers)

    @classmethod
    def of_file(cls, driver, file, sections):
        """Return back ends whose sections are in one file."""
        sites = cls.__new__(cls)
        sites._open(
            driver,
            [
                (name, file, section)
                for name, section in zip(NAMES, sections, strict=False)
            ],
        )
        return sites

    @classmethod
    def of_services(cls, driver, files, section):
        """Return back ends of several services with the same name each."""
        sites = cls.__new__(cls)
        sites._open(
            driver, [(file.parent.name, file, section) for file in files]
        )
        return sites

    def _open(self, driver, backends, servers=False):
        self.share_id = str(uuid.uuid4())
        self.size = 1
        self.snapshots = {}
        self.rules = []
        read = functools.cache(manila_lite.conf.new)
        self.sites = [
            Site(
                name,
                driver_harness.DriverHarness(
                    driver,
                    lambda file=file, section=section: Configuration(
                        read(files=(str(file),)), section
                    ),
                ),
                servers,
                section,
            )
            for name, file, section in backends
        ]
        self.here, self.there, *more = self.sites
        self.beyond = more[0] if more else None
        self.style = self.here.driver.get_share_stats().get('replication_type')
        if self.style is None:
            pytest.skip('the driver does not replicate')
        self.here.state, self.here.status = 'active', 'available'
        self.here.locations = self.here.driver.create_share(
            CTX, self.share_for(self.here), share_server=self.here.server
        )
        self.rules = [self.rule(CLIENT)]
        self.apply_rules(self.here)

    def clean_up(self):
        """Delete everything that tests have created."""
        for site in self.sites:
            if site.is_unreachable:
                site.make_reachable()
        last = next(
            (site for site in self.sites if site.state == 'active'), self.here
        )
        for site in self.sites:
            if site.state and site is not last:
                self.delete(site)
        for id in self.snapshots:
            last.driver.delete_snapshot(
                CTX, self.instance(id, last), last.server
            )
        last.driver.delete_share(CTX, self.share_for(last), last.server)
        for site in self.sites:
            if site.server:
                site.driver.teardown_server(
                    {
                        'server_id': site.server.id,
                        **site.server.backend_details,
                    }
                )

    # Values for drivers

    def share_for(self, site):
        return base.ShareForDriver(
            id=site.id,
            share_id=self.share_id,
            name=f'share-{site.id}',
            size=self.size,
            share_proto='NFS',
            project_id=CTX.project_id,
            host=site.host,
            status=site.status,
            replica_state=site.state,
            replication_type=self.style,
            access_rules_status='active',
            cast_rules_to_readonly=self.has_readonly_rules(site),
            share_server_id=site.server and site.server.id,
            share_server=site.server,
            export_locations=base.normalise_export_locations(site.locations),
        )

    def has_readonly_rules(self, site):
        return self.style == 'readable' and site.state != 'active'

    @property
    def replica_list(self):
        return [self.share_for(site) for site in self.sites if site.state]

    def rule(self, to, level='rw'):
        return base.AccessRuleForDriver(
            id=str(uuid.uuid4()),
            share_id=self.share_id,
            access_type='ip',
            access_to=to,
            access_level=level,
        )

    def rules_for(self, site):
        return [
            dataclasses.replace(rule, access_level='ro')
            if self.has_readonly_rules(site)
            else rule
            for rule in self.rules
        ]

    def instance(self, snapshot_id, site):
        status, size = self.snapshots[snapshot_id]
        id = str(uuid.uuid5(uuid.UUID(snapshot_id), site.name))
        return base.SnapshotForDriver(
            id=id,
            snapshot_id=snapshot_id,
            name=f'snapshot-{id}',
            size=size,
            status=status.get(site.name),
            share=self.share_for(site),
        )

    def instances(self, snapshot_id):
        return [
            self.instance(snapshot_id, site)
            for site in self.sites
            if site.state
        ]

    def pairs(self, site):
        active = self.active
        return [
            {
                'active_replica_snapshot': self.instance(id, active),
                'share_replica_snapshot': self.instance(id, site),
            }
            for id, (status, _) in self.snapshots.items()
            if status.get(active.name) == 'available'
        ]

    @property
    def active(self):
        return next(site for site in self.sites if site.state == 'active')

    # Actions of a manager

    def create(self, site=None):
        site = site or self.there
        site.state = site.state or 'out_of_sync'
        reply = (
            site.driver.create_replica(
                CTX,
                self.replica_list,
                self.share_for(site),
                self.rules_for(site),
                self.pairs(site),
                share_server=site.server,
            )
            or {}
        )
        assert set(reply) <= REPLICA_REPLY_KEYS
        assert reply.get('replica_state') in {*STATES, None}
        site.status = 'available'
        site.state = reply.get('replica_state') or site.state
        site.locations = reply.get('export_locations') or site.locations
        if reply.get('access_rules_status') != 'active':
            self.apply_rules(site)
        return reply

    def create_in_sync(self, site=None):
        """Create a replica and update it until it is in sync."""
        self.create(site)
        for _ in range(5):
            if (site or self.there).state in ('active', 'in_sync'):
                return self
            self.update(site)
        raise AssertionError('it never is in sync')

    def update(self, site=None):
        site = site or self.there
        reply = site.driver.update_replica_state(
            CTX,
            self.replica_list,
            self.share_for(site),
            self.rules_for(site),
            self.pairs(site),
            share_server=site.server,
        )
        passive = {'in_sync', 'out_of_sync', 'error', None}
        assert reply in (
            passive if self.style != 'writable' else {*passive, 'active'}
        )
        site.state = reply or site.state
        return reply

    def delete(self, site=None):
        site = site or self.there
        site.driver.delete_replica(
            CTX,
            self.replica_list,
            [self.instance(id, site) for id in self.snapshots],
            self.share_for(site),
            share_server=site.server,
        )

    def promote(self, site=None, **values):
        site = site or self.there
        replies = site.driver.promote_replica(
            CTX,
            self.replica_list,
            self.share_for(site),
            self.rules,
            share_server=site.server,
            **values,
        )
        replies_by_id = {one['id']: one for one in replies or ()}
        assert all(
            set(one) <= PROMOTION_KEYS for one in replies_by_id.values()
        )
        for other in self.sites:
            if other.state and other is not site:
                replica_state = replies_by_id.get(other.id, {}).get(
                    'replica_state'
                )
                assert replica_state != 'active'
                if other.state == 'active' or replica_state:
                    other.state = replica_state or 'out_of_sync'
        site.state = 'active'
        site.locations = (
            replies_by_id.get(site.id, {}).get('export_locations')
            or site.locations
        )
        for other in self.sites:
            if other.state:
                with contextlib.suppress(exception.ManilaLiteError):
                    self.apply_rules(other)
        return replies

    def apply_rules(self, site):
        site.driver.apply_access(
            CTX,
            self.share_for(site),
            self.rules_for(site),
            share_server=site.server,
        )

    def status(self, site=None):
        site = site or self.there
        return call_or_skip(
            site.driver.get_replica_status, self.share_for(site), site.server
        )

    def snapshot(self):
        """Create a snapshot and return its id."""
        id = str(uuid.uuid4())
        self.snapshots[id] = (
            {site.name: 'creating' for site in self.sites if site.state},
            self.size,
        )
        self.take_snapshot(id)
        return id

    def take_snapshot(self, id):
        return self._record_replies(
            id,
            call_or_skip(
                self.active.driver.create_replicated_snapshot,
                CTX,
                self.replica_list,
                self.instances(id),
                self.active.server,
            ),
        )

    def delete_snapshot(self, id):
        status, _ = self.snapshots[id]
        status.update(dict.fromkeys(status, 'deleting'))
        return self._record_replies(
            id,
            self.active.driver.delete_replicated_snapshot(
                CTX, self.replica_list, self.instances(id), self.active.server
            ),
        )

    def update_snapshot(self, id, site=None):
        site = site or self.there
        return self._record_replies(
            id,
            [
                site.driver.update_replicated_snapshot(
                    CTX,
                    self.replica_list,
                    self.share_for(site),
                    self.instances(id),
                    self.instance(id, site),
                    site.server,
                )
                or {}
            ],
        )

    def _record_replies(self, id, replies):
        there = {self.instance(id, site).id: site for site in self.sites}
        for reply in replies or ():
            assert set(reply) <= SNAPSHOT_REPLY_KEYS
            if reply.get('status'):
                assert reply['status'] in (
                    'available',
                    'creating',
                    'deleted',
                    'error',
                )
                self.snapshots[id][0][there[reply['id']].name] = reply[
                    'status'
                ]
        return replies

    def revert(self, id):
        size = call_or_skip(
            self.active.driver.revert_to_replicated_snapshot,
            CTX,
            self.share_for(self.active),
            self.replica_list,
            self.instance(id, self.active),
            self.instances(id),
            self.rules,
            [],
            self.active.server,
        )
        self.size = size or self.size
        return size

    # Actions and access of users

    def write(self, text, site=None):
        site = site or self.active
        site.users(self.share_for(site)).write(text)

    def read(self, site=None):
        site = site or self.there
        return site.users(self.share_for(site)).read()

    def levels(self, site=None):
        """Return the access levels that a replica grants the client."""
        site = site or self.there
        clients = site.harness.clients(site.driver, self.share_for(site))
        if clients is None:
            pytest.skip('tests cannot see the clients of its shares')
        return {level for _, to, level in clients if to == CLIENT}


PASSIVE_LEVELS = {'readable': {'ro'}, 'dr': set(), 'writable': {'rw'}}


class ReplicaContract:
    """For all replication types."""

    styles = STYLES

    def test_stats_report_replication_type_and_domain(self, sites):
        for site in sites.sites:
            stats = site.driver.get_share_stats(refresh=True)
            assert stats['replication_type'] == sites.style
            assert stats['replication_domain']

    def test_replica_in_sync_has_the_content(self, sites):
        sites.write('one')
        assert sites.create_in_sync().read() == 'one'

    def test_replica_has_its_own_export_locations(self, sites):
        sites.create_in_sync()
        paths = [
            {
                one['path']
                for one in base.normalise_export_locations(site.locations)
            }
            for site in (sites.here, sites.there)
        ]
        assert paths[0].isdisjoint(paths[1])
        assert all(paths)

    def test_only_writable_replicas_are_made_active(self, sites):
        sites.create_in_sync()
        assert (sites.there.state == 'active') == (sites.style == 'writable')

    def test_replica_in_sync_has_the_snapshots(self, sites):
        sites.write('one')
        id = sites.snapshot()
        sites.write('two')
        sites.create_in_sync()
        there = sites.there.driver.get_snapshot_status(
            sites.instance(id, sites.there)
        )
        assert there['status'] == 'available'
        assert there.get('size', 1) == 1

    def test_without_a_snapshot_it_is_not_in_sync(self, sites):
        missing = str(uuid.uuid4())
        sites.snapshots[missing] = ({'here': 'available'}, 1)
        sites.create()
        assert sites.there.state not in ('in_sync', 'active')
        sites.update()
        assert sites.there.state not in ('in_sync', 'active')
        del sites.snapshots[missing]
        assert sites.update() in ('in_sync', 'active')

    def test_creating_again_changes_nothing(self, sites):
        sites.write('one')
        sites.create_in_sync()
        for _ in range(2):
            before = sites.there.locations
            sites.create()
            assert base.normalise_export_locations(
                sites.there.locations
            ) == base.normalise_export_locations(before)
            assert sites.read() == 'one'
            sites.there.restart()

    def test_rules_apply_as_the_replication_type_requires(self, sites):
        sites.create_in_sync()
        assert sites.levels(sites.here) == {'rw'}
        assert sites.levels() == PASSIVE_LEVELS[sites.style]
        sites.apply_rules(sites.there)
        assert sites.levels() == PASSIVE_LEVELS[sites.style]

    def test_rule_is_denied_on_all_replicas(self, sites):
        sites.create_in_sync()
        rules, sites.rules = sites.rules, []
        for site in (sites.here, sites.there):
            site.driver.apply_access(
                CTX,
                sites.share_for(site),
                [],
                [],
                rules,
                share_server=site.server,
            )
            assert sites.levels(site) == set()

    def test_deleted_replica_is_gone_and_the_others_stay(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.delete()
        with pytest.raises(exception.ShareResourceNotFound):
            sites.status()
        assert sites.levels() == set()
        assert sites.read(sites.here) == 'one'
        assert sites.status(sites.here)['status'] == 'available'
        sites.there.state = None
        assert sites.levels(sites.here) == {'rw'}

    def test_deleting_again_is_success(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        for _ in range(2):
            sites.delete()
            sites.there.restart()
            sites.delete()
        with pytest.raises(exception.SnapshotResourceNotFound):
            sites.there.driver.get_snapshot_status(
                sites.instance(id, sites.there)
            )

    def test_deleting_a_missing_one_is_success(self, sites):
        sites.there.state = 'out_of_sync'
        sites.delete()
        assert sites.status(sites.here)['status'] == 'available'

    def test_replica_can_be_created_again_after_deletion(self, sites):
        sites.create_in_sync()
        sites.delete()
        sites.there.state = None
        sites.write('two')
        assert sites.create_in_sync().read() == 'two'

    def test_status_matches_the_back_end(self, sites):
        sites.there.state = 'out_of_sync'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.status()
        sites.create_in_sync()
        for site in (sites.here, sites.there):
            site.restart()
            reply = sites.status(site)
            assert reply['status'] == 'available'
            assert reply.get('size', 1) == 1

    def test_missing_replica_has_no_state(self, sites):
        sites.there.state = 'out_of_sync'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.update()

    def test_extension_reaches_all_replicas(self, sites):
        sites.create_in_sync()
        call_or_skip(
            sites.here.driver.extend_share,
            sites.share_for(sites.here),
            3,
            sites.here.server,
        )
        sites.size = 3
        if sites.there.state != 'active':
            sites.update()
        assert sites.status().get('size', 3) == 3

    def test_restarted_driver_knows_its_replicas(self, sites):
        sites.write('one')
        sites.create_in_sync()
        for site in sites.sites:
            site.restart()
        sites.write('two')
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'
        assert sites.read() == 'two'

    def test_a_third_replica_is_like_the_second(self, sites):
        if sites.beyond is None:
            pytest.skip('there are only two back ends')
        sites.write('one')
        sites.create_in_sync()
        sites.create_in_sync(sites.beyond)
        assert sites.read(sites.beyond) == 'one'
        sites.delete()
        sites.there.state = None
        sites.write('two')
        if sites.beyond.state != 'active':
            assert sites.update(sites.beyond) == 'in_sync'
        assert sites.read(sites.beyond) == 'two'


class ReplicatedSnapshotContract:
    """For all replication types."""

    styles = STYLES

    def everywhere(self, sites, id):
        """Poll until all replicas have the snapshot."""
        status, _ = sites.snapshots[id]
        for site in sites.sites:
            for _ in range(5):
                if site.state and status[site.name] == 'creating':
                    sites.update_snapshot(id, site)
        return set(status.values())

    def test_snapshot_reaches_all_replicas(self, sites):
        sites.write('one')
        sites.create_in_sync()
        id = sites.snapshot()
        assert sites.snapshots[id][0]['here'] == 'available'
        assert self.everywhere(sites, id) == {'available'}
        for site in (sites.here, sites.there):
            assert (
                site.driver.get_snapshot_status(sites.instance(id, site))[
                    'status'
                ]
                == 'available'
            )

    def test_taking_again_changes_nothing(self, sites):
        sites.create_in_sync()
        sites.write('one')
        id = sites.snapshot()
        sites.write('two')
        sites.here.restart()
        sites.take_snapshot(id)
        assert self.everywhere(sites, id) == {'available'}
        sites.revert(id)
        assert sites.read(sites.here) == 'one'

    def test_polling_again_changes_nothing(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        self.everywhere(sites, id)
        before = sites.update_snapshot(id)
        sites.there.restart()
        assert sites.update_snapshot(id) == before

    def test_snapshot_is_deleted_from_all_replicas(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        self.everywhere(sites, id)
        sites.delete_snapshot(id)
        assert sites.snapshots[id][0]['here'] == 'deleted'
        if sites.snapshots[id][0]['there'] != 'deleted':
            with contextlib.suppress(exception.SnapshotResourceNotFound):
                assert sites.update_snapshot(id)[0]['status'] == 'deleted'
        for site in (sites.here, sites.there):
            with pytest.raises(exception.SnapshotResourceNotFound):
                site.driver.get_snapshot_status(sites.instance(id, site))

    def test_deleting_a_snapshot_again_is_success(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        sites.delete_snapshot(id)
        sites.here.restart()
        sites.delete_snapshot(id)
        assert sites.snapshots[id][0]['here'] == 'deleted'

    def test_snapshot_deleted_before_it_is_copied_never_appears(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        sites.delete_snapshot(id)
        for _ in range(2):
            if sites.snapshots[id][0]['there'] != 'deleted':
                with contextlib.suppress(exception.SnapshotResourceNotFound):
                    sites.update_snapshot(id)
        with pytest.raises(exception.SnapshotResourceNotFound):
            sites.there.driver.get_snapshot_status(
                sites.instance(id, sites.there)
            )
        del sites.snapshots[id]
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'

    def test_missing_snapshot_is_not_found(self, sites):
        sites.create_in_sync()
        id = str(uuid.uuid4())
        for here, there in (
            ('available', 'creating'),
            ('deleting', 'deleting'),
        ):
            sites.snapshots[id] = ({'here': here, 'there': there}, 1)
            with pytest.raises(exception.SnapshotResourceNotFound):
                call_or_skip(sites.update_snapshot, id)

    def test_reverted_share_has_content_and_size_back(self, sites):
        sites.write('one')
        sites.create_in_sync()
        id = sites.snapshot()
        self.everywhere(sites, id)
        sites.write('two')
        call_or_skip(
            sites.here.driver.extend_share,
            sites.share_for(sites.here),
            3,
            sites.here.server,
        )
        sites.size = 3
        for _ in range(2):
            assert sites.revert(id) in (None, 1)
            sites.here.restart()
        sites.size = 1
        assert sites.read(sites.here) == 'one'
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'
        assert sites.read() == 'one'
        assert sites.status().get('size', 1) == 1

    def test_revert_to_a_missing_snapshot_changes_nothing(self, sites):
        sites.create_in_sync()
        sites.write('one')
        id = str(uuid.uuid4())
        sites.snapshots[id] = (
            dict.fromkeys(('here', 'there'), 'available'),
            1,
        )
        with pytest.raises(exception.DriverError):
            sites.revert(id)
        assert sites.read(sites.here) == 'one'


class PromotionContract:
    """For types with one active replica."""

    styles = ('readable', 'dr')

    def test_passive_replica_follows_at_the_next_update(self, sites):
        sites.create_in_sync()
        for text in ('one', 'two'):
            sites.write(text)
            for _ in range(2):
                assert sites.update() == 'in_sync'
                assert sites.read() == text

    def test_no_replica_of_an_unreachable_active_one_is_in_sync(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.here.make_unreachable()
        assert sites.update() == 'out_of_sync'
        assert sites.read() == 'one'
        sites.here.make_reachable()
        assert sites.update() == 'in_sync'

    def test_promoted_replica_has_at_least_the_last_synced_content(
        self, sites
    ):
        sites.write('one')
        sites.create_in_sync()
        sites.write('two')
        sites.update()
        sites.write('three')
        sites.promote()
        assert sites.read() in ('two', 'three')

    def test_replica_promoted_alone_has_the_last_synced_content(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.write('two')
        sites.here.make_unreachable()
        sites.promote()
        assert sites.read() == 'one'
        assert sites.status()['status'] == 'available'

    def test_roles_change_with_the_promotion(self, sites):
        sites.create_in_sync()
        sites.promote(quiesce_wait_time=0)
        assert sites.levels() == {'rw'}
        assert sites.levels(sites.here) == PASSIVE_LEVELS[sites.style]

    def test_promoting_again_undoes_nothing(self, sites):
        sites.write('one')
        sites.create_in_sync()
        before = sites.replica_list
        sites.promote()
        sites.write('two')
        for _ in range(2):
            # The manager was killed before it recorded the promotion.
            replies = sites.there.driver.promote_replica(
                CTX,
                before,
                before[1],
                sites.rules,
                share_server=sites.there.server,
            )
            assert {
                one['id']: one.get('replica_state')
                for one in replies or [{'id': None}]
            }.get(sites.there.id, 'active') == 'active'
            assert sites.read() == 'two'
            sites.there.restart()
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_previously_active_replica_follows_the_promoted_one(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_recovered_replica_is_no_longer_active(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.write('lost')
        sites.here.make_unreachable()
        sites.promote()
        sites.write('two')
        sites.here.make_reachable()
        assert 'rw' not in sites.levels(sites.here)
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'
        sites.apply_rules(sites.here)
        assert sites.levels(sites.here) == PASSIVE_LEVELS[sites.style]
        assert sites.levels() == {'rw'}

    def test_promotion_back_and_forth_keeps_the_content(self, sites):
        sites.create_in_sync()
        for number, site in enumerate((sites.there, sites.here) * 2):
            sites.write(f'before {number}')
            assert sites.update(site) == 'in_sync'
            sites.promote(site)
            assert sites.read(site) == f'before {number}'
            other = sites.here if site is sites.there else sites.there
            assert sites.update(other) == 'in_sync'
            for each in sites.sites:
                each.restart()

    def test_third_replica_follows_the_promoted_one(self, sites):
        if sites.beyond is None:
            pytest.skip('there are only two back ends')
        sites.create_in_sync()
        sites.create_in_sync(sites.beyond)
        sites.here.make_unreachable()
        sites.promote()
        sites.write('two')
        assert sites.update(sites.beyond) == 'in_sync'
        assert sites.read(sites.beyond) == 'two'
        assert sites.levels(sites.beyond) == PASSIVE_LEVELS[sites.style]

    def test_snapshots_outlive_the_promotion(self, sites):
        sites.write('one')
        id = sites.snapshot()
        sites.create_in_sync()
        sites.snapshots[id][0]['there'] = 'available'
        sites.write('two')
        sites.update()
        sites.here.make_unreachable()
        sites.promote()
        assert sites.read() == 'two'
        sites.revert(id)
        assert sites.read() == 'one'

    def test_replica_that_was_active_can_be_deleted(self, sites):
        sites.create_in_sync()
        sites.promote()
        sites.write('two')
        sites.delete(sites.here)
        sites.here.state = None
        assert sites.read() == 'two'
        assert sites.levels() == {'rw'}
        assert sites.create_in_sync(sites.here).read(sites.here) == 'two'

    def test_missing_replica_cannot_be_promoted(self, sites):
        sites.there.state = 'in_sync'
        with pytest.raises(exception.DriverError):
            sites.promote()
        sites.there.state = None
        assert sites.levels(sites.here) == {'rw'}


class WritableContract:
    """For the type with all replicas active."""

    styles = ('writable',)

    def test_write_to_one_reaches_all(self, sites):
        sites.create_in_sync()
        sites.create_in_sync(sites.beyond)
        for site in sites.sites:
            sites.write(f'from {site.name}', site)
            assert {sites.read(each) for each in sites.sites} == {
                f'from {site.name}'
            }

    def test_others_continue_without_one(self, sites):
        sites.create_in_sync()
        sites.write('one')
        sites.here.make_unreachable()
        sites.write('two', sites.there)
        assert sites.read() == 'two'
        sites.here.make_reachable()
        assert sites.status(sites.here)['status'] == 'available'
        assert sites.read(sites.here) == 'two'

    def test_first_replica_can_be_deleted(self, sites):
        sites.create_in_sync()
        sites.write('one')
        sites.delete(sites.here)
        sites.here.state = None
        sites.write('two', sites.there)
        assert sites.create_in_sync(sites.here).read(sites.here) == 'two'
