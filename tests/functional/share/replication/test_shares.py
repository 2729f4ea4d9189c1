"""Requests that are older than replication, on replicated shares."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.quota import recount
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.operations.managing import ManageSnapshotRequest
from tests.support.access import ShareRules
from tests.support.cloud import Crash
from tests.support.replicated import ADMIN

STYLES = ('readable', 'dr', 'writable')
POOL = services.Pool.__table__

FORCED = pytest.mark.parametrize('force', [False, True], ids=['placed', 'forced'])


@pytest.fixture
def share_id(cloud):
    """Create a share of 2 GiB: active on alpha, a replica on beta."""
    return mirrored(cloud)


def mirrored(cloud, size=2):
    share_id = cloud.create_share_on('alpha', size=size)
    cloud.replicate(share_id, 'beta')
    return share_id


def replica_on(cloud, share_id, backend):
    return next(
        row.id for row in cloud.replicas(share_id) if row.host == f'node@{backend}#pool'
    )


def allocated(cloud):
    """Return the allocated capacity by back end; zero is left out."""
    return {
        row.host.partition('@')[2].partition('#')[0]: row.allocated_gb
        for row in cloud.rows(sa.select(POOL))
        if row.allocated_gb
    }


def extend(cloud, share_id, new_size, *, force=False, expect=202):
    return cloud.api.act(
        share_id, 'extend', {'new_size': new_size, 'force': force}, expect=expect
    )


def promote(cloud, share_id, backend):
    cloud.ask('promote', replica_on(cloud, share_id, backend))
    cloud.settle()


# Sizes


@pytest.mark.parametrize('style', STYLES)
@FORCED
def test_extend_resizes_all_replicas(build_cloud, style, force):
    cloud = build_cloud(style)
    share_id = mirrored(cloud)
    cloud.replicate(share_id, 'gamma')
    extend(cloud, share_id, 5, force=force)
    assert cloud.usage('gigabytes') == (2, 3)
    assert cloud.usage('replica_gigabytes') == (6, 9)
    cloud.settle()
    assert cloud.api.show(share_id)['size'] == 5
    assert cloud.usage('gigabytes') == (5, 0)
    assert cloud.usage('replica_gigabytes') == (15, 0)
    assert cloud.usage('share_replicas') == (3, 0)
    assert allocated(cloud) == {'alpha': 5, 'beta': 5, 'gamma': 5}
    cloud.update()
    for name in cloud.backend_names:
        assert set(dummy.inventory(cloud.folder / 'dummy' / name).values()) == {5}
    cloud.check_invariants()


@pytest.mark.parametrize('style', STYLES)
def test_shrink_resizes_all_replicas(build_cloud, style):
    cloud = build_cloud(style)
    share_id = mirrored(cloud, size=4)
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (2, 0)
    assert allocated(cloud) == {'alpha': 1, 'beta': 1}
    cloud.check_invariants()


@pytest.mark.parametrize('method', ['fail_next', 'lose_reply_next'])
@FORCED
def test_failed_extend_keeps_usage_consistent(cloud, share_id, method, force):
    getattr(cloud.driver('alpha'), method)('extend_share')
    extend(cloud, share_id, 5, force=force)
    cloud.settle()
    assert cloud.api.show(share_id)['status'] == 'extending_error'
    assert cloud.usage('replica_gigabytes') == (4, 0)
    assert allocated(cloud) == {'alpha': 2, 'beta': 2}
    assert cloud.db.read(recount.differences) == []


@FORCED
def test_replica_deleted_during_extend_is_not_charged(cloud, share_id, force):
    cloud.replicate(share_id, 'gamma')
    extend(cloud, share_id, 5, force=force)
    cloud.ask('delete', replica_on(cloud, share_id, 'gamma'))
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (10, 0)
    assert allocated(cloud) == {'alpha': 5, 'beta': 5}
    cloud.check_invariants()


def test_deleted_replica_is_credited_with_its_current_size(cloud, share_id):
    """Its deletion begins before the extension, and ends after."""
    cloud.ask('delete', replica_on(cloud, share_id, 'beta'))
    beta = next(
        backend.runner
        for backend in cloud.share.backends
        if backend.host.endswith('@beta')
    )

    def grow():
        extend(cloud, share_id, 5, force=True)
        alpha = next(
            backend.runner
            for backend in cloud.share.backends
            if backend.host.endswith('@alpha')
        )
        while alpha.step():
            pass
        assert cloud.api.show(share_id)['size'] == 5

    cloud.pause_at('before delete_replica', grow)
    while beta.step():
        pass
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (5, 0)
    assert allocated(cloud) == {'alpha': 5}
    cloud.check_invariants()


@pytest.mark.parametrize('action, new_size', [('extend', 5), ('shrink', 1)])
def test_share_cannot_be_resized_while_replicas_change(
    cloud, share_id, action, new_size
):
    cloud.ask('promote', replica_on(cloud, share_id, 'beta'))
    cloud.api.act(share_id, action, {'new_size': new_size}, expect=400)
    cloud.settle()
    cloud.request_replica(share_id, 'gamma')
    cloud.api.act(share_id, action, {'new_size': new_size}, expect=400)
    cloud.settle()
    cloud.api.act(share_id, action, {'new_size': new_size})
    cloud.settle()
    cloud.check_invariants()


def test_extend_runs_on_the_active_replica(cloud, share_id):
    promote(cloud, share_id, 'beta')
    extend(cloud, share_id, 5, force=True)
    assert cloud.states(share_id)['beta'][0] == 'extending'
    assert cloud.states(share_id)['alpha'][0] == 'available'
    assert cloud.api.show(share_id)['status'] == 'extending'
    cloud.settle()
    cloud.check_invariants()


def test_request_that_read_before_a_promotion_acts_on_the_new_active_replica(
    cloud, share_id
):
    before = ShareRules(cloud, share_id).target
    promote(cloud, share_id, 'beta')
    cloud.services.shares.extend(ADMIN, before, 5)
    assert cloud.states(share_id)['beta'][0] == 'extending'
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.facts('add-tenant-quota-for-share-replicas.2', 'maxTotalReplicaGigabytes')
def test_extend_must_fit_into_the_quota_for_all_replicas(cloud, share_id):
    cloud.api.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {'replica_gigabytes': 9}},
        expect=200,
    )
    refused = extend(cloud, share_id, 5, expect=413)
    assert 'replica' in refused.text
    assert cloud.usage('replica_gigabytes') == (4, 0)
    assert cloud.api.show(share_id)['status'] == 'available'
    extend(cloud, share_id, 4)
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (8, 0)


def test_lost_resize_ends_with_exact_usage(build_cloud):
    """The process dies at every fifth crash point."""
    cloud = build_cloud()
    share_id = mirrored(cloud)
    place, died = 0, True
    while died:
        extend(cloud, share_id, cloud.api.show(share_id)['size'] + 1)
        cloud.crash_at(place)
        try:
            cloud.settle()
            died = False
        except Crash:
            cloud.restart()
        cloud.crash_at(None)
        cloud.settle()
        cloud.check_invariants()
        if cloud.api.show(share_id)['status'] != 'available':
            cloud.ask('reset_status', replica_on(cloud, share_id, 'alpha'), 'available')
        place += 5
    assert place > 40


# Displayed values


def test_share_shows_its_active_replica(cloud, share_id):
    cloud.ask('reset_status', replica_on(cloud, share_id, 'alpha'), 'error')
    shown = cloud.api.show(share_id)
    assert (shown['status'], shown['host']) == ('error', 'node@alpha#pool')
    assert shown['has_replicas']
    extend(cloud, share_id, 5, expect=400)


def test_share_shows_replication_change_during_promotion(cloud, share_id):
    cloud.ask('promote', replica_on(cloud, share_id, 'beta'))
    assert cloud.api.show(share_id)['status'] == 'replication_change'
    found = cloud.api.get('/shares/detail?status=replication_change')
    assert [one['id'] for one in found['shares']] == [share_id]
    assert cloud.api.get('/shares/detail?status=available') == {'shares': []}
    cloud.settle()
    assert cloud.api.show(share_id)['host'] == 'node@beta#pool'


def test_new_replica_does_not_change_the_displayed_share(cloud, share_id):
    cloud.request_replica(share_id, 'gamma')
    assert cloud.api.show(share_id)['status'] == 'available'


@pytest.mark.parametrize(
    'key', ['host', 'status', 'availability_zone_id', 'share_type_id']
)
def test_replicated_share_is_listed_once(cloud, share_id, key):
    ids = {share_id, mirrored(cloud), cloud.create_share_on('gamma')}
    for direction in ('asc', 'desc'):
        query = f'sort_key={key}&sort_dir={direction}'
        whole = [
            one['id'] for one in cloud.api.get(f'/shares/detail?{query}')['shares']
        ]
        paged = [
            one['id']
            for offset in range(4)
            for one in cloud.api.get(f'/shares?{query}&limit=1&offset={offset}')[
                'shares'
            ]
        ]
        assert whole == paged
        assert sorted(whole) == sorted(ids)


def test_lists_are_sorted_by_the_host_of_the_active_replica(cloud):
    first, second = mirrored(cloud), cloud.create_share_on('beta')
    query = '/shares?sort_key=host&sort_dir=asc'

    def listed():
        return [one['id'] for one in cloud.api.get(query)['shares']]

    assert listed() == [first, second]
    cloud.replicate(first, 'gamma')
    promote(cloud, first, 'gamma')
    assert listed() == [second, first]
    assert cloud.api.get('/shares?host=node@alpha%23pool') == {'shares': []}


# Deletion


@pytest.mark.parametrize(
    'action', ['force_delete', 'soft_delete', 'unmanage', 'delete']
)
def test_share_with_replicas_cannot_be_unmanaged(cloud, share_id, action):
    path = f'/shares/{share_id}'
    if action == 'delete':
        answer = cloud.api.request('DELETE', path)
    else:
        answer = cloud.api.act(share_id, action, expect=None)
    assert answer.status_int == 409, answer.text
    assert set(cloud.states(share_id).values()) == {
        ('available', 'active'),
        ('available', 'in_sync'),
    }
    cloud.ask('delete', replica_on(cloud, share_id, 'beta'))
    cloud.settle()
    assert not cloud.api.show(share_id)['has_replicas']
    if action == 'delete':
        cloud.api.delete(share_id)
    else:
        cloud.api.act(share_id, action)
    cloud.settle()
    cloud.restart()


def test_snapshot_of_a_share_with_replicas_cannot_be_managed(cloud, share_id):
    with pytest.raises(exception.ShareHasReplicas):
        cloud.services.managing.manage_snapshot(
            ADMIN,
            ShareRules(cloud, share_id).target,
            ManageSnapshotRequest(provider_location='there'),
        )
    snapshot_id = cloud.snapshot(share_id)
    answer = cloud.api.request(
        'POST', f'/snapshots/{snapshot_id}/action', {'unmanage': None}
    )
    assert answer.status_int == 409, answer.text


def test_deferred_deletion_of_a_share_with_a_single_replica(build_cloud):
    cloud = build_cloud(extra_conf='is_deferred_deletion_enabled = true')
    share_id = cloud.create_share_on('alpha', size=2)
    cloud.api.delete(share_id)
    for resource in ('shares', 'gigabytes', 'share_replicas', 'replica_gigabytes'):
        assert cloud.usage(resource) == (0, 0)
    assert cloud.db.read(recount.differences) == []
    cloud.settle()
    assert cloud.replicas(share_id) == []
    assert allocated(cloud) == {}
    cloud.check_invariants()


@pytest.fixture
def deferring(build_cloud):
    """A cloud, with a share on alpha whose snapshot could not be deleted."""
    cloud = build_cloud(extra_conf='is_deferred_deletion_enabled = true')
    cloud.share_id = cloud.create_share_on('alpha', size=2)
    cloud.snapshot_id = cloud.snapshot(cloud.share_id)
    cloud.driver('alpha').fail_next('delete_snapshot')
    cloud.api.request('DELETE', f'/snapshots/{cloud.snapshot_id}', expect=202)
    assert status_of(cloud) == 'deferred_deleting'
    assert cloud.usage('snapshots') == (0, 0)
    cloud.settle()
    assert status_of(cloud) == 'error_deferred_deleting'
    return cloud


def status_of(cloud):
    return cloud.api.get(f'/snapshots/{cloud.snapshot_id}')['snapshot']['status']


def promote_replica(cloud, replica_id):
    path = f'/share-replicas/{replica_id}/action'
    cloud.api.request('POST', path, {'promote': None}, expect=202)
    cloud.settle()


def retry_deletions(cloud):
    for backend in cloud.share.backends:
        backend.deferred_deletion.retry()
    cloud.settle()
    cloud.update()


def check_gone(cloud):
    cloud.api.get(f'/snapshots/{cloud.snapshot_id}', expect=404)
    assert cloud.usage('snapshots') == (0, 0)
    assert cloud.db.read(recount.differences) == []
    cloud.check_invariants()


def test_deletion_of_a_snapshot_on_the_only_replica_is_deferred(deferring):
    retry_deletions(deferring)
    check_gone(deferring)
    deferring.snapshot(deferring.share_id)


def test_share_follows_its_snapshot_on_the_only_replica(deferring):
    deferring.api.delete(deferring.share_id)
    deferring.settle()
    check_gone(deferring)
    assert deferring.replicas(deferring.share_id) == []
    assert allocated(deferring) == {}


def test_new_replica_does_not_get_a_snapshot_in_deferred_deletion(deferring):
    cloud = deferring
    replica = cloud.replicate(cloud.share_id, 'beta')
    cloud.update()
    promote_replica(cloud, replica)
    retry_deletions(cloud)
    check_gone(cloud)


def test_quota_is_given_back_once_if_the_replica_goes_first(deferring):
    cloud = deferring
    (first,) = cloud.replicas(cloud.share_id)
    replica = cloud.replicate(cloud.share_id, 'beta')
    cloud.update()
    promote_replica(cloud, replica)
    cloud.api.request('DELETE', f'/share-replicas/{first.id}', expect=202)
    cloud.settle()
    assert len(cloud.replicas(cloud.share_id)) == 1
    check_gone(cloud)


def test_share_with_a_single_replica_can_be_soft_deleted(cloud):
    share_id = cloud.create_share_on('alpha')
    cloud.api.act(share_id, 'soft_delete')
    with pytest.raises(exception.ShareSoftDeleted):
        cloud.request_replica(share_id, 'beta')
    cloud.api.act(share_id, 'restore')
    cloud.replicate(share_id, 'beta')
    cloud.check_invariants()


# Usage


def test_recount_corrects_usage_of_replicas(cloud, share_id):
    usage = sa.text(
        'UPDATE quota_usages SET in_use = 99 WHERE resource IN '
        "('share_replicas', 'replica_gigabytes')"
    )
    cloud.db.write(lambda session: session.run(usage))
    wrong = cloud.db.write(recount.correct, {})
    assert {one.key.resource for one in wrong} == {
        'share_replicas',
        'replica_gigabytes',
    }
    assert cloud.usage('share_replicas') == (2, 0)
    assert cloud.usage('replica_gigabytes') == (4, 0)


def test_replicas_count_for_share_type_usage(cloud, share_id):
    rows = {
        row.scope: row.in_use
        for row in cloud.rows(
            sa.text(
                'SELECT scope, in_use FROM quota_usages '
                "WHERE resource = 'replica_gigabytes'"
            )
        )
    }
    assert rows == {'project': 4, 'share_type': 4, 'user': 4}
