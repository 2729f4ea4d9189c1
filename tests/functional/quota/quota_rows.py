"""Rows of shares that quota counts, and reads of usage rows."""

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.models import types
from manila_lite.db.queries.admin import quotas
from manila_lite.quota import charges
from manila_lite.quota import recount
from manila_lite.quota import sets

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__

DEFAULTS = {
    'shares': 5,
    'gigabytes': 100,
    'snapshots': 5,
    'snapshot_gigabytes': 100,
    'share_networks': 2,
    'share_groups': 2,
    'share_group_snapshots': 2,
    'share_replicas': 5,
    'replica_gigabytes': 100,
    'per_share_gigabytes': -1,
    'backups': 2,
    'backup_gigabytes': 100,
    'encryption_keys': 3,
}
GOLD = 'a0000000-0000-4000-8000-000000000001'
SILVER = 'a0000000-0000-4000-8000-000000000002'
ALICE = charges.Owner('blue', 'alice', GOLD)


def add_types(session):
    for id in (GOLD, SILVER):
        session.run(
            sa.insert(types.ShareType.__table__),
            id=id,
            name=id,
            is_public=True,
            created_at=session.now,
        )


def add_share(
    session, owner, size, *, replicas=0, status='available', soft_deleted=False
):
    """Insert the rows of a share without charging; return its id."""
    share_id = session.new_id()
    capabilities = [
        column.name for column in SHARE.c if column.name.endswith('_support')
    ]
    session.run(
        sa.insert(SHARE),
        id=share_id,
        project_id=owner.project_id,
        user_id=owner.user_id,
        size=size,
        share_proto='NFS',
        replication_type='dr' if replicas else None,
        is_public=False,
        is_soft_deleted=soft_deleted,
        created_at=session.now,
        **dict.fromkeys(capabilities, False),
    )
    for _ in range(replicas or 1):
        session.run(
            sa.insert(INSTANCE),
            id=session.new_id(),
            share_id=share_id,
            status=status,
            share_type_id=owner.share_type_id,
            cast_rules_to_readonly=False,
            created_at=session.now,
        )
    return share_id


def remove_share(session, share_id):
    session.run(sa.delete(INSTANCE).where(INSTANCE.c.share_id == share_id))
    session.run(sa.delete(SHARE).where(SHARE.c.id == share_id))


def create_share(session, owner, size):
    """Charge for a share and insert it; return its id."""
    charges.charge(
        session,
        owner,
        {'shares': 1, 'gigabytes': size},
        limits=DEFAULTS,
        size=size,
    )
    return add_share(session, owner, size)


def usage(db, resource, project_id='blue', **scope):
    """Return (in use, reserved) of a scope from its usage row."""
    found = db.read(
        sets.show_usage, DEFAULTS, sets.scope_of(project_id, **scope)
    )
    return found[resource][1:]


def effective_limit(db, resource, project_id='blue', **scope):
    """Return the effective limit, or None without a usage row."""
    rows = db.read(quotas.list_usages, sets.scope_of(project_id, **scope))
    return {row.resource: row.hard_limit for row in rows}.get(resource)


def differences(db):
    return db.read(recount.differences)
