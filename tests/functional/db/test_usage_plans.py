"""A recount of one project reads its rows only, on every database."""

import sqlalchemy as sa

from manila_lite.db.models import snapshots
from manila_lite.quota import recount
from manila_lite.quota.recount import Usage
from tests.functional.db.query_plans import plans
from tests.support import bulk_shares
from tests.support.rows import insert_type

SHARES, PROJECTS = 10_000, 2_000
OF_EACH = SHARES // PROJECTS
TABLES = ('shares', 'share_instances', 'share_snapshots', 'quota_usages')

# A scan of the rows of all projects, in a table or an index.
SLOW = {
    'sqlite': ('SCAN share',),
    'mysql': (
        'shares ALL',
        'shares index',
        'shares_1 ALL',
        'shares_1 index',
        'share_instances ALL',
        'share_instances index',
        'share_snapshots ALL',
        'share_snapshots index',
    ),
    'postgresql': ('Seq Scan on share',),
}


def fill(session):
    insert_type(session, 'type')
    bulk_shares.insert_shares(session, SHARES, type_id='type', projects=PROJECTS)
    session.run_many(
        sa.insert(snapshots.Snapshot.__table__),
        [
            {
                'id': bulk_shares.share_id(number),
                'share_id': bulk_shares.share_id(number),
                'project_id': f'project {number % PROJECTS}',
                'size': 1,
                'share_size': 1,
                'share_proto': 'NFS',
                'created_at': session.now,
            }
            for number in range(SHARES)
        ],
    )


def test_recount_of_a_project_reads_its_rows_only(db):
    found = plans(db, recount.recount, 'project 1')
    # Of shares, snapshots, networks, groups, their snapshots, encryption
    # keys, backups, changes of types by shares and by snapshots, and work.
    assert len(found) == 10
    for plan in found[:2]:
        assert 'project_id_created_at_id' in plan
        assert not [word for word in SLOW[db.dialect] if word in plan], plan


def test_recount_of_a_project_counts_its_rows(db):
    counted = db.read(recount.recount, 'project 1')
    assert {key.project_id for key in counted} == {'project 1'}
    assert {
        key.resource: usage for key, usage in counted.items() if key.scope == 'project'
    } == {
        resource: Usage(in_use=OF_EACH)
        for resource in ('shares', 'gigabytes', 'snapshots', 'snapshot_gigabytes')
    }
