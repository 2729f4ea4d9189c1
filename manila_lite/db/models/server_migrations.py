"""Migrations of share servers."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ServerMigration(base.Base):
    """One migration, from its acceptance until its row is pruned.

    It outlives both servers, so neither is a foreign key. `open_for` is
    the source server while the migration is running and null afterwards;
    its unique key allows one migration per server at a time. `phase` is 1
    until the second phase begins. `progress` is a percentage, null when
    unknown; `heard_at` is the time of the driver's last reply and
    `progress_details` what else it reported, as JSON. Two flags say what
    has to be undone at the end: `casts_rules` that the rules of the shares
    were cast to read-only, `made_destination` that the destination server
    was created for the migration. `reserved` is what is allocated on pools
    of the destination until the migration ends: GiB by pool, as JSON.
    """

    __tablename__ = 'share_server_migrations'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('open_for'),
        sa.Index(None, 'source_server_id', 'created_at'),
        sa.Index(None, 'destination_server_id'),
        sa.Index(None, 'ended_at'),
    )

    id = mapped_column(base.Id, primary_key=True)
    source_server_id = mapped_column(base.Id, nullable=False)
    destination_server_id = mapped_column(base.Id)
    open_for = mapped_column(base.Id)
    source_host = mapped_column(base.Name, nullable=False)
    destination_host = mapped_column(base.Name, nullable=False)
    destination_pool = mapped_column(base.Name)
    old_share_network_id = mapped_column(base.Id)
    new_share_network_id = mapped_column(base.Id)
    writable = mapped_column(sa.Boolean, nullable=False)
    nondisruptive = mapped_column(sa.Boolean, nullable=False)
    preserve_snapshots = mapped_column(sa.Boolean, nullable=False)
    phase = mapped_column(sa.Integer, nullable=False)
    outcome = mapped_column(base.Name)
    can_cancel = mapped_column(sa.Boolean, nullable=False)
    tells_progress = mapped_column(sa.Boolean, nullable=False)
    made_destination = mapped_column(sa.Boolean, nullable=False)
    is_set_up = mapped_column(sa.Boolean, nullable=False)
    casts_rules = mapped_column(sa.Boolean, nullable=False)
    progress = mapped_column(sa.Integer)
    heard_at = mapped_column(base.Timestamp)
    error = mapped_column(sa.String(1000))
    project_id = mapped_column(base.Name)
    user_id = mapped_column(base.Name)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
    ended_at = mapped_column(base.Timestamp)
    progress_details = mapped_column(base.Document)
    reserved = mapped_column(base.Document)
