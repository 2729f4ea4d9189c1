"""Access rules of shares, their state on each instance, and locks."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class AccessRule(base.Record):
    """A rule as the user requested it; its mappings hold the state.

    `target` is `access_to` in its normalized spelling, so that a client
    has one rule per share and type however it is written.
    """

    __tablename__ = 'share_access_map'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('share_id', 'access_type', 'target'),
        sa.Index(None, 'share_id', 'created_at', 'id'),
    )

    share_id = base.part_of('shares')
    access_type = mapped_column(sa.String(64), nullable=False)
    access_to = mapped_column(base.Name, nullable=False)
    target = mapped_column(base.Name, nullable=False)
    access_level = mapped_column(sa.String(2), nullable=False)


class AccessRuleMetadata(base.Metadata):
    __tablename__ = 'share_access_rules_metadata'

    access_id = base.part_of('share_access_map', primary_key=True)


class InstanceAccessRule(base.Record):
    """The mapping of an access rule to a share instance, with its state."""

    __tablename__ = 'share_instance_access_map'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('access_id', 'share_instance_id'),
        sa.Index(None, 'share_instance_id', 'state'),
        sa.Index(None, 'state'),
    )

    share_instance_id = base.part_of('share_instances')
    access_id = base.part_of('share_access_map')
    state = mapped_column(sa.String(32), nullable=False)
    access_key = mapped_column(base.Name)


class ResourceLock(base.Record):
    """A lock that forbids one action on a resource.

    The resource is a share, or the access rule `access_id` of a share;
    the lock is deleted with it. `lock_context` is the capacity of its
    creator: user, admin or service. `because_of` is set on the lock of a
    share that protects the lock of one of its rules, and names that lock.
    """

    __tablename__ = 'resource_locks'
    __table_args__ = base.table_args(
        sa.Index(None, 'resource_id', 'resource_action'),
        sa.Index(None, 'share_id', 'resource_action'),
        sa.Index(None, 'access_id'),
        sa.Index(None, 'because_of'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
    )

    user_id = mapped_column(base.Name, nullable=False)
    project_id = mapped_column(base.Name, nullable=False)
    lock_context = mapped_column(sa.String(16), nullable=False)
    resource_id = mapped_column(base.Id, nullable=False)
    resource_type = mapped_column(sa.String(64), nullable=False)
    resource_action = mapped_column(sa.String(64), nullable=False)
    lock_reason = mapped_column(sa.String(1023))
    share_id = base.part_of('shares')
    access_id = base.part_of('share_access_map', nullable=True)
    because_of = base.part_of('resource_locks', nullable=True)
