"""Rows that other parts of the service would write."""

import sqlalchemy as sa

from manila_lite.db.models import quotas
from manila_lite.db.models import shares

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
LIMIT = quotas.ProjectShareTypeQuota.__table__
USAGE = quotas.QuotaUsage.__table__


def insert_share(session, type_id, project):
    """Insert a share of the type; return its id."""
    share_id = session.new_id()
    session.run(
        sa.insert(SHARE),
        id=share_id,
        project_id=project,
        size=1,
        snapshot_support=False,
        create_share_from_snapshot_support=False,
        revert_to_snapshot_support=False,
        mount_snapshot_support=False,
        snapshot_inherit_share_access_support=False,
        share_proto='NFS',
        is_public=False,
        is_soft_deleted=False,
        created_at=session.now,
    )
    session.run(
        sa.insert(INSTANCE),
        id=session.new_id(),
        share_id=share_id,
        status='available',
        share_type_id=type_id,
        cast_rules_to_readonly=False,
        created_at=session.now,
    )
    return share_id


def delete_share(session, share_id):
    session.run(sa.delete(INSTANCE).where(INSTANCE.c.share_id == share_id))
    session.run(sa.delete(SHARE).where(SHARE.c.id == share_id))


def insert_quota(session, type_id, project):
    """Insert a limit of the type in the project, and its usage."""
    session.run(
        sa.insert(LIMIT),
        project_id=project,
        resource='shares',
        share_type_id=type_id,
        hard_limit=5,
    )
    for scope, scope_id in (('share_type', type_id), ('project', '')):
        session.run(
            sa.insert(USAGE),
            project_id=project,
            scope=scope,
            scope_id=scope_id,
            resource='shares',
            in_use=0,
            reserved=0,
            hard_limit=5,
        )


def count(session, table):
    return session.value(sa.select(sa.func.count()).select_from(table))
