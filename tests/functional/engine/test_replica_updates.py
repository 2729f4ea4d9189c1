"""Updates of replicas, on a timer and on request."""

import concurrent.futures
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.coordination import Coordinator
from manila_lite.db.models import engine
from manila_lite.db.models import snapshots
from manila_lite.db.moves import replicas as replica_moves
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.transitions import fire
from manila_lite.share.manager.replication import lock as replica_lock
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import UP_TO_DATE
from manila_lite.states.snapshot_instance import aggregate_status
from tests.support.databases import database_url
from tests.support.databases import shared_database
from tests.support.replica_updates import ReplicaUpdateCloud
from tests.support.replica_updates import rewindable_cloud
from tests.support.replicated import INSTANCE
from tests.support.replicated import SNAPSHOT_INSTANCE as SNAPSHOTS

__all__ = ['database_url', 'shared_database']

WORK = engine.Work.__table__
SNAPSHOT = snapshots.Snapshot.__table__

ROUNDS = 8

BROKEN = exception.ShareBackendException(msg='it is on fire')
GONE = exception.SnapshotResourceNotFound(snapshot_id='it')


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable_cloud(tmp_path_factory.mktemp('updates')) as begin:
        yield begin


@pytest.fixture
def cloud(begin):
    return begin()


# States of replicas


@pytest.mark.parametrize('way', ['update', 'resync'])
@pytest.mark.parametrize(
    'before, answer, after',
    [
        (('available', 'out_of_sync'), 'in_sync', ('available', 'in_sync')),
        (
            ('available', 'in_sync'),
            'out_of_sync',
            ('available', 'out_of_sync'),
        ),
        (('available', 'in_sync'), 'error', ('available', 'error')),
        (('available', 'in_sync'), BROKEN, ('error', 'error')),
        (('error', 'error'), 'in_sync', ('available', 'in_sync')),
        (('error', 'in_sync'), 'out_of_sync', ('available', 'out_of_sync')),
        (('error', 'error'), 'error', ('error', 'error')),
    ],
)
def test_replica_takes_the_state_reported_by_its_driver(
    cloud, way, before, answer, after
):
    cloud.force_status(*before)
    cloud.stub_driver(update_replica_state=answer)
    getattr(cloud, way)()
    assert cloud.show() == after


@pytest.mark.parametrize('answer', [None, 'active', 'splendid', {}, 7])
@pytest.mark.parametrize(
    'before', [('available', 'in_sync'), ('error', 'error')]
)
def test_reply_without_news_changes_nothing(cloud, before, answer):
    cloud.force_status(*before)
    known = cloud.journal_rows()
    cloud.stub_driver(update_replica_state=answer)
    cloud.update()
    assert cloud.show() == before
    assert cloud.journal_rows() == known


def test_unchanged_state_is_not_written(cloud):
    driver = cloud.stub_driver(update_replica_state='in_sync')
    before, row = cloud.journal_rows(), cloud.replica(cloud.replica_id)
    cloud.clock.advance(600)
    cloud.update()
    assert driver.names == ['update_replica_state']
    assert cloud.journal_rows() == before
    assert cloud.replica(cloud.replica_id) == row


def test_driver_gets_all_replicas_rules_and_snapshots(cloud):
    cloud.allow(cloud.share_id, '10.0.0.7')
    snapshot_id = cloud.create_pending_snapshot()
    cloud.update()
    driver = cloud.stub_driver(update_replica_state='in_sync')
    cloud.update()
    ((_, replica_list, replica, rules, pairs),) = (
        args for _, args in driver.asked
    )
    assert {(one['id'], one['replica_state']) for one in replica_list} == {
        (cloud.active(cloud.share_id).id, 'active'),
        (cloud.replica_id, 'in_sync'),
    }
    assert replica['id'] == cloud.replica_id
    assert [(rule['access_to'], rule['access_level']) for rule in rules] == [
        ('10.0.0.7', 'ro')
    ]  # readable: only the active one is written to
    (pair,) = pairs
    assert [
        (one['snapshot_id'], one['share_instance_id']) for one in pair.values()
    ] == [
        (snapshot_id, cloud.active(cloud.share_id).id),
        (snapshot_id, cloud.replica_id),
    ]


def test_active_replica_is_never_polled_for_its_state(cloud):
    driver = cloud.stub_driver('alpha', update_replica_state=BROKEN)
    cloud.update()
    assert cloud.ask('resync', cloud.active(cloud.share_id).id) is False
    cloud.settle()
    assert driver.names == []


def test_users_are_notified_of_a_failure_once(cloud):
    cloud.stub_driver(update_replica_state=BROKEN)
    for _ in range(3):
        cloud.update()
    expected = [('SHARE_REPLICA', cloud.replica_id, '005')]
    assert cloud.messages() == expected
    cloud.stub_driver(update_replica_state='in_sync')
    cloud.update()
    assert cloud.show() == ('available', 'in_sync')
    cloud.stub_driver(update_replica_state=BROKEN)
    for _ in range(2):
        cloud.update()
    assert cloud.messages() == expected * 2


def test_healed_replica_gets_its_rules_resynced(cloud):
    cloud.allow(cloud.share_id)
    cloud.force_status('error', 'error')
    driver = cloud.driver('beta')
    known = len(driver.faults.calls)
    cloud.stub_driver(update_replica_state='out_of_sync')
    cloud.update()
    assert ('update_access', cloud.replica_id) in driver.faults.calls[known:]
    cloud.check_invariants()


def test_replica_whose_creation_reply_was_lost_gets_its_exports(cloud):
    share_id = cloud.create_share_on('alpha')
    cloud.driver('beta').faults.lose_reply_next('create_replica')
    replica_id = cloud.request_replica(share_id, 'beta')
    cloud.settle()
    assert cloud.show(replica_id) == ('error', 'error')
    cloud.update()
    assert cloud.show(replica_id) == ('available', 'in_sync')
    exports = cloud.api.get(f'/share-replicas/{replica_id}/export-locations')
    assert exports['export_locations']
    cloud.check_invariants()


def test_writable_replicas_become_active_when_reported(tmp_path):
    cloud = ReplicaUpdateCloud(tmp_path, style='writable')
    cloud.db.write(
        replica_moves.retire, cloud.replica(cloud.replica_id), 'writable'
    )
    cloud.stub_driver(update_replica_state=NotImplementedError())
    cloud.update()  # need not support it
    assert cloud.show() == ('available', 'out_of_sync')
    cloud.stub_driver(update_replica_state='active')
    cloud.update()
    assert cloud.show() == ('available', 'active')
    cloud.check_invariants()
    cloud.db.dispose()


# Active replicas after a failed promotion


def test_active_replica_in_error_is_healed_when_reported_available(cloud):
    active = cloud.active(cloud.share_id).id
    cloud.force_status('error', 'error')
    cloud.db.write(fire, SHARE_INSTANCE, active, 'replica_failed')
    cloud.update()
    assert cloud.states(cloud.share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'in_sync'),
    }
    cloud.check_invariants()


@pytest.mark.parametrize(
    'answer',
    [
        {'status': 'error'},
        BROKEN,
        NotImplementedError(),
        None,
        'available',
        {'status': 'available', 'export_locations': [7]},
    ],
)
def test_active_replica_not_reported_available_stays_in_error(cloud, answer):
    active = cloud.active(cloud.share_id).id
    cloud.db.write(fire, SHARE_INSTANCE, active, 'replica_failed')
    cloud.stub_driver('alpha', get_replica_status=answer)
    cloud.update()
    assert cloud.show(active) == ('error', 'active')
    assert cloud.messages() == []


def test_share_with_a_single_replica_is_left_in_error(cloud):
    share_id = cloud.create_share_on('alpha')
    (row,) = cloud.replicas(share_id)
    cloud.db.write(fire, SHARE_INSTANCE, row.id, 'replica_failed')
    cloud.update()
    assert cloud.show(row.id) == ('error', 'active')


# Snapshots


@pytest.mark.parametrize(
    'answer, after',
    [
        ({'status': 'available'}, 'available'),
        ({'status': 'creating'}, 'creating'),
        (None, 'creating'),
        ({'status': 'error'}, 'error'),
        (GONE, 'error'),
        (BROKEN, 'error'),
        ('available', 'error'),
        ({'status': 'available', 'export_locations': [7]}, 'error'),
    ],
)
def test_snapshot_on_a_replica_takes_the_reported_status(cloud, answer, after):
    snapshot_id = cloud.create_pending_snapshot()
    cloud.stub_driver(
        update_replicated_snapshot=answer, update_replica_state='in_sync'
    )
    cloud.update()
    assert cloud.copy_status(snapshot_id) == after
    in_sync = 'in_sync' if after == 'available' else 'out_of_sync'
    assert cloud.show() == ('available', in_sync)
    assert cloud.displayed_status(snapshot_id) == 'available'
    failed = [('SHARE_SNAPSHOT', snapshot_id, '002')]
    assert cloud.messages() == (failed if after == 'error' else [])


@pytest.mark.parametrize(
    'answer, after',
    [
        (GONE, None),
        ({'status': 'deleted'}, None),
        (None, 'deleting'),
        ({'status': 'deleting'}, 'deleting'),
        (BROKEN, 'error_deleting'),
        ({'status': 'error'}, 'error_deleting'),
    ],
)
def test_snapshot_is_removed_from_a_replica_when_reported_deleted(
    cloud, answer, after
):
    snapshot_id = cloud.create_pending_snapshot()
    cloud.update()
    cloud.delete(snapshot_id)
    assert cloud.copy_status(snapshot_id) == 'deleting'
    cloud.stub_driver(update_replicated_snapshot=answer)
    cloud.update()
    assert cloud.copy_status(snapshot_id) == after
    assert cloud.displayed_status(snapshot_id) == after
    assert cloud.usage('snapshots') == (int(after is not None), 0)
    assert cloud.usage('snapshot_gigabytes') == (int(after is not None), 0)


def test_reported_values_of_a_snapshot_are_stored(cloud):
    snapshot_id = cloud.create_pending_snapshot()

    def row():
        return next(
            iter(
                cloud.rows(
                    sa.select(SNAPSHOTS).where(
                        SNAPSHOTS.c.share_instance_id == cloud.replica_id
                    )
                )
            )
        )

    cloud.stub_driver(
        update_replica_state=None,
        update_replicated_snapshot={
            'status': 'creating',
            'progress': '40%',
            'provider_location': '/there',
        },
    )
    cloud.update()
    assert (row().progress, row().provider_location) == ('40%', '/there')
    known = row()
    cloud.clock.advance(60)
    cloud.update()
    assert row() == known
    cloud.stub_driver(update_replicated_snapshot={'status': 'available'})
    cloud.update()
    assert (row().progress, row().provider_location) == ('100%', '/there')
    assert cloud.copy_status(snapshot_id) == 'available'


def test_snapshot_is_not_polled_before_it_is_taken(cloud):
    driver = cloud.stub_driver(update_replicated_snapshot=GONE)
    cloud.driver('alpha').faults.fail_next('create_replicated_snapshot')
    cloud.api.request(
        'POST',
        '/snapshots',
        {'snapshot': {'share_id': cloud.share_id}},
        expect=202,
    )
    assert cloud.endpoint().request_pass()
    cloud.run('beta')
    assert driver.names == []
    assert set(cloud.snapshots_on(cloud.replica_id).values()) == {'creating'}


def test_snapshot_never_goes_from_complete_to_incomplete(cloud):
    cloud.force_status('available', 'out_of_sync')
    seen = []
    snapshot_id = cloud.create_pending_snapshot()

    def record(*args):
        seen.append((cloud.displayed_status(snapshot_id), cloud.show()[1]))

    steps = iter([None, {'status': 'creating'}, {'status': 'available'}])

    def update_replicated_snapshot(*args):
        record()
        return next(steps)

    def update_replica_state(*args):
        record()
        return 'in_sync'

    cloud.stub_driver(
        update_replicated_snapshot=update_replicated_snapshot,
        update_replica_state=update_replica_state,
    )
    for _ in range(4):
        cloud.update()
        record()
    assert {displayed_status for displayed_status, _ in seen} == {'available'}
    assert [state for _, state in seen][-2:] == ['in_sync', 'in_sync']
    assert seen.count(('available', 'out_of_sync')) >= 6


def test_snapshot_taken_during_a_poll_keeps_the_replica_out_of_sync(cloud):
    cloud.force_status('available', 'out_of_sync')
    taken = []

    def update_replica_state(*args):
        if not taken:
            taken.append(
                cloud.api.request(
                    'POST',
                    '/snapshots',
                    {'snapshot': {'share_id': cloud.share_id}},
                    expect=202,
                )
            )
            cloud.run('alpha')
        return 'in_sync'

    cloud.stub_driver(update_replica_state=update_replica_state)
    cloud.endpoint().request_pass()
    cloud.settle()
    assert cloud.show() == ('available', 'out_of_sync')
    cloud.update()
    assert cloud.show() == ('available', 'in_sync')


def test_snapshot_taken_as_a_replica_catches_up_stays_consistent(
    database_url, tmp_path
):
    cloud = ReplicaUpdateCloud(tmp_path, url=database_url)
    cloud.stub_driver(
        update_replicated_snapshot={'status': 'creating'},
        update_replica_state='in_sync',
    )
    for _ in range(ROUNDS):
        cloud.force_status('available', 'out_of_sync')
        snapshot_id = cloud.api.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': cloud.share_id}},
            expect=202,
        ).json['snapshot']['id']
        cloud.ask('resync', cloud.replica_id)
        seen = watched(cloud, snapshot_id, 'alpha', 'beta')
        if 'available' in seen:
            assert 'creating' not in seen[seen.index('available') :]
        cloud.settle()
        assert (cloud.displayed_status(snapshot_id), cloud.show()[1]) in {
            ('available', 'out_of_sync'),
            ('creating', 'in_sync'),
        }
        cloud.db.write(delete_rows, snapshot_id)
    cloud.db.dispose()


def watched(cloud, snapshot_id, *names):
    """Return the displayed statuses of a snapshot while back ends run."""
    statement = (
        sa.select(SNAPSHOTS.c.status)
        .join(INSTANCE, INSTANCE.c.id == SNAPSHOTS.c.share_instance_id)
        .where(
            SNAPSHOTS.c.snapshot_id == snapshot_id,
            INSTANCE.c.replica_state.in_(sorted(UP_TO_DATE)),
        )
    )

    def displayed():
        return aggregate_status(row.status for row in cloud.rows(statement))

    start = threading.Barrier(len(names))

    def run(name):
        start.wait()
        cloud.run(name)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        running = [pool.submit(run, name) for name in names]
        seen = [displayed()]
        while not all(one.done() for one in running):
            seen.append(displayed())
        for one in running:
            one.result()
    return [*seen, displayed()]


def delete_rows(session, snapshot_id):
    """Delete the rows of a snapshot."""
    session.run(
        sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.snapshot_id == snapshot_id)
    )
    session.run(sa.delete(SNAPSHOT).where(SNAPSHOT.c.id == snapshot_id))


# Concurrent changes


def test_reply_of_an_earlier_generation_is_dropped(cloud):
    snapshot_id = cloud.create_pending_snapshot()

    def say(answer):
        def method(*args):
            cloud.db.write(replicas.advance_generation, cloud.share_id)
            return answer

        return method

    for before in (('available', 'in_sync'), ('error', 'error')):
        cloud.force_status(*before)
        for answer in ('out_of_sync', 'in_sync', BROKEN):
            cloud.stub_driver(
                update_replica_state=say(answer),
                update_replicated_snapshot=say({'status': 'available'}),
            )
            cloud.update()
            assert cloud.show() == before
            assert cloud.copy_status(snapshot_id) == 'creating'
    assert cloud.messages() == []


@pytest.mark.parametrize('answer', ['out_of_sync', BROKEN])
def test_update_does_not_disturb_a_concurrent_promotion(cloud, answer):
    def update_replica_state(*args):
        if cloud.show()[0] == 'available':
            cloud.ask('promote', cloud.replica_id)
        return answer

    cloud.stub_driver(update_replica_state=update_replica_state)
    cloud.endpoint().request_pass()
    cloud.settle()
    assert cloud.states(cloud.share_id)['beta'] == ('available', 'active')
    assert cloud.messages() == []


def test_update_ignores_a_replica_deleted_in_the_meantime(cloud):
    def update_replica_state(*args):
        cloud.ask('delete', cloud.replica_id)
        return BROKEN

    cloud.stub_driver(update_replica_state=update_replica_state)
    cloud.update()
    assert cloud.show() is None
    assert cloud.messages() == []
    cloud.check_invariants()


def test_share_in_transition_is_skipped_and_a_resync_waits(cloud):
    driver = cloud.stub_driver(update_replica_state='out_of_sync')
    active = cloud.active(cloud.share_id).id
    cloud.db.write(fire, SHARE_INSTANCE, active, 'revert')
    cloud.ask('resync', cloud.replica_id)
    cloud.endpoint().request_pass()
    for _ in range(3):
        while cloud.step():
            pass
        cloud.clock.advance(5)
    assert driver.names == []
    kinds = {row.kind for row in cloud.rows(sa.select(WORK))}
    assert kinds == {'replica_updates.update_share_replica'}
    cloud.db.write(fire, SHARE_INSTANCE, active, 'reverted')
    cloud.settle()
    assert driver.names == ['update_replica_state']
    assert cloud.show() == ('available', 'out_of_sync')


def test_resync_of_a_missing_replica_ends(cloud):
    cloud.ask('resync', cloud.replica_id)
    cloud.ask('delete', cloud.replica_id)
    cloud.settle()
    assert cloud.show() is None


def test_update_does_not_wait_for_a_held_share_lock(cloud, tmp_path):
    others = [
        cloud.replicate(cloud.create_share_on('alpha'), 'beta')
        for _ in range(2)
    ]
    locks, elsewhere = (
        Coordinator(cloud.conf, name) for name in ('here', 'there')
    )
    cloud.endpoint().locks = locks
    driver = cloud.stub_driver(update_replica_state='out_of_sync')
    name = replica_lock.replica_lock_name(cloud.share_id)
    with elsewhere.lock(name):
        cloud.endpoint().request_pass()
        while cloud.step():
            pass
        assert {cloud.show(id) for id in others} == {
            ('available', 'out_of_sync')
        }
        assert cloud.show() == ('available', 'in_sync')
        cloud.ask('resync', cloud.replica_id)
        while cloud.step():
            pass
        assert len(driver.asked) == 2
    cloud.settle()
    assert cloud.show() == ('available', 'out_of_sync')
    for one in (locks, elsewhere):
        one.stop()


def test_driver_is_called_under_the_share_lock(cloud):
    locks, elsewhere = (
        Coordinator(cloud.conf, name) for name in ('here', 'there')
    )
    cloud.endpoint().locks = locks
    held = []

    def update_replica_state(*args):
        with elsewhere.try_lock(
            replica_lock.replica_lock_name(cloud.share_id)
        ) as free:
            held.append(not free)

    cloud.stub_driver(update_replica_state=update_replica_state)
    cloud.update()
    cloud.resync()
    assert held == [True, True]
    for one in (locks, elsewhere):
        one.stop()


# Every database


def test_replicas_are_updated_on_every_database(database_url, tmp_path):
    cloud = ReplicaUpdateCloud(tmp_path, url=database_url)
    cloud.force_status('error', 'error')
    cloud.db.write(
        fire, SHARE_INSTANCE, cloud.active(cloud.share_id).id, 'replica_failed'
    )
    cloud.update()
    assert cloud.states(cloud.share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'in_sync'),
    }
    snapshot_id = cloud.create_pending_snapshot()
    cloud.update()
    assert cloud.copy_status(snapshot_id) == 'available'
    cloud.delete(snapshot_id)
    cloud.update()
    assert cloud.displayed_status(snapshot_id) is None
    cloud.stub_driver(update_replica_state=BROKEN)
    cloud.resync()
    assert cloud.show() == ('error', 'error')
    cloud.db.dispose()
