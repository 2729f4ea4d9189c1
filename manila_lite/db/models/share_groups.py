"""Share groups, and their snapshots."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareGroup(base.Record):
    """A group of shares on one back end; `host` is host@backend#pool.

    Its snapshots are consistent in a pool, on a host or, with null in
    `consistent_snapshot_support`, not at all. A group with a share network
    gets its share server when it is created on its back end; all its shares
    are on that server.
    """

    __tablename__ = 'share_groups'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'status'),
        sa.Index(None, 'service_host', 'status'),
        sa.Index(None, 'share_group_type_id'),
        sa.Index(None, 'share_network_id'),
        sa.Index(None, 'share_server_id'),
    )

    project_id = mapped_column(base.Name, nullable=False)
    user_id = mapped_column(base.Name)
    name = mapped_column(base.Name)
    description = mapped_column(base.Name)
    status = mapped_column(base.Name, nullable=False)
    host = mapped_column(base.Name)
    service_host = base.service_host_column()
    share_group_type_id = mapped_column(
        sa.ForeignKey('share_group_types.id'), nullable=False
    )
    availability_zone_id = mapped_column(sa.ForeignKey('availability_zones.id'))
    source_share_group_snapshot_id = mapped_column(base.Id)
    share_network_id = mapped_column(base.Id)
    share_server_id = mapped_column(base.Id)
    consistent_snapshot_support = mapped_column(sa.String(16))


class ShareGroupShareType(base.Base):
    """A share type that the shares of a group may have."""

    __tablename__ = 'share_group_share_type_mappings'

    share_group_id = base.part_of('share_groups', primary_key=True)
    share_type_id = mapped_column(
        sa.ForeignKey('share_types.id'), primary_key=True, index=True
    )


class ShareGroupSnapshot(base.Record):
    """A snapshot of all shares of a group."""

    __tablename__ = 'share_group_snapshots'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'status'),
        sa.Index(None, 'share_group_id'),
    )

    share_group_id = mapped_column(sa.ForeignKey('share_groups.id'), nullable=False)
    project_id = mapped_column(base.Name, nullable=False)
    user_id = mapped_column(base.Name)
    name = mapped_column(base.Name)
    description = mapped_column(base.Name)
    status = mapped_column(base.Name, nullable=False)


class ShareGroupSnapshotMember(base.Record):
    """The part of a group snapshot that has the content of one share.

    A share with such members is not deleted, so its ids stay valid.
    """

    __tablename__ = 'share_group_snapshot_members'
    __table_args__ = base.table_args(
        sa.Index(None, 'share_group_snapshot_id'),
        sa.Index(None, 'share_id'),
        sa.Index(None, 'share_instance_id'),
    )

    share_group_snapshot_id = base.part_of('share_group_snapshots')
    share_id = mapped_column(base.Id, nullable=False)
    share_instance_id = mapped_column(base.Id, nullable=False)
    size = mapped_column(sa.Integer, nullable=False)
    share_proto = mapped_column(base.Name, nullable=False)
    provider_location = mapped_column(base.Name)
