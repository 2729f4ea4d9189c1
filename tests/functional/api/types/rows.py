"""Rows that other parts of the service would write."""

import sqlalchemy as sa

from manila_lite.db.models import quotas
from tests.support import rows

LIMIT = quotas.ProjectShareTypeQuota.__table__
USAGE = quotas.QuotaUsage.__table__


def insert_share(session, type_id, project):
    """Insert a share of the type; return its id."""
    share_id = rows.insert_share(session, project_id=project)
    rows.insert_instance(session, share_id, share_type_id=type_id)
    return share_id


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
