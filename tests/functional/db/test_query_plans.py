"""Pages of long lists are read from an index, on every database.

With a short table a plan that sorts or scans is just as fast, so that no
other test would notice it.
"""

import re

import pytest

from manila_lite.api import paging
from manila_lite.db.queries.shares import instance_views, views as share_views
from tests.functional.db.query_plans import plans
from tests.support import bulk_shares
from tests.support.rows import insert_type

PROJECTS, SHARES_OF_EACH, PUBLIC_EVERY = 40, 250, 30
LIMIT = 20
DEEP = 125  # shares of a project that precede a later page
TABLES = ('shares', 'share_instances', 'share_metadata')

ONE_PROJECT = 'ix_shares_project_id_created_at_id'
ALL_TENANTS = 'ix_shares_created_at_id'
PUBLIC = 'ix_shares_is_public_created_at'
INSTANCES = 'ix_share_instances_created_at_id'

# What no plan of the page itself may contain.
SLOW = {
    'sqlite': ('TEMP B-TREE', 'SCAN share_instances', 'AUTOMATIC'),
    'mysql': ('filesort', 'temporary', 'MATERIALIZED', ' ALL '),
    'postgresql': ('Sort', 'Seq Scan', 'Hash'),
}
# A part of a condition that an index is entered with.
ENTERS_INDEX = {
    'sqlite': re.compile(r'SEARCH shares USING .*created_at[<>]'),
    'mysql': re.compile(r'shares range'),
    'postgresql': re.compile(r'Index Cond: .*created_at [<>]='),
}
# A union sorts the rows of two short pages.
SLOW_IN_UNION = {
    'sqlite': ('SCAN shares', 'SCAN share_instances', 'AUTOMATIC'),
    'mysql': ('share_instances ALL', 'shares ALL', 'MATERIALIZED'),
    'postgresql': ('Seq Scan', 'Hash'),
}
# Nor those of the statements around it, which may sort the page. With few
# rows, as here, a full scan is the best plan of PostgreSQL.
SLOW_AROUND = {
    'sqlite': ('SCAN share_', 'AUTOMATIC'),
    'mysql': (
        'MATERIALIZED',
        'shares ALL',
        'share_instances ALL',
        'share_metadata ALL',
    ),
    'postgresql': (),
}


def fill(session):
    insert_type(session, 'type')
    bulk_shares.insert_shares(
        session,
        PROJECTS * SHARES_OF_EACH,
        type_id='type',
        projects=PROJECTS,
        public_every=PUBLIC_EVERY,
    )


def wanted(include_hidden, project_id=None, **criteria):
    return share_views.ShareFilter(
        project_id=project_id,
        include_hidden=include_hidden,
        share={'is_soft_deleted': False},
        **criteria,
    )


def first_page():
    return paging.parse({'limit': str(LIMIT)})


def later_page(db):
    """Return the page behind the DEEP newest shares of a project."""
    number = PROJECTS * (SHARES_OF_EACH - DEEP) + 1
    row = db.read(
        share_views.get, bulk_shares.share_id(number), exports=share_views.Exports.NONE
    ).rows[0]
    return paging.parse(
        {
            'limit': str(LIMIT),
            'offset': str(DEEP),
            paging.LINKED_ROW: f'{DEEP},{row.created_at},{row.id}',
        }
    )


def marked_page(db):
    """Return the same page by the id of the share that it follows."""
    return paging.parse({'limit': str(LIMIT), 'marker': later_page(db).after.id})


LATER = pytest.mark.parametrize('page_of', [later_page, marked_page])
LISTS = pytest.mark.parametrize(
    'wanted, index',
    [
        (wanted(True, 'project 1'), ONE_PROJECT),
        (wanted(False, 'project 1'), ONE_PROJECT),
        (wanted(True), ALL_TENANTS),
        (wanted(False), ALL_TENANTS),
    ],
    ids=[
        'of a project, all',
        'of a project, as a member sees them',
        'of all tenants, all',
        'of all tenants, without hidden ones',
    ],
)


@LISTS
def test_page_is_read_in_the_order_of_an_index(db, wanted, index):
    (plan,) = plans(db, share_views.list_page, wanted, first_page())
    assert index in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan


@LISTS
@LATER
@pytest.mark.parametrize('sort_dir', ['desc', 'asc'])
def test_later_page_begins_at_its_row_in_the_index(
    db, wanted, index, page_of, sort_dir
):
    page = page_of(db)._replace(sort_dir=sort_dir)
    (plan,) = plans(db, share_views.list_page, wanted, page)
    assert index in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan
    assert ENTERS_INDEX[db.dialect].search(plan), plan


@pytest.mark.parametrize('page_of', [lambda db: first_page(), later_page, marked_page])
def test_page_of_instances_is_read_in_the_order_of_an_index(db, page_of):
    page = page_of(db)
    rows, paths = plans(
        db,
        instance_views.list_instances,
        instance_views.ShareInstanceFilter(),
        page,
        exports=True,
    )
    assert INSTANCES in rows
    assert INSTANCES in paths
    # An outer join with the few zones may hash them.
    slow = {*SLOW[db.dialect]} - {'Seq Scan', 'Hash', 'SCAN share_instances'}
    assert not [word for word in slow if word in rows], rows


@pytest.mark.parametrize('include_hidden', [True, False])
@pytest.mark.parametrize('page_of', [lambda db: first_page(), later_page, marked_page])
def test_public_shares_are_read_from_two_indexes(db, include_hidden, page_of):
    filters = wanted(include_hidden, 'project 1', include_public=True)
    (plan,) = plans(db, share_views.list_page, filters, page_of(db))
    assert ONE_PROJECT in plan, plan
    assert PUBLIC in plan, plan
    found = [word for word in SLOW_IN_UNION[db.dialect] if word in plan]
    assert not found, plan


@LISTS
def test_details_are_read_for_the_page_only(db, wanted, index):
    found = plans(
        db,
        share_views.list_page,
        wanted,
        first_page(),
        exports=share_views.Exports.NONE,
    )
    assert len(found) == 2  # the shares, their metadata
    for plan in found:
        assert index in plan
        assert not [word for word in SLOW_AROUND[db.dialect] if word in plan], plan
