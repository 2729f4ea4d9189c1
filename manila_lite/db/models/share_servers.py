"""Share servers, their back-end details and their addresses."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareServer(base.Record):
    """A server that exports the shares of one network on one back end.

    `host` is host@backend. `build_key` is set while the server is built
    for the first share that needs it, and null afterwards; its unique key
    lets one of several concurrent requests build the server while the
    others wait. `idle_since` is null while shares or share groups are on
    the server.
    """

    __tablename__ = 'share_servers'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('build_key'),
        sa.Index(None, 'host', 'status'),
        sa.Index(None, 'status'),
        sa.Index(None, 'task_state'),
        sa.Index(None, 'share_network_id'),
        sa.Index(None, 'source_share_server_id'),
        sa.Index(None, 'created_at', 'id'),
    )

    host = mapped_column(base.Name, nullable=False)
    share_network_id = mapped_column(sa.ForeignKey('share_networks.id'))
    status = mapped_column(base.Name, nullable=False)
    task_state = mapped_column(base.Name)
    identifier = mapped_column(base.Name)
    is_auto_deletable = mapped_column(sa.Boolean, nullable=False)
    source_share_server_id = mapped_column(base.Id)
    security_service_update_support = mapped_column(sa.Boolean, nullable=False)
    network_allocation_update_support = mapped_column(sa.Boolean, nullable=False)
    share_replicas_migration_support = mapped_column(sa.Boolean, nullable=False)
    encryption_key_ref = mapped_column(base.Id)
    build_key = mapped_column('founding', sa.String(64), key='build_key')
    idle_since = mapped_column(base.Timestamp)


class ShareServerBackendDetail(base.Metadata):
    """A detail of a server that its driver wants stored."""

    __tablename__ = 'share_server_backend_details'

    share_server_id = base.part_of('share_servers', primary_key=True)


class ShareServerSubnet(base.Base):
    """A subnet in which a server has addresses."""

    __tablename__ = 'share_server_subnets'
    __table_args__ = base.table_args(sa.Index(None, 'share_network_subnet_id'))

    share_server_id = base.part_of('share_servers', primary_key=True)
    share_network_subnet_id = mapped_column(
        sa.ForeignKey('share_network_subnets.id'), primary_key=True
    )


class NetworkSegment(base.Base):
    """The scope in which addresses are unique; locked to allocate some."""

    __tablename__ = 'network_segments'

    segment = mapped_column(sa.String(128), primary_key=True)


class FreedAddress(base.Base):
    """An address that is free again; the one freed first is used first."""

    __tablename__ = 'freed_addresses'

    segment = mapped_column(sa.String(128), primary_key=True)
    ip_address = mapped_column(sa.String(64), primary_key=True)
    freed_at = mapped_column(base.Timestamp, nullable=False)


class NetworkAllocation(base.Record):
    """An address of a share server.

    `segment` is the scope in which addresses are unique, as named by the
    network plug-in; a unique key keeps an address from being allocated
    twice. The label is `user`, or `admin` for the administrators' network,
    which has no subnet.
    """

    __tablename__ = 'network_allocations'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('segment', 'ip_address'),
        sa.Index(None, 'share_server_id'),
        sa.Index(None, 'share_network_subnet_id'),
    )

    share_server_id = mapped_column(sa.ForeignKey('share_servers.id'), nullable=False)
    share_network_subnet_id = mapped_column(sa.ForeignKey('share_network_subnets.id'))
    label = mapped_column(sa.String(32), nullable=False)
    segment = mapped_column(sa.String(128), nullable=False)
    ip_address = mapped_column(sa.String(64), nullable=False)
    ip_version = mapped_column(sa.Integer)
    cidr = mapped_column(sa.String(64))
    gateway = mapped_column(sa.String(64))
    mtu = mapped_column(sa.Integer)
    network_type = mapped_column(sa.String(32))
    segmentation_id = mapped_column(sa.Integer)
    mac_address = mapped_column(sa.String(32))
