"""The displayed instance of a share with several, on every database."""

import datetime
import itertools
import random

import pytest
import sqlalchemy as sa

from manila_lite.api import paging
from manila_lite.db.queries.shares import (
    instance_views,
    shares as share_rows,
    views as share_views,
)
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import sampling
from tests.support.rows import INSTANCE, SHARE, insert_instance, insert_share

pytestmark = sampling.dialects

METADATA = share_rows.METADATA


STATES = ('active', 'in_sync', 'out_of_sync', 'error')
RANDOM = 60


def add(session, instances, replication_type='writable'):
    """Insert a share with instances of (status, state), oldest first."""
    share_id = insert_share(
        session, project_id=session.new_id(), replication_type=replication_type
    )
    for number, (status, state) in enumerate(instances):
        insert_instance(
            session,
            share_id,
            status=status,
            replica_state=state,
            host=f'h@b#{number}',
            access_rules_status='active',
            created_at=session.now + datetime.timedelta(seconds=number),
        )
    return share_id


def shown(db, share_id):
    """Return the displayed status and host of a share."""
    found = db.read(share_views.get, share_id, exports=share_views.Exports.NONE)
    (row,) = found.rows
    return row.status, row.host


def found(db, share_id, **columns):
    """Return whether the share is listed with these filters."""
    project_id = db.read(share_rows.get_target, share_id).project_id
    listed = db.read(
        share_views.list_page,
        share_views.ShareFilter(
            project_id=project_id, include_hidden=True, instance=columns
        ),
        paging.parse({'sort_key': 'host'}, sort_keys={'host': 'host'}),
    )
    return [row.id for row in listed.rows] == [share_id]


@pytest.mark.parametrize(
    'instances, speaks',
    [
        ([('error', 'active'), ('available', 'in_sync')], 0),
        ([('available', 'in_sync'), ('extending', 'active')], 1),
        ([('extending', 'active'), ('available', 'in_sync')], 0),
        ([('error', 'active'), ('replication_change', 'in_sync')], 1),
        ([('available', 'active'), ('replication_change', 'error')], 1),
        ([('replication_change', 'in_sync'), ('reverting', 'active')], 1),
        ([('creating', 'out_of_sync'), ('available', 'active')], 1),
        ([('error', 'active'), ('available', 'active')], 1),
        ([('deleting', 'active'), ('extending_error', 'active')], 1),
        ([('migrating_to', None), ('migrating', None)], 1),
        ([('error', 'error'), ('available', 'out_of_sync')], 1),
    ],
)
def test_one_instance_is_displayed_for_the_share(db, instances, speaks):
    share_id = db.write(add, instances)
    assert shown(db, share_id) == (instances[speaks][0], f'h@b#{speaks}')
    assert found(db, share_id, status=instances[speaks][0])
    assert found(db, share_id, host=f'h@b#{speaks}')
    assert not found(db, share_id, host=f'h@b#{1 - speaks}')


@pytest.mark.parametrize('replicas', [1, 3])
@pytest.mark.parametrize('metadata', [{}, {'color': 'red', 'shape': 'round'}])
def test_metadata_of_a_share_is_shown_once(db, replicas, metadata):
    share_id = db.write(add, [('available', 'active')] * replicas)
    db.write(lambda session: METADATA.insert(session, share_id, metadata))
    found = db.read(share_views.get, share_id, exports=share_views.Exports.NONE)
    (row,) = found.rows
    assert (row.id, row.host) == (share_id, 'h@b#0')
    assert found.children['metadata'] == {share_id: metadata}
    replicated = {share_id: True} if replicas > 1 else {}
    assert found.children['replicated'] == replicated


def test_python_and_sql_choose_the_same_instance(db):
    rng = random.Random(7)
    kinds = list(itertools.product(sorted(SHARE_INSTANCE.statuses), STATES))

    def fill(session):
        return [
            add(session, [rng.choice(kinds) for _ in range(rng.randint(1, 4))])
            for _ in range(RANDOM)
        ]

    def speakers(session):
        return {
            row.id: row.speaker
            for row in session.rows(
                sa.select(
                    SHARE.c.id, instance_views.select_column('id').label('speaker')
                )
            )
        }

    ids = db.write(fill)
    in_sql = db.read(speakers)
    for share_id in ids:
        rows = db.read(
            lambda session, id=share_id: session.rows(
                sa.select(INSTANCE)
                .where(INSTANCE.c.share_id == id)
                .order_by(INSTANCE.c.created_at)
            )
        )
        best = min(rows, key=instance_views.instance_rank)
        assert in_sql[share_id] == best.id
        assert shown(db, share_id) == (best.status, best.host)
        assert db.read(share_rows.get_target, share_id).status == best.status


def test_actions_work_on_the_oldest_active_replica(db):
    share_id = db.write(
        add,
        [
            ('available', 'in_sync'),
            ('extending', 'active'),
            ('available', 'active'),
            ('replication_change', 'in_sync'),
        ],
    )
    target = db.read(share_rows.get_target, share_id)
    assert target.host == 'h@b#1'
    assert target.status == 'replication_change'


def test_share_without_instances_is_displayed(db):
    share_id = db.write(add, [])
    target = db.read(share_rows.get_target, share_id)
    assert (target.instance_id, target.status) == (None, None)
