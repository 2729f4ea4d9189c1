"""What the overview of the page reads, at many rows and on every database."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.queries.recovery import overview
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Database
from tests.functional.db import query_plans
from tests.support import databases, mass_rows

SIZES = mass_rows.Sizes(
    shares=20_000,
    rules_of_share=1,
    snapshots=2_000,
    journal=20_000,
    messages=1000,
    services=40,
    pools=80,
    projects=100,
    networks=1000,
    servers=1000,
    migrations=100,
    decisions=100,
    waiting=100,
)
INSTANCE = shares.ShareInstance.__table__
PROJECT = 'project-1003'
SHORT = {'work', 'share_migrations', 'share_groups'}
"""Tables that are short in every deployment."""


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
    """Let 7 shares fail, all of one project."""
    ids = [f'00000002-0000-4000-8000-{10**11 + 3 + 100 * n}' for n in range(7)]
    assert (
        session.run(
            sa.update(INSTANCE).where(INSTANCE.c.id.in_(ids)).values(status='error')
        )
        == 7
    )


def counts(db, project):
    return {
        (row.resource, row.condition): row.number
        for row in db.read(overview.count, project)
    }


@pytest.mark.parametrize('project', [None, PROJECT, 'project-1004'])
def test_failed_rows_are_those_of_the_project_or_of_all(db, project):
    failed = counts(db, project).get(('share_instance', 'failed'), 0)
    assert failed == (0 if project == 'project-1004' else 7)


def test_a_count_ends_at_a_number(db):
    found = counts(db, None)
    assert found['share_instance', 'healthy'] == overview.MOST
    assert max(found.values()) <= 2 * overview.MOST


@pytest.mark.parametrize('project', [None, PROJECT])
def test_counts_are_one_statement(db, project):
    with query_plans.recorded_statements() as statements:
        counts(db, project)
    assert len(statements) == 1


@pytest.mark.parametrize('condition', overview.CONDITIONS)
@pytest.mark.parametrize('project', [None, PROJECT])
def test_rows_are_listed_in_the_order_of_their_ids(db, condition, project):
    rows = db.read(overview.list_rows, 'share_instance', condition, project, most=3)
    assert [row.id for row in rows] == sorted(row.id for row in rows)
    if len(rows) == 3:
        following = db.read(
            overview.list_rows,
            'share_instance',
            condition,
            project,
            most=3,
            after=rows[-1].id,
        )
        assert all(row.id > rows[-1].id for row in following)


@pytest.mark.parametrize('project', [None, PROJECT])
def test_servers_read_few_rows_more_than_they_count(db, project):
    if db.dialect == 'sqlite':
        pytest.skip('without statistics it reads all shares of the project')
    most = query_plans.MANY // 2
    with query_plans.recorded_statements() as statements:
        db.read(overview.count, project, most=most)
    scanned = query_plans.explain_scans(db, statements)
    long = scanned.keys() - SHORT
    assert not long, (long, scanned)


def test_running_migrations_of_shares_are_found_at_once(db):
    assert not query_plans.scanned_tables(db, migrations.list_running, most=50)
