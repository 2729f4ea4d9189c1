"""The replicas of a back end are found by an index, on every database."""

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.queries.replicas import updates
from tests.functional.db import test_snapshot_plans
from tests.functional.db.query_plans import plans
from tests.functional.db.test_snapshot_plans import SHARES, TABLES, id_of
from tests.support import bulk_replicas

__all__ = ['TABLES']

REPLICAS, PLAIN = 40, 4000

PASSIVE = 'ix_share_instances_service_host_replica_state_id'
# A scan of all instances, under whatever name.
SLOW = {
    'sqlite': ('SCAN share_instances',),
    'mysql': ('share_instances ALL',),
    'postgresql': ('Seq Scan on share_instances',),
}


def fill(session):
    """Insert many shares without replicas on the back end, and some with."""
    test_snapshot_plans.fill(session)
    session.run_many(
        sa.insert(shares.ShareInstance.__table__),
        [
            {
                'id': f'more-{number:031}',
                'share_id': id_of(number % SHARES),
                'host': 'h@b#p',
                'status': 'available',
                'share_type_id': 'type',
                'access_rules_status': 'active',
                'cast_rules_to_readonly': False,
                'created_at': session.now,
            }
            for number in range(PLAIN)
        ],
    )
    bulk_replicas.insert_replicated_shares(
        session, REPLICAS, type_id='type', active_on='h@a#p', passive_on='h@b#p'
    )


def test_replicas_to_be_updated_are_found_by_an_index(db):
    (plan,) = plans(db, updates.list_page, 'h@b', '', 1000)
    assert PASSIVE in plan
    assert not [word for word in SLOW[db.dialect] if word in plan], plan
    assert len(db.read(updates.list_page, 'h@b', '', 1000)) == REPLICAS


def test_pages_follow_each_other_in_order(db):
    whole = [row.id for row in db.read(updates.list_page, 'h@b', '', 1000)]
    assert whole == sorted(whole)
    found, after = [], ''
    while page := db.read(updates.list_page, 'h@b', after, 7):
        found += [row.id for row in page]
        after = found[-1]
    assert found == whole
    assert db.read(updates.list_page, 'h@c', '', 7) == []
