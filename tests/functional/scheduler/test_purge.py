"""Purges: in batches, by one process at a time, continued after a crash."""

import concurrent.futures
import datetime
import threading

import pytest
import sqlalchemy as sa

from manila_lite.cmd.build.purges import build_purges
from manila_lite.db.models import engine
from manila_lite.db.queries.services import services
from manila_lite.db.queries.work import retention
from manila_lite.scheduler.purge import Purge
from manila_lite.work import table
from tests.support import sampling

pytestmark = sampling.dialects


JOURNAL = engine.Transition.__table__
CALL = engine.DriverCall.__table__
TASK = engine.ClusterTask.__table__
ROWS = 25


@pytest.fixture
def db(connect):
    db = connect()
    db.write(add_moves, ROWS)
    return db


def add_moves(session, count):
    """Add moves that are old, and a new one: the newest is always kept."""
    session.run_many(
        sa.insert(JOURNAL),
        [
            {
                'resource': 'share_instance',
                'resource_id': f'{number}',
                'event': 'created',
                'made_at': session.now - datetime.timedelta(days=1),
            }
            for number in range(count)
        ],
    )
    session.run(
        sa.insert(JOURNAL),
        resource='share_instance',
        resource_id='new',
        event='created',
        made_at=session.now,
    )


def delete_moves(session, batch):
    return retention.delete_until(session, retention.MOVES, _limit(session), batch)


def _limit(session):
    return session.now - datetime.timedelta(hours=1)


def build(db, owner, deletion=delete_moves, interval=3600.0):
    return Purge(
        db,
        'purge',
        owner,
        interval,
        {JOURNAL.name: deletion},
        batch=10,
        sleep=lambda seconds: None,
    )


def count_moves(db):
    return db.read(
        lambda session: session.value(
            sa.select(sa.func.count())
            .select_from(JOURNAL)
            .where(JOURNAL.c.made_at < _limit(session))
        )
    )


def expire_lease(db):
    db.write(lambda session: session.run(sa.update(TASK).values(lease_until=0)))


def test_everything_is_deleted_in_short_transactions(db):
    steps = []
    db.on_step = steps.append
    assert build(db, 'one').run_pass() == ROWS
    assert count_moves(db) == 0
    assert steps.count('committed') == 5  # claim, three batches, finish


def test_purge_is_due_once_for_all_processes(db, connect):
    assert build(db, 'one').run_pass() == ROWS
    db.write(add_moves, 1)
    steps = []
    other = connect()
    other.on_step = steps.append
    assert build(other, 'other').run_pass() == 0
    assert 'commit' not in steps
    db.write(lambda session: session.run(sa.update(TASK).values(due_at=0)))
    assert build(other, 'other').run_pass() == 1


def test_only_one_process_purges_at_a_time(db, connect):
    running, most, guard = 0, 0, threading.Lock()

    def delete(session, batch):
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        try:
            return delete_moves(session, batch)
        finally:
            with guard:
                running -= 1

    purges = [build(connect(), f'{number}', delete) for number in range(4)]
    with concurrent.futures.ThreadPoolExecutor(len(purges)) as pool:
        counts = list(pool.map(Purge.run_pass, purges))
    assert sum(counts) == ROWS
    assert most == 1
    assert sorted(counts)[:-1] == [0, 0, 0]


def test_purge_of_a_dead_process_is_continued(db, connect):
    batches = []

    def die_later(session, batch):
        batches.append(batch)
        if len(batches) == 2:
            raise RuntimeError('dead')
        return delete_moves(session, batch)

    with pytest.raises(RuntimeError):
        build(db, 'dead', die_later).run_pass()
    assert count_moves(db) == ROWS - 10
    other = build(connect(), 'other')
    assert other.run_pass() == 0
    expire_lease(db)
    assert other.run_pass() == ROWS - 10
    assert count_moves(db) == 0


def test_process_that_was_paused_for_too_long_stops(db, connect):
    other = build(connect(), 'other')

    def be_late(session, batch):
        return delete_moves(session, 10)

    paused = build(db, 'paused', be_late)

    def pause(seconds):
        expire_lease(db)
        db.write(add_moves, 10)
        other.run_pass()
        db.write(add_moves, 10)

    paused.sleep = pause
    assert paused.run_pass() == 10
    assert count_moves(db) == 10


def test_purge_now_waits_for_that_of_another_process(db, connect):
    db.write(services.claim, 'purge', 'scheduler', 60.0)
    waits = []

    def end_the_other(seconds):
        waits.append(count_moves(db))
        db.write(services.finish, 'purge', 'scheduler', 3600.0)

    command = build(connect(), 'command')
    command.sleep = end_the_other
    assert command.run_now() == {'transitions': ROWS}
    assert waits[0] == ROWS


def test_purges_at_once_delete_every_row_once(db, connect):
    purges = [build(connect(), f'{number}') for number in range(3)]
    scheduler = purges.pop()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = [pool.submit(purge.run_now) for purge in purges]
        count = pool.submit(scheduler.run_pass).result()
        counts = [one.result()['transitions'] for one in running]
    assert count + sum(counts) == ROWS
    assert count_moves(db) == 0


def test_schedulers_purge_what_the_options_name(build_node):
    node = build_node(
        work='journal_retention = 3600\n'
        '[recovery]\nlog_retention = 0\n'
        '[retention]\nserver_migrations = 0\nservices = 3600\n'
    )
    node.db.write(add_moves, 3)
    counts = {purge.name: purge.run_pass() for purge in node.scheduler.purges}
    assert counts == {'old rows': 3, 'dead services': 0}


def test_age_of_zero_keeps_rows(build_node):
    node = build_node(work='journal_retention = 0\n[retention]\nservices = 0\n')
    node.db.write(add_moves, 3)
    counts = {purge.name: purge.run_pass() for purge in node.scheduler.purges}
    assert counts == {'old rows': 0}


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_others_write_and_claim_during_a_batch(db, connect):
    """On SQLite, where all writers wait, they do between two batches."""
    other = connect()
    work_id = other.write(
        table.submit,
        {},
        kind='provisioning.extend_share_instance',
        topic='manila-share',
        queue='node@backend',
        resource='share_instance',
        resource_id='instance',
        args={},
    )
    claims = []

    def delete(session, batch):
        count = delete_moves(session, batch)
        other.write(add_moves, 1)
        claims.append(other.write(table.claim, work_id, ['node@backend'], 'one', 9.0))
        return count

    build(db, 'one', delete).run_pass()
    assert claims[0] is not None


# The limit of the journal

LIMIT = 8


def tidy(node):
    """Create shares, then delete the surplus history; return the ids before."""
    for _ in range(6):
        node.create(1)
        node.run()
    before = ids(node, JOURNAL), ids(node, CALL)
    (purge,) = surplus_purges(node)
    purge.run_pass()
    return before


def surplus_purges(node):
    return [
        one
        for one in build_purges(node.process, 'the owner')
        if one.name == 'surplus history'
    ]


def ids(node, table):
    """Return the ids of moves or calls, the oldest first."""
    time = table.c.made_at if table is JOURNAL else table.c.started_at
    return [row.id for row in node.rows(sa.select(table.c.id).order_by(time))]


def test_journal_and_calls_of_its_time_are_kept_within_the_limit(build_node):
    node = build_node(backends=['alpha'], work=f'\n[retention]\njournal_rows = {LIMIT}')
    node.register()
    moves, calls = tidy(node)
    assert len(moves) > LIMIT
    assert ids(node, JOURNAL) == moves[-LIMIT:]
    oldest = node.value(sa.select(sa.func.min(JOURNAL.c.made_at)))
    kept = ids(node, CALL)
    assert kept == calls[-len(kept) :]
    assert 0 < len(kept) < len(calls)
    assert node.value(sa.select(sa.func.count()).where(CALL.c.started_at < oldest)) <= 1
    node.db.write(lambda session: session.run(sa.update(TASK).values(due_at=0)))
    moves, calls = tidy(node)
    assert ids(node, JOURNAL) == moves[-LIMIT:]


def test_limit_of_the_journal_spares_moves_that_are_not_sent(build_node):
    node = build_node(backends=['alpha'], work=f'\n[retention]\njournal_rows = {LIMIT}')
    node.conf.set_override('enabled', True, 'events')
    node.register()
    moves, _ = tidy(node)
    assert ids(node, JOURNAL) == moves


def test_without_a_limit_the_age_decides_alone(build_node):
    node = build_node(backends=['alpha'])
    assert surplus_purges(node) == []
