"""Replicas that copy the active one, kept in memory."""

import contextlib
import dataclasses

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import ReplicaSnapshot
from manila_lite.share.drivers.files.promotion import Takeover
from manila_lite.share.drivers.files.replicas import (
    Peers,
    Replica,
    ReplicaState,
    ReplicaUnreachable,
    Role,
    Roles,
)
from manila_lite.share.drivers.files.replication import Creation, Replication, Update
from tests.drivers.driver_harness import DriverHarness

make = DriverHarness('none', configure=lambda: None)


@dataclasses.dataclass(frozen=True)
class State(ReplicaState):
    has_content: bool = True


class MemoryReplica(Replica):
    def __init__(self, share):
        self.name, self.host = share['name'], share['host']
        self.content = None
        self.snapshots = {}
        self.is_lost = False
        self.is_locked = False
        self.recorded = State()

    def find(self):
        if self.is_lost:
            raise OSError('no such disk')
        return self.content

    def state(self):
        return self.recorded

    def change(self, **state):
        self.recorded = dataclasses.replace(self.recorded, **state)

    def has_snapshot(self, name):
        return name in self.snapshots

    def become_passive(self, leader, replication_type):
        self.change(role=Role.PASSIVE, source=leader.name)

    @contextlib.contextmanager
    def copying(self):
        yield not self.is_locked


class MemoryPeers(Peers):
    def __init__(self, replicas):
        self.by_name = {each.name: each for each in replicas}

    def own_replica(self, share):
        return self.by_name[share['name']]

    def _address(self, host, name):
        return self.by_name[name]


class MemorySnapshots:
    """Those of the replica that snapshots are deleted from and created of."""

    def __init__(self, own):
        self.own = own

    def create_snapshot(self, snapshot):
        self.own.snapshots[snapshot['name']] = self.own.content

    def delete_snapshot(self, snapshot):
        self.own.snapshots.pop(snapshot['name'], None)

    def revert_to_snapshot(self, snapshot):
        self.own.content = self.own.snapshots[snapshot['name']]

    def reply(self, snapshot):
        return {'provider_location': snapshot['name'], 'size': 1}


class MemoryReplication(Replication):
    """It copies by assignment, and notes what it does."""

    def __init__(self, own, peers, sleep=None):
        self.own = own
        self.steps = []
        self.fails_with = None
        super().__init__(
            peers, Roles(peers), MemorySnapshots(own), self._status, lambda: 9, sleep
        )

    def _status(self, share):
        location = {'path': share['name'], 'is_admin_only': False, 'metadata': {}}
        return {'status': 'available', 'export_locations': [location]}

    def _create(self, own, new):
        own.content = ''
        own.change(role=Role.PASSIVE, has_content=False)

    def _remove(self, own, share):
        own.content = None

    def _forget(self, own, other):
        self.steps.append(('forget', other.name))

    def _synchronise(self, own, leader, update):
        self.steps.append('follow')
        if self.fails_with:
            raise self.fails_with
        is_new = own.content != leader.content
        own.content = leader.content
        own.change(source=leader.name, synced_at=9, has_content=True)
        return is_new

    def _restore_access(self, own, update, was_active):
        self.steps.append('access')

    def _copy_snapshot(self, own, leader, source, snapshot):
        self.steps.append('snapshot')
        if self.fails_with:
            raise self.fails_with
        if source not in leader.snapshots:
            return False
        own.snapshots[snapshot['name']] = leader.snapshots[source]
        return True

    @contextlib.contextmanager
    def _locked(self, takeover: Takeover):
        yield takeover

    def _hand_over(self, takeover, active, generation):
        raise AssertionError('nothing is promoted here')

    def _activate(self, takeover, generation):
        raise AssertionError('nothing is promoted here')

    def _reinstate(self, replica, generation):
        replica.change(role=Role.ACTIVE, generation=generation)


class Site:
    """An active replica with a snapshot, and one that is created or updated."""

    def __init__(self, kind=MemoryReplication):
        self.shares = [
            make.share(replica_state=state, host=f'{state}@back')
            for state in ('active', 'out_of_sync')
        ]
        self.active, self.own = map(MemoryReplica, self.shares)
        self.active.content = 'content'
        self.saved = [make.snapshot(share, status='available') for share in self.shares]
        self.active.snapshots[self.saved[0]['name']] = 'earlier'
        self.replication = kind(self.own, MemoryPeers([self.active, self.own]))
        self.snapshots = []

    def save(self):
        self.snapshots = [
            ReplicaSnapshot(
                active_replica_snapshot=self.saved[0],
                share_replica_snapshot=self.saved[1],
            )
        ]

    def create(self):
        return self.replication.create_replica(
            Creation(
                replica_list=self.shares,
                new_replica=self.shares[1],
                access_rules=[],
                replica_snapshots=self.snapshots,
            )
        )

    def update(self):
        return self.replication.update_replica_state(
            Update(
                replica_list=self.shares,
                replica=self.shares[1],
                access_rules=[],
                replica_snapshots=self.snapshots,
            )
        )['replica_state']


@pytest.fixture
def site():
    return Site()


def test_replica_is_created_with_content_and_snapshots(site):
    site.save()
    reply = site.create()
    assert reply['replica_state'] == 'in_sync'
    assert reply['export_locations'][0]['path'] == site.own.name
    assert site.own.content == 'content'
    assert site.own.snapshots == {site.saved[1]['name']: 'earlier'}


def test_replica_is_not_created_while_the_active_one_is_out_of_reach(site):
    site.active.is_lost = True
    with pytest.raises(exception.ShareBackendException, match='out of reach'):
        site.create()
    assert site.own.content is None


def test_replica_whose_copy_fails_is_created_out_of_sync(site):
    site.replication.fails_with = ReplicaUnreachable(msg='gone')
    assert site.create()['replica_state'] == 'out_of_sync'


def test_replica_that_does_not_exist_is_not_updated(site):
    with pytest.raises(exception.ShareResourceNotFound):
        site.update()


@pytest.mark.parametrize(
    'error', [OSError('full'), exception.StorageUnavailable(reason='gone')]
)
def test_replica_that_cannot_be_updated_is_out_of_sync(site, error):
    site.create()
    site.replication.fails_with = error
    assert site.update() == 'out_of_sync'


def test_update_that_is_stale_ends(site):
    site.create()
    site.replication.fails_with = exception.StaleFencingToken(resource='r', seen=2)
    with pytest.raises(exception.StaleFencingToken):
        site.update()


def test_replica_without_one_of_its_snapshots_is_out_of_sync(site):
    site.create()
    site.save()
    site.active.snapshots.clear()
    assert site.update() == 'out_of_sync'
    assert site.own.content == 'content'


def test_state_is_not_known_while_another_call_copies(site):
    site.create()
    site.own.is_locked = True
    site.replication.steps.clear()
    assert site.update() is None
    assert site.replication.steps == []


class SnapshotsFirst(MemoryReplication):
    _snapshots_first = True


@pytest.mark.parametrize(
    'kind, steps',
    [
        (MemoryReplication, ['follow', 'snapshot', 'access']),
        (SnapshotsFirst, ['snapshot', 'follow', 'access']),
    ],
)
def test_rules_are_applied_after_all_was_copied(kind, steps):
    site = Site(kind)
    site.save()
    site.create()
    assert site.replication.steps == steps


def test_replica_follows_the_one_that_was_promoted_without_it(site):
    site.create()
    site.own.change(role=Role.ACTIVE, generation=1)
    site.active.change(generation=2)
    assert site.update() == 'in_sync'
    assert site.own.state().role == Role.PASSIVE


@pytest.mark.parametrize(
    'state', [{'role': Role.PASSIVE, 'generation': 2}, {'generation': 0}]
)
def test_active_replica_is_never_replaced_by_one_that_is_not(site, state):
    site.create()
    site.own.content = 'written since'
    site.own.change(role=Role.ACTIVE, generation=1)
    site.active.change(**state)
    assert site.update() == 'out_of_sync'
    assert site.own.content == 'written since'
    assert site.own.state().role == Role.ACTIVE


def test_active_replica_that_cannot_become_passive_is_not_replaced(site, monkeypatch):
    site.create()
    site.own.content = 'written since'
    site.own.change(role=Role.ACTIVE, generation=1)
    site.active.change(generation=2)

    def fail(leader, replication_type):
        raise exception.StorageUnavailable(reason='not now')

    monkeypatch.setattr(site.own, 'become_passive', fail)
    assert site.update() == 'out_of_sync'
    assert site.own.content == 'written since'


def test_deleted_replica_is_forgotten_by_the_others(site):
    site.create()
    site.replication.delete_replica(site.shares, [], site.shares[1])
    assert site.own.content is None
    assert ('forget', site.active.name) in site.replication.steps


def test_role_that_was_taken_is_returned_before_the_deletion(site):
    site.create()
    site.active.change(role=Role.RETIRING, source=site.own.name)
    site.replication.delete_replica(site.shares, [], site.shares[1])
    assert site.active.state().role == Role.ACTIVE


@pytest.mark.parametrize(
    'successor, role',
    [
        ({'role': Role.ACTIVE, 'generation': 2}, Role.PASSIVE),
        ({'role': Role.PASSIVE, 'generation': 2}, Role.ACTIVE),
        ({'role': Role.ACTIVE, 'generation': 0}, Role.ACTIVE),
    ],
)
def test_retiring_replica_is_active_if_nothing_has_replaced_it(site, successor, role):
    site.create()
    site.own.change(**successor)
    site.active.change(
        role=Role.RETIRING,
        generation=1,
        source=site.own.name,
        source_host=site.own.host,
    )
    roles = Roles(MemoryPeers([site.active, site.own]))
    assert roles.role_of(site.shares[0]) == role
    site.own.is_lost = True
    assert roles.role_of(site.shares[0]) == Role.PASSIVE


def test_replica_that_should_be_active_and_is_not_has_an_error(site):
    site.create()
    share = dataclasses.replace(site.shares[1], replica_state='active')
    status = site.replication.get_replica_status(share)
    assert status['status'] == 'error'
    assert status['replica_state'] == 'out_of_sync'


def test_snapshot_that_the_active_replica_lacks_is_missing(site):
    site.create()
    arguments = site.shares, site.shares[1], site.saved, site.saved[1]
    update = site.replication.update_replicated_snapshot
    site.own.is_locked = True
    assert update(*arguments)['status'] == 'creating'
    site.own.is_locked = False
    assert update(*arguments)['status'] == 'available'
    site.own.snapshots.clear()
    site.active.snapshots.clear()
    with pytest.raises(exception.SnapshotResourceNotFound):
        update(*arguments)
