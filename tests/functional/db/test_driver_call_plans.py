"""The last calls of drivers for a share are found among many, and old ones."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.queries.shares import history
from manila_lite.db.queries.work import retention
from manila_lite.db.session import Database
from tests.functional.db import query_plans
from tests.support import databases

CALL = engine.DriverCall.__table__
ROWS = 20_000
INSTANCES = 2000
NOON = datetime.datetime(2026, 5, 1, 12)


@pytest.fixture(scope='module', params=databases.KINDS)
def db(request, tmp_path_factory):
    with databases.temporary_database(
        request.param, tmp_path_factory.mktemp('database')
    ) as url:
        databases.create_tables(url)
        db = Database(url)
        db.write(insert)
        db.write(query_plans.analyze, 'driver_calls')
        yield db
        db.dispose()


def insert(session):
    session.run_many(
        sa.insert(CALL),
        [
            {
                'id': f'call-{number}',
                'resource': 'share_instance',
                'resource_id': f'instance-{number % INSTANCES}',
                'method': 'extend_share',
                'host': 'node@alpha',
                'work_id': f'work-{number}',
                'attempt': 1,
                'started_at': NOON + datetime.timedelta(seconds=number),
            }
            for number in range(ROWS)
        ],
    )


def test_last_calls_for_a_share_are_found_at_once(db):
    parts = {
        'share_instance': ['instance-7', 'instance-8'],
        'share_replica': ['instance-7', 'instance-8'],
        'snapshot_instance': [],
    }
    found = db.read(history.list_driver_calls, parts, most=3)
    assert [row.id for row in found] == ['call-18008', 'call-18007', 'call-16008']
    assert not query_plans.scanned_tables(
        db, history.list_driver_calls, parts, most=200
    )


def test_old_calls_are_found_at_once(db):
    assert not query_plans.scanned_tables(
        db,
        retention.delete_until,
        retention.DRIVER_CALLS,
        NOON + datetime.timedelta(seconds=50),
    )


def test_oldest_calls_are_deleted(db):
    def delete(session):
        until = NOON + datetime.timedelta(seconds=2)
        assert retention.delete_until(session, retention.DRIVER_CALLS, until) == 3
        return session.value(sa.select(sa.func.min(CALL.c.started_at)))

    assert db.write(delete) == NOON + datetime.timedelta(seconds=3)
