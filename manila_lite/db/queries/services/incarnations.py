"""Incarnations of services: the processes that serve a host, and their health.

Several processes may serve one host. Each has a row of its own, and the row
of the service shows the best: a live and healthy one if there is any, else a
live one; among equals, the one started last.

A session that is frozen may have locked the row of the service. Heartbeats
are written nevertheless, and nothing waits for that row longer than
ROW_PATIENCE: a later heartbeat registers or shows the process.
"""

from collections.abc import Collection, Sequence
import enum
import logging
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.dialects import db_now
from manila_lite.db.models import base
from manila_lite.db.queries.services import releases
from manila_lite.db.queries.services.services import get_or_create_zone_id
from manila_lite.db.session import Database, Session
from manila_lite.db.tables import INCARNATION, SERVICE

LOG = logging.getLogger(__name__)


FORGOTTEN_AFTER = 86400.0
"""Seconds after which the row of a dead process is deleted."""

REMOVED = 'It is not in the configuration of its share service any more.'
"""The health of a back end that was removed from the configuration."""

STOPPED = 'It was stopped.'
"""The health of a service whose last process has ended as it should."""

STOPPING = 'It is stopping.'
"""The health of a process that waits for the end of its running work."""

_LOCKED = 'another session has locked the row of the service'

ROW_PATIENCE = 1.0
"""Seconds to wait for the row of a service that another session has locked."""

_IS_SERVICE = (
    SERVICE.c.host == sa.bindparam('of_host'),
    SERVICE.c.binary == sa.bindparam('of_binary'),
)
_ID = sa.select(SERVICE.c.id).where(*_IS_SERVICE)
_LOCK = _ID.with_for_update(skip_locked=True)
_LOCK_SHOWN = _LOCK.add_columns(SERVICE.c.incarnation, SERVICE.c.health)
_IS_OWN = (
    INCARNATION.c.service_id == sa.bindparam('of_service'),
    INCARNATION.c.incarnation == sa.bindparam('of_incarnation'),
)
_HEALTH = sa.bindparam('new_health', type_=base.MaskedText)
_WARNING = sa.bindparam('new_warning', type_=base.MaskedText)
_READY_AT = sa.case((_HEALTH.is_(None), db_now()), else_=sa.null())
_BEAT = (
    sa.update(INCARNATION)
    .where(*_IS_OWN)
    .values(
        heartbeat_at=db_now(),
        health=_HEALTH,
        warning=_WARNING,
        ready_at=sa.func.coalesce(INCARNATION.c.ready_at, _READY_AT),
    )
)
_START = sa.insert(INCARNATION).values(
    started_at=db_now(),
    heartbeat_at=db_now(),
    health=_HEALTH,
    warning=_WARNING,
    ready_at=_READY_AT,
)
_END = sa.delete(INCARNATION).where(*_IS_OWN)
_SERVED = sa.select(INCARNATION.c.service_id).where(
    INCARNATION.c.incarnation == sa.bindparam('of_incarnation')
)
_PLACE = (
    sa.update(SERVICE)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .values(
        topic=sa.bindparam('new_topic'),
        availability_zone_id=sa.bindparam('new_zone_id'),
    )
)
_FORGET = sa.delete(INCARNATION).where(
    INCARNATION.c.service_id == sa.bindparam('of_service'),
    INCARNATION.c.heartbeat_at < db_now() - FORGOTTEN_AFTER,
)
_OF_SERVICE = sa.select(INCARNATION, db_now().label('now')).where(
    INCARNATION.c.service_id == sa.bindparam('of_service')
)
_SHOW = (
    sa.update(SERVICE)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .values(
        incarnation=sa.bindparam('new_incarnation'),
        heartbeat_at=sa.bindparam('new_heartbeat', type_=sa.Double()),
        health=_HEALTH,
        updated_at=sa.bindparam('now'),
    )
)
_SHOW_AGAIN = (
    sa.update(SERVICE)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .values(heartbeat_at=db_now(), updated_at=sa.bindparam('now'))
)
_IDS: sa.BindParameter[typing.Any] = sa.bindparam('ids', expanding=True)
_LOCK_WELL = (
    sa.select(SERVICE.c.id, SERVICE.c.host)
    .where(
        SERVICE.c.host.in_(sa.bindparam('hosts', expanding=True)),
        SERVICE.c.binary == sa.bindparam('of_binary'),
        SERVICE.c.incarnation == sa.bindparam('of_incarnation'),
        SERVICE.c.health.is_(None),
    )
    .order_by(SERVICE.c.id)
    .with_for_update(skip_locked=True)
)
_BEAT_WELL = (
    sa.update(INCARNATION)
    .where(
        INCARNATION.c.service_id.in_(_IDS),
        INCARNATION.c.incarnation == sa.bindparam('of_incarnation'),
        INCARNATION.c.health.is_(None),
        INCARNATION.c.warning.is_(None),
    )
    .values(heartbeat_at=db_now())
)
_SHOW_WELL = (
    sa.update(SERVICE)
    .where(SERVICE.c.id.in_(_IDS))
    .values(heartbeat_at=db_now(), updated_at=sa.bindparam('now'))
)
_LONG_AGO = db_now() - sa.bindparam('silence', type_=sa.Double()) - 1.0
_UNSERVED = (
    sa.select(SERVICE.c.id, SERVICE.c.host)
    .where(
        SERVICE.c.binary == sa.bindparam('of_binary'),
        sa.func.coalesce(SERVICE.c.health, '') != REMOVED,
        ~sa.exists().where(
            INCARNATION.c.service_id == SERVICE.c.id,
            INCARNATION.c.heartbeat_at > _LONG_AGO,
        ),
    )
    .order_by(SERVICE.c.id)
    # A row that another session has locked is left as it is.
    .with_for_update(skip_locked=True)
)
_MARK_DOWN = (
    sa.update(SERVICE)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .values(
        health=REMOVED,
        heartbeat_at=sa.case(
            (SERVICE.c.heartbeat_at < _LONG_AGO, SERVICE.c.heartbeat_at),
            else_=_LONG_AGO,
        ),
        updated_at=sa.bindparam('now'),
    )
)
_STOP = (
    sa.update(SERVICE)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .values(health=STOPPED, updated_at=sa.bindparam('now'))
)
_WARNINGS = (
    sa.select(INCARNATION.c.service_id, INCARNATION.c.warning)
    .where(
        INCARNATION.c.warning.is_not(None),
        INCARNATION.c.heartbeat_at
        >= db_now() - sa.bindparam('silence', type_=sa.Double()),
    )
    .order_by(INCARNATION.c.started_at)
)
_RECENTLY = db_now() - sa.bindparam('silence', type_=sa.Double())
_PROBLEMS = (
    sa.select(INCARNATION.c.service_id, INCARNATION.c.health)
    .where(INCARNATION.c.health.is_not(None), INCARNATION.c.heartbeat_at >= _RECENTLY)
    .order_by(INCARNATION.c.service_id, INCARNATION.c.started_at)
)
_STARTING = (
    sa.select(SERVICE.c.host)
    .where(
        SERVICE.c.binary == sa.bindparam('of_binary'),
        SERVICE.c.disabled.is_(False),
        SERVICE.c.health.is_not(None),
        sa.or_(
            sa.exists().where(
                INCARNATION.c.service_id == SERVICE.c.id,
                INCARNATION.c.ready_at.is_(None),
                INCARNATION.c.heartbeat_at >= _RECENTLY,
            ),
            # It may only be restarting.
            sa.and_(
                SERVICE.c.health.in_([STOPPING, STOPPED]),
                SERVICE.c.heartbeat_at >= _RECENTLY,
            ),
        ),
    )
    .order_by(SERVICE.c.host)
)


class ServiceLocked(db_exc.DBDeadlock):
    """Another transaction has locked the row of the service."""

    def __init__(self) -> None:
        super().__init__(_LOCKED)


class Heartbeat(enum.Enum):
    """The outcome of a heartbeat."""

    UNKNOWN = 'the process is not registered'
    WRITTEN = 'written, but another session has the row of the service'
    SHOWN = 'written, and the row of the service shows the best process'


def register(
    session: Session,
    *,
    host: str,
    binary: str,
    topic: str,
    zone: str,
    incarnation: str,
    enabled: bool,
    down_time: float,
    health: str | None = None,
    warning: str | None = None,
    release: releases.Release | None = None,
) -> None:
    """Record that a process serves this host from now on.

    It is of this release if none is given. Raises ServiceLocked.
    """
    own = release or releases.current()
    zone_id = get_or_create_zone_id(session, zone)
    service_id = _lock(session, host, binary)
    if service_id is None:
        session.insert_unique(
            sa.insert(SERVICE).values(heartbeat_at=db_now()),
            host=host,
            binary=binary,
            topic=topic,
            availability_zone_id=zone_id,
            incarnation=incarnation,
            health=health,
            disabled=not enabled,
            ensuring=False,
            created_at=session.now,
            updated_at=session.now,
        )
        service_id = session.value(_LOCK, of_host=host, of_binary=binary)
    else:
        session.run(_PLACE, service_id=service_id, new_topic=topic, new_zone_id=zone_id)
    session.run(_FORGET, of_service=service_id)
    session.run(_END, of_service=service_id, of_incarnation=incarnation)
    session.insert_unique(
        _START,
        service_id=service_id,
        incarnation=incarnation,
        new_health=health,
        new_warning=warning,
        release_number=own.number,
        version=own.version,
        schema_version=own.schema_version,
    )
    _show_best(session, service_id, down_time)


def heartbeat(
    session: Session,
    *,
    host: str,
    binary: str,
    incarnation: str,
    health: str | None,
    down_time: float,
    warning: str | None = None,
) -> Heartbeat:
    """Write the heartbeat of a process, and show the best one if possible."""
    names = {'of_host': host, 'of_binary': binary}
    locked = session.first(_LOCK_SHOWN, **names)
    # A frozen session must not make this process look dead.
    service_id = locked.id if locked else session.value(_ID, **names)
    if service_id is None or not session.run(
        _BEAT,
        of_service=service_id,
        of_incarnation=incarnation,
        new_health=health,
        new_warning=warning,
    ):
        return Heartbeat.UNKNOWN
    if locked is None:
        return Heartbeat.WRITTEN
    was_best = locked.incarnation == incarnation and locked.health is None
    if was_best and health is None:
        # It is still the best one: a better one would have written itself.
        session.run(_SHOW_AGAIN, service_id=service_id, now=session.now)
    else:
        _show_best(session, service_id, down_time)
    return Heartbeat.SHOWN


def renew(
    session: Session, *, hosts: Collection[str], binary: str, incarnation: str
) -> list[str]:
    """Write the heartbeats of a process that is well on several hosts.

    Returns those hosts on which it was shown, as well, and still is; the others
    are left to `heartbeat`.
    """
    rows = session.rows(
        _LOCK_WELL, hosts=sorted(hosts), of_binary=binary, of_incarnation=incarnation
    )
    ids = [row.id for row in rows]
    if not ids:
        return []
    if session.run(_BEAT_WELL, ids=ids, of_incarnation=incarnation) != len(ids):
        return []  # each is to find out why
    session.run(_SHOW_WELL, ids=ids, now=session.now)
    return [row.host for row in rows]


def register_if_free(
    db: Database, *, host: str, binary: str, **values: typing.Any
) -> None:
    """Register a process, or leave it to a later heartbeat.

    That happens if another session has locked the row of the service.
    """
    try:
        db.write(register, host=host, binary=binary, retry_limit=ROW_PATIENCE, **values)
    except exception.DatabaseBusy as busy:
        LOG.warning(
            '%s on %s is not registered yet: %s', binary, host, busy.__cause__ or busy
        )


def beat(
    db: Database, *, host: str, binary: str, down_time: float, **values: typing.Any
) -> bool:
    """Write the heartbeat of a process; False if it is not registered.

    The row of the service shows it as soon as it is free: of simultaneous
    heartbeats the last one to lock the row has seen all others.
    """
    service: dict[str, typing.Any] = {
        'host': host,
        'binary': binary,
        'down_time': down_time,
    }
    found = db.write(heartbeat, **service, **values)
    if found is Heartbeat.WRITTEN:
        try:
            db.write(show, **service, retry_limit=ROW_PATIENCE)
        except exception.DatabaseBusy as busy:
            LOG.warning(
                'The heartbeat of %s on %s is not shown yet: %s',
                binary,
                host,
                busy.__cause__ or busy,
            )
    return found is not Heartbeat.UNKNOWN


def show(session: Session, *, host: str, binary: str, down_time: float) -> None:
    """Show the best process of a service; raises ServiceLocked."""
    service_id = _lock(session, host, binary)
    if service_id is not None:
        _show_best(session, service_id, down_time)


def deregister(
    session: Session, *, host: str, binary: str, incarnation: str, down_time: float
) -> None:
    """Record that a process has ended.

    The service of a host without any process is down at once. Raises
    ServiceLocked.
    """
    service_id = _lock(session, host, binary)
    if (
        service_id is not None
        and session.run(_END, of_service=service_id, of_incarnation=incarnation)
        and not _show_best(session, service_id, down_time)
    ):
        session.run(_STOP, service_id=service_id, now=session.now)


def deregister_all(session: Session) -> None:
    """Record that no process is alive.

    Only for a process that knows that it uses the database alone.
    """
    session.run(sa.delete(INCARNATION))


def forget(session: Session, incarnation: str) -> None:
    """Record that a process has ended, whatever it served."""
    # By the whole key: a scan would wait for the rows of frozen processes.
    for row in session.rows(_SERVED, of_incarnation=incarnation):
        session.run(_END, of_service=row.service_id, of_incarnation=incarnation)


def mark_unserved_down(
    session: Session,
    *,
    node: str,
    binary: str,
    served: Collection[str],
    down_time: float,
) -> Sequence[str]:
    """Mark services of this node that no process serves now as down.

    `served` are the hosts in its configuration. The last heartbeat of the
    others no longer counts, so that they get no new shares. Returns their
    hosts.
    """
    hosts = []
    for row in session.rows(_UNSERVED, of_binary=binary, silence=down_time):
        if row.host not in served and row.host.rpartition('@')[0] == node:
            session.run(
                _MARK_DOWN, service_id=row.id, silence=down_time, now=session.now
            )
            hosts.append(row.host)
    return hosts


def list_of_service(session: Session, service_id: int) -> typing.Sequence[sa.Row]:
    """Return the processes of a service, with the time of the database."""
    return session.rows(_OF_SERVICE, of_service=service_id)


def problems_by_service(session: Session, down_time: float) -> dict[int, list[str]]:
    """Return what is wrong with processes that are alive, by service."""
    found: dict[int, list[str]] = {}
    for row in session.rows(_PROBLEMS, silence=down_time):
        found.setdefault(row.service_id, []).append(row.health)
    return found


def warnings_by_service(session: Session, silence: float) -> dict[int, str]:
    """Return what live processes lack, by the ids of their services."""
    return {
        row.service_id: row.warning for row in session.rows(_WARNINGS, silence=silence)
    }


def list_starting(session: Session, binary: str, silence: float) -> Sequence[str]:
    """Return the enabled hosts whose process has yet to become ready.

    Those that are stopping or were stopped count as well. Those without a
    heartbeat for `silence` seconds do not count.
    """
    return [
        row.host for row in session.rows(_STARTING, of_binary=binary, silence=silence)
    ]


def _lock(session: Session, host: str, binary: str) -> int | None:
    """Lock the row of a service and return its id; None if there is none."""
    names = {'of_host': host, 'of_binary': binary}
    service_id = session.value(_LOCK, **names)
    if service_id is None and session.value(_ID, **names) is not None:
        raise ServiceLocked
    return service_id


def _show_best(session: Session, service_id: int, down_time: float) -> bool:
    """Show the best process in the row of the service, which is locked.

    Returns whether there is any.
    """

    def rank(row: typing.Any) -> tuple[bool, bool, float]:
        alive = row.now - row.heartbeat_at <= down_time
        return alive and row.health is None, alive, row.started_at

    best = max(session.rows(_OF_SERVICE, of_service=service_id), key=rank, default=None)
    if best is None:
        return False
    session.run(
        _SHOW,
        service_id=service_id,
        new_incarnation=best.incarnation,
        new_heartbeat=best.heartbeat_at,
        new_health=best.health,
        now=session.now,
    )
    return True
