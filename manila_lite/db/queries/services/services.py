"""Services, and the tasks that one of them runs for the whole cluster."""

import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.dialects import db_now
from manila_lite.db.rows import LivenessRow, ServiceRow, ZoneRow
from manila_lite.db.session import Session
from manila_lite.db.tables import POOL, SERVICE, TASK, WORK, ZONE

_LIST = (
    sa.select(SERVICE, ZONE.c.name.label('zone'), db_now().label('now'))
    .select_from(SERVICE.join(ZONE))
    .order_by(SERVICE.c.id)
)
_ONE = _LIST.where(
    SERVICE.c.host == sa.bindparam('of_host'),
    SERVICE.c.binary == sa.bindparam('of_binary'),
)
_ONE_LOCKED = _ONE.with_for_update(of=SERVICE)
_LOCK_IF_FREE = (
    sa.select(SERVICE.c.id)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .with_for_update(skip_locked=True)
)
_ENSURE = (
    sa.update(SERVICE)
    .where(SERVICE.c.id == sa.bindparam('service_id'))
    .values(ensuring=True)
)
_BEGIN_ENSURING = _ENSURE.where(SERVICE.c.ensuring.is_(False))
_RESTART_ENSURING = _ENSURE.values(backend_info=sa.bindparam('new_info'))
_FINISH_ENSURING = (
    sa.update(SERVICE)
    .where(
        SERVICE.c.id == sa.bindparam('service_id'),
        ~sa.exists().where(WORK.c.id == sa.bindparam('work_id')),
    )
    .values(ensuring=False)
)
_ZONES = sa.select(ZONE).where(
    sa.or_(ZONE.c.id == sa.bindparam('wanted'), ZONE.c.name == sa.bindparam('wanted'))
)
_ZONE_ID = sa.select(ZONE.c.id).where(ZONE.c.name == sa.bindparam('of_name'))


def get_or_create_zone_id(session: Session, name: str) -> str:
    """Return the id of a zone; the zone is created if necessary."""
    found = session.value(_ZONE_ID, of_name=name)
    if found is None:
        found = session.new_id()
        session.insert_unique(
            sa.insert(ZONE), id=found, name=name, created_at=session.now
        )
    return found


def list_all(session: Session) -> typing.Sequence[ServiceRow]:
    """Return all services with their zones and the database time."""
    return session.rows(_LIST)


def get(session: Session, host: str, binary: str, *, lock: bool = False) -> ServiceRow:
    """Return one service; raises ServiceNotFound.

    With `lock` the service is locked.
    """
    row = find(session, host, binary, lock=lock)
    if row is None:
        raise exception.ServiceNotFound(binary=binary, host=host)
    return row


def find(
    session: Session, host: str, binary: str, *, lock: bool = False
) -> ServiceRow | None:
    """Return one service, or None; with `lock` it is locked."""
    return session.first(_ONE_LOCKED if lock else _ONE, of_host=host, of_binary=binary)


def is_up(row: LivenessRow, down_time: float) -> bool:
    """Whether the process is alive and its driver, if any, is ready."""
    return row.health is None and row.now - row.heartbeat_at <= down_time


def is_any_up(session: Session, binary: str, down_time: float) -> bool:
    """Whether any service of a binary is up."""
    return any(
        row.binary == binary and is_up(row, down_time) for row in list_all(session)
    )


def remove(session: Session, service: ServiceRow) -> None:
    """Delete a service with its processes and its pools."""
    if service.binary == 'manila-share':
        session.run(sa.delete(POOL).where(POOL.c.service_host == service.host))
    session.run(sa.delete(SERVICE).where(SERVICE.c.id == service.id))


def set_disabled(
    session: Session, host: str, binary: str, disabled: bool, reason: str | None
) -> None:
    """Enable or disable scheduling to a service."""
    if (
        session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == host, SERVICE.c.binary == binary)
            .values(disabled=disabled, disabled_reason=reason, updated_at=session.now)
        )
        != 1
    ):
        raise exception.ServiceNotFound(binary=binary, host=host)


def lock_if_free(session: Session, service_id: int) -> bool:
    """Lock a service; False if another transaction has locked it."""
    return session.value(_LOCK_IF_FREE, service_id=service_id) is not None


def begin_ensuring(session: Session, service_id: int) -> bool:
    """Record that shares are being ensured; False if they are already."""
    return session.run(_BEGIN_ENSURING, service_id=service_id) == 1


def restart_ensuring(
    session: Session, service_id: int, backend_info: str | None
) -> None:
    """Begin to ensure shares again, because the back end has changed."""
    session.run(_RESTART_ENSURING, service_id=service_id, new_info=backend_info)


def finish_ensuring(session: Session, service_id: int, work_id: str) -> None:
    """Record that shares are ensured, unless this work is still owed."""
    session.run(_FINISH_ENSURING, service_id=service_id, work_id=work_id)


def find_zone(session: Session, name_or_id: str) -> ZoneRow | None:
    """Return the zone with this name, or else with this id."""
    return min(
        session.rows(_ZONES, wanted=name_or_id),
        key=lambda zone: zone.name != name_or_id,
        default=None,
    )


def list_zones(session: Session) -> typing.Sequence[ZoneRow]:
    return session.rows(sa.select(ZONE).order_by(ZONE.c.name))


_IS_TASK = TASK.c.name == sa.bindparam('of_task')
_IS_OWN = (_IS_TASK, TASK.c.owner == sa.bindparam('of_owner'))
_LEASE = db_now() + sa.bindparam('lease', type_=sa.Double())
_IS_FREE = sa.or_(TASK.c.owner.is_(None), TASK.c.lease_until < db_now())
_IS_CLAIMABLE = (TASK.c.due_at <= db_now(), _IS_FREE)

_FIND = sa.select(sa.and_(*_IS_CLAIMABLE)).where(_IS_TASK)
_INSERT = sa.insert(TASK).values(due_at=db_now())
_CLAIM_EARLY = (
    sa.update(TASK)
    .where(_IS_TASK, _IS_FREE)
    .values(owner=sa.bindparam('new_owner'), lease_until=_LEASE)
)
_CLAIM = _CLAIM_EARLY.where(TASK.c.due_at <= db_now())
_RENEW = sa.update(TASK).where(*_IS_OWN).values(lease_until=_LEASE)
_FINISH = (
    sa.update(TASK)
    .where(*_IS_OWN)
    .values(
        owner=None,
        lease_until=None,
        due_at=db_now() + sa.bindparam('pause', type_=sa.Double()),
    )
)


def is_claimable(session: Session, name: str) -> bool:
    """Whether a task is due and no living process runs it."""
    return session.value(_FIND, of_task=name) in (None, True)


def claim(
    session: Session, name: str, owner: str, lease: float, *, early: bool = False
) -> bool:
    """Claim a task for `lease` seconds if it is free.

    It must be due, unless it is claimed `early`.
    """
    if session.value(_FIND, of_task=name) is None:
        session.insert_unique(_INSERT, name=name)
    statement = _CLAIM_EARLY if early else _CLAIM
    return bool(session.run(statement, of_task=name, new_owner=owner, lease=lease))


def renew(session: Session, name: str, owner: str, lease: float) -> bool:
    """Renew the lease; return False if another process has the task.

    In the transaction of a step it ensures that no other process performs the
    same step: the row stays locked until the commit.
    """
    return bool(session.run(_RENEW, of_task=name, of_owner=owner, lease=lease))


def finish(session: Session, name: str, owner: str, pause: float) -> None:
    """Release a task, which is due again after `pause` seconds."""
    session.run(_FINISH, of_task=name, of_owner=owner, pause=pause)


_DELETE = sa.delete(TASK).where(TASK.c.name == sa.bindparam('of_task'))


def probe_write(session: Session) -> None:
    """Insert a row and delete it.

    It is a row of its own, so that no other process can hold its lock.
    """
    name = f'write probe {session.new_id()}'
    session.run(_INSERT, name=name)
    session.run(_DELETE, of_task=name)
