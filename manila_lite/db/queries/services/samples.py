"""A ring of samples: what is measured, written once per slot, and pruned.

Only the cloud and its pools are measured, so the number of rows is bounded by
that of the pools.
"""

from collections.abc import Mapping, Sequence
import datetime
import functools
import typing

import orjson
import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.queries.services import pools
from manila_lite.db.session import Session
from manila_lite.db.tables import CALL, SAMPLE, WORK

FINE, DAY = 300, 86400
"""The resolutions, in seconds."""

KEPT = {FINE: 7 * DAY // FINE, DAY: 365}
"""The number of slots that are kept, by resolution."""

CLOUD = ''
"""The source of what is measured of the whole cloud."""

LONGEST_CALL = 3600
"""Seconds that a call may have taken to be counted when it ends."""

MOST_CALLS, MOST_WORK = 10_000, 5000
"""Rows that a sample reads at most."""

API_PROCESS = 'api/'
"""Begins the source of what a process of the API has measured, before its id.

The sample of the cloud takes it over, and then it is deleted.
"""

_PRUNED_SLOTS = 50
"""Slots that one pass deletes at most."""

Figures = Mapping[str, float | None]

_OF_SLOT = (
    SAMPLE.c.source == sa.bindparam('of_source'),
    SAMPLE.c.resolution == sa.bindparam('of_resolution'),
    SAMPLE.c.slot == sa.bindparam('of_slot'),
)
_EXISTS = sa.select(SAMPLE.c.slot).where(*_OF_SLOT)
_INSERT = sa.insert(SAMPLE)
_OF_RESOLUTION = SAMPLE.c.resolution == sa.bindparam('of_resolution')
_OLDEST = (
    sa.select(SAMPLE.c.slot).where(_OF_RESOLUTION).order_by(SAMPLE.c.slot).limit(1)
)
_PRUNE = sa.delete(SAMPLE).where(
    _OF_RESOLUTION, SAMPLE.c.slot <= sa.bindparam('last_slot')
)
_LIST = (
    sa.select(SAMPLE.c.slot, SAMPLE.c.figures)
    .where(*_OF_SLOT[:2], SAMPLE.c.slot >= sa.bindparam('first_slot'))
    .order_by(SAMPLE.c.slot)
)
_NOW = sa.select(db_now())
_CALLS = (
    sa.select(CALL.c.started_at, CALL.c.ended_at, CALL.c.outcome)
    .where(
        CALL.c.started_at >= sa.bindparam('first_start'),
        CALL.c.started_at < sa.bindparam('end'),
        CALL.c.ended_at >= sa.bindparam('begin'),
        CALL.c.ended_at < sa.bindparam('end'),
    )
    .order_by(CALL.c.started_at.desc())
    .limit(MOST_CALLS)
)
_QUEUED = sa.select(WORK.c.id).where(WORK.c.state == 'queued').limit(MOST_WORK)


_UPDATE = sa.update(SAMPLE).where(*_OF_SLOT).values(figures=sa.bindparam('text'))
_FIGURES = sa.select(SAMPLE.c.figures).where(*_OF_SLOT)
_OF_API = SAMPLE.c.source.startswith(API_PROCESS, autoescape=True)
_LIST_OF_API = sa.select(SAMPLE.c.figures).where(*_OF_SLOT[1:], _OF_API)
_DELETE_OF_API = sa.delete(SAMPLE).where(
    _OF_RESOLUTION, SAMPLE.c.slot <= sa.bindparam('last_slot'), _OF_API
)
_LIST_OF_SOURCES = (
    sa.select(SAMPLE.c.source, SAMPLE.c.slot, SAMPLE.c.figures)
    .where(
        SAMPLE.c.source.in_(sa.bindparam('sources', expanding=True)),
        _OF_RESOLUTION,
        SAMPLE.c.slot >= sa.bindparam('first_slot'),
    )
    .order_by(SAMPLE.c.slot)
)


class Latencies(typing.NamedTuple):
    """Counts of requests up to each bound in seconds; the last took longer."""

    bounds: Sequence[float]
    counts: Sequence[int]

    def plus(self, other: 'Latencies') -> 'Latencies':
        """Return the sum; counts with other bounds are left out."""
        if list(self.bounds) != list(other.bounds):
            return self
        pairs = zip(self.counts, other.counts, strict=True)
        return self._replace(counts=[one + more for one, more in pairs])

    def quantile(self, part: float) -> float | None:
        """Return the seconds that a part of the requests did not exceed."""
        wanted = part * sum(self.counts)
        below, found = 0.0, 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            if count and found + count >= wanted:
                return below + (bound - below) * (wanted - found) / count
            below, found = bound, found + count
        return below if wanted else None


class Sample(typing.NamedTuple):
    """What was measured in a slot."""

    slot: int
    figures: Figures


def find_missing(session: Session) -> dict[int, int]:
    """Return the last complete slot of each resolution that has no sample."""
    now = session.value(_NOW)
    last = {resolution: int(now // resolution) - 1 for resolution in KEPT}
    return {
        resolution: slot
        for resolution, slot in last.items()
        if not _exists(session, resolution, slot)
    }


def _exists(session: Session, resolution: int, slot: int) -> bool:
    found = session.value(
        _EXISTS, of_source=CLOUD, of_resolution=resolution, of_slot=slot
    )
    return found is not None


def measure(session: Session, resolution: int, slot: int) -> dict[str, Figures]:
    """Return the figures of a slot by their source; those of pools are current."""
    found: dict[str, Figures] = {
        row.host: {
            'total': row.total_gb,
            'used': _used(row.total_gb, row.free_gb),
            'allocated': row.allocated_gb,
        }
        for row in pools.list_sizes(session)
    }
    if resolution == FINE:
        found[CLOUD] = _measure_cloud(session, slot)
    else:
        end = (slot + 1) * DAY // FINE
        fine = read(session, CLOUD, FINE, slot * DAY // FINE)
        found[CLOUD] = _summary([one for one in fine if one.slot < end])
    return found


def _used(total: float | None, free: float | None) -> float | None:
    return None if total is None or free is None else total - free


def _measure_cloud(session: Session, slot: int) -> Figures:
    begin = datetime.datetime.fromtimestamp(slot * FINE, datetime.UTC)
    begin = begin.replace(tzinfo=None)
    rows = session.rows(
        _CALLS,
        first_start=begin - datetime.timedelta(seconds=LONGEST_CALL),
        begin=begin,
        end=begin + datetime.timedelta(seconds=FINE),
    )
    times = sorted((row.ended_at - row.started_at).total_seconds() for row in rows)
    return {
        'per_minute': len(rows) * 60 / FINE,
        'p95': times[(95 * len(times) - 1) // 100] if times else None,
        'api_p95': _api_p95(session, slot),
        'failures': sum(row.outcome == 'failed' for row in rows),
        'queued': len(session.rows(_QUEUED)),
    }


def _api_p95(session: Session, slot: int) -> float | None:
    """Return the latency of the API of all processes together."""
    rows = session.rows(_LIST_OF_API, of_resolution=FINE, of_slot=slot)
    found = [Latencies(**orjson.loads(row.figures)) for row in rows]
    return functools.reduce(Latencies.plus, found).quantile(0.95) if found else None


def add_latencies(session: Session, process_id: str, found: Latencies) -> None:
    """Add the requests that a process has answered to the present slot."""
    key = {
        'of_source': API_PROCESS + process_id,
        'of_resolution': FINE,
        'of_slot': int(session.value(_NOW) // FINE),
    }
    before = session.value(_FIGURES, **key)
    if before is not None:
        found = Latencies(**orjson.loads(before)).plus(found)
        session.run(_UPDATE, **key, text=_as_text(found._asdict()))
        return
    values = {name.removeprefix('of_'): value for name, value in key.items()}
    session.run(_INSERT, **values, figures=_as_text(found._asdict()))


def _as_text(figures: object) -> str:
    return orjson.dumps(figures).decode()


def _summary(found: Sequence[Sample]) -> Figures:
    """Return the figures of a day: its mean rate, worst time, failures, queue."""

    def values(name: str) -> list[float]:
        figures = (one.figures.get(name) for one in found)
        return [value for value in figures if value is not None]

    rates = values('per_minute')
    return {
        'per_minute': sum(rates) / len(rates) if rates else None,
        'p95': max(values('p95'), default=None),
        'api_p95': max(values('api_p95'), default=None),
        'failures': sum(values('failures')) if rates else None,
        'queued': max(values('queued'), default=None),
    }


def record(
    session: Session, resolution: int, slot: int, figures: Mapping[str, Figures]
) -> bool:
    """Write the samples of a slot, all or none; False if they are there.

    Of two processes that write a slot, the key refuses the second one, whose
    transaction then runs again and finds the samples.
    """
    if _exists(session, resolution, slot):
        return False
    rows = [
        {
            'source': source,
            'resolution': resolution,
            'slot': slot,
            'figures': _as_text(one),
        }
        for source, one in figures.items()
    ]
    session.insert_unique_rows(_INSERT, rows)
    if resolution == FINE:
        session.run(_DELETE_OF_API, of_resolution=FINE, last_slot=slot)
    return True


def prune(session: Session, resolution: int, newest: int) -> int:
    """Delete the oldest slots beyond those kept, some at a time."""
    oldest = session.value(_OLDEST, of_resolution=resolution)
    last = newest - KEPT[resolution]
    if oldest is None or oldest > last:
        return 0
    last = min(last, oldest + _PRUNED_SLOTS - 1)
    return session.run(_PRUNE, of_resolution=resolution, last_slot=last)


def read(
    session: Session, source: str, resolution: int, first_slot: int
) -> list[Sample]:
    """Return the samples of a source from a slot on, the oldest first."""
    rows = session.rows(
        _LIST, of_source=source, of_resolution=resolution, first_slot=first_slot
    )
    return [Sample(row.slot, orjson.loads(row.figures)) for row in rows]


def read_of_sources(
    session: Session, sources: Sequence[str], resolution: int, first_slot: int
) -> dict[str, list[Sample]]:
    """Return the samples of several sources like `read`, by source."""
    found: dict[str, list[Sample]] = {}
    for row in session.rows(
        _LIST_OF_SOURCES,
        sources=sorted(sources),
        of_resolution=resolution,
        first_slot=first_slot,
    ):
        sample = Sample(row.slot, orjson.loads(row.figures))
        found.setdefault(row.source, []).append(sample)
    return found
