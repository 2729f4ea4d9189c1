"""Snapshots of shares that have replicas: refused requests, and deletion."""

import concurrent.futures
import functools
import threading

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.quota.snapshots import remove_and_credit
from tests.functional.share.replication.snapshots.snapshot_states import (
    ask,
    begin_promotion,
    complete,
    fall_out,
    make_terse,
    replica_on,
    run,
    state,
    status,
    statuses,
)
from tests.support import cloud_snapshots, sampling
from tests.support.replicated import ADMIN, ReplicatedCloud

SHARE_INSTANCE = shares.ShareInstance.__table__
PASSIVE_STYLES = ('readable', 'dr')


def lose_active(cloud, share_id):
    """Leave no active replica, as after a loss of database rows."""
    cloud.db.write(
        lambda session: session.run(
            sa.update(SHARE_INSTANCE)
            .values(replica_state='out_of_sync', sole_active_of=None)
            .where(SHARE_INSTANCE.c.share_id == share_id)
        )
    )


# Refusals


@pytest.mark.parametrize(
    'verb, code', [('take', 400), ('delete', 400), ('revert', 409)]
)
def test_snapshot_requests_are_refused_during_promotion(cloud, share_id, verb, code):
    snapshot_id = complete(cloud, share_id)
    begin_promotion(cloud, share_id)
    ask(cloud, verb, share_id, snapshot_id, code)
    cloud.settle()
    cloud.update()
    ask(cloud, verb, share_id, snapshot_id, 202)
    cloud.settle()
    cloud.update()
    cloud.check_invariants()


@pytest.mark.parametrize('verb', ['take', 'delete', 'revert'])
def test_snapshot_requests_are_refused_without_an_active_replica(cloud, share_id, verb):
    snapshot_id = complete(cloud, share_id)
    lose_active(cloud, share_id)
    ask(cloud, verb, share_id, snapshot_id, 400)
    assert status(cloud, snapshot_id) == 'available'


def test_force_delete_of_a_snapshot_works_without_an_active_replica(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    lose_active(cloud, share_id)
    cloud_snapshots.act(cloud, snapshot_id, 'force_delete')
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)


def test_snapshots_of_a_share_with_replicas_cannot_be_managed(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud_snapshots.act(cloud, snapshot_id, 'unmanage', expect=409)
    cloud.api.request(
        'POST',
        '/snapshots/manage',
        {'snapshot': {'share_id': share_id, 'provider_location': 'there'}},
        expect=409,
    )


# Delete


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_snapshot_is_deleted_when_no_replica_has_it(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = complete(cloud, share_id)
    cloud_snapshots.delete(cloud, snapshot_id)
    assert set(statuses(cloud, snapshot_id).values()) == {'deleting'}
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'beta': 'deleting'}
    assert status(cloud, snapshot_id) == 'deleting'
    assert cloud.usage('snapshots') == (1, 0)
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)
    cloud.check_invariants()


def test_snapshot_missing_on_one_replica_can_be_deleted(cloud, share_id):
    fall_out(cloud, share_id)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    assert statuses(cloud, snapshot_id)['beta'] == 'creating'
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    cloud.check_invariants()


def test_snapshot_being_copied_cannot_be_deleted(cloud, share_id):
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    cloud_snapshots.delete(cloud, snapshot_id, 400)
    assert statuses(cloud, snapshot_id) == {'alpha': 'available', 'beta': 'creating'}


def test_failed_snapshot_deletion_fails_on_all_replicas(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('delete_replicated_snapshot')
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    assert set(statuses(cloud, snapshot_id).values()) == {'error_deleting'}
    assert status(cloud, snapshot_id) == 'error_deleting'
    assert cloud.usage('snapshots') == (1, 0)


def test_force_delete_removes_snapshot_rows_on_all_replicas(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('delete_replicated_snapshot')
    cloud_snapshots.act(cloud, snapshot_id, 'force_delete')
    cloud.settle()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)


@pytest.mark.parametrize('force', [False, True])
def test_only_force_delete_skips_a_replica_in_error(cloud, share_id, force):
    snapshot_id = complete(cloud, share_id)
    fall_out(cloud, share_id, what='error')
    if force:
        cloud_snapshots.act(cloud, snapshot_id, 'force_delete')
    else:
        cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == ({} if force else {'beta': 'deleting'})


def test_unplaced_replica_is_not_awaited_on_deletion(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    nowhere = cloud.request_replica(share_id, 'alpha')  # which is in use
    cloud.settle()
    assert cloud.replica(nowhere).host is None
    assert snapshot_id in cloud.snapshots_on(nowhere)
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)


def test_driver_still_deleting_is_called_again(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    said = ['deleting', 'deleting', 'deleted']
    asked = []

    def answer(given):
        asked.append(len(given))
        return [
            {'id': one['id'], 'status': said[0] if len(said) == 1 else said.pop(0)}
            for one in given
            if one['share_instance_id'] == active
        ]

    active = cloud.active(share_id).id
    make_terse(cloud, delete_replicated_snapshot=answer)
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    assert len(asked) == 3
    assert statuses(cloud, snapshot_id) == {'beta': 'deleting'}


def test_deletion_failure_on_one_replica_is_visible_there(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    passive = replica_on(cloud, share_id, 'beta').id
    make_terse(
        cloud,
        delete_replicated_snapshot=lambda given: [
            {'id': one['id'], 'status': 'error'}
            for one in given
            if one['share_instance_id'] == passive
        ],
    )
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'beta': 'error_deleting'}
    assert status(cloud, snapshot_id) == 'error_deleting'


def test_deletion_follows_the_active_replica(cloud, share_id):
    """Another replica is promoted between the request and its work."""
    snapshot_id = complete(cloud, share_id)
    cloud_snapshots.delete(cloud, snapshot_id)
    begin_promotion(cloud, share_id)
    run(cloud, 'beta')
    assert state(cloud, share_id, 'beta') == 'active'
    run(cloud, 'alpha')
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': 'deleting'}
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    cloud.check_invariants()


@sampling.dialects
def test_concurrent_removal_of_the_last_instances_deletes_the_snapshot(
    database_url, tmp_path
):
    """Two back ends remove the last two instances concurrently."""
    cloud = ReplicatedCloud(tmp_path, url=database_url)
    try:
        share_id = cloud.create_share_on('alpha')
        cloud.replicate(share_id, 'beta')
        cloud.replicate(share_id, 'gamma')
        for _ in range(5):
            snapshot_id = complete(cloud, share_id)
            cloud_snapshots.delete(cloud, snapshot_id)
            cloud.settle()
            last = cloud.db.read(snapshots.list_for_snapshot, snapshot_id)
            assert len(last) == 2
            start = threading.Barrier(2)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(functools.partial(remove_instance, cloud, start), last))
            assert cloud.usage('snapshots') == (0, 0)
            cloud_snapshots.check_gone(cloud, snapshot_id)
    finally:
        cloud.db.dispose()


def remove_instance(cloud, start, row):
    start.wait()
    cloud.db.write(remove_and_credit, row)


def test_snapshot_is_deleted_where_it_is_not_on_the_oldest_active_replica(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    beta = cloud.replicate(share_id, 'beta')
    cloud.update()
    cloud.ask('delete', replica_on(cloud, share_id, 'alpha').id)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.driver('alpha').fail_next('delete_replica')
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'beta': 'available'}
    cloud.services.shares.reset_status(ADMIN, beta, 'error_deleting')
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    cloud.check_invariants()
