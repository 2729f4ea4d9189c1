"""Commits that get no answer: whether they happened is found out."""

from concurrent import futures
import functools

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import commits, engines
from manila_lite.db.models import engine, shares
from manila_lite.db.session import Hint
from manila_lite.db.transitions import (
    TransitionBatch,
    fire,
    fire_all,
    fire_matching,
    insert_row,
    insert_rows,
)
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import databases
from tests.support.processes import wait_until
from tests.support.relay import before_database
from tests.support.rows import insert_share

pytestmark = pytest.mark.parametrize(
    'database_url', ['mysql', 'postgresql'], indirect=True
)

INSTANCE = shares.ShareInstance.__table__
JOURNAL = engine.Transition.__table__


@pytest.fixture
def relayed(database_url):
    with before_database(database_url) as found:
        yield found


@pytest.fixture
def relay(relayed):
    return relayed[0]


@pytest.fixture
def remote(new_database, relayed):
    """A database whose connections lead through the relay."""
    return new_database(url=relayed[1], retry_limit=2.0)


def at_the_commit(db, act):
    """Do something once, right before a commit is sent."""

    def on_step(name):
        if name == 'commit':
            db.on_step = lambda name: None
            act()

    db.on_step = on_step


def instance(session, id):
    return {
        'id': id,
        'share_id': insert_share(session),
        'cast_rules_to_readonly': False,
        'access_rules_status': 'active',
        'created_at': session.now,
    }


def create(session):
    """Insert an instance under a new id; return the id."""
    id = session.new_id()
    insert_row(session, SHARE_INSTANCE, 'create', **instance(session, id))
    session.hints.append(Hint('topic', 'queue', id))
    return id


def create_several(session):
    ids = [session.new_id() for _ in range(2)]
    rows = [instance(session, id) for id in ids]
    insert_rows(session, SHARE_INSTANCE, 'create', rows)
    return ids


def create_in_batch(session):
    id = session.new_id()
    batch = TransitionBatch(session)
    batch.insert_rows(SHARE_INSTANCE, 'create', [instance(session, id)])
    batch.write()
    return id


def instances(db):
    return db.read(
        lambda session: sorted(row.id for row in session.rows(sa.select(INSTANCE.c.id)))
    )


def moves(db):
    return db.read(
        lambda session: session.value(
            sa.select(sa.func.count())
            .select_from(JOURNAL)
            .where(JOURNAL.c.resource == SHARE_INSTANCE.resource)
        )
    )


def test_transaction_whose_answer_was_lost_has_succeeded(db, remote, relay):
    delivered = []
    remote.deliver = delivered.extend
    at_the_commit(remote, relay.lose_next_answer)
    id = remote.write(create)
    assert instances(db) == [id]
    assert [hint.work_id for hint in delivered] == [id]


@pytest.mark.parametrize('function', [create_several, create_in_batch])
def test_inserts_of_many_rows_are_found_as_well(db, remote, relay, function):
    at_the_commit(remote, relay.lose_next_answer)
    remote.write(function)
    assert moves(db) == len(instances(db)) > 0


@pytest.mark.parametrize(
    'move',
    [
        lambda session, id: fire(session, SHARE_INSTANCE, id, 'created'),
        lambda session, id: fire_all(session, SHARE_INSTANCE, [id], 'created'),
        lambda session, id: fire_matching(
            session, SHARE_INSTANCE, 'created', {'id': id}
        ),
        lambda session, id: fire_matching(
            session, SHARE_INSTANCE, 'created', {'access_rules_status': 'active'}
        ),
    ],
    ids=['one', 'all', 'one if it matches', 'all that match'],
)
def test_move_whose_answer_was_lost_has_been_made(db, remote, relay, move):
    """A second attempt would be refused: the status has changed."""
    id = db.write(create)
    at_the_commit(remote, relay.lose_next_answer)
    remote.write(move, id)
    assert moves(db) == 2


def test_transaction_that_was_not_committed_runs_again(db, remote, database_url):
    at_the_commit(remote, functools.partial(databases.kill_connections, database_url))
    id = remote.write(create)
    assert instances(db) == [id]


def write_with_held_commit(remote, relay, url, decide):
    """Write while the server has not got the commit; return the result.

    `decide(held)` is called once the outcome is waited for.
    """
    held = []
    at_the_commit(remote, lambda: held.append(relay.hold_next_request()))
    with futures.ThreadPoolExecutor(1) as threads:
        written = threads.submit(remote.write, create)
        wait_until(
            lambda: written.done() or databases.count_lock_waits(url),
            'the outcome is waited for',
            # MariaDB looks for it again if that has not been asked for 0.1 s.
            interval=0.15,
        )
        decide(held[0])
        return written.result(60)


def test_commit_that_still_runs_on_the_server_is_waited_for(
    db, remote, relay, database_url
):
    id = write_with_held_commit(
        remote, relay, database_url, lambda held: held.pass_on()
    )
    assert instances(db) == [id]
    assert moves(db) == 1


def test_transaction_runs_again_once_the_server_has_ended_it(
    db, remote, relay, database_url
):
    id = write_with_held_commit(remote, relay, database_url, lambda held: held.drop())
    assert instances(db) == [id]
    assert moves(db) == 1


def test_commit_that_is_still_running_at_the_limit_is_not_repeated(
    db, new_database, relayed, monkeypatch
):
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 1.0)
    relay, url = relayed
    remote = new_database(url=url, retry_limit=0.0)
    held = []
    at_the_commit(remote, lambda: held.append(relay.hold_next_request()))
    with pytest.raises(exception.OutcomeUnknown):
        remote.write(create)
    assert instances(db) == []
    held[0].pass_on()
    assert len(instances(db)) == moves(db) == 1


def test_outcome_is_asked_for_again_if_that_gets_no_answer(
    db, remote, relay, database_url
):
    """The row that rules the transaction out is not taken for its own."""
    at_the_commit(
        remote,
        lambda: (
            databases.kill_connections(database_url),
            at_the_commit(remote, relay.lose_next_answer),
        ),
    )
    id = remote.write(create)
    assert instances(db) == [id]
    assert moves(db) == 1


def test_error_of_a_commit_does_not_mean_that_nothing_was_written(db, remote):
    """A node of Galera has some that are neither a conflict nor a loss."""

    def fail(connection):
        sa.event.remove(remote.engine, 'commit', fail)
        raise sa.exc.OperationalError('COMMIT', {}, Exception('1180'))

    sa.event.listen(remote.engine, 'commit', fail)
    id = remote.write(create)
    assert instances(db) == [id]


def test_transaction_that_was_ruled_out_cannot_be_committed(db):
    """Nodes of Galera do not see what others have not committed yet."""
    known = []

    def rule_out(session):
        create(session)
        known.append(session.transaction_id)
        raise exception.Conflict

    with pytest.raises(exception.Conflict):
        db.write(rule_out)
    assert not commits.was_committed(db, known[0])
    with pytest.raises(db_exc.DBDuplicateEntry):
        db.write(
            lambda session: session.run(
                sa.insert(JOURNAL),
                resource='share_instance',
                resource_id='i',
                event='create',
                made_at=session.now,
                transaction_id=known[0],
            )
        )


def test_outcome_is_unknown_while_no_server_answers(remote, relay):
    waited = []
    remote.sleep = waited.append
    at_the_commit(remote, relay.cut)
    with pytest.raises(exception.OutcomeUnknown):
        remote.write(create)
    assert 2.0 <= sum(waited) < 4.0


def test_server_is_awaited_to_learn_the_outcome(db, remote, relay):
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        relay.mend()

    remote.sleep = sleep
    at_the_commit(remote, relay.cut)
    id = remote.write(create)
    assert instances(db) == [id]
    assert waited


def test_change_without_a_move_is_not_repeated(db, remote, relay):
    """Nothing in the database tells whether it was made."""
    at_the_commit(remote, relay.lose_next_answer)
    with pytest.raises(exception.OutcomeUnknown):
        remote.write(insert_share, id='s')
    ids = db.read(
        lambda session: [
            row.id for row in session.rows(sa.select(shares.Share.__table__.c.id))
        ]
    )
    assert ids == ['s']
