"""Access to the snapshots of shares that have replicas."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import access, snapshots
from manila_lite.db.transitions import insert_rows
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.states.access_rule import ACCESS_RULE, SNAPSHOT_ACCESS_RULE
from manila_lite.states.snapshot_instance import SnapshotStatus
from tests.functional.share.replication.snapshots.snapshot_states import (
    complete,
    fall_out,
    statuses,
)
from tests.support import cloud_snapshots, invariants, unserved


@pytest.fixture
def mountable(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    return share_id


def allow(cloud, snapshot_id, client='10.0.0.1', expect=202):
    return cloud_snapshots.act(
        cloud,
        snapshot_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': client},
        expect=expect,
    )


def listed(cloud, snapshot_id):
    path = f'/snapshots/{snapshot_id}/access-list'
    return cloud.api.get(path)['snapshot_access_list']


def rules(cloud, snapshot_id):
    return [one['state'] for one in listed(cloud, snapshot_id)]


def let_in(cloud, backend):
    found = dummy.snapshot_access_inventory(cloud.folder / 'dummy' / backend)
    return sum(len(clients) for clients in found.values())


def test_snapshot_rule_is_applied_on_every_replica(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_replica_gets_a_snapshot_rule_with_the_snapshot(cloud, mountable):
    fall_out(cloud, mountable)
    snapshot_id = cloud_snapshots.create_available(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 0)
    cloud.update()
    assert statuses(cloud, snapshot_id)['beta'] == 'available'
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_new_replica_gets_the_rules_of_snapshots(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    cloud.replicate(mountable, 'gamma')
    cloud.update()
    assert let_in(cloud, 'gamma') == 1
    assert rules(cloud, snapshot_id) == ['active']
    cloud.check_invariants()


def change_during_an_outage(cloud, share_id):
    """Allow one client and deny another while beta is out of reach."""
    snapshot_id = complete(cloud, share_id)
    allow(cloud, snapshot_id, '10.0.0.1')
    cloud.settle()
    (denied,) = listed(cloud, snapshot_id)
    cloud.driver('beta').make_unreachable()
    allow(cloud, snapshot_id, '10.0.0.2')
    cloud_snapshots.act(cloud, snapshot_id, 'deny_access', {'access_id': denied['id']})
    cloud.run_pending()
    assert rules(cloud, snapshot_id) == ['error', 'error']
    return snapshot_id


def check_changed(cloud, snapshot_id):
    (rule,) = listed(cloud, snapshot_id)
    assert (rule['access_to'], rule['state']) == ('10.0.0.2', 'active')
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


@pytest.mark.parametrize('noticed', [True, False])
def test_snapshot_rules_changed_during_an_outage_are_sent_again(
    cloud, mountable, noticed
):
    snapshot_id = change_during_an_outage(cloud, mountable)
    if noticed:
        for backend in cloud.share.backends:
            backend.endpoints.replica_updates.request_pass()
        cloud.run_pending()
    cloud.driver('beta').make_reachable()
    for _ in range(3):
        cloud.settle()
        cloud.update()
    check_changed(cloud, snapshot_id)


def test_snapshot_rules_of_a_site_without_services_are_sent_when_it_is_back(
    cloud, mountable
):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    unserved.lose(cloud.db, 'node@beta')
    assert cloud.scheduler.unserved_work.run_pass() == 1
    cloud.run_pending()
    assert rules(cloud, snapshot_id) == ['error']
    cloud.beat()
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_refused_snapshot_rule_is_not_sent_again_and_again(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    cloud.driver('beta').refuse_rules(lambda verb, rule: verb == 'allow')
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['error']
    calls = len(cloud.driver('beta').calls)
    for _ in range(3):
        cloud.settle()
    assert len(cloud.driver('beta').calls) == calls


def test_snapshot_rules_are_removed_on_every_replica(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (0, 0)
    cloud.check_invariants()


@pytest.fixture
def unplaced(cloud, mountable):
    """A snapshot with a rule, and a replica that no back end can hold."""
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    replica_id = cloud.request_replica(mountable, 'beta')  # which is in use
    return snapshot_id, replica_id


def check_all_denied(cloud, snapshot_id):
    for rule in listed(cloud, snapshot_id):
        cloud_snapshots.act(
            cloud, snapshot_id, 'deny_access', {'access_id': rule['id']}
        )
    cloud.settle()
    assert listed(cloud, snapshot_id) == []
    cloud.check_invariants()


def check_none_is_left(cloud):
    """No row was made for the sweep to find, which would hide it."""
    assert problems(cloud) == []
    assert cloud.scheduler.orphan_sweep.run_pass() == 0


def problems(cloud):
    return cloud.db.read(invariants.of_rows)


def test_unplaced_replica_keeps_no_rule_of_a_snapshot(cloud, unplaced):
    snapshot_id, replica_id = unplaced
    cloud.run_pending()
    assert cloud.replica(replica_id).host is None
    check_none_is_left(cloud)
    check_all_denied(cloud, snapshot_id)


def test_rule_denied_before_the_placement_fails_is_removed(cloud, unplaced):
    snapshot_id, replica_id = unplaced
    check_all_denied(cloud, snapshot_id)
    assert cloud.replica(replica_id).host is None


def test_unplaced_replica_gets_no_rule_of_a_snapshot(cloud, unplaced):
    snapshot_id, _ = unplaced
    cloud.run_pending()
    allow(cloud, snapshot_id, '10.0.0.2')
    cloud.run_pending()
    check_none_is_left(cloud)
    assert rules(cloud, snapshot_id) == ['active', 'active']
    check_all_denied(cloud, snapshot_id)


def test_replica_reset_before_its_placement_keeps_nothing_in_flight(cloud, unplaced):
    snapshot_id, replica_id = unplaced
    cloud.ask('reset_status', replica_id, 'error')
    cloud.settle()
    assert cloud.replica(replica_id).host is None
    cloud.check_invariants()
    allow(cloud, snapshot_id, '10.0.0.2')
    cloud.settle()
    check_all_denied(cloud, snapshot_id)


def insert_rule(cloud, machine, **values):
    cloud.db.write(
        lambda session: insert_rows(
            session,
            machine,
            'allow',
            [{'id': session.new_id(), 'created_at': session.now, **values}],
        )
    )


def test_rule_that_the_previous_release_left_without_a_host_is_removed(cloud, unplaced):
    """It made such rows for replicas that no back end could hold."""
    snapshot_id, replica_id = unplaced
    cloud.settle()
    (rule,) = listed(cloud, snapshot_id)
    instances = snapshots.SnapshotInstance.__table__
    on_replica = sa.select(instances.c.id).where(
        instances.c.share_instance_id == replica_id
    )
    insert_rule(
        cloud,
        SNAPSHOT_ACCESS_RULE,
        access_id=rule['id'],
        share_snapshot_instance_id=cloud.db.read(
            lambda session: session.value(on_replica)
        ),
    )
    (problem,) = problems(cloud)
    assert problem.endswith('is queued_to_apply, without work')
    assert cloud.scheduler.orphan_sweep.run_pass() == 1
    cloud.check_invariants()


def test_rule_of_a_share_that_is_left_without_a_host_is_removed(
    cloud, mountable, unplaced
):
    _, replica_id = unplaced
    cloud.settle()
    cloud.allow(mountable, '10.0.0.9')
    assert problems(cloud) == []
    rules_of_shares = access.AccessRule.__table__
    insert_rule(
        cloud,
        ACCESS_RULE,
        access_id=cloud.db.read(
            lambda session: session.value(sa.select(rules_of_shares.c.id))
        ),
        share_instance_id=replica_id,
    )
    (problem,) = problems(cloud)
    assert problem.endswith('is queued_to_apply, without work')
    assert cloud.scheduler.orphan_sweep.run_pass() == 1
    cloud.check_invariants()


def test_resource_that_waits_has_a_host(cloud, unplaced):
    """Otherwise no service would go on with it."""
    cloud.settle()
    _, replica_id = unplaced
    instances = snapshots.SnapshotInstance.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(instances)
            .where(instances.c.share_instance_id == replica_id)
            .values(status=SnapshotStatus.DELETING)
        )
    )
    assert any(
        problem.endswith('is deleting, without a host') for problem in problems(cloud)
    )
