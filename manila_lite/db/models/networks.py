"""Share networks, their subnets and their security services."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareNetwork(base.Record):
    __tablename__ = 'share_networks'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'status'),
    )

    project_id = mapped_column(base.Name, nullable=False)
    user_id = mapped_column(base.Name)
    name = mapped_column(base.Name)
    description = mapped_column(base.Name)
    status = mapped_column(base.Name, nullable=False)


class ShareNetworkSubnet(base.Record):
    """A subnet of a share network; without a zone it serves all zones."""

    __tablename__ = 'share_network_subnets'
    __table_args__ = base.table_args(
        sa.Index(None, 'share_network_id', 'availability_zone_id'),
        sa.Index(None, 'neutron_net_id'),
    )

    share_network_id = mapped_column(sa.ForeignKey('share_networks.id'), nullable=False)
    availability_zone_id = mapped_column(sa.ForeignKey('availability_zones.id'))
    neutron_net_id = mapped_column(base.Id)
    neutron_subnet_id = mapped_column(base.Id)
    network_type = mapped_column(sa.String(32))
    cidr = mapped_column(sa.String(64))
    segmentation_id = mapped_column(sa.Integer)
    gateway = mapped_column(sa.String(64))
    mtu = mapped_column(sa.Integer)
    ip_version = mapped_column(sa.Integer)


class ShareNetworkSubnetMetadata(base.Metadata):
    __tablename__ = 'share_network_subnet_metadata'

    share_network_subnet_id = base.part_of('share_network_subnets', primary_key=True)


class SecurityService(base.Record):
    """The connection data of a project's directory service."""

    __tablename__ = 'security_services'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
    )

    project_id = mapped_column(base.Name, nullable=False)
    type = mapped_column(sa.String(32), nullable=False)
    name = mapped_column(base.Name)
    description = mapped_column(base.Name)
    dns_ip = mapped_column(sa.String(64))
    server = mapped_column(base.Name)
    domain = mapped_column(base.Name)
    user = mapped_column(base.Name)
    password = mapped_column(base.Name)
    ou = mapped_column(base.Name)
    default_ad_site = mapped_column(base.Name)


class ShareNetworkSecurityService(base.Base):
    """The security services of a network, at most one of each type."""

    __tablename__ = 'share_network_security_services'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('share_network_id', 'type'),
        sa.Index(None, 'security_service_id'),
    )

    share_network_id = base.part_of('share_networks', primary_key=True)
    security_service_id = mapped_column(
        sa.ForeignKey('security_services.id'), primary_key=True
    )
    type = mapped_column(sa.String(32), nullable=False)


class ShareNetworkCheck(base.Base):
    """The reply of one back end about a possible change of a network.

    `operation` is a digest of the change; `compatible` is null until the
    back end has replied.
    """

    __tablename__ = 'share_network_checks'

    share_network_id = base.part_of('share_networks', primary_key=True)
    operation = mapped_column(sa.String(64), primary_key=True)
    host = mapped_column(base.Name, primary_key=True)
    compatible = mapped_column(sa.Boolean)
    created_at = mapped_column(base.Timestamp, nullable=False)
