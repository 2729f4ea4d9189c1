"""Updates of replicas, on a timer and on request."""

import datetime
import re

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.coordination import Coordinator
from manila_lite.db.models import engine, shares
from manila_lite.db.models.base import NEVER
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import history
from manila_lite.db.transitions import fire
from manila_lite.share.manager.replication import roles
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import sampling
from tests.support.replica_updates import ReplicaUpdateCloud

INSTANCE = shares.ShareInstance.__table__
WORK = engine.Work.__table__
BROKEN = exception.ShareBackendException(msg='it is on fire')


# States of replicas


@pytest.mark.parametrize('way', ['update', 'resync'])
@pytest.mark.parametrize(
    'before, answer, after',
    [
        (('available', 'out_of_sync'), 'in_sync', ('available', 'in_sync')),
        (('available', 'in_sync'), 'out_of_sync', ('available', 'out_of_sync')),
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


@pytest.mark.parametrize('answer', [None, 'splendid', {}, 7])
@pytest.mark.parametrize('before', [('available', 'in_sync'), ('error', 'error')])
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
    ((_, replica_list, replica, rules, pairs),) = (args for _, args in driver.asked)
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


@pytest.mark.facts('LP1924230')
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


@pytest.mark.parametrize('raises', [True, False])
def test_administrators_read_what_the_driver_says_of_a_failure(
    cloud, monkeypatch, raises
):
    driver = cloud.driver('beta')
    if raises:
        driver.faults.fail_next('update_replica_state', error=BROKEN)
    else:
        monkeypatch.setattr(
            driver, 'update_replica_state', lambda *args, **kwargs: 'error'
        )
    cloud.update()
    (message,) = cloud.api.get('/messages')['messages']
    said = message['user_message']
    assert re.search(r'update_replica_state of back end \S*beta', said)
    assert (str(BROKEN) if raises else "reports 'error'") in said
    assert 'Next: ' in said


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
    cloud.db.write(share_moves.demote, cloud.replica(cloud.replica_id), 'writable')
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


@pytest.mark.facts('LP1923566')
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
    others = [cloud.replicate(cloud.create_share_on('alpha'), 'beta') for _ in range(2)]
    locks, elsewhere = (Coordinator(cloud.conf, name) for name in ('here', 'there'))
    cloud.endpoint().locks = locks
    driver = cloud.stub_driver(update_replica_state='out_of_sync')
    name = roles.replica_lock_name(cloud.share_id)
    with elsewhere.lock(name):
        cloud.endpoint().request_pass()
        while cloud.step():
            pass
        assert {cloud.show(id) for id in others} == {('available', 'out_of_sync')}
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
    locks, elsewhere = (Coordinator(cloud.conf, name) for name in ('here', 'there'))
    cloud.endpoint().locks = locks
    held = []

    def update_replica_state(*args):
        with elsewhere.try_lock(roles.replica_lock_name(cloud.share_id)) as free:
            held.append(not free)

    cloud.stub_driver(update_replica_state=update_replica_state)
    cloud.update()
    cloud.resync()
    assert held == [True, True]
    for one in (locks, elsewhere):
        one.stop()


# Every database


@sampling.dialects
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


# The time of the last sync


def synced_at(cloud, replica_id=None):
    """Return when a replica was synchronised, None if that is not known."""
    found = cloud.db.read(history.list_sync_times, cloud.share_id)
    return found.get(replica_id or cloud.replica_id)


def reply(at, state='in_sync'):
    return {'replica_state': state, 'synced_at': at}


def ago(cloud, seconds, zone=None):
    """Return a time by the clock of the cloud."""
    now = datetime.datetime.fromtimestamp(cloud.clock.now, datetime.UTC)
    return (now - datetime.timedelta(seconds=seconds)).astimezone(zone)


def in_utc(value):
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


@pytest.fixture
def untold(cloud):
    """A cloud whose replica has no time of a sync yet."""
    cloud.db.write(
        lambda session: session.run(sa.update(INSTANCE).values(synced_at=NEVER))
    )
    return cloud


@pytest.mark.parametrize('way', ['update', 'resync'])
@pytest.mark.parametrize('state', ['in_sync', 'out_of_sync', None])
def test_time_of_the_last_sync_is_recorded(untold, way, state):
    cloud = untold
    zone = datetime.timezone(datetime.timedelta(hours=5))
    for at in (ago(cloud, 60, zone), ago(cloud, 30)):
        cloud.stub_driver(update_replica_state=reply(at, state))
        before = cloud.replica(cloud.replica_id).updated_at
        was = cloud.show()
        getattr(cloud, way)()
        assert synced_at(cloud) == in_utc(at)
        assert cloud.show() == ('available', state or was[1])
    if was[1] == (state or was[1]):
        assert cloud.replica(cloud.replica_id).updated_at == before


@pytest.mark.parametrize(
    'answer',
    [
        'in_sync',
        {'replica_state': 'in_sync'},
        reply(None),
        reply(1_800_000_000.0),
        reply('2027-01-15T08:00:00'),
    ],
    ids=str,
)
def test_driver_that_does_not_tell_the_time_leaves_it(untold, answer):
    cloud = untold
    cloud.stub_driver(update_replica_state=answer)
    cloud.update()
    assert synced_at(cloud) is None
    assert cloud.show() == ('available', 'in_sync')
    at = ago(cloud, 60)
    cloud.stub_driver(update_replica_state=reply(at))
    cloud.update()
    cloud.stub_driver(update_replica_state=answer)
    cloud.update()
    assert synced_at(cloud) == in_utc(at)


def test_time_ahead_of_the_database_is_its_own(untold):
    """Else a wrong clock would hide for long that nothing is copied."""
    cloud = untold
    cloud.stub_driver(update_replica_state=reply(ago(cloud, -86400)))
    cloud.update()
    assert synced_at(cloud) <= in_utc(ago(cloud, 0))


def test_late_reply_about_another_role_records_no_time(untold):
    cloud = untold

    def update_replica_state(*args):
        cloud.db.write(replicas.advance_generation, cloud.share_id)
        return reply(ago(cloud, 0))

    cloud.stub_driver(update_replica_state=update_replica_state)
    cloud.update()
    assert synced_at(cloud) is None


def test_active_replica_has_no_time_of_a_sync(untold):
    """Nor has it one when it is passive again and was not copied yet."""
    cloud = untold
    cloud.stub_driver(update_replica_state=reply(ago(cloud, 9)))
    cloud.update()
    assert synced_at(cloud) is not None
    cloud.ask('promote', cloud.replica_id)
    cloud.settle()
    assert cloud.active(cloud.share_id).id == cloud.replica_id
    assert synced_at(cloud) is None


def test_times_of_a_pass_are_recorded_by_one_statement(untold):
    cloud = untold
    cloud.stub_driver(update_replica_state=reply(ago(cloud, 9)))
    cloud.update()
    cloud.stub_driver(update_replica_state='in_sync')
    before = cloud.statements
    cloud.update()
    without = cloud.statements - before
    ids = [cloud.replicate(cloud.create_share_on('alpha'), 'beta') for _ in range(3)]
    cloud.stub_driver(update_replica_state=reply(ago(cloud, 5)))
    before = cloud.statements
    cloud.update()
    assert cloud.statements - before <= without + 3
    assert all(
        cloud.replica(id).synced_at == cloud.replica(cloud.replica_id).synced_at
        for id in ids
    )
