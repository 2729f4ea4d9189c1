"""Snapshots of replicated shares: creation, deletion, revert."""

import concurrent.futures
import functools
import threading

import pytest
import sqlalchemy as sa

from manila_lite.coordination import Coordinator
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots as models
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.quota.snapshots import remove_and_credit
from manila_lite.share.drivers.dummy import driver as dummy
from tests.support import cloud_snapshots
from tests.support.cloud import Crash
from tests.support.replicated import ReplicatedCloud
from tests.support.replicated import backend_of

INSTANCE = models.SnapshotInstance.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__
MESSAGE = services.Message.__table__
PASSIVE_STYLES = ('readable', 'dr')


@pytest.fixture
def build_cloud(tmp_path):
    built = []

    def build(style='readable', **given):
        built.append(ReplicatedCloud(tmp_path, style=style, **given))
        return built[-1]

    yield build
    for cloud in built:
        cloud.db.dispose()


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()


@pytest.fixture
def share_id(cloud):
    """A share active on alpha, with a replica on beta."""
    share_id = cloud.create_share_on('alpha', size=2)
    cloud.replicate(share_id, 'beta')
    return share_id


def statuses(cloud, snapshot_id):
    """Return the status of every instance by its back end."""
    return {
        backend_of(row): row.status
        for row in cloud.rows(
            sa.select(INSTANCE.c.status, SHARE_INSTANCE.c.host)
            .join(SHARE_INSTANCE)
            .where(INSTANCE.c.snapshot_id == snapshot_id)
        )
    }


def status(cloud, snapshot_id):
    return cloud_snapshots.show(cloud, snapshot_id)['status']


def state(cloud, share_id, backend):
    return cloud.states(share_id)[backend][1]


def replica_on(cloud, share_id, backend):
    return next(
        row for row in cloud.replicas(share_id) if backend_of(row) == backend
    )


def complete(cloud, share_id):
    """Create a snapshot and wait until all replicas have it."""
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    cloud.update()
    assert status(cloud, snapshot_id) == 'available'
    return snapshot_id


def begin_promotion(cloud, share_id, backend='beta'):
    cloud.ask('promote', replica_on(cloud, share_id, backend).id)


def promote(cloud, share_id, backend='beta'):
    begin_promotion(cloud, share_id, backend)
    cloud.settle()
    assert cloud.states(share_id)[backend] == ('available', 'active')


def fall_out(cloud, share_id, backend='beta', what='out_of_sync'):
    cloud.ask(
        'reset_replica_state', replica_on(cloud, share_id, backend).id, what
    )


def lose_active(cloud, share_id):
    """Leave no active replica, as after a loss of database rows."""
    cloud.db.write(
        lambda session: session.run(
            sa.update(SHARE_INSTANCE)
            .values(replica_state='out_of_sync', sole_active_of=None)
            .where(SHARE_INSTANCE.c.share_id == share_id)
        )
    )


def details(cloud):
    return [
        row.detail_id
        for row in cloud.rows(
            sa.select(MESSAGE).order_by(MESSAGE.c.created_at)
        )
    ]


class Terse:
    """A driver that reports of snapshots only what the test sets."""

    def __init__(self, driver, **answers):
        self._driver = driver
        self._answers = answers

    def __getattr__(self, name):
        found = getattr(self._driver, name)
        if name not in self._answers:
            return found

        def call(context, replica_list, replica_snapshots, **more):
            found(context, replica_list, replica_snapshots, **more)
            return self._answers[name](replica_snapshots)

        return call


def make_terse(cloud, backend='alpha', **answers):
    made = next(
        one for one in cloud.share.backends if one.host.endswith(f'@{backend}')
    )
    made.endpoints.snapshots.driver = Terse(
        made.endpoints.snapshots.driver, **answers
    )


# Create


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_snapshot_is_complete_when_all_in_sync_replicas_have_it(
    build_cloud, style
):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'creating',
        'beta': 'creating',
    }
    assert cloud.states(share_id) == {
        'alpha': ('snapshotting', 'active'),
        'beta': ('available', 'in_sync'),
    }
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'creating',
    }
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
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'available',
    }
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
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'available',
    }
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
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'creating',
    }


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
    found = cloud.rows(
        sa.select(INSTANCE).where(INSTANCE.c.snapshot_id == snapshot_id)
    )
    assert {row.provider_location for row in found} == {
        f'there/{row.id}' for row in cloud.replicas(share_id)
    }
    assert {(row.status, row.progress) for row in found} == {
        ('available', '100%')
    }


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
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'error',
    }
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
    return sum(
        'replicated_snapshot' in call.method for call in cloud.driver().calls
    )


# Refusals


@pytest.mark.parametrize(
    'verb, code', [('take', 400), ('delete', 400), ('revert', 409)]
)
def test_snapshot_requests_are_refused_during_promotion(
    cloud, share_id, verb, code
):
    snapshot_id = complete(cloud, share_id)
    begin_promotion(cloud, share_id)
    ask(cloud, verb, share_id, snapshot_id, code)
    cloud.settle()
    cloud.update()
    ask(cloud, verb, share_id, snapshot_id, 202)
    cloud.settle()
    cloud.update()
    cloud.check_invariants()


def ask(cloud, verb, share_id, snapshot_id, code):
    if verb == 'take':
        cloud_snapshots.create(cloud, share_id, code)
    elif verb == 'delete':
        cloud_snapshots.delete(cloud, snapshot_id, code)
    else:
        cloud_snapshots.revert(cloud, share_id, snapshot_id, code)


@pytest.mark.parametrize('verb', ['take', 'delete', 'revert'])
def test_snapshot_requests_are_refused_without_an_active_replica(
    cloud, share_id, verb
):
    snapshot_id = complete(cloud, share_id)
    lose_active(cloud, share_id)
    ask(cloud, verb, share_id, snapshot_id, 400)
    assert status(cloud, snapshot_id) == 'available'


def test_force_delete_of_a_snapshot_works_without_an_active_replica(
    cloud, share_id
):
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
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'creating',
    }


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
    assert statuses(cloud, snapshot_id) == (
        {} if force else {'beta': 'deleting'}
    )


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
            {
                'id': one['id'],
                'status': said[0] if len(said) == 1 else said.pop(0),
            }
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


def run(cloud, backend):
    """Run the pending work of one back end only."""
    runner = next(
        one.runner
        for one in cloud.share.backends
        if one.host.endswith(f'@{backend}')
    )
    while runner.step():
        pass


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
                list(
                    pool.map(
                        functools.partial(remove_instance, cloud, start), last
                    )
                )
            assert cloud.usage('snapshots') == (0, 0)
            cloud_snapshots.check_gone(cloud, snapshot_id)
    finally:
        cloud.db.dispose()


def remove_instance(cloud, start, row):
    start.wait()
    cloud.db.write(remove_and_credit, row)


# Revert


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_other_replicas_are_out_of_sync_after_a_revert(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = complete(cloud, share_id)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    assert cloud.states(share_id) == {
        'alpha': ('reverting', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert status(cloud, snapshot_id) == 'restoring'
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'restoring',
        'beta': 'available',
    }
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert status(cloud, snapshot_id) == 'available'
    cloud.update()
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_writable_replicas_are_reverted_together(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    assert cloud.api.show(share_id)['status'] == 'reverting'
    cloud.settle()
    assert set(cloud.states(share_id).values()) == {('available', 'active')}
    assert set(statuses(cloud, snapshot_id).values()) == {'available'}
    cloud.check_invariants()


@pytest.mark.parametrize('action, size', [('extend', 5), ('shrink', 1)])
def test_revert_resizes_every_replica(cloud, share_id, action, size):
    snapshot_id = complete(cloud, share_id)
    cloud.api.act(share_id, action, {'new_size': size})
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (2 * size, 0)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert cloud.api.show(share_id)['size'] == 2
    assert cloud.usage('replica_gigabytes') == (4, 0)
    assert cloud.usage('gigabytes') == (2, 0)
    cloud.update()
    cloud.check_invariants()


def test_revert_beyond_the_quota_for_all_replicas_is_refused(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()
    cloud.api.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {'replica_gigabytes': 3}},
        expect=200,
    )
    cloud_snapshots.revert(cloud, share_id, snapshot_id, 403)
    assert cloud.states(share_id)['beta'] == ('available', 'in_sync')
    assert cloud.usage('replica_gigabytes') == (2, 0)


def test_failed_revert_leaves_replicas_out_of_sync(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('revert_to_replicated_snapshot')
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('reverting_error', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert set(statuses(cloud, snapshot_id).values()) == {'available'}


def test_share_stays_in_error_after_a_lost_revert(cloud, share_id):
    """Its data is unknown, however healthy the back end is."""
    snapshot_id = complete(cloud, share_id)

    def die():
        raise Crash

    cloud.pause_at('after revert_to_replicated_snapshot', die)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.settle()
    cloud.update()
    assert cloud.states(share_id) == {
        'alpha': ('error', 'active'),
        'beta': ('available', 'in_sync'),
    }
    assert status(cloud, snapshot_id) == 'error'
    cloud.check_invariants()


@pytest.mark.parametrize('when', ['before', 'after'])
def test_reply_from_before_a_revert_makes_no_replica_in_sync(
    cloud, share_id, when
):
    snapshot_id = complete(cloud, share_id)
    cloud.pause_at(
        f'{when} update_replica_state',
        lambda: cloud_snapshots.revert(cloud, share_id, snapshot_id),
    )
    for backend in cloud.share.backends:
        backend.endpoints.replica_updates.request_pass()
    run(cloud, 'beta')
    assert state(cloud, share_id, 'beta') == 'out_of_sync'
    cloud.settle()
    assert state(cloud, share_id, 'beta') == 'out_of_sync'
    cloud.update()
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_incomplete_snapshot_cannot_be_reverted_to(cloud, share_id):
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    cloud_snapshots.revert(cloud, share_id, snapshot_id, 409)
    cloud.update()
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud.check_invariants()


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


def found(cloud, query):
    return [
        one['id'] for one in cloud.api.get(f'/snapshots?{query}')['snapshots']
    ]


def test_every_instance_is_listed(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    listed = cloud.api.get(
        f'/snapshot-instances/detail?snapshot_id={snapshot_id}'
    )
    assert {
        one['share_instance_id'] for one in listed['snapshot_instances']
    } == {row.id for row in cloud.replicas(share_id)}


def test_reset_sets_the_displayed_status(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.replicate(share_id, 'gamma')
    cloud.update()
    fall_out(cloud, share_id, 'gamma')
    cloud_snapshots.act(
        cloud, snapshot_id, 'reset_status', {'status': 'error'}
    )
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'error',
        'beta': 'error',
        'gamma': 'available',
    }
    assert status(cloud, snapshot_id) == 'error'
    cloud_snapshots.act(
        cloud, snapshot_id, 'reset_status', {'status': 'available'}
    )
    assert status(cloud, snapshot_id) == 'available'


# Access to snapshots


@pytest.fixture
def mountable(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    return share_id


def allow(cloud, snapshot_id, expect=202):
    return cloud_snapshots.act(
        cloud,
        snapshot_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=expect,
    )


def rules(cloud, snapshot_id):
    return [
        one['state']
        for one in cloud.api.get(f'/snapshots/{snapshot_id}/access-list')[
            'snapshot_access_list'
        ]
    ]


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
