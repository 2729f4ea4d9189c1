"""Which disk belongs to which pool or root.

A row is changed only by guarded statements: names and disks stay together until
an administrator changes that.
"""

from collections.abc import Sequence
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.queries.shares.instances import WITHOUT_DATA
from manila_lite.db.rows import DiskRow
from manila_lite.db.session import ConcurrentChange, Session
from manila_lite.db.tables import (
    DISK,
    GROUP,
    INCARNATION,
    INSTANCE,
    POOL,
    SERVER,
    SERVICE,
    SHARE,
    SNAPSHOT_INSTANCE as SNAPSHOT,
)
from manila_lite.host import Host
from manila_lite.states.share_instance import InstanceStatus

_LIST = sa.select(DISK).order_by(DISK.c.host)
_AT = sa.select(DISK).where(DISK.c.host == sa.bindparam('of_host'))
_OF = sa.select(DISK).where(DISK.c.identity == sa.bindparam('of_identity'))
_SET = (
    sa.update(DISK)
    .where(DISK.c.host == sa.bindparam('of_host'))
    .values(
        identity=sa.bindparam('new_identity'),
        file_system=sa.bindparam('new_file_system'),
        location=sa.bindparam('new_location'),
        updated_at=sa.bindparam('now'),
    )
)
_REPLACE = _SET.where(DISK.c.identity == sa.bindparam('old_identity'))
_REPLACE_LOST = _SET.where(DISK.c.identity.is_(None))
_SERVED_BY_OTHERS = sa.select(INCARNATION.c.incarnation).where(
    INCARNATION.c.service_id == SERVICE.c.id,
    SERVICE.c.host == sa.bindparam('of_service'),
    SERVICE.c.binary == 'manila-share',
    INCARNATION.c.incarnation != sa.bindparam('except_incarnation'),
    INCARNATION.c.heartbeat_at >= db_now() - sa.bindparam('silence', type_=sa.Double()),
)
_IS_HERE = sa.or_(
    INSTANCE.c.host == sa.bindparam('of_host'),
    INSTANCE.c.service_host == sa.bindparam('of_host'),
)
_HAS_DATA = INSTANCE.c.status.not_in(WITHOUT_DATA)
_EXPECTED = (
    sa.select(INSTANCE.c.id)
    .where(_IS_HERE, _HAS_DATA)
    .order_by(INSTANCE.c.id)
    .limit(sa.bindparam('most', type_=sa.Integer()))
)
_ANY_MADE = (
    sa.select(INSTANCE.c.id)
    .where(_IS_HERE, sa.or_(_HAS_DATA, INSTANCE.c.launched_at.is_not(None)))
    .limit(1)
)
_COST = sa.select(
    sa.func.count(), sa.func.coalesce(sa.func.sum(SHARE.c.size), 0)
).select_from(INSTANCE.join(SHARE))


class Cost(typing.NamedTuple):
    """What is lost with a disk."""

    shares: int
    snapshots: int
    gigabytes: int


def list_all(session: Session) -> Sequence[DiskRow]:
    """Return the disks of all pools, by name."""
    return session.rows(_LIST)


def find_at(session: Session, host: str) -> DiskRow | None:
    """Return the disk of a pool or root, or None."""
    return session.first(_AT, of_host=host)


def find_of(session: Session, identity: str) -> DiskRow | None:
    """Return where a disk belongs, or None."""
    return session.first(_OF, of_identity=identity)


def insert(
    session: Session, host: str, identity: str, file_system: str | None, location: str
) -> None:
    """Record the disk of a name; neither is known yet."""
    session.insert_unique(
        sa.insert(DISK),
        host=host,
        identity=identity,
        file_system=file_system,
        location=location,
        created_at=session.now,
    )


def replace(
    session: Session,
    host: str,
    old: str | None,
    identity: str | None,
    file_system: str | None,
    location: str | None,
) -> bool:
    """Record another disk of a name; False if it no longer has the old one."""
    guard = {} if old is None else {'old_identity': old}
    try:
        return bool(
            session.run(
                _REPLACE_LOST if old is None else _REPLACE,
                of_host=host,
                new_identity=identity,
                new_file_system=file_system,
                new_location=location,
                now=session.now,
                **guard,
            )
        )
    except db_exc.DBDuplicateEntry as error:
        raise ConcurrentChange(table=DISK.name) from error


def is_served_by_others(
    session: Session, service_host: str, incarnation: str, silence: float
) -> bool:
    """Whether another process of a back end has had a recent heartbeat."""
    return (
        session.value(
            _SERVED_BY_OTHERS,
            of_service=service_host,
            except_incarnation=incarnation,
            silence=silence,
        )
        is not None
    )


def list_expected(session: Session, host: str, most: int) -> Sequence[str]:
    """Return share instances that users rely on, of a pool or back end."""
    return [row.id for row in session.rows(_EXPECTED, of_host=host, most=most)]


def has_shares(session: Session, host: str) -> bool:
    """Whether a share that is still recorded was ever created on a pool or back end."""
    return session.value(_ANY_MADE, of_host=host) is not None


def is_declared_lost(session: Session, service_host: str) -> bool:
    """Whether a disk of a back end was declared lost, and none is new."""
    return any(
        row.identity is None and Host.parse(row.host).service_host == service_host
        for row in list_all(session)
    )


def count_cost(session: Session, host: str) -> Cost:
    """Return what is on a pool or back end."""
    here = sa.or_(INSTANCE.c.host == host, INSTANCE.c.service_host == host)
    count, gigabytes = session.first(_COST.where(here))
    found = session.value(
        sa.select(sa.func.count())
        .select_from(
            SNAPSHOT.join(INSTANCE, INSTANCE.c.id == SNAPSHOT.c.share_instance_id)
        )
        .where(here)
    )
    return Cost(count, found, int(gigabytes))


def mark_lost(session: Session, host: str) -> None:
    """Accept any disk as the next one of a pool or root."""
    values = {'identity': None, 'file_system': None, 'location': None}
    if not session.run(sa.update(DISK).where(DISK.c.host == host).values(**values)):
        session.insert_unique(
            sa.insert(DISK), host=host, created_at=session.now, **values
        )


def ensure_at_start(session: Session, service_host: str) -> None:
    """Make a back end compare its shares with its storage when it starts."""
    session.run(
        sa.update(SERVICE)
        .where(SERVICE.c.host == service_host, SERVICE.c.binary == 'manila-share')
        .values(backend_info=None)
    )


def has_bound_resources(session: Session, host: str) -> bool:
    """Whether a back end has resources that cannot follow its disk elsewhere."""
    service_host = Host.parse(host).service_host
    queries = (
        sa.select(SERVER.c.id).where(
            sa.or_(
                SERVER.c.host == service_host,
                SERVER.c.host.startswith(f'{service_host}#', autoescape=True),
            )
        ),
        sa.select(GROUP.c.id).where(GROUP.c.service_host == service_host),
        sa.select(INSTANCE.c.id).where(
            INSTANCE.c.service_host == service_host,
            INSTANCE.c.replica_state.is_not(None),
        ),
        sa.select(INSTANCE.c.id).where(
            INSTANCE.c.service_host == service_host,
            INSTANCE.c.status.in_(
                [
                    InstanceStatus.MIGRATING,
                    InstanceStatus.MIGRATING_TO,
                    InstanceStatus.SERVER_MIGRATING,
                ]
            ),
        ),
    )
    return any(session.value(query.limit(1)) is not None for query in queries)


def move(session: Session, old: str, new: str) -> int:
    """Move a disk and its shares to another name; return their number.

    The pools report themselves again when the back end starts.
    """
    session.run(sa.delete(DISK).where(DISK.c.host == new))
    session.run(
        sa.update(DISK)
        .where(DISK.c.host == old)
        .values(host=new, updated_at=session.now)
    )
    count = 0
    hosts = sa.select(INSTANCE.c.host).distinct()
    for row in session.rows(hosts.where(_IS_HERE), of_host=old):
        target = str(Host(new, Host.parse(row.host).pool))
        if Host.parse(new).pool:
            target = new
        count += session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.host == row.host)
            .values(host=target, updated_at=session.now)
        )
        for pool in (row.host, target):
            session.run(sa.delete(POOL).where(POOL.c.host == pool))
    return count
