"""Resource locks: actions that users have forbidden."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ResourceLock(base.Base):
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

    id = mapped_column(base.Id, primary_key=True)
    user_id = mapped_column(base.Name, nullable=False)
    project_id = mapped_column(base.Name, nullable=False)
    lock_context = mapped_column(sa.String(16), nullable=False)
    resource_id = mapped_column(base.Id, nullable=False)
    resource_type = mapped_column(sa.String(64), nullable=False)
    resource_action = mapped_column(sa.String(64), nullable=False)
    lock_reason = mapped_column(sa.String(1023))
    share_id = mapped_column(
        sa.ForeignKey('shares.id', ondelete='CASCADE'), nullable=False
    )
    access_id = mapped_column(sa.ForeignKey('share_access_map.id', ondelete='CASCADE'))
    because_of = mapped_column(sa.ForeignKey('resource_locks.id', ondelete='CASCADE'))
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
