"""Full queues are found in an index, however long they are."""

import time

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine, services
from manila_lite.db.queries.work import queues
from tests.functional.db.query_plans import plans

BACKENDS, WAITING = 40, 300
LIMIT = 250
TABLES = ('work', 'services')
INDEX = 'ix_work_state_queue_created_at'

SLOW = {
    'sqlite': ('TEMP B-TREE', 'SCAN work', 'AUTOMATIC'),
    'mysql': ('filesort', 'temporary', 'work ALL'),
    'postgresql': ('Sort', 'Seq Scan on work', 'Hash'),
}


def host(number):
    return f'host{number}@backend'


def fill(session):
    """Fill the queues of all back ends but one; most work is running."""
    session.run(
        sa.insert(services.AvailabilityZone.__table__),
        id='zone',
        name='zone',
        created_at=session.now,
    )
    session.run_many(
        sa.insert(services.Service.__table__),
        [
            {
                'host': host(number),
                'binary': 'manila-share',
                'topic': 'manila-share',
                'availability_zone_id': 'zone',
                'incarnation': 'i',
                'heartbeat_at': time.time() + 3600,
                'disabled': False,
                'ensuring': False,
                'created_at': session.now,
            }
            for number in range(BACKENDS)
        ],
    )
    session.run_many(
        sa.insert(engine.Work.__table__),
        [
            {
                'id': session.new_id(),
                'kind': 'a.b',
                'topic': 'manila-share',
                'queue': host(number % BACKENDS),
                'resource': 'thing',
                'resource_id': session.new_id(),
                'args': '{}',
                'context': '{}',
                'state': 'queued',
                'attempt': 0,
                'fence': 0,
                'asked': 1,
                'next_try_at': 0.0,
                'created_at': session.now,
            }
            for number in range(BACKENDS * WAITING)
            if number % BACKENDS
        ],
    )


@pytest.mark.parametrize(
    'number, limit, full', [(1, WAITING, True), (1, WAITING + 1, False), (0, 1, False)]
)
def test_queue_of_a_back_end_is_full_at_its_limit(db, number, limit, full):
    assert db.read(queues.is_backend_full, host(number), limit, 60.0) is full


@pytest.mark.parametrize(
    'queue, limit, closed',
    [
        ('placements', LIMIT, False),  # one back end has room
        (host(1), WAITING, True),  # the queue itself is full
        (host(1), WAITING + 1, False),
    ],
)
def test_placements_are_closed_when_all_is_full(db, queue, limit, closed):
    assert db.read(queues.is_placement_closed, queue, limit, 60.0) is closed


@pytest.mark.parametrize('query', [queues.is_backend_full, queues.is_placement_closed])
def test_full_queues_are_found_in_the_index(db, query):
    (plan,) = plans(db, query, host(1), LIMIT, 60.0)
    assert INDEX in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan
