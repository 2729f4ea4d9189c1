"""What any driver must do that replicates shares, in each of the styles.

Replicas lie on several back ends of the same driver. For one of somebody
else's their sections stand in one file; the first holds the share.
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
from tests.drivers import driver_harness as subjects
from tests.drivers.contract import optional
from tests.drivers.driver_harness import CTX
from tests.drivers.driver_harness import DirectoryUsers
from tests.drivers.driver_harness import DummyUsers

PUBLISHED = {
    'export_locations',
    'replica_state',
    'access_rules_status',
    'share_access_rules',
}
OF_PROMOTED = {
    'id',
    'export_locations',
    'replica_state',
    'access_rules_status',
}
OF_SNAPSHOT = set(values.ReplicatedSnapshotReply.__annotations__)
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


def _places():
    """The drivers of this package that replicate: name, style, servers."""
    for style in STYLES:
        yield 'dummy', style, ''
        yield 'dummy', style, 'servers'
        if (
            style != 'writable'
            and LocalDriver.promote_replica
            is not base.ShareDriver.promote_replica
        ):
            yield 'local', style, ''


PLACES = list(_places())


class Site:
    """A back end, and the replica that it may hold."""

    def __init__(self, name, subject, servers, backend):
        self.name = name
        self.subject = subject
        self.servers = servers
        self.server = None
        self.is_lost = False
        self.state = None
        self.status = 'creating'
        self.locations = []
        self.restart()
        if servers:
            self.server = dataclasses.replace(
                subject.set_up_server(self.driver, self.address),
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
        """The driver as a new process would have it."""
        self.driver = self.subject.start()

    def lose(self):
        """Have nobody reach it."""
        self.is_lost = True
        if hasattr(self.driver, 'make_unreachable'):
            self.driver.make_unreachable()
        elif hasattr(self.driver.configuration, 'local_root'):
            root = pathlib.Path(self.driver.configuration.local_root)
            root.rename(root.with_name(root.name + '.away'))
        else:
            pytest.skip('no test can lose such a back end')

    def bring_back(self):
        self.is_lost = False
        if hasattr(self.driver, 'make_reachable'):
            self.driver.make_reachable()
        else:
            root = pathlib.Path(self.driver.configuration.local_root)
            root.with_name(root.name + '.away').rename(root)
        self.restart()

    def users(self, replica):
        """Those who read and write it, whether rules let them or not."""
        if isinstance(self.driver, LocalDriver):
            path = base.normalise_export_locations(self.locations)[0]['path']
            if os.path.isdir(path):
                return DirectoryUsers(path)
        if hasattr(self.driver, 'write'):
            return DummyUsers(self.driver, replica)
        return pytest.skip('no test can reach the content of its shares')


class Sites:
    """A share on the first back end, and what a manager knows of it.

    What is asked is asked as a manager would, who believes the answers.
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
        """Back ends whose sections are in a file."""
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
        """Of several services, each with a back end of the same name."""
        sites = cls.__new__(cls)
        sites._open(
            driver, [(file.parent.name, file, section) for file in files]
        )
        return sites

    def _open(self, driver, places, servers=False):
        self.share_id = str(uuid.uuid4())
        self.size = 1
        self.snapshots = {}
        self.rules = []
        read = functools.cache(manila_lite.conf.new)
        self.sites = [
            Site(
                name,
                subjects.DriverHarness(
                    driver,
                    lambda file=file, section=section: Configuration(
                        read(files=(str(file),)), section
                    ),
                ),
                servers,
                section,
            )
            for name, file, section in places
        ]
        self.here, self.there, *more = self.sites
        self.beyond = more[0] if more else None
        self.style = self.here.driver.get_share_stats().get('replication_type')
        if self.style is None:
            pytest.skip('the driver does not replicate')
        self.here.state, self.here.status = 'active', 'available'
        self.here.locations = self.here.driver.create_share(
            CTX, self.of(self.here), share_server=self.here.server
        )
        self.rules = [self.rule(CLIENT)]
        self.tell_rules(self.here)

    def clean_up(self):
        """Remove whatever tests have made, and see that it can be."""
        for site in self.sites:
            if site.is_lost:
                site.bring_back()
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
        last.driver.delete_share(CTX, self.of(last), last.server)
        for site in self.sites:
            if site.server:
                site.driver.teardown_server(
                    {
                        'server_id': site.server.id,
                        **site.server.backend_details,
                    }
                )

    # As drivers are shown it

    def of(self, site):
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
            cast_rules_to_readonly=self.casts(site),
            share_server_id=site.server and site.server.id,
            share_server=site.server,
            export_locations=base.normalise_export_locations(site.locations),
        )

    def casts(self, site):
        return self.style == 'readable' and site.state != 'active'

    @property
    def list(self):
        return [self.of(site) for site in self.sites if site.state]

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
            if self.casts(site)
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
            share=self.of(site),
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

    # What a manager does

    def create(self, site=None):
        site = site or self.there
        site.state = site.state or 'out_of_sync'
        answer = (
            site.driver.create_replica(
                CTX,
                self.list,
                self.of(site),
                self.rules_for(site),
                self.pairs(site),
                share_server=site.server,
            )
            or {}
        )
        assert set(answer) <= PUBLISHED
        assert answer.get('replica_state') in {*STATES, None}
        site.status = 'available'
        site.state = answer.get('replica_state') or site.state
        site.locations = answer.get('export_locations') or site.locations
        if answer.get('access_rules_status') != 'active':
            self.tell_rules(site)
        return answer

    def made(self, site=None):
        """A replica that is up to date."""
        self.create(site)
        for _ in range(5):
            if (site or self.there).state in ('active', 'in_sync'):
                return self
            self.update(site)
        raise AssertionError('it never is in sync')

    def update(self, site=None):
        site = site or self.there
        answer = site.driver.update_replica_state(
            CTX,
            self.list,
            self.of(site),
            self.rules_for(site),
            self.pairs(site),
            share_server=site.server,
        )
        passive = {'in_sync', 'out_of_sync', 'error', None}
        assert answer in (
            passive if self.style != 'writable' else {*passive, 'active'}
        )
        site.state = answer or site.state
        return answer

    def delete(self, site=None):
        site = site or self.there
        site.driver.delete_replica(
            CTX,
            self.list,
            [self.instance(id, site) for id in self.snapshots],
            self.of(site),
            share_server=site.server,
        )

    def promote(self, site=None, **values):
        site = site or self.there
        answers = site.driver.promote_replica(
            CTX,
            self.list,
            self.of(site),
            self.rules,
            share_server=site.server,
            **values,
        )
        told = {one['id']: one for one in answers or ()}
        assert all(set(one) <= OF_PROMOTED for one in told.values())
        for other in self.sites:
            if other.state and other is not site:
                said = told.get(other.id, {}).get('replica_state')
                assert said != 'active'
                if other.state == 'active' or said:
                    other.state = said or 'out_of_sync'
        site.state = 'active'
        site.locations = (
            told.get(site.id, {}).get('export_locations') or site.locations
        )
        for other in self.sites:
            if other.state:
                with contextlib.suppress(exception.ManilaLiteError):
                    self.tell_rules(other)
        return answers

    def tell_rules(self, site):
        site.driver.apply_access(
            CTX, self.of(site), self.rules_for(site), share_server=site.server
        )

    def status(self, site=None):
        site = site or self.there
        return optional(
            site.driver.get_replica_status, self.of(site), site.server
        )

    def snapshot(self):
        """A new snapshot; its id."""
        id = str(uuid.uuid4())
        self.snapshots[id] = (
            {site.name: 'creating' for site in self.sites if site.state},
            self.size,
        )
        self.take(id)
        return id

    def take(self, id):
        return self._noted(
            id,
            optional(
                self.active.driver.create_replicated_snapshot,
                CTX,
                self.list,
                self.instances(id),
                self.active.server,
            ),
        )

    def drop(self, id):
        status, _ = self.snapshots[id]
        status.update(dict.fromkeys(status, 'deleting'))
        return self._noted(
            id,
            self.active.driver.delete_replicated_snapshot(
                CTX, self.list, self.instances(id), self.active.server
            ),
        )

    def poll(self, id, site=None):
        site = site or self.there
        return self._noted(
            id,
            [
                site.driver.update_replicated_snapshot(
                    CTX,
                    self.list,
                    self.of(site),
                    self.instances(id),
                    self.instance(id, site),
                    site.server,
                )
                or {}
            ],
        )

    def _noted(self, id, answers):
        there = {self.instance(id, site).id: site for site in self.sites}
        for answer in answers or ():
            assert set(answer) <= OF_SNAPSHOT
            if answer.get('status'):
                assert answer['status'] in (
                    'available',
                    'creating',
                    'deleted',
                    'error',
                )
                self.snapshots[id][0][there[answer['id']].name] = answer[
                    'status'
                ]
        return answers

    def revert(self, id):
        size = optional(
            self.active.driver.revert_to_replicated_snapshot,
            CTX,
            self.of(self.active),
            self.list,
            self.instance(id, self.active),
            self.instances(id),
            self.rules,
            [],
            self.active.server,
        )
        self.size = size or self.size
        return size

    # What users do, and can

    def write(self, text, site=None):
        site = site or self.active
        site.users(self.of(site)).write(text)

    def read(self, site=None):
        site = site or self.there
        return site.users(self.of(site)).read()

    def levels(self, site=None):
        """How the client is let in by a replica."""
        site = site or self.there
        clients = site.subject.clients(site.driver, self.of(site))
        if clients is None:
            pytest.skip('no test can tell whom its shares let in')
        return {level for _, to, level in clients if to == CLIENT}


PASSIVE_LEVELS = {'readable': {'ro'}, 'dr': set(), 'writable': {'rw'}}


class ReplicaContract:
    """In every style."""

    styles = STYLES

    def test_stats_say_the_style_and_the_domain(self, sites):
        for site in sites.sites:
            stats = site.driver.get_share_stats(refresh=True)
            assert stats['replication_type'] == sites.style
            assert stats['replication_domain']

    def test_replica_in_sync_has_the_content(self, sites):
        sites.write('one')
        assert sites.made().read() == 'one'

    def test_replica_can_be_reached_at_its_own_place(self, sites):
        sites.made()
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
        sites.made()
        assert (sites.there.state == 'active') == (sites.style == 'writable')

    def test_replica_in_sync_has_the_snapshots(self, sites):
        sites.write('one')
        id = sites.snapshot()
        sites.write('two')
        sites.made()
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
        sites.made()
        for _ in range(2):
            before = sites.there.locations
            sites.create()
            assert base.normalise_export_locations(
                sites.there.locations
            ) == base.normalise_export_locations(before)
            assert sites.read() == 'one'
            sites.there.restart()

    def test_rules_hold_as_the_style_says(self, sites):
        sites.made()
        assert sites.levels(sites.here) == {'rw'}
        assert sites.levels() == PASSIVE_LEVELS[sites.style]
        sites.tell_rules(sites.there)
        assert sites.levels() == PASSIVE_LEVELS[sites.style]

    def test_rule_is_taken_back_everywhere(self, sites):
        sites.made()
        rules, sites.rules = sites.rules, []
        for site in (sites.here, sites.there):
            site.driver.apply_access(
                CTX, sites.of(site), [], [], rules, share_server=site.server
            )
            assert sites.levels(site) == set()

    def test_deleted_replica_is_gone_and_the_others_stay(self, sites):
        sites.write('one')
        sites.made()
        sites.delete()
        with pytest.raises(exception.ShareResourceNotFound):
            sites.status()
        assert sites.levels() == set()
        assert sites.read(sites.here) == 'one'
        assert sites.status(sites.here)['status'] == 'available'
        sites.there.state = None
        assert sites.levels(sites.here) == {'rw'}

    def test_deleting_again_is_success(self, sites):
        sites.made()
        id = sites.snapshot()
        for _ in range(2):
            sites.delete()
            sites.there.restart()
            sites.delete()
        with pytest.raises(exception.SnapshotResourceNotFound):
            sites.there.driver.get_snapshot_status(
                sites.instance(id, sites.there)
            )

    def test_deleting_what_never_was_is_success(self, sites):
        sites.there.state = 'out_of_sync'
        sites.delete()
        assert sites.status(sites.here)['status'] == 'available'

    def test_replica_comes_again_where_one_was(self, sites):
        sites.made()
        sites.delete()
        sites.there.state = None
        sites.write('two')
        assert sites.made().read() == 'two'

    def test_status_tells_what_is_there(self, sites):
        sites.there.state = 'out_of_sync'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.status()
        sites.made()
        for site in (sites.here, sites.there):
            site.restart()
            answer = sites.status(site)
            assert answer['status'] == 'available'
            assert answer.get('size', 1) == 1

    def test_what_is_not_there_has_no_state(self, sites):
        sites.there.state = 'out_of_sync'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.update()

    def test_more_room_is_found_on_all(self, sites):
        sites.made()
        optional(
            sites.here.driver.extend_share,
            sites.of(sites.here),
            3,
            sites.here.server,
        )
        sites.size = 3
        if sites.there.state != 'active':
            sites.update()
        assert sites.status().get('size', 3) == 3

    def test_driver_started_anew_knows_its_replicas(self, sites):
        sites.write('one')
        sites.made()
        for site in sites.sites:
            site.restart()
        sites.write('two')
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'
        assert sites.read() == 'two'

    def test_a_third_replica_is_like_the_second(self, sites):
        if sites.beyond is None:
            pytest.skip('there are two back ends only')
        sites.write('one')
        sites.made()
        sites.made(sites.beyond)
        assert sites.read(sites.beyond) == 'one'
        sites.delete()
        sites.there.state = None
        sites.write('two')
        if sites.beyond.state != 'active':
            assert sites.update(sites.beyond) == 'in_sync'
        assert sites.read(sites.beyond) == 'two'


class ReplicatedSnapshotContract:
    """In every style."""

    styles = STYLES

    def everywhere(self, sites, id):
        """Poll until all of the replicas have the snapshot."""
        status, _ = sites.snapshots[id]
        for site in sites.sites:
            for _ in range(5):
                if site.state and status[site.name] == 'creating':
                    sites.poll(id, site)
        return set(status.values())

    def test_snapshot_is_on_all_replicas_in_the_end(self, sites):
        sites.write('one')
        sites.made()
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
        sites.made()
        sites.write('one')
        id = sites.snapshot()
        sites.write('two')
        sites.here.restart()
        sites.take(id)
        assert self.everywhere(sites, id) == {'available'}
        sites.revert(id)
        assert sites.read(sites.here) == 'one'

    def test_polling_again_changes_nothing(self, sites):
        sites.made()
        id = sites.snapshot()
        self.everywhere(sites, id)
        before = sites.poll(id)
        sites.there.restart()
        assert sites.poll(id) == before

    def test_snapshot_is_dropped_everywhere(self, sites):
        sites.made()
        id = sites.snapshot()
        self.everywhere(sites, id)
        sites.drop(id)
        assert sites.snapshots[id][0]['here'] == 'deleted'
        if sites.snapshots[id][0]['there'] != 'deleted':
            with contextlib.suppress(exception.SnapshotResourceNotFound):
                assert sites.poll(id)[0]['status'] == 'deleted'
        for site in (sites.here, sites.there):
            with pytest.raises(exception.SnapshotResourceNotFound):
                site.driver.get_snapshot_status(sites.instance(id, site))

    def test_dropping_again_is_success(self, sites):
        sites.made()
        id = sites.snapshot()
        sites.drop(id)
        sites.here.restart()
        sites.drop(id)
        assert sites.snapshots[id][0]['here'] == 'deleted'

    def test_snapshot_dropped_before_it_was_copied_never_comes(self, sites):
        sites.made()
        id = sites.snapshot()
        sites.drop(id)
        for _ in range(2):
            if sites.snapshots[id][0]['there'] != 'deleted':
                with contextlib.suppress(exception.SnapshotResourceNotFound):
                    sites.poll(id)
        with pytest.raises(exception.SnapshotResourceNotFound):
            sites.there.driver.get_snapshot_status(
                sites.instance(id, sites.there)
            )
        del sites.snapshots[id]
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'

    def test_snapshot_that_never_was_is_not_found(self, sites):
        sites.made()
        id = str(uuid.uuid4())
        for here, there in (
            ('available', 'creating'),
            ('deleting', 'deleting'),
        ):
            sites.snapshots[id] = ({'here': here, 'there': there}, 1)
            with pytest.raises(exception.SnapshotResourceNotFound):
                optional(sites.poll, id)

    def test_reverted_share_has_content_and_size_back(self, sites):
        sites.write('one')
        sites.made()
        id = sites.snapshot()
        self.everywhere(sites, id)
        sites.write('two')
        optional(
            sites.here.driver.extend_share,
            sites.of(sites.here),
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

    def test_revert_to_what_never_was_changes_nothing(self, sites):
        sites.made()
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
    """In the styles in which one replica is active."""

    styles = ('readable', 'dr')

    def test_passive_replica_follows_at_the_next_update(self, sites):
        sites.made()
        for text in ('one', 'two'):
            sites.write(text)
            for _ in range(2):
                assert sites.update() == 'in_sync'
                assert sites.read() == text

    def test_of_a_lost_active_replica_nobody_is_in_sync(self, sites):
        sites.write('one')
        sites.made()
        sites.here.lose()
        assert sites.update() == 'out_of_sync'
        assert sites.read() == 'one'
        sites.here.bring_back()
        assert sites.update() == 'in_sync'

    def test_promoted_has_at_least_the_content_of_the_last_sync(self, sites):
        sites.write('one')
        sites.made()
        sites.write('two')
        sites.update()
        sites.write('three')
        sites.promote()
        assert sites.read() in ('two', 'three')

    def test_promoted_without_the_other_has_the_last_sync(self, sites):
        sites.write('one')
        sites.made()
        sites.write('two')
        sites.here.lose()
        sites.promote()
        assert sites.read() == 'one'
        assert sites.status()['status'] == 'available'

    def test_roles_change_with_the_promotion(self, sites):
        sites.made()
        sites.promote(quiesce_wait_time=0)
        assert sites.levels() == {'rw'}
        assert sites.levels(sites.here) == PASSIVE_LEVELS[sites.style]

    def test_promoting_again_takes_nothing_back(self, sites):
        sites.write('one')
        sites.made()
        before = sites.list
        sites.promote()
        sites.write('two')
        for _ in range(2):
            # The manager was killed before it noted the promotion.
            answers = sites.there.driver.promote_replica(
                CTX,
                before,
                before[1],
                sites.rules,
                share_server=sites.there.server,
            )
            assert {
                one['id']: one.get('replica_state')
                for one in answers or [{'id': None}]
            }.get(sites.there.id, 'active') == 'active'
            assert sites.read() == 'two'
            sites.there.restart()
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_who_was_active_follows_from_now_on(self, sites):
        sites.write('one')
        sites.made()
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_who_comes_back_is_not_active_any_more(self, sites):
        sites.write('one')
        sites.made()
        sites.write('lost')
        sites.here.lose()
        sites.promote()
        sites.write('two')
        sites.here.bring_back()
        assert 'rw' not in sites.levels(sites.here)
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'
        sites.tell_rules(sites.here)
        assert sites.levels(sites.here) == PASSIVE_LEVELS[sites.style]
        assert sites.levels() == {'rw'}

    def test_over_and_back_again(self, sites):
        sites.made()
        for number, site in enumerate((sites.there, sites.here) * 2):
            sites.write(f'before {number}')
            assert sites.update(site) == 'in_sync'
            sites.promote(site)
            assert sites.read(site) == f'before {number}'
            other = sites.here if site is sites.there else sites.there
            assert sites.update(other) == 'in_sync'
            for each in sites.sites:
                each.restart()

    def test_the_third_follows_the_promoted_one(self, sites):
        if sites.beyond is None:
            pytest.skip('there are two back ends only')
        sites.made()
        sites.made(sites.beyond)
        sites.here.lose()
        sites.promote()
        sites.write('two')
        assert sites.update(sites.beyond) == 'in_sync'
        assert sites.read(sites.beyond) == 'two'
        assert sites.levels(sites.beyond) == PASSIVE_LEVELS[sites.style]

    def test_snapshots_outlive_the_promotion(self, sites):
        sites.write('one')
        id = sites.snapshot()
        sites.made()
        sites.snapshots[id][0]['there'] = 'available'
        sites.write('two')
        sites.update()
        sites.here.lose()
        sites.promote()
        assert sites.read() == 'two'
        sites.revert(id)
        assert sites.read() == 'one'

    def test_replica_that_was_active_can_be_deleted(self, sites):
        sites.made()
        sites.promote()
        sites.write('two')
        sites.delete(sites.here)
        sites.here.state = None
        assert sites.read() == 'two'
        assert sites.levels() == {'rw'}
        assert sites.made(sites.here).read(sites.here) == 'two'

    def test_replica_that_is_not_there_cannot_be_promoted(self, sites):
        sites.there.state = 'in_sync'
        with pytest.raises(exception.DriverError):
            sites.promote()
        sites.there.state = None
        assert sites.levels(sites.here) == {'rw'}


class WritableContract:
    """In the style in which all replicas are active."""

    styles = ('writable',)

    def test_what_is_written_to_one_is_on_all(self, sites):
        sites.made()
        sites.made(sites.beyond)
        for site in sites.sites:
            sites.write(f'from {site.name}', site)
            assert {sites.read(each) for each in sites.sites} == {
                f'from {site.name}'
            }

    def test_the_others_go_on_without_one(self, sites):
        sites.made()
        sites.write('one')
        sites.here.lose()
        sites.write('two', sites.there)
        assert sites.read() == 'two'
        sites.here.bring_back()
        assert sites.status(sites.here)['status'] == 'available'
        assert sites.read(sites.here) == 'two'

    def test_the_first_can_go(self, sites):
        sites.made()
        sites.write('one')
        sites.delete(sites.here)
        sites.here.state = None
        sites.write('two', sites.there)
        assert sites.made(sites.here).read(sites.here) == 'two'
