"""Promotion over replicas that are kept in memory."""

import contextlib
import dataclasses

import pytest

from manila_lite import exception
from manila_lite.share.drivers.files.promotion import Promotion
from manila_lite.share.drivers.files.replicas import Peers, ReplicaUnreachable, Role
from tests.drivers.driver_harness import DriverHarness

NOW = 1_000
make = DriverHarness('none', configure=lambda: None)


@dataclasses.dataclass(frozen=True)
class State:
    role: str = Role.PASSIVE
    generation: int = 0
    source: str | None = None
    synced_at: float | None = None
    has_content: bool = True


class Replica:
    def __init__(self, name, **state):
        self.name = name
        self.content = name
        self.is_reachable = True
        self.is_copyable = True
        self._state = State(**state)

    def find(self):
        return self.content if self.is_reachable else None

    def state(self):
        if not self.is_reachable:
            raise ReplicaUnreachable(msg=self.name)
        return self._state

    def change(self, **state):
        self._state = dataclasses.replace(self._state, **state)

    def become_passive(self, leader, replication_type):
        self.change(role=Role.PASSIVE, source=leader.name)


class MemoryPeers(Peers):
    def __init__(self, *replicas):
        self.by_name = {each.name: each for each in replicas}

    def own_replica(self, share):
        return self.by_name[share['name']]

    def _address(self, host, name):
        return self.by_name[name]


class MemoryPromotion(Promotion):
    def __init__(self, peers):
        self.slept = []
        super().__init__(peers, lambda: NOW, self.slept.append)

    @contextlib.contextmanager
    def _locked(self, takeover):
        yield takeover

    def _hand_over(self, takeover, active, generation):
        if not active.is_copyable:
            raise ReplicaUnreachable(msg=active.name)
        active.change(role=Role.RETIRING, source=takeover.own.name)
        takeover.own.content = active.content
        self._activate(takeover, generation)

    def _activate(self, takeover, generation):
        takeover.own.change(role=Role.ACTIVE, generation=generation)

    def _reinstate(self, replica, generation):
        replica.change(role=Role.ACTIVE, generation=generation, source=None)

    def _locations(self, share):
        return [{'path': share['name'], 'is_admin_only': False, 'metadata': {}}]


class Site:
    """An active replica, one to be promoted, and a third."""

    def __init__(self):
        self.shares = [
            make.share(replica_state=state)
            for state in ('active', 'in_sync', 'in_sync')
        ]
        names = [share['name'] for share in self.shares]
        self.active, self.own, self.third = map(Replica, names)
        self.active.change(role=Role.ACTIVE, generation=7)
        self.promotion = MemoryPromotion(MemoryPeers(self.active, self.own, self.third))

    def promote(self, **kwargs):
        return self.promotion.promote_replica(self.shares, self.shares[1], **kwargs)

    def roles(self):
        return [each._state.role for each in (self.active, self.own, self.third)]


@pytest.fixture
def site():
    return Site()


def test_replica_takes_over_with_the_latest_content(site):
    replies = site.promote()
    assert site.roles() == [Role.PASSIVE, Role.ACTIVE, Role.PASSIVE]
    assert site.own.content == site.active.name
    assert [reply['replica_state'] for reply in replies] == [
        'out_of_sync',
        'active',
        'out_of_sync',
    ]
    assert replies[1]['export_locations'][0]['path'] == site.own.name


def test_generation_is_above_all_others(site):
    site.third.change(generation=NOW + 5)
    site.promote()
    assert site.own.state().generation == NOW + 6


@pytest.mark.parametrize('attribute', ['is_reachable', 'is_copyable'])
def test_replica_takes_over_with_its_own_content_if_it_has_to(site, attribute):
    setattr(site.active, attribute, False)
    site.promote()
    assert site.own.state().role == Role.ACTIVE
    assert site.own.content == site.own.name


def test_replica_without_content_takes_over_nothing(site):
    site.active.is_reachable = False
    site.own.change(has_content=False)
    with pytest.raises(exception.ShareBackendException, match='never been in sync'):
        site.promote()
    assert site.own.state().role == Role.PASSIVE


def test_repeated_promotion_copies_nothing(site):
    site.promote()
    generation = site.own.state().generation
    site.active.content = 'stale'
    site.promote()
    assert site.own.content != 'stale'
    assert site.own.state().generation == generation


def test_promotion_is_repeated_while_the_former_active_replica_is_writable(site):
    site.promote()
    site.active.change(role=Role.ACTIVE)
    site.active.content = 'written since'
    site.promote()
    assert site.own.content == 'written since'


def test_promotion_is_repeated_if_another_was_promoted_since(site):
    site.promote()
    site.third.change(generation=site.own.state().generation)
    site.promote()
    assert site.own.state().generation > site.third.state().generation


def test_clients_may_quiesce_only_before_the_promotion(site):
    site.promote(quiesce_wait_time=30)
    site.promote(quiesce_wait_time=30)
    assert site.promotion.slept == [30]


def test_replica_that_does_not_exist_is_not_found(site):
    site.own.is_reachable = False
    with pytest.raises(exception.ShareResourceNotFound):
        site.promote()


def test_active_role_is_returned_if_it_was_taken(site):
    site.active.change(role=Role.RETIRING, source=site.own.name)
    site.own.change(generation=NOW + 1)
    site.promotion.return_active_role(site.own, site.shares)
    assert site.active.state().role == Role.ACTIVE
    assert site.active.state().generation == NOW + 2


@pytest.mark.parametrize('source', ['third', None])
def test_active_role_is_not_returned_if_it_was_not_taken(site, source):
    site.active.change(role=Role.RETIRING, source=source)
    site.promotion.return_active_role(site.own, site.shares)
    assert site.active.state().role == Role.RETIRING
