"""The parent and the project of rows that have a state machine.

Rows such as share instances belong to the project of their share.
"""

import sqlalchemy as sa

from manila_lite.db import models
from manila_lite.db.models import base

_PARENTS = {
    'share_instances': 'share_id',
    'share_snapshot_instances': 'snapshot_id',
    'share_instance_access_map': 'access_id',
    'share_snapshot_instance_access_map': 'access_id',
    'share_servers': 'share_network_id',
    'share_group_snapshots': 'share_group_id',
    'transfers': 'resource_id',
}
"""The column with the id that users know the row by, or its parent by."""

_OWNERS = {
    'share_instances': ('share_id', 'shares'),
    'share_snapshot_instances': ('snapshot_id', 'share_snapshots'),
    'share_instance_access_map': ('access_id', 'share_access_map'),
    'share_access_map': ('share_id', 'shares'),
    'share_snapshot_instance_access_map': ('access_id', 'share_snapshot_access_map'),
    'share_snapshot_access_map': ('share_snapshot_id', 'share_snapshots'),
    'share_servers': ('share_network_id', 'share_networks'),
}
"""The column that leads to the owner of a row, and the table of owners."""

_PROJECTS = {'transfers': 'source_project_id'}
"""Columns with the project that are not called project_id."""


def parent_of(table: sa.Table) -> sa.ColumnElement[str | None]:
    """Return the parent's id, as a column of the table; NULL for none."""
    name = _PARENTS.get(table.name)
    return sa.literal(None, base.Id) if name is None else table.c[name]


def project_of(table: sa.Table) -> sa.ColumnElement[str | None]:
    """Return the project of a row, as a column or a scalar subquery."""
    if table.name not in _OWNERS:
        return table.c[_PROJECTS.get(table.name, 'project_id')]
    column, owners = _OWNERS[table.name]
    owner = models.metadata.tables[owners]
    return (
        sa.select(project_of(owner))
        .where(owner.c.id == table.c[column])
        .scalar_subquery()
    )
