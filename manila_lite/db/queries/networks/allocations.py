"""Addresses of share servers: their allocation and release."""

from collections.abc import Collection, Mapping, Sequence
import datetime

import sqlalchemy as sa

from manila_lite.db.rows import AllocationRow
from manila_lite.db.session import ConcurrentChange, Session
from manila_lite.db.tables import ALLOCATION, FREED, SEGMENT, SUBNET

_LOCK = (
    sa.select(SEGMENT.c.segment)
    .where(SEGMENT.c.segment == sa.bindparam('of_segment'))
    .with_for_update()
)
_INSERT_SEGMENT = sa.insert(SEGMENT)
_ADDRESSES = sa.select(ALLOCATION.c.ip_address).where(
    ALLOCATION.c.segment == sa.bindparam('of_segment')
)
_INSERT = sa.insert(ALLOCATION)
_FREED = sa.select(FREED.c.ip_address, FREED.c.freed_at).where(
    FREED.c.segment == sa.bindparam('of_segment'),
    FREED.c.freed_at >= sa.bindparam('since'),
)

REMEMBERED = datetime.timedelta(days=7)
"""How long an address is known as freed; then it is like one never used."""


def lock_segment(session: Session, segment: str) -> None:
    """Lock a segment against other allocations."""
    if session.value(_LOCK, of_segment=segment) is None:
        session.insert_unique(_INSERT_SEGMENT, segment=segment)


def list_addresses(session: Session, segment: str) -> list[str]:
    """Return the allocated addresses of a segment."""
    return [row.ip_address for row in session.rows(_ADDRESSES, of_segment=segment)]


def list_freed(session: Session, segment: str) -> dict[str, datetime.datetime]:
    """Return when addresses were freed, for those freed recently.

    Some may be allocated again.
    """
    return {
        row.ip_address: row.freed_at
        for row in session.rows(
            _FREED, of_segment=segment, since=session.now - REMEMBERED
        )
    }


def list_address_owners(
    session: Session, segment: str, addresses: Collection[str]
) -> dict[str, str]:
    """Return the ids of the servers with these addresses, by address."""
    return {
        row.ip_address: row.share_server_id
        for row in session.rows(
            sa.select(ALLOCATION.c.ip_address, ALLOCATION.c.share_server_id).where(
                ALLOCATION.c.segment == segment,
                ALLOCATION.c.ip_address.in_(sorted(addresses)),
            )
        )
    }


def _of(
    share_server_id: str, label: str, subnet_id: str | None
) -> sa.ColumnElement[bool]:
    conditions = [
        ALLOCATION.c.share_server_id == share_server_id,
        ALLOCATION.c.label == label,
    ]
    if subnet_id is not None:
        conditions.append(ALLOCATION.c.share_network_subnet_id == subnet_id)
    return sa.and_(*conditions)


def list_for_server(
    session: Session, share_server_id: str, label: str, subnet_id: str | None = None
) -> Sequence[AllocationRow]:
    """Return the addresses of a server, in one subnet or in all."""
    return session.rows(
        sa.select(ALLOCATION)
        .where(_of(share_server_id, label, subnet_id))
        .order_by(ALLOCATION.c.created_at, ALLOCATION.c.ip_address)
    )


def count(
    session: Session, share_server_id: str, label: str, subnet_id: str | None = None
) -> int:
    """Return the number of addresses of a server."""
    return session.value(
        sa.select(sa.func.count())
        .select_from(ALLOCATION)
        .where(_of(share_server_id, label, subnet_id))
    )


def insert(
    session: Session,
    share_server_id: str,
    label: str,
    segment: str,
    subnet_id: str | None,
    addresses: Collection[str],
    values: Mapping[str, object],
) -> None:
    """Allocate addresses to a server, always in the given order."""
    session.run_many(
        _INSERT,
        [
            {
                'id': session.new_id(),
                'share_server_id': share_server_id,
                'share_network_subnet_id': subnet_id,
                'label': label,
                'segment': segment,
                'ip_address': address,
                'created_at': session.now,
                'updated_at': session.now,
                **values,
            }
            for address in addresses
        ],
    )


def remove(
    session: Session, share_server_id: str, label: str, subnet_id: str | None = None
) -> int:
    """Release the addresses of a server; return how many there were."""
    of_server = _of(share_server_id, label, subnet_id)
    rows = session.rows(
        sa.select(ALLOCATION.c.segment, ALLOCATION.c.ip_address).where(of_server)
    )
    if session.run(sa.delete(ALLOCATION).where(of_server)) != len(rows):
        raise ConcurrentChange(table=ALLOCATION.name)
    for segment in {row.segment for row in rows}:
        again = [row.ip_address for row in rows if row.segment == segment]
        session.run(
            sa.delete(FREED).where(
                FREED.c.segment == segment,
                FREED.c.ip_address.in_(again)
                | (FREED.c.freed_at < session.now - REMEMBERED),
            )
        )
    session.run_many(
        sa.insert(FREED),
        [
            {
                'segment': row.segment,
                'ip_address': row.ip_address,
                'freed_at': session.now,
            }
            for row in rows
        ],
    )
    return len(rows)


def update_subnet(
    session: Session, subnet_id: str, values: Mapping[str, object]
) -> None:
    """Store in a subnet which network its addresses belong to."""
    session.run(
        sa.update(SUBNET)
        .where(SUBNET.c.id == subnet_id)
        .values(updated_at=session.now, **values)
    )
