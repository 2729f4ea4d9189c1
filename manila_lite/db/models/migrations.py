"""Migrations of shares and of share servers."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareMigration(base.Base):
    """The latest migration of a share; the next one replaces it.

    `open_for` is the share while the migration is running and null
    afterwards. `source_host` is the back end that does the work,
    `destination_host` the requested pool. `phase` is 1 until the second
    phase begins. `progress` is a percentage, null when unknown;
    `heard_at` is the time of the driver's last reply and
    `progress_details` what else it reported, as JSON. `casts_rules` says
    that the rules of the source were cast to read-only, `host_assisted`
    that the data service copies instead of the driver, `error` why the
    migration has failed or is about to. `new_share_type_id` is null unless
    the share gets another type. `destination_network_id` is the share
    network of the destination, null if it is not on a share server.
    """

    __tablename__ = 'share_migrations'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('open_for'),
        sa.UniqueConstraint('share_id'),
        sa.Index(None, 'source_host'),
    )

    id = mapped_column(base.Id, primary_key=True)
    share_id = base.part_of('shares')
    open_for = mapped_column(base.Id)
    source_instance_id = mapped_column(base.Id, nullable=False)
    destination_instance_id = mapped_column(base.Id)
    source_host = mapped_column(base.Name, nullable=False)
    destination_host = mapped_column(base.Name, nullable=False)
    writable = mapped_column(sa.Boolean, nullable=False)
    nondisruptive = mapped_column(sa.Boolean, nullable=False)
    preserve_metadata = mapped_column(sa.Boolean, nullable=False)
    preserve_snapshots = mapped_column(sa.Boolean, nullable=False)
    phase = mapped_column(sa.Integer, nullable=False)
    casts_rules = mapped_column(sa.Boolean, nullable=False)
    progress = mapped_column(sa.Integer)
    progress_details = mapped_column(base.Document)
    heard_at = mapped_column(base.Timestamp)
    error = mapped_column(sa.String(1000))
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
    ended_at = mapped_column(base.Timestamp)
    host_assisted = mapped_column(sa.Boolean, nullable=False, server_default='0')
    new_share_type_id = mapped_column(base.Id)
    destination_network_id = mapped_column(base.Id)


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
