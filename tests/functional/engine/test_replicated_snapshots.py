"""Snapshots of shares that have replicas: taken, deleted, gone back to."""

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
from tests.support import cloud_snapshots as album
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
    """A share on alpha that beta follows."""
    share_id = cloud.create_share_on('alpha', size=2)
    cloud.replicate(share_id, 'beta')
    return share_id


def statuses(cloud, snapshot_id):
    """The status of every instance, by the name of its back end."""
    return {
        backend_of(row): row.status
        for row in cloud.rows(
            sa.select(INSTANCE.c.status, SHARE_INSTANCE.c.host)
            .join(SHARE_INSTANCE)
            .where(INSTANCE.c.snapshot_id == snapshot_id)
        )
    }


def status(cloud, snapshot_id):
    return album.show(cloud, snapshot_id)['status']


def state(cloud, share_id, backend):
    return cloud.states(share_id)[backend][1]


def replica_on(cloud, share_id, backend):
    return next(
        row for row in cloud.replicas(share_id) if backend_of(row) == backend
    )


def complete(cloud, share_id):
    """A snapshot that is on all replicas."""
    snapshot_id = album.create(cloud, share_id)
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
    """As after a disaster in the database: no replica is active."""
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
    """A back end that tells of no snapshot but what it is told to tell."""

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
    made.endpoints.snapshots.driver = Terse(made.endpoints.snapshots.driver, **answers)


# Create


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_a_snapshot_is_complete_when_replicas_in_sync_have_it(
    build_cloud, style
):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = album.create(cloud, share_id)
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


def test_writable_replicas_all_have_a_snapshot_at_once(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'available',
    }
    cloud.check_invariants()


def test_a_replica_that_has_fallen_behind_keeps_nobody_waiting(
    cloud, share_id
):
    fall_out(cloud, share_id)
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id)['beta'] == 'creating'
    assert status(cloud, snapshot_id) == 'available'
    cloud.update()
    assert statuses(cloud, snapshot_id)['beta'] == 'available'
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_a_share_with_one_replica_is_asked_for_in_the_plain_way(cloud):
    share_id = cloud.create_share_on('alpha')
    cloud.driver().fail_next('create_replicated_snapshot')
    snapshot_id = album.create_available(cloud, share_id)
    cloud.replicate(share_id, 'beta')
    cloud.update()
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'available',
    }
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_a_replica_that_is_being_deleted_gets_no_snapshot(cloud, share_id):
    cloud.ask('delete', replica_on(cloud, share_id, 'beta').id)
    snapshot_id = album.create(cloud, share_id)
    assert statuses(cloud, snapshot_id) == {'alpha': 'creating'}
    cloud.settle()
    assert status(cloud, snapshot_id) == 'available'
    cloud.check_invariants()


def test_a_failure_of_the_driver_fails_the_snapshot_everywhere(
    cloud, share_id
):
    cloud.driver().fail_next('create_replicated_snapshot')
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert set(statuses(cloud, snapshot_id).values()) == {'error'}
    assert cloud.api.show(share_id)['status'] == 'available'
    assert len(details(cloud)) == 1
    album.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    album.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)
    cloud.check_invariants()


def test_a_driver_that_says_nothing_has_taken_it_of_the_active_replica(
    cloud, share_id
):
    make_terse(cloud, create_replicated_snapshot=lambda given: None)
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'creating',
    }


def test_what_a_driver_says_of_other_replicas_is_stored_with_them(
    cloud, share_id
):
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
    snapshot_id = album.create(cloud, share_id)
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
def test_a_snapshot_that_the_active_replica_lacks_has_failed(
    cloud, share_id, said
):
    active = cloud.active(share_id).id
    make_terse(
        cloud,
        create_replicated_snapshot=lambda given: [
            {'id': one['id'], 'status': said}
            for one in given
            if one['share_instance_id'] == active
        ],
    )
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert set(statuses(cloud, snapshot_id).values()) == {'error'}
    assert cloud.api.show(share_id)['status'] == 'available'


def test_what_could_not_be_copied_to_one_replica_has_failed_there(
    cloud, share_id
):
    passive = replica_on(cloud, share_id, 'beta').id
    make_terse(
        cloud,
        create_replicated_snapshot=lambda given: [
            {'id': one['id'], 'status': 'error'}
            for one in given
            if one['share_instance_id'] == passive
        ],
    )
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'error',
    }
    assert status(cloud, snapshot_id) == 'error'


def test_a_snapshot_deleted_while_it_is_taken_is_left_nowhere(cloud, share_id):
    def force_delete():
        (snapshot_id,) = cloud.snapshots_on(cloud.active(share_id).id)
        album.act(cloud, snapshot_id, 'force_delete')
        lose_rows(cloud, snapshot_id)

    cloud.pause_at('after create_replicated_snapshot', force_delete)
    album.create(cloud, share_id)
    cloud.settle()
    assert not any(
        dummy.snapshot_inventory(cloud.folder / 'dummy' / name)
        for name in ('alpha', 'beta')
    )
    assert cloud.api.show(share_id)['status'] == 'available'
    assert cloud.usage('snapshots') == (0, 0)


def lose_rows(cloud, snapshot_id):
    """The deletion has been carried out by somebody else already."""
    cloud.db.write(
        lambda session: [
            remove_and_credit(session, row)
            for row in snapshots.list_for_snapshot(session, snapshot_id)
        ]
    )


@pytest.mark.parametrize('verb', ['take', 'delete', 'revert'])
def test_one_at_a_time_works_on_the_replicas_of_a_share(cloud, share_id, verb):
    """Who has to wait gives the work back, and is in nobody's way."""
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
    """How often alpha was asked about a snapshot of replicas."""
    return sum(
        'replicated_snapshot' in call.method for call in cloud.driver().calls
    )


# Refusals


@pytest.mark.parametrize(
    'verb, code', [('take', 400), ('delete', 400), ('revert', 409)]
)
def test_nothing_is_begun_while_a_replica_is_promoted(
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
        album.create(cloud, share_id, code)
    elif verb == 'delete':
        album.delete(cloud, snapshot_id, code)
    else:
        album.revert(cloud, share_id, snapshot_id, code)


@pytest.mark.parametrize('verb', ['take', 'delete', 'revert'])
def test_nothing_is_begun_without_an_active_replica(cloud, share_id, verb):
    snapshot_id = complete(cloud, share_id)
    lose_active(cloud, share_id)
    ask(cloud, verb, share_id, snapshot_id, 400)
    assert status(cloud, snapshot_id) == 'available'


def test_by_force_a_snapshot_goes_also_without_an_active_replica(
    cloud, share_id
):
    snapshot_id = complete(cloud, share_id)
    lose_active(cloud, share_id)
    album.act(cloud, snapshot_id, 'force_delete')
    album.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)


def test_snapshots_of_a_share_with_replicas_are_not_managed(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    album.act(cloud, snapshot_id, 'unmanage', expect=409)
    cloud.api.request(
        'POST',
        '/snapshots/manage',
        {'snapshot': {'share_id': share_id, 'provider_location': 'there'}},
        expect=409,
    )


# Delete


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_a_snapshot_is_gone_when_it_is_on_no_replica(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = complete(cloud, share_id)
    album.delete(cloud, snapshot_id)
    assert set(statuses(cloud, snapshot_id).values()) == {'deleting'}
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'beta': 'deleting'}
    assert status(cloud, snapshot_id) == 'deleting'
    assert cloud.usage('snapshots') == (1, 0)
    cloud.update()
    album.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)
    cloud.check_invariants()


def test_a_snapshot_that_one_replica_does_not_get_can_be_deleted(
    cloud, share_id
):
    fall_out(cloud, share_id)
    snapshot_id = album.create_available(cloud, share_id)
    assert statuses(cloud, snapshot_id)['beta'] == 'creating'
    album.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    album.check_gone(cloud, snapshot_id)
    cloud.check_invariants()


def test_what_is_still_copied_to_replicas_in_sync_is_not_deleted(
    cloud, share_id
):
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    album.delete(cloud, snapshot_id, 400)
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'available',
        'beta': 'creating',
    }


def test_a_failed_deletion_has_failed_everywhere(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('delete_replicated_snapshot')
    album.delete(cloud, snapshot_id)
    cloud.settle()
    assert set(statuses(cloud, snapshot_id).values()) == {'error_deleting'}
    assert status(cloud, snapshot_id) == 'error_deleting'
    assert cloud.usage('snapshots') == (1, 0)


def test_by_force_the_rows_go_whatever_the_back_end_says(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('delete_replicated_snapshot')
    album.act(cloud, snapshot_id, 'force_delete')
    cloud.settle()
    album.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)


@pytest.mark.parametrize('force', [False, True])
def test_only_by_force_nobody_waits_for_a_broken_replica(
    cloud, share_id, force
):
    snapshot_id = complete(cloud, share_id)
    fall_out(cloud, share_id, what='error')
    if force:
        album.act(cloud, snapshot_id, 'force_delete')
    else:
        album.delete(cloud, snapshot_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == (
        {} if force else {'beta': 'deleting'}
    )


def test_nobody_waits_for_a_replica_that_is_nowhere(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    nowhere = cloud.request_replica(share_id, 'alpha')  # which is taken
    cloud.settle()
    assert cloud.replica(nowhere).host is None
    assert snapshot_id in cloud.snapshots_on(nowhere)
    album.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    album.check_gone(cloud, snapshot_id)


def test_a_driver_that_is_not_done_with_deleting_is_asked_again(
    cloud, share_id
):
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
    album.delete(cloud, snapshot_id)
    cloud.settle()
    assert len(asked) == 3
    assert statuses(cloud, snapshot_id) == {'beta': 'deleting'}


def test_what_could_not_be_removed_from_one_replica_is_shown_there(
    cloud, share_id
):
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
    album.delete(cloud, snapshot_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'beta': 'error_deleting'}
    assert status(cloud, snapshot_id) == 'error_deleting'


def test_deletion_follows_the_active_replica(cloud, share_id):
    """Another is promoted after the request, before it is carried out."""
    snapshot_id = complete(cloud, share_id)
    album.delete(cloud, snapshot_id)
    begin_promotion(cloud, share_id)
    run(cloud, 'beta')
    assert state(cloud, share_id, 'beta') == 'active'
    run(cloud, 'alpha')
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': 'deleting'}
    cloud.update()
    album.check_gone(cloud, snapshot_id)
    cloud.check_invariants()


def run(cloud, backend):
    """Carry out what one back end is owed, and nothing else."""
    runner = next(
        one.runner
        for one in cloud.share.backends
        if one.host.endswith(f'@{backend}')
    )
    while runner.step():
        pass


def test_who_removes_the_last_of_several_removes_the_snapshot(
    database_url, tmp_path
):
    """Two back ends let go of the last two instances at one moment."""
    cloud = ReplicatedCloud(tmp_path, url=database_url)
    try:
        share_id = cloud.create_share_on('alpha')
        cloud.replicate(share_id, 'beta')
        cloud.replicate(share_id, 'gamma')
        for _ in range(5):
            snapshot_id = complete(cloud, share_id)
            album.delete(cloud, snapshot_id)
            cloud.settle()
            last = cloud.db.read(snapshots.list_for_snapshot, snapshot_id)
            assert len(last) == 2
            start = threading.Barrier(2)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(functools.partial(let_go, cloud, start), last))
            assert cloud.usage('snapshots') == (0, 0)
            album.check_gone(cloud, snapshot_id)
    finally:
        cloud.db.dispose()


def let_go(cloud, start, row):
    start.wait()
    cloud.db.write(remove_and_credit, row)


# Revert


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_other_replicas_are_out_of_sync_until_they_have_what_was_restored(
    build_cloud, style
):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = complete(cloud, share_id)
    album.revert(cloud, share_id, snapshot_id)
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
    snapshot_id = album.create_available(cloud, share_id)
    album.revert(cloud, share_id, snapshot_id)
    assert cloud.api.show(share_id)['status'] == 'reverting'
    cloud.settle()
    assert set(cloud.states(share_id).values()) == {('available', 'active')}
    assert set(statuses(cloud, snapshot_id).values()) == {'available'}
    cloud.check_invariants()


@pytest.mark.parametrize('action, size', [('extend', 5), ('shrink', 1)])
def test_a_revert_changes_the_size_of_every_replica(
    cloud, share_id, action, size
):
    snapshot_id = complete(cloud, share_id)
    cloud.api.act(share_id, action, {'new_size': size})
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (2 * size, 0)
    album.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert cloud.api.show(share_id)['size'] == 2
    assert cloud.usage('replica_gigabytes') == (4, 0)
    assert cloud.usage('gigabytes') == (2, 0)
    cloud.update()
    cloud.check_invariants()


def test_a_revert_for_which_replicas_have_no_quota_is_refused(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()
    cloud.api.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {'replica_gigabytes': 3}},
        expect=200,
    )
    album.revert(cloud, share_id, snapshot_id, 403)
    assert cloud.states(share_id)['beta'] == ('available', 'in_sync')
    assert cloud.usage('replica_gigabytes') == (2, 0)


def test_a_failed_revert_leaves_replicas_out_of_sync(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('revert_to_replicated_snapshot')
    album.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('reverting_error', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert set(statuses(cloud, snapshot_id).values()) == {'available'}


def test_a_share_whose_revert_was_lost_stays_in_error(cloud, share_id):
    """Nobody knows what data it has, however well the back end is."""
    snapshot_id = complete(cloud, share_id)

    def die():
        raise Crash

    cloud.pause_at('after revert_to_replicated_snapshot', die)
    album.revert(cloud, share_id, snapshot_id)
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
def test_what_was_asked_before_a_revert_makes_no_replica_in_sync(
    cloud, share_id, when
):
    snapshot_id = complete(cloud, share_id)
    cloud.pause_at(
        f'{when} update_replica_state',
        lambda: album.revert(cloud, share_id, snapshot_id),
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


def test_a_snapshot_that_a_replica_does_not_have_yet_is_not_restored(
    cloud, share_id
):
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    album.revert(cloud, share_id, snapshot_id, 409)
    cloud.update()
    album.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud.check_invariants()


# Shares from snapshots


def test_a_share_is_made_of_what_the_active_replica_has(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    promote(cloud, share_id)
    cloud.update()
    made = cloud.create_share(snapshot_id=snapshot_id, size=2)
    assert list(cloud.states(made)) == ['beta']
    cloud.check_invariants()


def test_a_share_is_made_of_complete_snapshots_only(cloud, share_id):
    snapshot_id = album.create(cloud, share_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id)['alpha'] == 'available'
    cloud.api.create(expect=400, snapshot_id=snapshot_id, size=2)
    cloud.update()
    cloud.create_share(snapshot_id=snapshot_id, size=2)


# What is shown


def test_lists_go_by_what_is_shown(cloud, share_id):
    whole = complete(cloud, share_id)
    part = album.create(cloud, share_id)
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


def test_a_reset_sets_what_is_shown(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.replicate(share_id, 'gamma')
    cloud.update()
    fall_out(cloud, share_id, 'gamma')
    album.act(cloud, snapshot_id, 'reset_status', {'status': 'error'})
    assert statuses(cloud, snapshot_id) == {
        'alpha': 'error',
        'beta': 'error',
        'gamma': 'available',
    }
    assert status(cloud, snapshot_id) == 'error'
    album.act(cloud, snapshot_id, 'reset_status', {'status': 'available'})
    assert status(cloud, snapshot_id) == 'available'


# Who may mount a snapshot


@pytest.fixture
def mountable(cloud):
    album.enable_snapshot_features(cloud)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    return share_id


def allow(cloud, snapshot_id, expect=202):
    return album.act(
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


def test_a_rule_is_told_on_every_replica(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_a_replica_is_told_of_a_rule_when_it_has_the_snapshot(
    cloud, mountable
):
    fall_out(cloud, mountable)
    snapshot_id = album.create_available(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 0)
    cloud.update()
    assert statuses(cloud, snapshot_id)['beta'] == 'available'
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_a_new_replica_gets_the_rules_of_snapshots(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    cloud.replicate(mountable, 'gamma')
    cloud.update()
    assert let_in(cloud, 'gamma') == 1
    assert rules(cloud, snapshot_id) == ['active']
    cloud.check_invariants()


def test_rules_go_with_a_snapshot_on_every_replica(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    album.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    album.check_gone(cloud, snapshot_id)
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (0, 0)
    cloud.check_invariants()
