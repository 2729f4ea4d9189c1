"""Events are found at once in a long journal."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.queries.work import events, retention
from manila_lite.db.session import Database
from manila_lite.scheduler.events import BATCH
from tests.functional.db import query_plans
from tests.support import databases, mass_rows

JOURNAL = engine.Transition.__table__
MOVES = 100_000
SIZES = mass_rows.Sizes(
    shares=1000,
    rules_of_share=1,
    snapshots=100,
    journal=MOVES,
    messages=100,
    services=10,
    pools=10,
    projects=10,
    networks=10,
    groups=10,
    servers=10,
    migrations=10,
    decisions=10,
    waiting=10,
)
PAUSE = 10_000
"""Moves that were made while the bus was down."""

IDS = [f'unknown {number}' for number in range(BATCH)]


def begin(session):
    session.run(sa.insert(events.TASK), name=events.TASK_NAME, due_at=0.0, position=0)


def mark_unsent(session):
    session.run(
        sa.update(JOURNAL).where(JOURNAL.c.id > MOVES - PAUSE).values(is_sent=None)
    )


@pytest.fixture(scope='module', params=databases.KINDS)
def db(request, tmp_path_factory):
    """A journal of which the newest moves have not been sent."""
    with databases.temporary_database(
        request.param, tmp_path_factory.mktemp('database')
    ) as url:
        databases.create_tables(url)
        db = Database(url)
        db.write(begin)
        mass_rows.insert(db, SIZES)
        db.write(mark_unsent)
        yield db
        db.dispose()


OLD, NOW = datetime.datetime(2020, 1, 1), datetime.datetime(2100, 1, 1)
QUERIES = {
    'the next moves': (events.list_unsent, 0, BATCH),
    'moves that are gone': (
        lambda session: session.rows(
            events._GONE, resources=['share_instance'], ids=IDS
        ),
    ),
    'mark': (events.mark_sent, range(MOVES - BATCH, MOVES)),
    'start': (events.find_start,),
    'purge of nothing': (retention.delete_sent_moves, OLD, BATCH),
    'purge of sent moves': (retention.delete_sent_moves, NOW, BATCH),
}


@pytest.mark.parametrize('query', QUERIES.values(), ids=QUERIES)
def test_few_moves_are_read(db, query):
    scanned = query_plans.scanned_tables(db, *query)
    assert not scanned, scanned


def test_purge_that_waits_reads_nothing(db):
    """All moves that were sent are gone, and the others cannot go."""

    def purge(session):
        session.run(sa.update(JOURNAL).where(JOURNAL.c.id <= 3).values(is_sent=None))
        return retention.delete_sent_moves(session, NOW, BATCH)

    scanned = query_plans.scanned_tables(db, purge)
    assert not scanned, scanned
