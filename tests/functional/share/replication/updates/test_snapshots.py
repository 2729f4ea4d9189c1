"""Snapshots on replicas take the status that the driver reports."""

import concurrent.futures
import re
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import snapshots
from manila_lite.states.share_replica import UP_TO_DATE
from manila_lite.states.snapshot_instance import aggregate_status
from tests.support.replica_updates import ReplicaUpdateCloud
from tests.support.replicated import INSTANCE, SNAPSHOT_INSTANCE as SNAPSHOTS

SNAPSHOT = snapshots.Snapshot.__table__
ROUNDS = 8
BROKEN = exception.ShareBackendException(msg='it is on fire')
GONE = exception.SnapshotResourceNotFound(snapshot_id='it')


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
    cloud.stub_driver(update_replicated_snapshot=answer, update_replica_state='in_sync')
    cloud.update()
    assert cloud.copy_status(snapshot_id) == after
    in_sync = 'in_sync' if after == 'available' else 'out_of_sync'
    assert cloud.show() == ('available', in_sync)
    assert cloud.displayed_status(snapshot_id) == 'available'
    failed = [('SHARE_SNAPSHOT', snapshot_id, '002')]
    assert cloud.messages() == (failed if after == 'error' else [])


@pytest.mark.parametrize('raises', [True, False])
def test_administrators_read_why_a_snapshot_failed_on_a_replica(
    cloud, monkeypatch, raises
):
    cloud.create_pending_snapshot()
    driver = cloud.driver('beta')
    if raises:
        driver.faults.fail_next('update_replicated_snapshot', error=BROKEN)
    else:
        monkeypatch.setattr(
            driver,
            'update_replicated_snapshot',
            lambda *args, **kwargs: {'status': 'error'},
        )
    cloud.update()
    (message,) = cloud.api.get('/messages')['messages']
    said = message['user_message']
    assert re.search(r'update_replicated_snapshot of back end \S*beta', said)
    assert (str(BROKEN) if raises else "reports 'error'") in said
    assert 'Next: ' in said


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
def test_snapshot_is_removed_from_a_replica_when_reported_deleted(cloud, answer, after):
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
        'POST', '/snapshots', {'snapshot': {'share_id': cloud.share_id}}, expect=202
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
            'POST', '/snapshots', {'snapshot': {'share_id': cloud.share_id}}, expect=202
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
    session.run(sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.snapshot_id == snapshot_id))
    session.run(sa.delete(SNAPSHOT).where(SNAPSHOT.c.id == snapshot_id))
