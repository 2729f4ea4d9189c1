"""Pools: what back ends report, and what we have placed there.

`allocated_gb` changes only by guarded or relative UPDATEs here, so that
it always equals the sum of the sizes of the instances on the pool.
"""

import typing

import orjson
import sqlalchemy as sa

from manila_lite.db.clock import db_now
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.session import Session

POOL = services.Pool.__table__
SERVICE = services.Service.__table__
ZONE = services.AvailabilityZone.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__

_LIST = (
    sa.select(POOL, SERVICE.c.heartbeat_at, SERVICE.c.disabled,
              SERVICE.c.health, db_now().label('now'),
              ZONE.c.id.label('zone_id'), ZONE.c.name.label('zone'))
    .select_from(POOL.join(
        SERVICE, sa.and_(SERVICE.c.host == POOL.c.service_host,
                         SERVICE.c.binary == 'manila-share'))
        .join(ZONE, ZONE.c.id == SERVICE.c.availability_zone_id))
    .order_by(POOL.c.host))
_ALLOCATE = sa.update(POOL).where(
    POOL.c.host == sa.bindparam('of_host'),
    sa.or_(sa.bindparam('room', type_=sa.Double()).is_(None),
           POOL.c.allocated_gb + sa.bindparam('gb')
           <= sa.bindparam('room', type_=sa.Double()))
).values(allocated_gb=POOL.c.allocated_gb + sa.bindparam('gb'),
         pending_gb=POOL.c.pending_gb + sa.bindparam('gb'))
_CHANGE = sa.update(POOL).where(POOL.c.host == sa.bindparam('of_host')).values(
    allocated_gb=POOL.c.allocated_gb + sa.bindparam('gb'))
_REPORT = sa.update(POOL).where(POOL.c.host == sa.bindparam('of_host')).values(
    capabilities=sa.bindparam('new_capabilities'),
    total_gb=sa.bindparam('new_total'), free_gb=sa.bindparam('new_free'),
    pending_gb=POOL.c.pending_gb - sa.bindparam('known_gb'),
    reported_at=db_now())
_ON_POOL = (
    sa.select(sa.func.coalesce(sa.func.sum(SHARE.c.size), 0))
    .select_from(INSTANCE.join(SHARE))
    .where(INSTANCE.c.host == sa.bindparam('of_host')))
_OF_SERVICE = sa.select(POOL.c.host, POOL.c.pending_gb).where(
    POOL.c.service_host == sa.bindparam('of_service'))


class Report(typing.NamedTuple):
    """What a driver says about one pool; None is infinite or unknown."""

    host: str
    capabilities: dict[str, typing.Any]
    total_gb: float | None
    free_gb: float | None


def list_all(session: Session) -> typing.Sequence[sa.Row]:
    """Every pool with the liveness of its service and its zone."""
    return session.rows(_LIST)


def allocate(session: Session, host: str, gb: int,
             room: float | None) -> bool:
    """Place `gb` on the pool if allocations stay within `room`."""
    return session.run(_ALLOCATE, of_host=host, gb=gb, room=room) == 1


def change_allocated(session: Session, host: str | None, gb: int) -> None:
    """Count a difference that needs no asking: growth, removal."""
    if host and gb:
        session.run(_CHANGE, of_host=host, gb=gb)


def pending(session: Session, service_host: str) -> dict[str, int]:
    """What was placed since the last report, by pool.

    Read it before the back end is asked, and hand it to `report` after:
    the answer knows about no more than that.
    """
    return {row.host: row.pending_gb
            for row in session.rows(_OF_SERVICE, of_service=service_host)}


def report(session: Session, service_host: str,
           reports: list[Report], known: dict[str, int]) -> None:
    """Write what the back end says of its pools; forget vanished ones."""
    for pool in sorted(reports):
        facts = {
            'new_capabilities': orjson.dumps(pool.capabilities).decode(),
            'new_total': pool.total_gb, 'new_free': pool.free_gb}
        if session.run(_REPORT, of_host=pool.host,
                       known_gb=known.get(pool.host, 0), **facts):
            continue
        session.insert_first(
            sa.insert(POOL).values(reported_at=db_now()), host=pool.host,
            service_host=service_host, capabilities=facts['new_capabilities'],
            total_gb=pool.total_gb, free_gb=pool.free_gb, pending_gb=0,
            allocated_gb=session.value(_ON_POOL, of_host=pool.host))
    session.run(sa.delete(POOL).where(
        POOL.c.service_host == service_host,
        POOL.c.host.not_in([pool.host for pool in reports])))
