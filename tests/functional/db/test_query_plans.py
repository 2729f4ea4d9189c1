"""Pages of long lists are read from an index, on every database.

With a short table a plan that sorts or scans is just as fast, so that no
other test would notice it.
"""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.api import paging
from manila_lite.db.models import shares
from manila_lite.db.models import types
from manila_lite.db.queries.shares import views as share_views
from tests.functional.db.query_plans import plans
from tests.support.rows import SHARE_FLAGS

PROJECTS, SHARES_OF_EACH = 40, 150
LIMIT = 50
TABLES = ('shares', 'share_instances', 'share_metadata')

ONE_PROJECT = 'ix_shares_project_id_created_at_id'
ALL_TENANTS = 'ix_shares_created_at_id'

# What no plan of the page itself may contain.
SLOW = {
    'sqlite': ('TEMP B-TREE', 'SCAN share_instances', 'AUTOMATIC'),
    'mysql': ('filesort', 'temporary', 'MATERIALIZED', ' ALL '),
    'postgresql': ('Sort', 'Seq Scan', 'Hash'),
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
    session.run(
        sa.insert(types.ShareType.__table__),
        id='type',
        name='type',
        is_public=True,
        created_at=session.now,
    )
    numbers = range(PROJECTS * SHARES_OF_EACH)
    session.run_many(
        sa.insert(shares.Share.__table__),
        [
            {
                'id': f'{number:036}',
                'project_id': f'project {number % PROJECTS}',
                'size': 1,
                'share_proto': 'NFS',
                'display_description': 'd' * 200,
                'created_at': session.now + datetime.timedelta(seconds=number),
                **SHARE_FLAGS,
            }
            for number in numbers
        ],
    )
    session.run_many(
        sa.insert(shares.ShareInstance.__table__),
        [
            {
                'id': f'{number:036}',
                'share_id': f'{number:036}',
                'status': 'available',
                'host': 'h@b#p',
                'share_type_id': 'type',
                'access_rules_status': 'active',
                'cast_rules_to_readonly': False,
                'created_at': session.now,
            }
            for number in numbers
        ],
    )
    session.run_many(
        sa.insert(shares.ShareMetadata.__table__),
        [
            {'share_id': f'{number:036}', 'key': 'key', 'value': 'value'}
            for number in numbers
        ],
    )


def wanted(include_hidden, project_id=None):
    return share_views.ShareFilter(
        project_id=project_id,
        include_hidden=include_hidden,
        share={'is_soft_deleted': False},
    )


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
    (plan,) = plans(
        db,
        share_views.list_summaries,
        wanted,
        paging.parse({'limit': str(LIMIT)}),
    )
    assert index in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan


@LISTS
def test_details_are_read_for_the_page_only(db, wanted, index):
    found = plans(
        db,
        share_views.list_details,
        wanted,
        paging.parse({'limit': str(LIMIT)}),
        exports=share_views.Exports.NONE,
    )
    assert len(found) == 2  # the shares, their metadata
    for plan in found:
        assert index in plan
        assert not [
            word for word in SLOW_AROUND[db.dialect] if word in plan
        ], plan
