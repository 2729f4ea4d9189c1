"""Subnets of share networks, and their metadata."""

import collections
from collections.abc import Iterable, Mapping
import datetime
import itertools
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.rows import SubnetServerRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    OF_SUBNET as SERVER_SUBNET,
    SERVER,
    SUBNET,
    SUBNET_METADATA,
    ZONE,
)

METADATA = MetadataTable(SUBNET_METADATA, 'share_network_subnet_id', SUBNET)


class Subnet(typing.NamedTuple):
    """A subnet with the name of its zone and its metadata."""

    id: str
    share_network_id: str
    availability_zone_id: str | None
    neutron_net_id: str | None
    neutron_subnet_id: str | None
    network_type: str | None
    cidr: str | None
    segmentation_id: int | None
    gateway: str | None
    mtu: int | None
    ip_version: int | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    availability_zone: str | None
    metadata: dict[str, str]

    @property
    def is_default(self) -> bool:
        """Whether it serves all zones that have no subnet of their own."""
        return self.availability_zone_id is None


_COLUMNS = [SUBNET.c[name] for name in Subnet._fields if name in SUBNET.c]
_ORDER = (SUBNET.c.created_at, SUBNET.c.id, SUBNET_METADATA.c.key)


def _select(these: sa.FromClause) -> sa.Select:
    return (
        sa.select(
            *_COLUMNS,
            ZONE.c.name.label('availability_zone'),
            SUBNET_METADATA.c.key,
            SUBNET_METADATA.c.value,
        )
        .select_from(
            these.outerjoin(ZONE, ZONE.c.id == SUBNET.c.availability_zone_id).outerjoin(
                SUBNET_METADATA,
                SUBNET_METADATA.c.share_network_subnet_id == SUBNET.c.id,
            )
        )
        .order_by(*_ORDER)
    )


_OF = _select(SUBNET).where(SUBNET.c.share_network_id == sa.bindparam('network_id'))
_ONE = _OF.where(SUBNET.c.id == sa.bindparam('subnet_id'))
_COUNT = (
    sa.select(sa.func.count())
    .select_from(SUBNET)
    .where(SUBNET.c.share_network_id == sa.bindparam('network_id'))
)
_SERVERS = (
    sa.select(*columns(SubnetServerRow, SERVER))
    .join(SERVER_SUBNET, SERVER_SUBNET.c.share_server_id == SERVER.c.id)
    .where(SERVER_SUBNET.c.share_network_subnet_id == sa.bindparam('subnet_id'))
    .order_by(SERVER.c.id)
)
_DELETE = sa.delete(SUBNET).where(SUBNET.c.id == sa.bindparam('subnet_id'))
_DELETE_OF = sa.delete(SUBNET).where(
    SUBNET.c.share_network_id == sa.bindparam('network_id')
)


def list_for_network(session: Session, network_id: str) -> list[Subnet]:
    """Return the subnets of a network, oldest first."""
    return _subnets(session.rows(_OF, network_id=network_id))


def list_for_networks(session: Session, ids: sa.Subquery) -> dict[str, list[Subnet]]:
    """Return the subnets of several networks, by network id."""
    found: dict[str, list[Subnet]] = collections.defaultdict(list)
    these = ids.join(SUBNET, SUBNET.c.share_network_id == ids.c.id)
    for subnet in _subnets(session.rows(_select(these))):
        found[subnet.share_network_id].append(subnet)
    return found


def get(session: Session, network_id: str, subnet_id: str) -> Subnet:
    """Return a subnet of this network; raises ShareNetworkSubnetNotFound."""
    found = _subnets(session.rows(_ONE, network_id=network_id, subnet_id=subnet_id))
    if not found:
        raise exception.ShareNetworkSubnetNotFound(share_network_subnet_id=subnet_id)
    return found[0]


def _subnets(rows: Iterable[sa.Row]) -> list[Subnet]:
    """Group rows by subnet; each row has one metadata key."""
    found = []
    for _, same in itertools.groupby(rows, lambda row: row.id):
        first, *others = same
        *columns, key, value = first
        metadata = (
            {}
            if key is None
            else {key: value, **{row.key: row.value for row in others}}
        )
        found.append(Subnet._make([*columns, metadata]))
    return found


def count(session: Session, network_id: str) -> int:
    """Return the number of subnets of a network."""
    return session.value(_COUNT, network_id=network_id)


def insert(
    session: Session,
    network_id: str,
    values: Mapping[str, object],
    metadata: Mapping[str, str] | None = None,
) -> str:
    """Insert a subnet; return its id."""
    id = session.new_id()
    session.run(
        sa.insert(SUBNET),
        id=id,
        share_network_id=network_id,
        created_at=session.now,
        **values,
    )
    METADATA.insert(session, id, metadata or {})
    return id


def update(session: Session, subnet_id: str, values: Mapping[str, object]) -> None:
    """Change columns of a subnet."""
    session.run(
        sa.update(SUBNET)
        .where(SUBNET.c.id == subnet_id)
        .values(updated_at=session.now, **values)
    )


def remove(session: Session, subnet_id: str) -> None:
    """Delete a subnet without servers, and its metadata."""
    try:
        session.run(_DELETE, subnet_id=subnet_id)
    except db_exc.DBReferenceError:
        raise exception.ShareNetworkSubnetInUse(
            share_network_subnet_id=subnet_id,
            reason='share servers have addresses in it',
        ) from None


def remove_all(session: Session, network_id: str) -> None:
    """Delete all subnets of a network that has no servers."""
    session.run(_DELETE_OF, network_id=network_id)


def list_servers(session: Session, subnet_id: str) -> typing.Sequence[SubnetServerRow]:
    """Return the share servers with addresses in a subnet, by id."""
    return session.rows(_SERVERS, subnet_id=subnet_id)
