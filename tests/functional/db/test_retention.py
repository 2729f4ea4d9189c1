"""Rows that have been kept long enough are deleted in batches."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine, migrations, services, share_servers
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.work import retention
from manila_lite.db.session import Database
from manila_lite.work import table
from tests.support import sampling
from tests.support.rows import MIGRATION_FLAGS, insert_instance, insert_share

pytestmark = sampling.dialects


JOURNAL = engine.Transition.__table__
MIGRATION = migrations.ServerMigration.__table__
TASK = engine.ClusterTask.__table__
SERVICE = services.Service.__table__
DAY = 86400.0


@pytest.fixture
def db(database_url):
    db = Database(database_url)
    yield db
    db.dispose()


def insert(db, statement, *rows, **values):
    db.write(
        lambda session: session.run_many(
            statement, rows or [values | {'created_at': session.now}]
        )
    )


def days_ago(db, number):
    return db.utcnow() - datetime.timedelta(days=number)


def test_the_oldest_moves_are_deleted_first(db):
    insert(
        db,
        sa.insert(JOURNAL),
        *(
            {
                'resource': 'share_instance',
                'resource_id': f'{age}',
                'event': 'created',
                'made_at': days_ago(db, age),
            }
            for age in (3, 5, 2, 4, 1)
        ),
    )
    found = [
        db.write(retention.delete_until, retention.MOVES, days_ago(db, 1.5), 3)
        for _ in range(3)
    ]
    assert found == [3, 1, 0]
    assert (
        db.read(lambda session: session.value(sa.select(JOURNAL.c.resource_id))) == '1'
    )


def add_move(db):
    insert(
        db,
        sa.insert(JOURNAL),
        {
            'resource': 'share_instance',
            'resource_id': 'i',
            'event': 'created',
            'made_at': days_ago(db, 9),
            'is_sent': True,
        },
    )
    return db.read(lambda session: session.value(sa.select(sa.func.max(JOURNAL.c.id))))


def delete_moves(db):
    return db.write(retention.delete_until, retention.MOVES, days_ago(db, 1))


def delete_sent_moves(db):
    return db.write(retention.delete_sent_moves, days_ago(db, 1))


@pytest.mark.parametrize('delete', [delete_moves, delete_sent_moves])
def test_no_move_gets_the_id_of_a_deleted_one(db, delete):
    """It would be taken for one that has been sent."""
    insert(db, sa.insert(TASK), {'name': 'events', 'position': 0, 'due_at': 0.0})
    known = [add_move(db) for _ in range(2)]
    assert delete(db) == 1
    assert add_move(db) > max(known)


def test_running_server_migrations_are_kept(db):
    insert(
        db,
        sa.insert(MIGRATION),
        *(
            {
                'id': id,
                'source_server_id': id,
                'source_host': 'a@b',
                'destination_host': 'c@d',
                'phase': 1,
                'created_at': days_ago(db, 9),
                'ended_at': ended_at,
                **MIGRATION_FLAGS,
            }
            for id, ended_at in (
                ('running', None),
                ('old', days_ago(db, 8)),
                ('new', days_ago(db, 1)),
            )
        ),
    )
    assert (
        db.write(retention.delete_until, retention.SERVER_MIGRATIONS, days_ago(db, 2))
        == 1
    )
    assert set(db.read(lambda session: session.rows(sa.select(MIGRATION.c.id)))) == {
        ('running',),
        ('new',),
    }


# Dead services

HOST, POOL = 'node@backend', 'node@backend#pool'


@pytest.fixture
def service(db):
    """A share service that was last heard of two days ago, with a pool."""
    insert(db, sa.insert(services.AvailabilityZone), id='zone', name='zone')
    insert(
        db,
        sa.insert(SERVICE),
        host=HOST,
        binary='manila-share',
        topic='manila-share',
        availability_zone_id='zone',
        incarnation='dead',
        heartbeat_at=db.clock() - 2 * DAY,
        disabled=False,
        ensuring=False,
    )
    db.write(pools.save_report, HOST, [pools.PoolReport(POOL, {}, 1.0, 1.0)], {})


def remaining(db):
    return [
        db.read(
            lambda session, one=one: session.value(
                sa.select(sa.func.count()).select_from(one)
            )
        )
        for one in (services.Service, services.Pool)
    ]


def add_share(db):
    db.write(insert_instance, db.write(insert_share), host=POOL)


def add_server(db):
    insert(
        db,
        sa.insert(share_servers.ShareServer),
        id='server',
        host=HOST,
        status='active',
        is_auto_deletable=True,
        security_service_update_support=False,
        network_allocation_update_support=False,
        share_replicas_migration_support=False,
    )


def add_work(db):
    db.write(
        table.submit,
        {},
        kind='provisioning.delete_share_instance',
        topic='manila-share',
        queue=HOST,
        resource='share_instance',
        resource_id='instance',
        args={},
    )


def disable(db):
    db.write(lambda session: session.run(sa.update(SERVICE).values(disabled=True)))


@pytest.mark.facts('LP1990839.2')
def test_dead_service_is_deleted_with_its_pools(db, service):
    assert db.write(retention.delete_dead_services, 3 * DAY) == 0
    assert remaining(db) == [1, 1]
    assert db.write(retention.delete_dead_services, DAY) == 1
    assert remaining(db) == [0, 0]


@pytest.mark.parametrize('add', [add_share, add_server, add_work, disable])
def test_service_that_is_still_needed_is_kept(db, service, add):
    add(db)
    assert db.write(retention.delete_dead_services, DAY) == 0
    assert remaining(db) == [1, 1]


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_service_that_comes_back_during_the_purge_is_kept(db, service):
    """It was found dead, and reports before it is deleted."""
    other = Database(db.url)
    back = sa.update(SERVICE).values(heartbeat_at=db.clock())
    reported = []

    def report_first(connection, cursor, statement, *more):
        if statement.startswith('DELETE FROM services'):
            reported.append(other.write(lambda session: session.run(back)))

    sa.event.listen(db.engine, 'before_cursor_execute', report_first)
    assert db.write(retention.delete_dead_services, DAY) == 0
    sa.event.remove(db.engine, 'before_cursor_execute', report_first)
    other.dispose()
    assert reported == [1]
    assert remaining(db) == [1, 1]
