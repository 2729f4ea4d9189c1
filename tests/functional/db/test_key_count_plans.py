"""The count of the uses of encryption keys, at many shares.

The look for keys that are wrong reads each table once; the correction of
some of them reads the shares of their project only.
"""

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.queries.quotas.quotas import Owner
from manila_lite.db.queries.shares import encryption_keys
from tests.functional.db import query_plans
from tests.support import bulk_shares
from tests.support.rows import insert_type

SHARES, PROJECTS = 10_000, 500
TABLES = ('shares', 'share_instances', 'encryption_keys')
INSTANCE = shares.ShareInstance.__table__


def fill(session):
    """Let half of all shares have keys of their own, half of them counted."""
    insert_type(session, 'type')
    bulk_shares.insert_shares(session, SHARES, type_id='type', projects=PROJECTS)
    with_key = range(0, SHARES, 2)
    session.run_many(
        sa.update(INSTANCE)
        .where(INSTANCE.c.id == sa.bindparam('of_instance'))
        .values(encryption_key_ref=INSTANCE.c.id),
        [{'of_instance': bulk_shares.share_id(number)} for number in with_key],
    )
    for number in with_key[::2]:
        encryption_keys.add_uses(
            session,
            Owner(f'project {number % PROJECTS}', 'user', 'type'),
            bulk_shares.share_id(number),
        )


def test_wrong_keys_are_found_by_one_pass_over_the_shares(db):
    with query_plans.recorded_statements() as statements:
        assert db.read(encryption_keys.count_wrong) == SHARES // 4
        assert len(db.read(encryption_keys.list_wrong, 100)) == 100
    assert len(statements) == 2
    for statement, parameters in statements:
        plan, steps = query_plans.explain(db, statement, parameters)
        # No row of one count is compared with all of the other.
        assert 'BNL' not in plan, plan
        assert 'Nested Loop' not in plan, plan
        assert steps < SHARES * query_plans.STEPS_OF_ROW, plan


def test_correction_reads_the_shares_of_its_project_only(db):
    def read(session):
        keys = [bulk_shares.share_id(number) for number in (0, 2, 4)]
        encryption_keys.lock(session, 'project 0', keys)
        encryption_keys.list_users(session, 'project 0', keys)

    assert query_plans.scanned_tables(db, read) == {}
