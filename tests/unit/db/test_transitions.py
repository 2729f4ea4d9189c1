"""Transitions of state machines, on every database."""

from concurrent import futures
import functools
import threading

import pytest
import sqlalchemy as sa

from manila_lite import context, exception
from manila_lite.db import models
from manila_lite.db.models import engine, shares
from manila_lite.db.transitions import (
    TransitionBatch,
    fire,
    fire_all,
    fire_known,
    fire_matching,
)
from manila_lite.states.machine import GONE
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from tests.support import sampling
from tests.support.rows import insert_row_of
from tests.unit.states.test_states import MACHINES

pytestmark = sampling.dialects


INSTANCE = shares.ShareInstance.__table__
JOURNAL = engine.Transition.__table__


def status(db, id):
    return db.read(
        lambda session: session.value(
            sa.select(INSTANCE.c.status).where(INSTANCE.c.id == id)
        )
    )


def journal(db, id):
    """Return event, old status and new status, oldest first."""
    return [
        tuple(row)
        for row in db.read(
            lambda session: session.rows(
                sa.select(JOURNAL.c.event, JOURNAL.c.from_status, JOURNAL.c.to_status)
                .where(JOURNAL.c.resource_id == id)
                .order_by(JOURNAL.c.id)
            )
        )
    ]


def test_insert_writes_the_initial_status_and_the_journal(db, add_instance):
    add_instance('i')
    assert status(db, 'i') == InstanceStatus.CREATING
    assert journal(db, 'i') == [('create', None, InstanceStatus.CREATING)]


def test_move_changes_the_status_and_other_columns(db, add_instance):
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'created', progress='100%', host='h')
    assert status(db, 'i') == InstanceStatus.AVAILABLE
    assert db.read(
        lambda session: tuple(
            session.first(sa.select(INSTANCE.c.progress, INSTANCE.c.host))
        )
    ) == ('100%', 'h')


def moved(db, machine, event, move):
    """Return `updated_at` of a row after a move, and the time of the move."""
    table = models.metadata.tables[machine.table]
    source = machine.to_column(min(machine[event].sources))

    def run(session):
        id = insert_row_of(session, table, **{machine.column: source})
        move(session, machine, id, event)
        found = session.value(sa.select(table.c.updated_at).where(table.c.id == id))
        return found, session.now

    return db.write(run)


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_move_sets_the_time_of_the_last_change(db, machine):
    for event in [move.event for move in machine.moves if move.target is not GONE]:
        found, now = moved(db, machine, event, fire)
        assert found == now, event


def fire_in_batch(session, machine, id, event):
    TransitionBatch(session).fire(machine, event, {id: min(machine[event].sources)})


def fire_one_in_batch(session, machine, id, event):
    TransitionBatch(session).fire_one(machine, id, event)


def fire_own_in_batch(session, machine, id, event):
    TransitionBatch(session).fire_own(machine, event, {'id': id}, [id])


def fire_unless_in_batch(session, machine, id, event):
    assert TransitionBatch(session).fire_unless(machine, id, event, sa.false())


@pytest.mark.parametrize(
    'move',
    [
        fire_in_batch,
        fire_one_in_batch,
        fire_own_in_batch,
        fire_unless_in_batch,
        lambda session, machine, id, event: fire_all(session, machine, [id], event),
        lambda session, machine, id, event: fire_known(session, machine, event, [id]),
        lambda session, machine, id, event: fire_matching(
            session, machine, event, {'id': id}
        ),
    ],
)
def test_moves_of_several_rows_set_the_time_of_the_last_change(db, move):
    found, now = moved(db, SHARE_INSTANCE, 'extended', move)
    assert found == now


def test_journal_has_the_status_that_was_left(db, add_instance):
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'create_failed')
    db.write(fire, SHARE_INSTANCE, 'i', 'delete')
    assert journal(db, 'i')[1:] == [
        ('create_failed', InstanceStatus.CREATING, InstanceStatus.ERROR),
        ('delete', InstanceStatus.ERROR, InstanceStatus.DELETING),
    ]


def test_journal_has_initiator_and_time(db, add_instance):
    ctx = context.RequestContext(user_id='ann', request_id='req-1')
    add_instance('i', by=ctx)
    db.write(fire, SHARE_INSTANCE, 'i', 'created')
    moments = []
    db.write(
        lambda session: (
            moments.append(session.now),
            fire(session, SHARE_INSTANCE, 'i', 'extend'),
        ),
        by=ctx,
    )
    rows = db.read(
        lambda session: session.rows(sa.select(JOURNAL).order_by(JOURNAL.c.id))
    )
    assert [(row.resource, row.request_id, row.made_by) for row in rows] == [
        ('share_instance', 'req-1', 'ann'),
        ('share_instance', None, None),
        ('share_instance', 'req-1', 'ann'),
    ]
    assert rows[-1].made_at == moments[0]


def test_refused_move_changes_nothing(db, add_instance):
    add_instance('i')
    before = journal(db, 'i')
    with pytest.raises(exception.InvalidStatus) as refused:
        db.write(fire, SHARE_INSTANCE, 'i', 'extend', progress='1%')
    assert refused.value.status == InstanceStatus.CREATING
    assert InstanceStatus.AVAILABLE in str(refused.value)
    assert status(db, 'i') == InstanceStatus.CREATING
    assert journal(db, 'i') == before
    assert (
        db.read(lambda session: session.value(sa.select(INSTANCE.c.progress))) is None
    )


def test_move_of_a_missing_row_is_not_found(db):
    with pytest.raises(exception.ResourceNotFound, match='nobody'):
        db.write(fire, SHARE_INSTANCE, 'nobody', 'delete')
    assert journal(db, 'nobody') == []


def test_unknown_event_is_a_key_error(db, add_instance):
    add_instance('i')
    with pytest.raises(KeyError):
        db.write(fire, SHARE_INSTANCE, 'i', 'explode')


def test_move_to_gone_removes_the_row_and_is_journalled(db, add_instance):
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'force_delete')
    db.write(fire, SHARE_INSTANCE, 'i', 'deleted')
    assert status(db, 'i') is None
    assert journal(db, 'i')[-1] == ('deleted', InstanceStatus.DELETING, None)
    with pytest.raises(exception.ResourceNotFound):
        db.write(fire, SHARE_INSTANCE, 'i', 'deleted')


def test_move_into_the_same_status_is_a_move(db, add_instance):
    # MariaDB counts changed rows by default, and none is changed here.
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'created')
    db.write(fire, SHARE_INSTANCE, 'i', 'reset_available')
    assert journal(db, 'i')[-1] == (
        'reset_available',
        InstanceStatus.AVAILABLE,
        InstanceStatus.AVAILABLE,
    )


def test_rolled_back_move_leaves_no_trace(db, add_instance):
    add_instance('i')

    def move_and_fail(session):
        fire(session, SHARE_INSTANCE, 'i', 'created')
        raise exception.InvalidInput(reason='after all')

    with pytest.raises(exception.InvalidInput):
        db.write(move_and_fail)
    assert status(db, 'i') == InstanceStatus.CREATING
    assert len(journal(db, 'i')) == 1


def test_move_of_many_is_made_for_each(db, add_instance):
    for id in 'cab':
        add_instance(id)
    db.write(fire_all, SHARE_INSTANCE, iter('cab'), 'created')
    assert [status(db, id) for id in 'abc'] == [InstanceStatus.AVAILABLE] * 3
    # All lock in one order, or two such moves would deadlock.
    assert db.read(
        lambda session: session.rows(
            sa.select(JOURNAL.c.resource_id)
            .where(JOURNAL.c.event == 'created')
            .order_by(JOURNAL.c.id)
        )
    ) == [('a',), ('b',), ('c',)]


def test_move_of_many_is_refused_for_all(db, add_instance):
    for id in 'ab':
        add_instance(id)
    db.write(fire, SHARE_INSTANCE, 'b', 'create_failed')
    with pytest.raises(exception.InvalidStatus) as refused:
        db.write(fire_all, SHARE_INSTANCE, 'ab', 'created')
    assert refused.value.params['id'] == 'b'
    assert status(db, 'a') == InstanceStatus.CREATING
    assert len(journal(db, 'a')) == 1


def test_move_of_many_to_gone_is_refused_for_all(db, add_instance):
    for id in 'ab':
        add_instance(id)
    db.write(fire, SHARE_INSTANCE, 'a', 'force_delete')
    with pytest.raises(exception.InvalidStatus) as refused:
        db.write(fire_all, SHARE_INSTANCE, 'ab', 'deleted')
    assert refused.value.params['id'] == 'b'
    assert status(db, 'a') == InstanceStatus.DELETING


def test_move_of_known_rows_identifies_the_transaction(db, add_instance):
    for id in 'abc':
        add_instance(id)
    seen = []
    db.on_step = seen.append
    db.write(fire_known, SHARE_INSTANCE, 'created', iter('ca'))
    assert seen.count('statement') == 2
    assert [status(db, id) for id in 'abc'] == ['available', 'creating', 'available']
    ids = db.read(
        lambda session: session.rows(
            sa.select(JOURNAL.c.transaction_id)
            .where(JOURNAL.c.event == 'created')
            .order_by(JOURNAL.c.id)
        )
    )
    assert [id is not None for (id,) in ids] == [True, False]


def test_move_of_known_rows_runs_again_when_one_has_changed(db, add_instance):
    for id in 'abc':
        add_instance(id)
    known = ['abc', 'ab']  # by the time of the second attempt

    def move(session):
        fire_known(session, SHARE_INSTANCE, 'created', known.pop(0))

    db.write(fire, SHARE_INSTANCE, 'c', 'create_failed')
    db.write(move)
    assert [status(db, id) for id in 'abc'] == ['available', 'available', 'error']
    assert [len(journal(db, id)) for id in 'abc'] == [2, 2, 2]
    assert known == []


def test_move_of_many_names_the_missing_row(db, add_instance):
    add_instance('a')
    with pytest.raises(exception.ResourceNotFound, match='nobody'):
        db.write(fire_all, SHARE_INSTANCE, ['a', 'nobody'], 'created')
    assert status(db, 'a') == InstanceStatus.CREATING


def test_move_of_many_sets_other_columns(db, add_instance):
    for id in 'ab':
        add_instance(id)
    db.write(
        functools.partial(fire_all, progress='100%'), SHARE_INSTANCE, 'ab', 'created'
    )
    assert db.read(
        lambda session: {
            row.progress for row in session.rows(sa.select(INSTANCE.c.progress))
        }
    ) == {'100%'}


def in_batch(*moves):
    """Return a transaction that makes moves of one row each, as a batch."""

    def make(session):
        batch = TransitionBatch(session)
        for id, event, values in moves:
            batch.fire_one(SHARE_INSTANCE, id, event, **values)
        batch.write()

    return make


def test_moves_of_a_batch_share_the_journal_and_set_other_columns(db, add_instance):
    for id in ('i', 'j'):
        add_instance(id)
        db.write(fire, SHARE_INSTANCE, id, 'created')
    steps = []
    db.on_step = steps.append
    db.write(in_batch(('i', 'extend', {'progress': '5%'}), ('j', 'shrink', {})))
    assert steps.count('statement') == 3
    rows = db.read(
        lambda session: {
            row.id: (row.status, row.progress)
            for row in session.rows(sa.select(INSTANCE))
        }
    )
    assert rows['i'] == ('extending', '5%')
    assert rows['j'][0] == 'shrinking'
    assert journal(db, 'i')[-1] == ('extend', 'available', 'extending')
    assert journal(db, 'j')[-1] == ('shrink', 'available', 'shrinking')


def test_batch_with_a_refused_move_changes_nothing(db, add_instance):
    add_instance('i')
    add_instance('j')
    db.write(fire, SHARE_INSTANCE, 'i', 'created')
    before = journal(db, 'i')
    with pytest.raises(exception.InvalidStatus):
        db.write(in_batch(('i', 'extend', {}), ('j', 'extend', {})))
    assert (status(db, 'i'), journal(db, 'i')) == ('available', before)


def test_move_of_matching_rows_leaves_the_others_alone(db, add_instance):
    for id in 'abcd':
        add_instance(id)
    db.write(fire, SHARE_INSTANCE, 'b', 'create_failed')
    moved = db.write(fire_matching, SHARE_INSTANCE, 'created', {'id': ['a', 'b', 'c']})
    assert moved == 2
    assert [status(db, id) for id in 'abcd'] == [
        InstanceStatus.AVAILABLE,
        InstanceStatus.ERROR,
        InstanceStatus.AVAILABLE,
        InstanceStatus.CREATING,
    ]
    assert journal(db, 'a')[-1] == (
        'created',
        InstanceStatus.CREATING,
        InstanceStatus.AVAILABLE,
    )
    assert len(journal(db, 'b')) == 2
    assert len(journal(db, 'd')) == 1


def test_move_without_matching_rows_is_no_error(db, add_instance):
    add_instance('a')
    assert (
        db.write(fire_matching, SHARE_INSTANCE, 'extended', {'share_id': 'other'}) == 0
    )
    assert len(journal(db, 'a')) == 1


def test_move_of_any_number_takes_three_statements(db, add_instance):
    for number in range(30):
        add_instance(f'i{number}')
    seen = []
    db.on_step = seen.append
    db.write(fire_matching, SHARE_INSTANCE, 'created', {'host': 'nowhere'})
    nothing = seen.count('statement')
    seen.clear()
    db.write(
        fire_matching,
        SHARE_INSTANCE,
        'created',
        {'id': [f'i{number}' for number in range(30)]},
    )
    assert nothing == 1
    assert seen.count('statement') == 3


@pytest.mark.parametrize('rival', ['delete', 'extend'])
def test_one_of_several_concurrent_moves_succeeds(
    new_database, db, add_instance, rival
):
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'created')
    ways_in = [new_database() for _ in range(4)]
    ready = threading.Barrier(len(ways_in))

    def move(db, event):
        ready.wait(timeout=30)
        try:
            db.write(fire, SHARE_INSTANCE, 'i', event)
        except exception.InvalidStatus as error:
            return error.status
        return 'made'

    with futures.ThreadPoolExecutor(len(ways_in)) as threads:
        answers = list(threads.map(move, ways_in, ['extend', rival] * 2))
    now = status(db, 'i')
    assert now in (InstanceStatus.EXTENDING, InstanceStatus.DELETING)
    assert sorted(answers) == sorted(['made', now, now, now])
    assert len(journal(db, 'i')) == 3


def test_move_waits_for_a_concurrent_one(new_database, db, add_instance):
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'created')
    other, moved = new_database(), threading.Event()

    def move_while_another_waits(session, threads):
        fire(session, SHARE_INSTANCE, 'i', 'extend')
        waiting = threads.submit(try_to_delete)
        assert moved.wait(timeout=30)
        return waiting

    def try_to_delete():
        other.on_step = lambda name: moved.set()
        if other.dialect == 'sqlite':
            moved.set()  # the second transaction cannot begin
        other.write(fire, SHARE_INSTANCE, 'i', 'delete')

    with futures.ThreadPoolExecutor(1) as threads:
        waiting = db.write(move_while_another_waits, threads)
        with pytest.raises(exception.InvalidStatus) as refused:
            waiting.result(timeout=30)
    assert refused.value.status == InstanceStatus.EXTENDING


def test_own_moves_leave_rows_alone_that_have_made_another_one(db, add_instance):
    ids = ['i', 'j', 'k']
    for id in ids:
        add_instance(id)
        db.write(fire, SHARE_INSTANCE, id, 'created')
        db.write(fire, SHARE_INSTANCE, id, 'extend')
    db.write(fire, SHARE_INSTANCE, 'j', 'extend_failed')

    def end(session):
        batch = TransitionBatch(session)
        batch.fire_own(SHARE_INSTANCE, 'extended', {'host': 'h'}, ids)
        batch.write()

    db.write(lambda session: session.run(sa.update(INSTANCE).values(host='h')))
    db.write(end)
    for id in ('i', 'k'):
        assert journal(db, id)[-1] == ('extended', 'extending', 'available')
    assert journal(db, 'j')[-1] == ('extend_failed', 'extending', 'extending_error')
    assert [status(db, id) for id in ids] == [
        'available',
        'extending_error',
        'available',
    ]


def test_move_with_an_obstacle_is_not_made(db, add_instance):
    add_instance('i')
    db.write(fire, SHARE_INSTANCE, 'i', 'created')

    def extend(session):
        batch = TransitionBatch(session)
        is_made = batch.fire_unless(SHARE_INSTANCE, 'i', 'extend', sa.true())
        batch.write()
        return is_made

    assert not db.write(extend)
    assert status(db, 'i') == InstanceStatus.AVAILABLE
    assert journal(db, 'i')[-1][0] == 'created'
