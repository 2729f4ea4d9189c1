"""The releases of live processes, which decide what may run and be sent."""

import collections
import dataclasses
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception, release
from manila_lite.db import schema
from manila_lite.db.dialects import db_now
from manila_lite.db.session import Session
from manila_lite.db.tables import INCARNATION, SERVICE, WORK


@dataclasses.dataclass(frozen=True)
class Release:
    """What a process records about its release.

    `schema_version` is the newest revision of the schema that it knows.
    """

    number: int
    version: str
    schema_version: str


@functools.cache
def current() -> Release:
    """Return the release of this code."""
    return Release(release.NUMBER, release.version(), schema.HEAD)


class ProcessRow(typing.Protocol):
    """A process and its release; unknown are those of the first release."""

    binary: str
    host: str
    incarnation: str
    release_number: int
    version: str | None
    schema_version: str | None


class WaitingRow(typing.Protocol):
    """Work that no live process of its queue knows, counted."""

    kind: str
    queue: str
    needs_release: int
    number: int


class ContractionTooEarly(exception.ManilaLiteError):
    message = (
        'The schema of this release does not serve processes that know none '
        'after {oldest}, but {others} within the last {down_time:g} s. '
        'Upgrade or stop them first.'
    )


class ReleasesTooFarApart(exception.ManilaLiteError):
    message = (
        'This is release {number}, but {others} within the last '
        '{down_time:g} s. Only successive releases run together: upgrade or '
        'downgrade one release at a time, or stop the others first.'
    )


_RELEASE = sa.func.coalesce(INCARNATION.c.release_number, release.FIRST)
_SILENCE: sa.BindParameter[float] = sa.bindparam('silence', type_=sa.Double())
_IS_LIVE = INCARNATION.c.heartbeat_at >= db_now() - _SILENCE
_LIVE = (
    sa.select(
        SERVICE.c.binary,
        SERVICE.c.host,
        INCARNATION.c.incarnation,
        _RELEASE.label('release_number'),
        INCARNATION.c.version,
        INCARNATION.c.schema_version,
    )
    .select_from(INCARNATION.join(SERVICE))
    .where(_IS_LIVE)
    .order_by(SERVICE.c.binary, SERVICE.c.host, INCARNATION.c.started_at)
)
_NEWEST = (
    sa.select(sa.func.max(_RELEASE))
    .select_from(INCARNATION.join(SERVICE))
    .where(
        _IS_LIVE,
        SERVICE.c.topic == WORK.c.topic,
        sa.or_(SERVICE.c.host == WORK.c.queue, WORK.c.queue == WORK.c.topic),
    )
    .correlate(WORK)
    .scalar_subquery()
)
_WAITING = (
    sa.select(
        WORK.c.kind, WORK.c.queue, WORK.c.needs_release, sa.func.count().label('number')
    )
    .where(WORK.c.needs_release > _NEWEST)
    .group_by(WORK.c.kind, WORK.c.queue, WORK.c.needs_release)
    .order_by(WORK.c.queue, WORK.c.kind)
)
_KINDS = (
    sa.select(WORK.c.kind, sa.func.count().label('number'))
    .group_by(WORK.c.kind)
    .order_by(WORK.c.kind)
)
# As a schema before 0032 has it.
_LIVE_UNRECORDED = _LIVE.with_only_columns(
    SERVICE.c.binary,
    SERVICE.c.host,
    INCARNATION.c.incarnation,
    sa.literal(release.FIRST).label('release_number'),
    sa.null().label('version'),
    sa.null().label('schema_version'),
)


_OLDEST = (
    sa.select(sa.func.min(_RELEASE))
    .select_from(INCARNATION.join(SERVICE))
    .where(_IS_LIVE, SERVICE.c.topic == sa.bindparam('of_topic'))
)
_OLDEST_ON_HOST = _OLDEST.where(SERVICE.c.host == sa.bindparam('of_host'))
_NUMBERS = (
    sa.select(INCARNATION.c.service_id, _RELEASE.label('release_number'))
    .distinct()
    .order_by(INCARNATION.c.service_id, _RELEASE)
)

Numbers = dict[int, list[int]]
"""The releases of the processes of each service."""


def numbers_by_service(session: Session) -> Numbers:
    """Return the releases of all processes, by the ids of their services."""
    found: Numbers = collections.defaultdict(list)
    for row in session.rows(_NUMBERS):
        found[row.service_id].append(row.release_number)
    return found


def number_of(row: typing.Any) -> int:
    """Return the release of the row of a process."""
    return release.FIRST if row.release_number is None else row.release_number


def list_live(session: Session, silence: float) -> typing.Sequence[ProcessRow]:
    """Return the processes with a heartbeat in the last `silence` seconds."""
    return session.rows(_LIVE, silence=silence)


def list_live_in_any_schema(
    session: Session, silence: float
) -> typing.Sequence[ProcessRow]:
    """Like `list_live`, also from a schema without releases or processes."""
    inspector = sa.inspect(session.connection)
    if not inspector.has_table(INCARNATION.name):
        return []
    columns = {one['name'] for one in inspector.get_columns(INCARNATION.name)}
    return session.rows(
        _LIVE if 'release_number' in columns else _LIVE_UNRECORDED, silence=silence
    )


def oldest(
    session: Session, topic: str, host: str | None, silence: float
) -> int | None:
    """Return the oldest release of the live processes of a topic.

    With `host`, only those on that host count. None if there is no process.
    """
    if host is None:
        return session.value(_OLDEST, of_topic=topic, silence=silence)
    return session.value(_OLDEST_ON_HOST, of_topic=topic, of_host=host, silence=silence)


def check(session: Session, own: Release, down_time: float) -> None:
    """Refuse to run beside processes of releases that are too far away.

    Raises ReleasesTooFarApart, which names them.
    """
    require_near(list_live(session, down_time), own, down_time)


def require_near(
    found: typing.Iterable[ProcessRow], own: Release, down_time: float
) -> None:
    """Raise ReleasesTooFarApart if one of these processes is too far away."""
    far = [
        row for row in found if abs(row.release_number - own.number) > release.DISTANCE
    ]
    if far:
        raise ReleasesTooFarApart(
            number=own.number, others=describe(far), down_time=down_time
        )


def check_contraction(
    session: Session, down_time: float, *, oldest_served: str = schema.OLDEST_SERVED
) -> None:
    """Refuse a migration that would break live processes.

    Raises ContractionTooEarly, which names them.
    """
    if (schema.find_oldest_served(session) or '') >= oldest_served:
        return  # nothing is contracted
    unserved = [
        row
        for row in list_live_in_any_schema(session, down_time)
        if (row.schema_version or schema.FIRST_RELEASED) < oldest_served
    ]
    if unserved:
        raise ContractionTooEarly(
            oldest=oldest_served, others=describe(unserved), down_time=down_time
        )


def list_waiting(session: Session, silence: float) -> typing.Sequence[WaitingRow]:
    """Count the work that needs an upgrade of the processes of its queue.

    Work of queues without a live process is left out.
    """
    return session.rows(_WAITING, silence=silence)


def count_kinds(session: Session) -> typing.Sequence[typing.Any]:
    """Return the number of all unfinished work per kind."""
    return session.rows(_KINDS)


def describe(rows: typing.Iterable[ProcessRow]) -> str:
    """Return which services run as which release."""
    found = sorted({(row.binary, row.host, row.release_number) for row in rows})
    return ', '.join(
        f'{binary} on {host} ran as release {number}' for binary, host, number in found
    )
