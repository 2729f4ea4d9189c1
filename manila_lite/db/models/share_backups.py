"""Backups of shares."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareBackup(base.Base):
    """A copy of the content of a share, kept until it is deleted.

    `host` is that of the share when the backup was requested, `topic` the
    service that keeps the content: the data service, or the share service on
    `host` with the driver there, which `backup_options`, as JSON, are for.
    `backup_type` is one of them. While it is restored, `restore_share_id` is
    the share that receives its content. `kept_copy`, as JSON, is what the data
    service keeps. `restore_position` is null while nothing is restored yet,
    else the number of steps done, or -1 while a worker does more of them.
    """

    __tablename__ = 'share_backups'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'status'),
        sa.Index(None, 'share_id'),
        sa.Index(None, 'restore_share_id'),
    )

    id = mapped_column(base.Id, primary_key=True)
    share_id = mapped_column(sa.ForeignKey('shares.id'), nullable=False)
    project_id = mapped_column(base.Name, nullable=False)
    user_id = mapped_column(base.Name)
    name = mapped_column(base.Name)
    description = mapped_column(base.Name)
    status = mapped_column(base.Name, nullable=False)
    size = mapped_column(sa.Integer, nullable=False)
    host = mapped_column(base.Name)
    topic = mapped_column(base.Name, nullable=False)
    backup_type = mapped_column(base.Name)
    progress = mapped_column(sa.Integer, nullable=False)
    restore_progress = mapped_column(sa.Integer, nullable=False)
    restore_share_id = mapped_column(base.Id)
    availability_zone_id = mapped_column(sa.ForeignKey('availability_zones.id'))
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
    backup_options = mapped_column(base.Document)
    kept_copy = mapped_column(base.Document)
    restore_position = mapped_column(base.BigInteger)
