"""Services: who lives, since when, and in which zone."""

import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.clock import db_now
from manila_lite.db.models import services
from manila_lite.db.session import Session

SERVICE = services.Service.__table__
ZONE = services.AvailabilityZone.__table__

_BEAT = sa.update(SERVICE).where(
    SERVICE.c.host == sa.bindparam('of_host'),
    SERVICE.c.binary == sa.bindparam('of_binary'),
).values(heartbeat_at=db_now(), updated_at=sa.bindparam('now'),
         health=sa.bindparam('new_health'),
         incarnation=sa.bindparam('new_incarnation'))
_LIST = (
    sa.select(SERVICE, ZONE.c.name.label('zone'), db_now().label('now'))
    .select_from(SERVICE.join(ZONE))
    .order_by(SERVICE.c.id))
_ZONE_ID = sa.select(ZONE.c.id).where(ZONE.c.name == sa.bindparam('of_name'))


def zone_id(session: Session, name: str) -> str:
    """The id of a zone, which comes into being when first named."""
    found = session.value(_ZONE_ID, of_name=name)
    if found is None:
        found = session.new_id()
        session.run(sa.insert(ZONE), id=found, name=name,
                    created_at=session.now)
    return found


def register(session: Session, *, host: str, binary: str, topic: str,
             zone: str, incarnation: str, enabled: bool,
             health: str | None = None) -> None:
    """Say that a process serves here from now on."""
    found = zone_id(session, zone)
    if beat(session, host=host, binary=binary, incarnation=incarnation,
            health=health):
        session.run(
            sa.update(SERVICE).where(SERVICE.c.host == host,
                                     SERVICE.c.binary == binary)
            .values(topic=topic, availability_zone_id=found))
        return
    session.run(
        sa.insert(SERVICE).values(heartbeat_at=db_now()), host=host,
        binary=binary, topic=topic, availability_zone_id=found,
        incarnation=incarnation, health=health, disabled=not enabled,
        ensuring=False, created_at=session.now, updated_at=session.now)


def beat(session: Session, *, host: str, binary: str, incarnation: str,
         health: str | None) -> bool:
    """Write a heartbeat; False when the service has no row."""
    return session.run(
        _BEAT, of_host=host, of_binary=binary, now=session.now,
        new_health=health, new_incarnation=incarnation) == 1


def list_all(session: Session) -> typing.Sequence[sa.Row]:
    """Every service with its zone and the time of the database."""
    return session.rows(_LIST)


def is_up(row: sa.Row, down_time: float) -> bool:
    """Whether the process lives and its driver, if any, is ready."""
    return row.health is None and row.now - row.heartbeat_at <= down_time


def set_disabled(session: Session, host: str, binary: str, disabled: bool,
                 reason: str | None) -> None:
    """Enable or disable scheduling to a service."""
    if session.run(
            sa.update(SERVICE).where(SERVICE.c.host == host,
                                     SERVICE.c.binary == binary)
            .values(disabled=disabled, disabled_reason=reason,
                    updated_at=session.now)) != 1:
        raise exception.ServiceNotFound(binary=binary, host=host)


def list_zones(session: Session) -> typing.Sequence[sa.Row]:
    return session.rows(sa.select(ZONE).order_by(ZONE.c.name))
