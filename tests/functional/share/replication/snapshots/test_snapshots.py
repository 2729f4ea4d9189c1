"""Snapshots of shares that have replicas: create, show and clone."""

import pytest
import sqlalchemy as sa

from manila_lite.coordination import Coordinator
from manila_lite.db.models import services, snapshots as models
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.quota.snapshots import remove_and_credit
from manila_lite.share.drivers.dummy import driver as dummy
from tests.functional.share.replication.snapshots.snapshot_states import (
    ask,
    begin_promotion,
    complete,
    fall_out,
    found,
    make_terse,
    replica_on,
    run,
    state,
    status,
    statuses,
)
from tests.support import cloud_snapshots

INSTANCE = models.SnapshotInstance.__table__
MESSAGE = services.Message.__table__
PASSIVE_STYLES = ('readable', 'dr')


def promote(cloud, share_id, backend='beta'):
    begin_promotion(cloud, share_id, backend)
    cloud.settle()
    assert cloud.states(share_id)[backend] == ('available', 'active')


def details(cloud):
    return [
        row.detail_id
        for row in cloud.rows(sa.select(MESSAGE).order_by(MESSAGE.c.created_at))
    ]


# Create


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_snapshot_is_complete_when_all_in_sync_replicas_have_it(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    assert statuses(cloud, snapshot_id) == {'alpha': 'creating', 'beta': 'creating'}
    assert cloud.states(share_id) == {
        'alpha': ('snapshotting', 'active'),
        'beta': ('available', 'in_sync'),
    }
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': 'available', 'beta': 'creating'}
    assert cloud.api.show(share_id)['status'] == 'available'
    assert status(cloud, snapshot_id) == 'creating'
    cloud.update()
    assert status(cloud, snapshot_id) == 'available'
    assert state(cloud, share_id, 'beta') == 'in_sync'
    assert cloud.usage('snapshots') == (1, 0)
    assert cloud.usage('snapshot_gigabytes') == (1, 0)
    cloud.check_invariants()


def test_writable_replicas_all_get_a_snapshot_at_once(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': 'available', 'beta': 'available'}
    cloud.check_invariants()


def test_out_of_sync_replica_is_not_awaited(cloud, share_id):
    fall_out(cloud, share_id)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id)['beta'] == 'creating'
    assert status(cloud, snapshot_id) == 'available'
    cloud.update()
    assert statuses(cloud, snapshot_id)['beta'] == 'available'
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_share_with_a_single_replica_uses_plain_snapshot_calls(cloud):
    share_id = cloud.create_share_on('alpha')
    cloud.driver().fail_next('create_replicated_snapshot')
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    cloud.replicate(share_id, 'beta')
    cloud.update()
    assert statuses(cloud, snapshot_id) == {'alpha': 'available', 'beta': 'available'}
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_replica_being_deleted_gets_no_snapshot(cloud, share_id):
    cloud.ask('delete', replica_on(cloud, share_id, 'beta').id)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    assert statuses(cloud, snapshot_id) == {'alpha': 'creating'}
    cloud.settle()
    assert status(cloud, snapshot_id) == 'available'
    cloud.check_invariants()


def test_driver_failure_fails_the_snapshot_on_all_replicas(cloud, share_id):
    cloud.driver().fail_next('create_replicated_snapshot')
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert set(statuses(cloud, snapshot_id).values()) == {'error'}
    assert cloud.api.show(share_id)['status'] == 'available'
    assert len(details(cloud)) == 1
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)
    cloud.check_invariants()


def test_empty_reply_means_taken_on_the_active_replica_only(cloud, share_id):
    make_terse(cloud, create_replicated_snapshot=lambda given: None)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': 'available', 'beta': 'creating'}


def test_reply_about_other_replicas_is_stored(cloud, share_id):
    make_terse(
        cloud,
        create_replicated_snapshot=lambda given: [
            {
                'id': one['id'],
                'status': 'available',
                'provider_location': f'there/{one["share_instance_id"]}',
            }
            for one in given
        ],
    )
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    found = cloud.rows(sa.select(INSTANCE).where(INSTANCE.c.snapshot_id == snapshot_id))
    assert {row.provider_location for row in found} == {
        f'there/{row.id}' for row in cloud.replicas(share_id)
    }
    assert {(row.status, row.progress) for row in found} == {('available', '100%')}


@pytest.mark.parametrize('said', ['error', 'creating'])
def test_snapshot_missing_on_the_active_replica_fails(cloud, share_id, said):
    active = cloud.active(share_id).id
    make_terse(
        cloud,
        create_replicated_snapshot=lambda given: [
            {'id': one['id'], 'status': said}
            for one in given
            if one['share_instance_id'] == active
        ],
    )
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert set(statuses(cloud, snapshot_id).values()) == {'error'}
    assert cloud.api.show(share_id)['status'] == 'available'


def test_copy_failure_on_one_replica_fails_there(cloud, share_id):
    passive = replica_on(cloud, share_id, 'beta').id
    make_terse(
        cloud,
        create_replicated_snapshot=lambda given: [
            {'id': one['id'], 'status': 'error'}
            for one in given
            if one['share_instance_id'] == passive
        ],
    )
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': 'available', 'beta': 'error'}
    assert status(cloud, snapshot_id) == 'error'


def test_snapshot_deleted_during_creation_is_left_nowhere(cloud, share_id):
    def force_delete():
        (snapshot_id,) = cloud.snapshots_on(cloud.active(share_id).id)
        cloud_snapshots.act(cloud, snapshot_id, 'force_delete')
        lose_rows(cloud, snapshot_id)

    cloud.pause_at('after create_replicated_snapshot', force_delete)
    cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert not any(
        dummy.snapshot_inventory(cloud.folder / 'dummy' / name)
        for name in ('alpha', 'beta')
    )
    assert cloud.api.show(share_id)['status'] == 'available'
    assert cloud.usage('snapshots') == (0, 0)


def lose_rows(cloud, snapshot_id):
    """Another process has already carried out the deletion."""
    cloud.db.write(
        lambda session: [
            remove_and_credit(session, row)
            for row in snapshots.list_for_snapshot(session, snapshot_id)
        ]
    )


@pytest.mark.parametrize('verb', ['take', 'delete', 'revert'])
def test_snapshot_work_of_one_share_is_serialized(cloud, share_id, verb):
    """Work that has to wait is released and blocks no other."""
    snapshot_id = complete(cloud, share_id)
    endpoint = next(
        one.endpoints.replicated_snapshots
        for one in cloud.share.backends
        if one.host.endswith('@alpha')
    )
    coordinators = [Coordinator(cloud.conf, name) for name in ('one', 'two')]
    endpoint.locks = coordinators[0]
    with coordinators[1].lock(f'replicas-{share_id}'):
        ask(cloud, verb, share_id, snapshot_id, 202)
        before = replicated_calls(cloud)
        for _ in range(3):
            run(cloud, 'alpha')
            cloud.clock.advance(2)
        assert replicated_calls(cloud) == before
    cloud.settle()
    assert replicated_calls(cloud) == before + 1
    cloud.update()
    for one in coordinators:
        one.stop()
    assert cloud.api.show(share_id)['status'] == 'available'
    cloud.check_invariants()


def replicated_calls(cloud):
    """Return the calls of alpha for replicated snapshots."""
    return sum('replicated_snapshot' in call.method for call in cloud.driver().calls)


# Shares from snapshots


def test_clone_uses_the_snapshot_of_the_active_replica(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    promote(cloud, share_id)
    cloud.update()
    made = cloud.create_share(snapshot_id=snapshot_id, size=2)
    assert list(cloud.states(made)) == ['beta']
    cloud.check_invariants()


def test_only_complete_snapshots_can_be_cloned(cloud, share_id):
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id)['alpha'] == 'available'
    cloud.api.create(expect=400, snapshot_id=snapshot_id, size=2)
    cloud.update()
    cloud.create_share(snapshot_id=snapshot_id, size=2)


# Displayed values


def test_lists_filter_and_sort_by_the_displayed_status(cloud, share_id):
    whole = complete(cloud, share_id)
    part = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    assert found(cloud, 'status=available') == [whole]
    assert found(cloud, 'status=creating') == [part]
    fall_out(cloud, share_id)
    assert found(cloud, 'status=creating') == []
    assert found(cloud, 'status=available&sort_dir=asc') == [whole, part]
    fall_out(cloud, share_id, what='in_sync')
    assert found(cloud, 'sort_key=status&sort_dir=asc') == [whole, part]
    assert found(cloud, 'sort_key=status&sort_dir=desc') == [part, whole]


def test_every_instance_is_listed(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    listed = cloud.api.get(f'/snapshot-instances/detail?snapshot_id={snapshot_id}')
    assert {one['share_instance_id'] for one in listed['snapshot_instances']} == {
        row.id for row in cloud.replicas(share_id)
    }


def test_reset_sets_the_displayed_status(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.replicate(share_id, 'gamma')
    cloud.update()
    fall_out(cloud, share_id, 'gamma')
    cloud_snapshots.act(cloud, snapshot_id, 'reset_status', {'status': 'error'})
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'error',
        'beta': 'error',
        'gamma': 'available',
    }
    assert status(cloud, snapshot_id) == 'error'
    cloud_snapshots.act(cloud, snapshot_id, 'reset_status', {'status': 'available'})
    assert status(cloud, snapshot_id) == 'available'
