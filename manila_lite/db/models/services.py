"""Availability zones, services, their pools and disks, user messages."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class AvailabilityZone(base.Record):
    __tablename__ = 'availability_zones'

    name = mapped_column(base.Name, nullable=False, unique=True)


class Service(base.Base):
    """One row per binary and host; a share back end is a host.

    `incarnation`, `heartbeat_at` and `health` are those of the best of its
    processes. `ensuring` is true while work is owed that ensures the shares
    here; `backend_info` is a digest of what their exports last depended
    on.
    """

    __tablename__ = 'services'
    __table_args__ = base.table_args(sa.UniqueConstraint('host', 'binary'))

    id = mapped_column(base.AutoIncrement, primary_key=True, autoincrement=True)
    host = mapped_column(base.Name, nullable=False)
    binary = mapped_column(base.Name, nullable=False)
    topic = mapped_column(base.Name, nullable=False)
    availability_zone_id = mapped_column(
        sa.ForeignKey('availability_zones.id'), nullable=False
    )
    incarnation = mapped_column(base.Id, nullable=False)
    heartbeat_at = mapped_column(base.EpochSeconds, nullable=False)
    health = mapped_column(base.MaskedText)
    disabled = mapped_column(sa.Boolean, nullable=False, default=False)
    disabled_reason = mapped_column(base.Name)
    ensuring = mapped_column(sa.Boolean, nullable=False, default=False)
    backend_info = mapped_column(sa.String(64))
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)


class ServiceIncarnation(base.Base):
    """One row per process that serves a host.

    `health` describes what is wrong with its driver, or is null. `ready_at`
    is when its driver was up for the first time, null before. Processes of the
    first release leave `release_number` and `schema_version` null. `warning`
    says what the process lacks although it serves.
    """

    __tablename__ = 'service_incarnations'
    __table_args__ = base.table_args(sa.Index(None, 'heartbeat_at'))

    service_id = base.part_of('services', primary_key=True)
    incarnation = mapped_column(base.Id, primary_key=True)
    started_at = mapped_column(base.EpochSeconds, nullable=False)
    heartbeat_at = mapped_column(base.EpochSeconds, nullable=False)
    ready_at = mapped_column(base.EpochSeconds)
    health = mapped_column(base.MaskedText)
    release_number = mapped_column(sa.Integer)
    version = mapped_column(sa.String(64))
    schema_version = mapped_column(sa.String(32))
    warning = mapped_column(base.MaskedText)


class Pool(base.Base):
    """The last report of a back end about one pool, and our allocations.

    `allocated_gb` always equals the sum of the sizes of the instances
    whose host is this pool, and of what running migrations of share
    servers have reserved here; `pending_gb` is the part that was placed
    since the last report and is not yet reflected in `free_gb`, less what a
    thick pool has removed since.
    Capacities are GiB; null means infinite or unknown.
    """

    __tablename__ = 'pools'
    __table_args__ = base.table_args(sa.Index(None, 'service_host'))

    host = mapped_column(base.Name, primary_key=True)
    service_host = mapped_column(base.Name, nullable=False)
    capabilities = mapped_column(base.Document, nullable=False)
    total_gb = mapped_column(sa.Double)
    free_gb = mapped_column(sa.Double)
    allocated_gb = mapped_column(sa.BigInteger, nullable=False)
    pending_gb = mapped_column(sa.BigInteger, nullable=False)
    reported_at = mapped_column(base.EpochSeconds, nullable=False)


class StorageDisk(base.Base):
    """Which disk belongs to a pool or to the root of a back end.

    `host` is host@backend#pool, or host@backend where a back end has one
    root for all pools. `identity` is what the driver has written to the
    disk; null after the disk was declared lost. One disk has one name and
    one name has one disk, by unique keys. `location` is where the disk was
    found last, in words.
    """

    __tablename__ = 'storage_disks'
    __table_args__ = base.table_args(sa.UniqueConstraint('identity'))

    host = mapped_column(base.Name, primary_key=True)
    identity = mapped_column(base.Id)
    file_system = mapped_column(sa.String(64))
    location = mapped_column(sa.String(1023))
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)


class Message(base.Base):
    __tablename__ = 'messages'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'resource_id', 'created_at'),
        sa.Index(None, 'expires_at'),
    )

    id = mapped_column(base.Id, primary_key=True)
    project_id = mapped_column(base.Name, nullable=False)
    message_level = mapped_column(base.Name, nullable=False)
    request_id = mapped_column(base.Name)
    resource_type = mapped_column(base.Name)
    resource_id = mapped_column(base.Id)
    action_id = mapped_column(sa.String(10), nullable=False)
    detail_id = mapped_column(sa.String(10))
    created_at = mapped_column(base.Timestamp, nullable=False)
    expires_at = mapped_column(base.Timestamp, nullable=False)
    reason = mapped_column(base.MaskedText)
    explanation = mapped_column(base.MaskedText)
    kept_until = mapped_column(base.Timestamp)
