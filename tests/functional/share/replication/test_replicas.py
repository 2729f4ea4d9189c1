"""Replicas: create, delete, administration, and share servers."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.coordination import Coordinator
from manila_lite.db.models import access, services
from manila_lite.db.queries.shares import shares as share_rows
from tests.functional.share.replication.replica_states import (
    let_in,
    messages,
    refused,
    rules_on,
    update_all,
)
from tests.support.dhss import ShareServersCloud
from tests.support.replicated import ADMIN, ReplicatedCloud

MAPPING = access.InstanceAccessRule.__table__
MESSAGE = services.Message.__table__
PASSIVE_STYLES = ('readable', 'dr')


# Create


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_new_replica_becomes_in_sync(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha', size=2)
    replica_id = cloud.replicate(share_id, 'beta')
    assert cloud.states(share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'in_sync'),
    }
    assert cloud.usage('share_replicas') == (2, 0)
    assert cloud.usage('replica_gigabytes') == (4, 0)
    assert cloud.usage('gigabytes') == (2, 0)
    assert cloud.driver('beta').get_replica_status is not None
    assert cloud.replica(replica_id).progress == '100%'
    cloud.check_invariants()


def test_every_writable_replica_is_active(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    assert set(cloud.states(share_id).values()) == {('available', 'active')}
    assert let_in(cloud, 'beta', replica_id) == {('10.0.0.1', 'rw')}
    cloud.check_invariants()


@pytest.mark.facts('LP2000253')
@pytest.mark.parametrize('style, level', [('readable', 'ro'), ('dr', 'rw')])
def test_new_replica_gets_the_rules_of_the_share(build_cloud, style, level):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    assert rules_on(cloud, replica_id) == ['active']
    assert cloud.replica(replica_id).access_rules_status == 'active'
    cloud.check_invariants()


def test_rule_being_denied_is_not_copied_to_a_new_replica(cloud, share_id):
    cloud.allow(share_id)
    (rule,) = cloud.rows(sa.select(MAPPING))
    cloud.api.act(share_id, 'deny_access', {'access_id': rule.access_id})
    replica_id = cloud.request_replica(share_id, 'beta')
    assert rules_on(cloud, replica_id) == []
    cloud.settle()
    cloud.check_invariants()


def test_new_replica_gets_all_snapshots_before_it_is_in_sync(cloud, share_id):
    taken = {cloud.snapshot(share_id) for _ in range(2)}
    replica_id = cloud.replicate(share_id, 'beta')
    assert cloud.snapshots_on(replica_id).keys() == taken
    update_all(cloud, share_id)
    assert cloud.snapshots_on(replica_id) == dict.fromkeys(taken, 'available')
    assert cloud.replica(replica_id).replica_state == 'in_sync'
    cloud.check_invariants()


def test_driver_failure_leaves_the_replica_in_error(cloud, share_id):
    cloud.allow(share_id)
    cloud.driver('beta').fail_next('create_replica')
    replica_id = cloud.request_replica(share_id, 'beta')
    cloud.settle()
    assert cloud.states(share_id)['beta'] == ('error', 'error')
    assert rules_on(cloud, replica_id) == ['error']
    assert messages(cloud) == [('002', '001')]
    assert cloud.usage('share_replicas') == (2, 0)
    cloud.ask('delete', replica_id)
    cloud.settle()
    assert cloud.usage('share_replicas') == (1, 0)
    cloud.check_invariants()


def test_unplaced_replica_is_in_error_and_deleted_at_once(cloud, share_id):
    cloud.allow(share_id)
    cloud.replicate(share_id, 'beta')
    replica_id = cloud.request_replica(share_id, 'beta')
    cloud.settle()
    row = cloud.replica(replica_id)
    assert (row.status, row.replica_state, row.host) == ('error', 'error', None)
    assert row.access_rules_status == 'error'
    cloud.check_invariants()
    cloud.ask('delete', replica_id)
    assert cloud.replica(replica_id) is None
    cloud.check_invariants()


def test_unplaced_replica_is_not_awaited_by_snapshots(cloud, share_id):
    replica_id = cloud.request_replica(share_id, 'alpha')  # which is in use
    cloud.settle()
    snapshot_id = cloud.snapshot(share_id)
    assert cloud.snapshots_on(replica_id) == {}
    assert cloud.snapshots_on(cloud.active(share_id).id) == {snapshot_id: 'available'}
    cloud.check_invariants()


def test_share_without_replication_type_gets_no_replica(cloud, share_id):
    cloud.db.write(
        lambda session: session.run(
            sa.text(
                "UPDATE share_type_extra_specs SET spec_value = 'x' "
                "WHERE spec_key = 'replication_type'"
            )
        )
    )
    cloud.db.write(
        lambda session: session.run(
            sa.text('UPDATE shares SET replication_type = NULL')
        )
    )
    refused('no replication_type', cloud.request_replica, share_id)


def test_no_replica_is_created_while_the_active_one_is_busy(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 3})
    refused('must be available, not extending', cloud.request_replica, share_id)
    cloud.settle()
    cloud.replicate(share_id, 'beta')
    cloud.check_invariants()


def test_replica_beyond_the_quota_is_refused(build_cloud):
    cloud = build_cloud(extra_conf='[quota]\nshare_replicas = 1')
    share_id = cloud.create_share_on('alpha')
    with pytest.raises(exception.ShareReplicasLimitExceeded):
        cloud.request_replica(share_id)
    assert len(cloud.replicas(share_id)) == 1
    cloud.check_invariants()


def test_replica_in_an_unknown_or_excluded_zone_is_refused(cloud, share_id):
    with pytest.raises(exception.InvalidInput, match='no availability zone'):
        cloud.request_replica(share_id, availability_zone='moon')


def test_a_replica_keeps_its_metadata(cloud, share_id):
    replica_id = cloud.replicate(share_id, metadata={'a': 'b'})
    assert cloud.rows(
        sa.text('SELECT share_instance_id, key, value FROM share_instance_metadata')
    ) == [(replica_id, 'a', 'b')]


# Delete


def test_deleted_replica_leaves_nothing_behind(cloud, share_id):
    cloud.allow(share_id)
    cloud.snapshot(share_id)
    replica_id = cloud.replicate(share_id, 'beta', metadata={'a': 'b'})
    cloud.ask('delete', replica_id)
    cloud.settle()
    assert cloud.states(share_id) == {'alpha': ('available', 'active')}
    assert cloud.usage('share_replicas') == (1, 0)
    assert cloud.usage('snapshots') == (1, 0)
    assert let_in(cloud, 'beta', replica_id) == set()
    cloud.check_invariants()


def test_rules_are_removed_before_the_replica(cloud, share_id):
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.ask('delete', replica_id)
    cloud.crash_at(None)
    cloud.settle()
    calls = [
        name
        for name in cloud.crash_points
        if name in ('before apply_access', 'before delete_replica')
    ]
    assert calls[0] == 'before apply_access'
    assert calls[-1] == 'before delete_replica'


def test_last_active_replica_is_not_deleted(cloud, share_id):
    refused('last active', cloud.ask, 'delete', cloud.active(share_id).id)
    cloud.replicate(share_id)
    refused('last active', cloud.ask, 'delete', cloud.active(share_id).id)
    refused('last active', cloud.ask, 'force_delete', cloud.active(share_id).id)
    refused(
        'last active', cloud.ask, 'reset_status', cloud.active(share_id).id, 'deleting'
    )


def test_writable_replica_can_be_deleted_beside_another(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    cloud.ask('delete', cloud.active(share_id).id)
    refused('last active', cloud.ask, 'delete', cloud.replicas(share_id)[1].id)
    cloud.settle()
    assert cloud.states(share_id) == {'beta': ('available', 'active')}
    cloud.check_invariants()


def test_failed_replica_deletion_is_visible_and_can_be_forced(cloud, share_id):
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.driver('beta').fail_next('delete_replica')
    cloud.ask('delete', replica_id)
    cloud.settle()
    assert cloud.states(share_id)['beta'] == ('error_deleting', 'error_deleting')
    assert shown(cloud, replica_id) == ('error_deleting', 'error')
    refused('available or in error', cloud.ask, 'delete', replica_id)
    cloud.driver('beta').fail_next('delete_replica')
    cloud.ask('force_delete', replica_id)
    cloud.settle()
    assert cloud.states(share_id) == {'alpha': ('available', 'active')}
    assert cloud.usage('share_replicas') == (1, 0)


def shown(cloud, replica_id):
    """Return status and replica state as the API shows them."""
    paths = {
        f'/share-replicas/{replica_id}': 'share_replica',
        f'/share_instances/{replica_id}': 'share_instance',
    }
    found = {
        (one['status'], one['replica_state'])
        for one in (cloud.api.get(path)[name] for path, name in paths.items())
    }
    (both,) = found
    return both


@pytest.mark.parametrize('style', ['readable', 'writable'])
def test_replica_that_was_not_deleted_can_be_brought_back(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    replica_id = cloud.replicate(share_id, 'beta')
    state = cloud.replica(replica_id).replica_state
    cloud.driver('beta').fail_next('delete_replica')
    cloud.ask('delete', replica_id)
    cloud.settle()
    cloud.ask('reset_status', replica_id, 'available')
    cloud.settle()
    cloud.update()
    assert cloud.states(share_id)['beta'] == ('available', state)
    cloud.check_invariants()


def test_active_replica_that_was_not_deleted_stays_active(build_cloud):
    """It is asked for nothing as long as there is another active one."""
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    alpha = cloud.active(share_id).id
    beta = cloud.replicate(share_id, 'beta')
    cloud.driver('alpha').fail_next('delete_replica')
    cloud.ask('delete', alpha)
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('error_deleting', 'active'),
        'beta': ('available', 'active'),
    }
    refused('last active', cloud.ask, 'delete', beta)
    cloud.api.act(share_id, 'extend', {'new_size': 5})
    cloud.settle()
    cloud.snapshot(share_id)
    assert ('extend_share', beta) in cloud.driver('beta').faults.calls
    assert cloud.api.show(share_id)['size'] == 5
    cloud.ask('force_delete', alpha)
    cloud.settle()
    assert cloud.states(share_id) == {'beta': ('available', 'active')}
    cloud.check_invariants()


def test_extend_during_replica_deletion_keeps_usage_consistent(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')

    def extend():
        cloud.api.act(share_id, 'extend', {'new_size': 5})
        for runner in [*cloud.scheduler.runners, cloud.share.backends[0].runner]:
            assert runner.step()

    cloud.pause_at('before delete_replica', extend)
    cloud.ask('delete', replica_id)
    cloud.settle()
    assert cloud.db.read(share_rows.get_target, share_id).size == 5
    assert cloud.usage('replica_gigabytes') == (5, 0)
    cloud.check_invariants()


def test_instance_of_a_replica_is_deleted_as_a_replica(cloud, share_id):
    cloud.snapshot(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    with pytest.raises(exception.ShareHasReplicas):
        cloud.services.shares.force_delete_instance(ADMIN, cloud.active(share_id).id)
    cloud.services.shares.force_delete_instance(ADMIN, replica_id)
    cloud.settle()
    assert cloud.replica(replica_id) is None
    cloud.check_invariants()


def test_a_share_with_replicas_is_not_deleted(cloud, share_id):
    cloud.replicate(share_id)
    cloud.api.delete(share_id, expect=409)
    cloud.api.act(share_id, 'force_delete', expect=409)
    cloud.api.act(share_id, 'soft_delete', expect=409)
    cloud.check_invariants()


# Administration


def test_active_replica_state_cannot_be_reset_away(cloud, share_id):
    cloud.replicate(share_id)
    for state in ('in_sync', 'out_of_sync', 'error', 'active'):
        refused(
            'is active',
            cloud.ask,
            'reset_replica_state',
            cloud.active(share_id).id,
            state,
        )


def test_second_replica_cannot_be_reset_to_active(cloud, share_id):
    replica_id = cloud.replicate(share_id)
    refused(
        'another replica is active',
        cloud.ask,
        'reset_replica_state',
        replica_id,
        'active',
    )
    with pytest.raises(exception.InvalidInput):
        cloud.ask('reset_replica_state', replica_id, 'shiny')
    with pytest.raises(exception.InvalidInput):
        cloud.ask('reset_status', replica_id, 'shiny')
    cloud.settle()
    cloud.check_invariants()


def test_writable_replica_can_be_reset_to_active(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.driver('beta').fail_next('create_replica')
    replica_id = cloud.request_replica(share_id, 'beta')
    cloud.settle()
    cloud.ask('reset_replica_state', replica_id, 'active')
    assert cloud.replica(replica_id).replica_state == 'active'


def test_extend_is_charged_for_every_replica(cloud, share_id):
    cloud.replicate(share_id, 'beta')
    cloud.api.act(share_id, 'extend', {'new_size': 5})
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (10, 0)
    assert cloud.db.read(share_rows.get_target, share_id).size == 5
    cloud.check_invariants()


# Serialization


def test_replica_work_of_one_share_is_serialized(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    ours, theirs = (Coordinator(cloud.conf, member) for member in ('ours', 'theirs'))
    cloud.share.backends[1].endpoints.replication.locks = ours
    cloud.ask('promote', replica_id)
    with theirs.lock(f'replicas-{share_id}'):
        while cloud.step():
            pass
        assert cloud.replica(replica_id).status == 'replication_change'
    cloud.clock.advance(2)
    while cloud.step():
        pass
    assert cloud.active(share_id).id == replica_id
    for locks in (ours, theirs):
        locks.stop()


# With share servers


class WithServers(ReplicatedCloud, ShareServersCloud):
    """A cloud with replicas on the share servers of a network."""


def test_replicas_on_share_servers_can_be_promoted(build_cloud):
    cloud = build_cloud(kind=WithServers)
    network_id = cloud.add_network()
    share_id = cloud.create_share_on(share_network_id=network_id)
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    row = cloud.replica(replica_id)
    assert row.share_network_id == network_id
    assert row.share_server_id not in (None, cloud.active(share_id).share_server_id)
    cloud.ask('promote', replica_id)
    cloud.settle()
    assert cloud.active(share_id).id == replica_id
    cloud.check_invariants()
    old_id = next(row.id for row in cloud.replicas(share_id) if row.id != replica_id)
    cloud.ask('delete', old_id)
    cloud.settle()
    assert [row.id for row in cloud.replicas(share_id)] == [replica_id]
    cloud.check_invariants()
    cloud.db.dispose()


@pytest.mark.facts('LP1925486', 'share-network-with-multiple-subnets.4')
def test_replica_without_a_network_uses_that_of_the_active_one(build_cloud):
    cloud = build_cloud(kind=WithServers)
    first, second = cloud.add_network(), cloud.add_network()
    share_id = cloud.create_share(share_network_id=first)
    one = cloud.replicate(share_id)
    other = cloud.replicate(share_id, share_network_id=second)
    assert cloud.replica(one).share_network_id == first
    assert cloud.replica(other).share_network_id == second
    with pytest.raises(exception.ShareNetworkNotFound):
        cloud.request_replica(share_id, share_network_id='none')
    cloud.check_invariants()
    cloud.db.dispose()
