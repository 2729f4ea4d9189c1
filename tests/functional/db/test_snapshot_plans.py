"""Pages of snapshots and the newest of a share are read from an index.

On every database, as for shares.
"""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.api import paging
from manila_lite.db.models import shares, snapshots as models
from manila_lite.db.queries.snapshots import snapshots, views as snapshot_views
from tests.functional.db.query_plans import plans
from tests.support.rows import SHARE_FLAGS, insert_type

SHARES, SNAPSHOTS_OF_EACH, PROJECTS = 60, 60, 20
LIMIT = 20

ONE_PROJECT = 'ix_share_snapshots_project_id_created_at_id'
ALL_TENANTS = 'ix_share_snapshots_created_at_id'
ONE_SHARE = 'ix_share_snapshots_share_id_created_at_id'
OF_SHARES = 'ix_shares_snapshot_id'
INSTANCES = 'ix_share_snapshot_instances_created_at_id'

# What no plan of the page itself may contain.
SLOW = {
    'sqlite': ('TEMP B-TREE', 'SCAN share_snapshot_', 'AUTOMATIC', 'SCAN shares'),
    'mysql': ('filesort', 'temporary', 'MATERIALIZED', ' ALL '),
    'postgresql': ('Sort', 'Seq Scan on share_snapshots', 'Hash'),
}
# Nor those of the statements around it, which may sort the page.
SLOW_AROUND = {
    'sqlite': ('SCAN share_snapshot_', 'SCAN share_instances', 'AUTOMATIC'),
    'mysql': (
        'MATERIALIZED',
        'share_snapshots ALL',
        'share_snapshot_instances ALL',
        'share_snapshot_metadata ALL',
    ),
    'postgresql': (),
}
TABLES = (
    'shares',
    'share_instances',
    'share_snapshots',
    'share_snapshot_instances',
    'share_snapshot_metadata',
)


def id_of(number):
    return f'{number:036}'


def fill(session):
    insert_type(session, 'type')
    session.run_many(
        sa.insert(shares.Share.__table__),
        [
            {
                'id': id_of(number),
                'project_id': f'project {number % PROJECTS}',
                'size': 1,
                'share_proto': 'NFS',
                'created_at': session.now,
                'snapshot_id': id_of(number),
                **SHARE_FLAGS,
            }
            for number in range(SHARES)
        ],
    )
    session.run_many(
        sa.insert(shares.ShareInstance.__table__),
        [
            {
                'id': id_of(number),
                'share_id': id_of(number),
                'host': 'h@b#p',
                'status': 'available',
                'share_type_id': 'type',
                'access_rules_status': 'active',
                'cast_rules_to_readonly': False,
                'created_at': session.now,
            }
            for number in range(SHARES)
        ],
    )
    numbers = range(SHARES * SNAPSHOTS_OF_EACH)
    session.run_many(
        sa.insert(models.Snapshot.__table__),
        [
            {
                'id': id_of(number),
                'share_id': id_of(number % SHARES),
                'project_id': f'project {number % SHARES % PROJECTS}',
                'size': 1,
                'share_size': 1,
                'share_proto': 'NFS',
                'display_description': 'd' * 200,
                'created_at': session.now + datetime.timedelta(seconds=number),
            }
            for number in numbers
        ],
    )
    session.run_many(
        sa.insert(models.SnapshotInstance.__table__),
        [
            {
                'id': id_of(number),
                'snapshot_id': id_of(number),
                'share_instance_id': id_of(number % SHARES),
                'status': 'available',
                'created_at': session.now + datetime.timedelta(seconds=number),
            }
            for number in numbers
        ],
    )
    session.run_many(
        sa.insert(models.SnapshotMetadata.__table__),
        [
            {'share_snapshot_id': id_of(number), 'key': 'key', 'value': 'value'}
            for number in numbers
        ],
    )


def page():
    return paging.parse({'limit': str(LIMIT)})


def later_page(db):
    """Return the page behind a quarter of the snapshots."""
    id = id_of(SHARES * SNAPSHOTS_OF_EACH * 3 // 4 + 1)
    (row,) = db.read(snapshot_views.get, id).rows
    return paging.parse(
        {
            'limit': str(LIMIT),
            'offset': '9',
            paging.LINKED_ROW: f'9,{row.created_at},{row.id}',
        }
    )


LISTS = pytest.mark.parametrize(
    'wanted, index',
    [
        (snapshot_views.SnapshotFilter('project 1'), ONE_PROJECT),
        (snapshot_views.SnapshotFilter(), ALL_TENANTS),
        (snapshot_views.SnapshotFilter(snapshot={'share_id': id_of(1)}), ONE_SHARE),
    ],
    ids=['of a project', 'of all tenants', 'of a share'],
)


@LISTS
def test_page_is_read_in_the_order_of_an_index(db, wanted, index):
    (plan,) = plans(db, snapshot_views.list_page, wanted, page())
    assert index in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan


@LISTS
def test_later_page_is_read_in_the_order_of_an_index(db, wanted, index):
    (plan,) = plans(db, snapshot_views.list_page, wanted, later_page(db))
    assert index in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan


@pytest.mark.parametrize('later', [False, True])
def test_page_of_instances_is_read_in_the_order_of_an_index(db, later):
    (plan,) = plans(
        db, snapshot_views.list_instances, None, later_page(db) if later else page()
    )
    assert INSTANCES in plan
    slow = {*SLOW[db.dialect]} - {'SCAN share_snapshot_'}
    assert not [word for word in slow if word in plan], plan


@LISTS
def test_details_are_read_for_the_page_only(db, wanted, index):
    found = plans(db, snapshot_views.list_page, wanted, page(), detailed=True)
    assert len(found) == 2  # the snapshots, their metadata
    for plan in found:
        assert index in plan
        assert not [word for word in SLOW_AROUND[db.dialect] if word in plan], plan


@pytest.mark.parametrize('used', [True, False])
def test_clones_of_a_snapshot_are_found_by_an_index(db, used):
    (plan,) = plans(
        db, snapshot_views.list_page, snapshot_views.SnapshotFilter(used=used), page()
    )
    if db.dialect != 'postgresql':  # which scans so few shares
        assert OF_SHARES in plan


def test_newest_snapshot_of_a_share_is_found_by_an_index(db):
    (plan,) = plans(db, snapshots.get_parent, id_of(1))
    assert ONE_SHARE in plan
    assert not [word for word in SLOW[db.dialect] if word in plan and word != 'Hash'], (
        plan
    )
