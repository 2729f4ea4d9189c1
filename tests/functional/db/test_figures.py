"""What metrics read of the database, at many rows and on every database."""

import collections
import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.models import engine, quotas, shares
from manila_lite.db.models.base import NEVER
from manila_lite.db.queries.recovery import figures
from manila_lite.db.queries.services import services
from manila_lite.db.session import Database
from manila_lite.states import share_replica
from tests.functional.db import query_plans
from tests.support import databases, mass_rows
from tests.unit.states.test_states import MACHINES

SIZES = mass_rows.Sizes(
    shares=20_000,
    rules_of_share=2,
    snapshots=10_000,
    journal=20_000,
    messages=100,
    services=40,
    pools=80,
    projects=100,
    networks=5000,
    servers=4000,
    migrations=100,
    decisions=100,
    waiting=100,
)
SHORT = {'services', 'pools', 'work'}
"""Tables that are short in every deployment, or of which most rows are
counted, so that a scan that ends at the limit may be the best plan."""

WORK = engine.Work.__table__
INSTANCE = shares.ShareInstance.__table__
USAGE = quotas.QuotaUsage.__table__
AN_HOUR = datetime.timedelta(hours=1)


@pytest.fixture(scope='module', params=databases.KINDS)
def db(request, tmp_path_factory):
    with databases.temporary_database(
        request.param, tmp_path_factory.mktemp('database')
    ) as url:
        databases.create_tables(url)
        db = Database(url)
        mass_rows.insert(db, SIZES)
        db.write(move_some)
        mass_rows.analyze(db)
        yield db
        db.dispose()


def move_some(session):
    """Put 30 instances in flight, an hour ago, and 7 in error.

    One row of work runs, two are abandoned, three can start, and the others
    wait for their next try.
    """
    now = session.value(sa.select(db_now()))
    ids = [row.id for row in session.rows(sa.select(WORK.c.id).order_by(WORK.c.id))]
    for chosen, values in (
        (ids, {'state': 'queued', 'next_try_at': now + 900}),
        (ids[:1], {'state': 'running', 'lease_until': now + 900}),
        (ids[1:3], {'state': 'running', 'lease_until': now - 900}),
        (ids[3:6], {'next_try_at': now - 1}),
    ):
        session.run(sa.update(WORK).where(WORK.c.id.in_(chosen)).values(**values))
    ids = [
        row.id
        for row in session.rows(
            sa.select(INSTANCE.c.id)
            .where(INSTANCE.c.status == 'available')
            .order_by(INSTANCE.c.id)
            .limit(37)
        )
    ]
    for status, chosen in (('extending', ids[:30]), ('error', ids[30:])):
        session.run(
            sa.update(INSTANCE).where(INSTANCE.c.id.in_(chosen)).values(status=status)
        )
    replicas = session.rows(
        sa.select(INSTANCE.c.id)
        .where(INSTANCE.c.service_host == SIZES.service_host(0))
        .order_by(INSTANCE.c.id)
        .limit(9)
    )
    for hours, row in enumerate(replicas):
        session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id == row.id)
            .values(synced_at=session.now - (hours + 1) * AN_HOUR)
        )
    session.run_many(
        sa.insert(figures.JOURNAL),
        [
            {
                'resource': 'share_instance',
                'resource_id': id,
                'event': 'extend',
                'from_status': 'available',
                'to_status': 'extending',
                'made_at': session.now - AN_HOUR,
            }
            for id in ids
        ],
    )
    for scope, scope_id in (('project', ''), ('user', 'alice')):
        session.run(
            sa.insert(USAGE),
            project_id='watched',
            scope=scope,
            scope_id=scope_id,
            resource='gigabytes',
            in_use=8,
            reserved=1,
            hard_limit=10,
        )


def test_rows_that_are_not_at_rest_are_counted_with_the_age_of_the_first(db):
    found = db.read(figures.read, [])
    rows = {(row.resource, row.status): row for row in found.statuses}
    extending = rows['share_instance', 'extending']
    assert extending.number == 30
    assert found.now - extending.since >= AN_HOUR
    assert rows['share_instance', 'error'].number == 7
    assert ('share_instance', 'available') not in rows


def test_work_is_counted_by_kind_and_state(db):
    found = db.read(figures.read, [])
    numbers = collections.Counter()
    for row in found.work:
        numbers[row.state] += row.number
    assert numbers == {
        'running': 1,
        'abandoned': 2,
        'queued': 3,
        'delayed': SIZES.waiting - 6,
    }
    assert all(row.since <= found.now for row in found.work)


def test_counts_end_at_their_limits(db):
    found = db.read(figures.read, [], most_rows=3, most_work=5)
    in_error = {
        row.status: row.number
        for row in found.statuses
        if row.resource == 'share_instance'
    }
    assert in_error == {'extending': 3, 'error': 3}
    waiting = [row.number for row in found.work if row.state in ('queued', 'delayed')]
    assert sum(waiting) == 5


def test_services_have_their_pools(db):
    rows = db.read(figures.read, []).services
    assert len({row.host for row in rows}) == SIZES.services
    assert len({row.pool for row in rows if row.pool}) == SIZES.pools
    assert all(services.is_up(row, 10**10) for row in rows)


def test_back_end_has_the_time_of_its_oldest_sync(db):
    found = db.read(figures.read, [])
    times = {row.host: row.oldest_sync_at for row in found.services}
    age = found.now - times.pop(SIZES.service_host(0))
    assert 9 * AN_HOUR <= age < 10 * AN_HOUR
    assert set(times.values()) <= {None, NEVER}


def test_quota_is_that_of_the_project_and_not_of_its_users(db):
    (row,) = db.read(figures.read, ['watched', 'unknown']).quotas
    assert (row.in_use, row.reserved, row.hard_limit) == (8, 1, 10)


def test_scrape_reads_few_rows_of_long_tables_in_four_statements(db):
    with query_plans.recorded_statements() as statements:
        db.read(figures.read, ['watched'])
    assert len(statements) == 4
    scanned = query_plans.explain_scans(db, statements)
    long = scanned.keys() - SHORT
    assert not long, '\n\n'.join(scanned[table] for table in sorted(long))


def test_every_state_machine_is_counted():
    assert set(figures.HEALTHY) == {
        machine for machine in MACHINES.values() if machine.in_flight
    } | {share_replica.SHARE_REPLICA}
