"""Pools: the reports of back ends, and our allocations.

`allocated_gb` is changed only by the guarded or relative UPDATEs here, so
that it always equals the sum of the sizes of the instances on the pool and
of what running migrations of share servers have reserved there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import datetime
import functools
import typing

import orjson
import sqlalchemy as sa

from manila_lite import masking
from manila_lite.db.dialects import db_now, larger_of
from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import PoolAllocationRow, PoolReportRow, PoolRow, PoolSizeRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE,
    POOL,
    SERVER_MIGRATION as MIGRATION,
    SERVICE,
    SHARE,
    WORK,
    ZONE,
)
from manila_lite.states.share_instance import InstanceStatus

_LOCKED = POOL.alias('locked')

_LIST = (
    sa.select(
        POOL,
        SERVICE.c.heartbeat_at,
        SERVICE.c.disabled,
        SERVICE.c.health,
        db_now().label('now'),
        ZONE.c.id.label('zone_id'),
        ZONE.c.name.label('zone'),
    )
    .select_from(
        POOL.join(
            SERVICE,
            sa.and_(
                SERVICE.c.host == POOL.c.service_host,
                SERVICE.c.binary == 'manila-share',
            ),
        ).join(ZONE, ZONE.c.id == SERVICE.c.availability_zone_id)
    )
    .order_by(POOL.c.host)
)
_ALLOCATIONS = sa.select(*columns(PoolAllocationRow, POOL)).order_by(POOL.c.host)
_SIZES = sa.select(
    POOL.c.host, POOL.c.total_gb, POOL.c.free_gb, POOL.c.allocated_gb
).order_by(POOL.c.host)
_REPORTS = sa.select(*columns(PoolReportRow, POOL)).where(
    POOL.c.host.in_(sa.bindparam('hosts', expanding=True))
)
_FIGURES = (
    sa.select(
        POOL.c.host,
        POOL.c.total_gb,
        POOL.c.free_gb,
        POOL.c.allocated_gb,
        POOL.c.pending_gb,
        POOL.c.reported_at,
    )
    .where(POOL.c.service_host == sa.bindparam('of_service'))
    .order_by(POOL.c.host)
)
_IS_POOL = POOL.c.host == sa.bindparam('of_host')
_IS_SAME_REPORT = POOL.c.reported_at == sa.bindparam('seen_at', type_=sa.Double())
_SERVICE_IS_OPEN = sa.exists().where(
    SERVICE.c.host == POOL.c.service_host,
    SERVICE.c.binary == 'manila-share',
    SERVICE.c.disabled.is_(False),
    SERVICE.c.health.is_(None),
    SERVICE.c.heartbeat_at >= db_now() - sa.bindparam('down_time', type_=sa.Double()),
)


@functools.cache
def _allocate(count: int, *, lock_first: bool) -> sa.Update:
    """Return a statement that allocates on each of `count` pools that allows it.

    MariaDB locks rows in the order of the primary key. PostgreSQL locks them as
    it finds them, unless they are locked first.
    """
    numbers = range(count)
    hosts = [sa.bindparam(f'host_{one}', type_=POOL.c.host.type) for one in numbers]
    sizes = [sa.bindparam(f'gb_{one}', type_=sa.Integer()) for one in numbers]
    named = POOL.c.host.in_(hosts)
    if lock_first:
        named = POOL.c.host.in_(
            sa.select(_LOCKED.c.host)
            .where(_LOCKED.c.host.in_(hosts))
            .order_by(_LOCKED.c.host)
            .with_for_update()
        )
    allowed = [
        sa.and_(POOL.c.host == hosts[one], *_conditions(sizes[one], f'_{one}'))
        for one in numbers
    ]
    gb = sa.case(
        *((POOL.c.host == host, size) for host, size in zip(hosts, sizes, strict=True))
    )
    return (
        sa.update(POOL)
        .where(named, _SERVICE_IS_OPEN, sa.or_(*allowed))
        .values(
            allocated_gb=POOL.c.allocated_gb + gb, pending_gb=POOL.c.pending_gb + gb
        )
    )


def _conditions(
    gb: sa.BindParameter[int], suffix: str
) -> Iterator[sa.ColumnElement[bool]]:
    """Yield that a pool has not reported again, and stays within its limits."""

    def given(name: str) -> sa.BindParameter[float]:
        return sa.bindparam(name + suffix, type_=sa.Double())

    yield POOL.c.reported_at == given('reported_at')
    for column, name in (
        (POOL.c.allocated_gb, 'most_allocated'),
        (POOL.c.pending_gb, 'most_pending'),
    ):
        yield sa.or_(given(name).is_(None), column + gb <= given(name))


_EXISTS = sa.select(POOL.c.host).where(_IS_POOL)
_CHANGE = (
    sa.update(POOL)
    .where(_IS_POOL)
    .values(allocated_gb=POOL.c.allocated_gb + sa.bindparam('gb'))
)
_GROW = _CHANGE.values(pending_gb=POOL.c.pending_gb + sa.bindparam('gb'))
_IS_THICK = sa.or_(
    # Without it, a pool is thick.
    sa.not_(POOL.c.capabilities.contains('"thin_provisioning":')),
    POOL.c.capabilities.contains('"thin_provisioning":false'),
)
_RELEASE = (
    sa.update(POOL)
    .where(_IS_POOL)
    .values(
        allocated_gb=POOL.c.allocated_gb - sa.bindparam('gb'),
        pending_gb=POOL.c.pending_gb
        - sa.case(
            (
                sa.and_(
                    _IS_THICK,
                    POOL.c.reported_at < sa.bindparam('began_at', type_=sa.Double()),
                ),
                sa.bindparam('gb'),
            ),
            else_=0,
        ),
    )
)
_SET_REPORT = (
    sa.update(POOL)
    .where(_IS_POOL)
    .values(
        capabilities=sa.bindparam('new_capabilities'),
        total_gb=sa.bindparam('new_total'),
        free_gb=sa.bindparam('new_free'),
        reported_at=db_now(),
    )
)
# A report may already include what was removed while it was made.
_UPDATE_REPORT = _SET_REPORT.where(_IS_SAME_REPORT).values(
    pending_gb=larger_of(
        POOL.c.pending_gb - sa.bindparam('known_gb'), sa.bindparam('owed_gb')
    )
)
_DELETE_GONE = sa.delete(POOL).where(
    POOL.c.service_host == sa.bindparam('of_service'),
    POOL.c.host.not_in(sa.bindparam('reported', expanding=True)),
)
_ON_POOL = (
    sa.select(sa.func.coalesce(sa.func.sum(SHARE.c.size), 0))
    .select_from(INSTANCE.join(SHARE))
    .where(INSTANCE.c.host == sa.bindparam('of_host'))
)
_OF_SERVICE = sa.select(POOL.c.host, POOL.c.pending_gb, POOL.c.reported_at).where(
    POOL.c.service_host == sa.bindparam('of_service')
)
_OWED = (
    sa.select(INSTANCE.c.host, INSTANCE.c.status, SHARE.c.size, WORK.c.args)
    .select_from(WORK.join(INSTANCE, INSTANCE.c.id == WORK.c.resource_id).join(SHARE))
    .where(
        # All states, so that the index by state and queue can be used.
        WORK.c.state.in_(['queued', 'running']),
        WORK.c.queue == sa.bindparam('of_service'),
        WORK.c.resource == 'share_instance',
        INSTANCE.c.host.is_not(None),
    )
)

# While the first phase has work, the back end may not have all of the data.
_RESERVED_OF_WORK = (
    sa.select(MIGRATION.c.reserved)
    .select_from(
        WORK.join(
            MIGRATION,
            sa.and_(
                MIGRATION.c.open_for == WORK.c.resource_id,
                MIGRATION.c.reserved.is_not(None),
            ),
        )
    )
    .where(
        WORK.c.state.in_(['queued', 'running']),
        WORK.c.queue == sa.bindparam('of_service'),
        WORK.c.resource == 'share_server_task',
        WORK.c.kind.in_(
            [
                'server_migration.start_server_migration',
                'server_migration.continue_server_migration',
            ]
        ),
    )
)
_RESERVED = sa.select(MIGRATION.c.reserved).where(
    # Not null, in a form for which the index is used.
    MIGRATION.c.open_for >= '',
    MIGRATION.c.destination_host == sa.bindparam('of_service'),
    MIGRATION.c.reserved.is_not(None),
)


_CHUNK = 500  # hosts named in one statement


class PoolReport(typing.NamedTuple):
    """A driver's report about one pool; None is infinite or unknown."""

    host: str
    capabilities: dict[str, typing.Any]
    total_gb: float | None
    free_gb: float | None


class Allocation(typing.NamedTuple):
    """What to allocate on a pool within these limits; None is no limit.

    They were computed from the report of `reported_at`.
    """

    host: str
    gb: int
    reported_at: float
    most_allocated: float | None = None
    most_pending: float | None = None


class KnownAllocation(typing.NamedTuple):
    """The part of our allocations that a back end must already know.

    It is negative if more was removed. `owed_gb` is what it does not have
    yet. `reported_at` identifies the report after which they were made.
    """

    gb: int
    owed_gb: int
    reported_at: float


def list_all(session: Session) -> typing.Sequence[PoolRow]:
    """Return all pools with the liveness of their services and zones."""
    return session.rows(_LIST)


def list_of_service(session: Session, host: str) -> Sequence[sa.Row]:
    """Return the figures of a back end's pools, ordered by host."""
    return session.rows(_FIGURES, of_service=host)


def list_allocations(session: Session) -> Sequence[PoolAllocationRow]:
    """Return our allocations on all pools, ordered by host."""
    return session.rows(_ALLOCATIONS)


def list_sizes(session: Session) -> Sequence[PoolSizeRow]:
    """Return the sizes of all pools, in GiB, ordered by host."""
    return session.rows(_SIZES)


def list_reports(session: Session, hosts: Sequence[str]) -> list[PoolReportRow]:
    """Return the last reports of these pools."""
    return [
        row
        for first in range(0, len(hosts), _CHUNK)
        for row in session.rows(_REPORTS, hosts=list(hosts[first : first + _CHUNK]))
    ]


def allocate(
    session: Session,
    host: str,
    gb: int,
    reported_at: float,
    *,
    down_time: float,
    most_allocated: float | None = None,
    most_pending: float | None = None,
) -> bool:
    """Allocate on one pool; return whether it was, see `allocate_all`."""
    return allocate_all(
        session,
        [Allocation(host, gb, reported_at, most_allocated, most_pending)],
        down_time=down_time,
    )


def allocate_all(
    session: Session, allocations: Iterable[Allocation], *, down_time: float
) -> bool:
    """Allocate on different pools by one statement; return whether all were.

    If there is a newer report of a pool, or its service is down for `down_time`
    seconds, broken or disabled, nothing is allocated there: the transaction is of
    no further use then.
    """
    wanted = sorted(allocations)
    values = {
        f'{name}_{number}': value
        for number, one in enumerate(wanted)
        for name, value in one._asdict().items()
    }
    statement = _allocate(len(wanted), lock_first=session.dialect == 'postgresql')
    return session.run(statement, **values, down_time=down_time) == len(wanted)


def adjust_allocated(session: Session, host: str | None, gb: int) -> None:
    """Add a difference that needs no check, such as growth or removal."""
    if host and gb:
        session.run(_GROW if gb > 0 else _CHANGE, of_host=host, gb=gb)


def release(
    session: Session, host: str | None, gb: int, began_at: datetime.datetime
) -> None:
    """Free the room of what the back end has removed since that time (UTC).

    A thick pool has this room again at once, although the last report does
    not include it if that was made before. Only the back end knows how much of
    a thin pool a share used.
    """
    if host and gb:
        session.run(
            _RELEASE,
            of_host=host,
            gb=gb,
            began_at=began_at.replace(tzinfo=datetime.UTC).timestamp(),
        )


def add_preexisting(session: Session, host: str | None, gb: int) -> None:
    """Add data that was on the pool before we managed it.

    The free space that the back end last reported excludes it already.
    """
    if host and gb:
        session.run(_CHANGE, of_host=host, gb=gb)


def pool_exists(session: Session, host: str) -> bool:
    """Whether a back end reports this pool."""
    return session.value(_EXISTS, of_host=host) is not None


def get_known_allocations(
    session: Session, service_host: str
) -> dict[str, KnownAllocation]:
    """Return what the back end knows of allocations since the last report.

    The result is by pool. Read it before the driver is asked for a report
    and pass it to `save_report` afterwards: the report may reflect no more
    than that. Shares still to be created, extended or copied here with
    their server are not included.
    """
    owed = _owed(session, service_host)
    return {
        row.host: KnownAllocation(
            row.pending_gb - owed.get(row.host, 0),
            owed.get(row.host, 0),
            row.reported_at,
        )
        for row in session.rows(_OF_SERVICE, of_service=service_host)
    }


def _owed(session: Session, service_host: str) -> dict[str, int]:
    """Return the GiB that are allocated but not created yet, by pool."""
    owed: dict[str, int] = {}
    for row in session.rows(_OWED, of_service=service_host):
        new = row.size if row.status == InstanceStatus.CREATING else 0
        growth = orjson.loads(row.args).get('growth', 0)
        owed[row.host] = owed.get(row.host, 0) + new + growth
    for row in session.rows(_RESERVED_OF_WORK, of_service=service_host):
        for host, gb in orjson.loads(row.reserved).items():
            owed[host] = owed.get(host, 0) + gb
    return owed


def save_report(
    session: Session,
    service_host: str,
    reports: list[PoolReport],
    known: Mapping[str, KnownAllocation],
) -> None:
    """Store the reports of a back end and delete pools that are gone.

    A pool that another process of the back end has reported in the
    meantime keeps that report.
    """
    for pool in sorted(reports, key=lambda pool: pool.host):
        values = {
            'of_host': pool.host,
            'new_capabilities': _document(pool.capabilities),
            'new_total': pool.total_gb,
            'new_free': pool.free_gb,
        }
        seen = known.get(pool.host)
        if seen is not None:
            session.run(
                _UPDATE_REPORT,
                known_gb=seen.gb,
                owed_gb=seen.owed_gb,
                seen_at=seen.reported_at,
                **values,
            )
        elif not session.run(_SET_REPORT, **values):
            _insert(session, service_host, pool)
    session.run(
        _DELETE_GONE, of_service=service_host, reported=[pool.host for pool in reports]
    )


def _document(capabilities: Mapping[str, typing.Any]) -> str:
    # Users and administrators see them.
    return orjson.dumps(masking.mask_values(capabilities)).decode()


def _insert(session: Session, service_host: str, pool: PoolReport) -> None:
    growth = sum(
        orjson.loads(row.args).get('growth', 0)
        for row in session.rows(_OWED, of_service=service_host)
        if row.host == pool.host
    )
    reserved = sum(
        orjson.loads(row.reserved).get(pool.host, 0)
        for row in session.rows(_RESERVED, of_service=service_host)
    )
    session.insert_unique(
        sa.insert(POOL).values(reported_at=db_now()),
        host=pool.host,
        service_host=service_host,
        capabilities=_document(pool.capabilities),
        total_gb=pool.total_gb,
        free_gb=pool.free_gb,
        pending_gb=0,
        allocated_gb=growth + reserved + session.value(_ON_POOL, of_host=pool.host),
    )
