"""Rows of shares that quota counts, and reads of usage rows."""

import orjson
import sqlalchemy as sa

from manila_lite.db.models import engine, shares, snapshots
from manila_lite.db.queries.quotas import quotas
from manila_lite.quota import charges, recount, sets
from tests.support import rows

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
        rows.insert_type(session, id)


def add_share(
    session, owner, size, *, replicas=0, status='available', soft_deleted=False
):
    """Insert the rows of a share without charging; return its id."""
    share_id = rows.insert_share(
        session,
        project_id=owner.project_id,
        user_id=owner.user_id,
        size=size,
        replication_type='dr' if replicas else None,
        is_soft_deleted=soft_deleted,
    )
    for _ in range(replicas or 1):
        rows.insert_instance(
            session, share_id, status=status, share_type_id=owner.share_type_id
        )
    return share_id


def add_snapshot(session, owner, share_id, size, status):
    """Insert the rows of a snapshot without charging; return its id."""
    (instance_id,) = session.rows(
        sa.select(INSTANCE.c.id).where(INSTANCE.c.share_id == share_id)
    )[0]
    id, created = session.new_id(), {'created_at': session.now}
    session.run(
        sa.insert(snapshots.Snapshot.__table__),
        id=id,
        project_id=owner.project_id,
        user_id=owner.user_id,
        share_id=share_id,
        size=size,
        share_size=size,
        share_proto='NFS',
        **created,
    )
    session.run(
        sa.insert(snapshots.SnapshotInstance.__table__),
        id=session.new_id(),
        snapshot_id=id,
        share_instance_id=instance_id,
        status=status,
        **created,
    )
    return id


def add_work(session, reservations, id=None):
    """Insert queued work that owns reservations."""
    id = id or session.new_id()
    session.run(
        sa.insert(engine.Work.__table__),
        id=id,
        kind='extend',
        queue='',
        topic='',
        resource='',
        resource_id=id,
        args='{}',
        context='{}',
        charges=orjson.dumps(reservations).decode(),
        state='queued',
        attempt=0,
        fence=0,
        asked=1,
        next_try_at=0,
        created_at=session.now,
    )


def create_share(session, owner, size):
    """Charge for a share and insert it; return its id."""
    charges.charge(
        session, owner, {'shares': 1, 'gigabytes': size}, limits=DEFAULTS, size=size
    )
    return add_share(session, owner, size)


def usage(db, resource, project_id='blue', **scope):
    """Return (in use, reserved) of a scope from its usage row."""
    found = db.read(sets.show_usage, DEFAULTS, sets.scope_of(project_id, **scope))
    return found[resource][1:]


def effective_limit(db, resource, project_id='blue', **scope):
    """Return the effective limit, or None without a usage row."""
    usages = db.read(quotas.list_usages, sets.scope_of(project_id, **scope))
    return {row.resource: row.hard_limit for row in usages}.get(resource)


def differences(db):
    return db.read(recount.differences)
