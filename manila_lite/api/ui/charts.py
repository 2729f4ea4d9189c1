"""Charts over time: lines in SVG, and the day on which a pool is full.

They are drawn here, without scripts: what a chart shows is in its title and
description, and in a table of its values.
"""

from collections.abc import Sequence
import datetime
import typing

from manila_lite.api.ui.visit import CAPACITY_POLICY, Answer, Visit
from manila_lite.db.queries.services import pools as pool_rows, samples
from manila_lite.db.session import Session

WIDTH, HEIGHT = 600, 160
MOST_ROWS = 48
"""Rows of the table of a chart; each shows the last value of its time."""

_FORECAST_DAYS = 30
_SPANS = {'week': samples.FINE, 'year': samples.DAY}
_OF_CLOUD = (
    ('per_minute', 'Operations per minute', '', 'Calls of drivers that have ended.'),
    (
        'p95',
        'Duration of operations, 95th percentile',
        's',
        'Of a day, the longest of its times.',
    ),
    (
        'api_p95',
        'Answers of the API, 95th percentile',
        's',
        'Requests to all API processes; of a day, the longest of its times.',
    ),
    ('failures', 'Failed operations', '', 'Calls of drivers that have failed.'),
    ('queued', 'Queue length', '', 'Work that waits; of a day, the largest.'),
)

Point = tuple[float, float]
"""Time in seconds since 1970, and value."""


class Chart(typing.NamedTuple):
    """A chart as the template shows it."""

    id: str
    title: str
    unit: str
    about: str
    paths: Sequence[str]
    top: float
    rows: Sequence[tuple[datetime.datetime, float]]
    begin: datetime.datetime
    end: datetime.datetime

    @property
    def words(self) -> str:
        """The values in a sentence."""
        if not self.rows:
            return 'Nothing has been measured yet.'
        values = [value for _, value in self.rows]
        return (
            f'From {min(values):,.1f} to {max(values):,.1f} {self.unit}'.rstrip()
            + f', last {values[-1]:,.1f} {self.unit}'.rstrip()
            + '.'
        )


def show(visit: Visit) -> Answer:
    """Show the charts of the cloud and of one pool, for a week or a year."""
    visit.authorize(CAPACITY_POLICY)
    span = visit.query.get('span', '')
    span = span if span in _SPANS else 'week'
    return visit.page(
        'charts.html',
        span=span,
        spans=list(_SPANS),
        **visit.services.db.read(_read, span, visit.query.get('pool', '')),
    )


def _read(session: Session, span: str, pool: str) -> dict[str, typing.Any]:
    resolution = _SPANS[span]
    end = session.now.replace(tzinfo=datetime.UTC).timestamp()
    first = int(end // resolution) - samples.KEPT[resolution]
    hosts = [row.host for row in pool_rows.list_allocations(session)]
    pool = pool if pool in hosts else next(iter(hosts), '')
    cloud = samples.read(session, samples.CLOUD, resolution, first)
    of_pool = samples.read(session, pool, resolution, first) if pool else []
    begin = first * resolution
    charts = [
        draw(name, title, unit, about, points(cloud, name, resolution), begin, end)
        for name, title, unit, about in _OF_CLOUD
    ]
    used = points(of_pool, 'used', resolution)
    total = points(of_pool, 'total', resolution)
    if pool:
        charts.insert(
            0,
            draw(
                'used',
                f'Used capacity of {pool}',
                'GiB',
                'The top of the chart is the capacity of the pool.',
                used,
                begin,
                end,
                top=total[-1][1] if total else None,
            ),
        )
    recent = [one for one in used if one[0] >= end - _FORECAST_DAYS * samples.DAY]
    return {
        'charts': charts,
        'pools': hosts,
        'pool': pool,
        'forecast': forecast(recent, total[-1][1]) if total else None,
    }


def points(found: Sequence[samples.Sample], name: str, resolution: int) -> list[Point]:
    """Return the values of a figure at the ends of their slots."""
    return [
        (float((one.slot + 1) * resolution), value)
        for one in found
        if (value := one.figures.get(name)) is not None
    ]


def draw(
    id: str,
    title: str,
    unit: str,
    about: str,
    found: Sequence[Point],
    begin: float,
    end: float,
    top: float | None = None,
) -> Chart:
    """Return the chart of a figure; a gap in the samples is a gap in the line."""
    top = max([top or 0.0, *(value for _, value in found)]) or 1.0
    paths, last = [], None
    longest = 3 * min(
        (later[0] - one[0] for one, later in zip(found, found[1:], strict=False)),
        default=0.0,
    )
    for at, value in found:
        x = round(WIDTH * (at - begin) / (end - begin), 1)
        y = round(HEIGHT * (1 - max(0.0, value) / top), 1)
        if last is None or at - last > longest:
            paths.append(f'M{x} {y}h.1')
        else:
            paths[-1] += f'L{x} {y}'
        last = at
    step = -(-len(found) // MOST_ROWS) or 1
    shown = [found[place] for place in range(len(found) - 1, -1, -step)][::-1]
    return Chart(
        id,
        title,
        unit,
        about,
        paths,
        top,
        [(_moment(at), value) for at, value in shown],
        _moment(begin),
        _moment(end),
    )


class Trend(typing.NamedTuple):
    """The growth of a pool in GiB a day, and when it is full, if ever."""

    growth: float
    full_at: datetime.datetime | None
    is_full: bool = False


def trend(used: Sequence[Point], total: float) -> Trend | None:
    """Return the trend of the line that fits best; None without enough samples."""
    if len(used) < 2 or used[-1][0] - used[0][0] < samples.DAY / 2:
        return None
    mean_at = sum(at for at, _ in used) / len(used)
    mean = sum(value for _, value in used) / len(used)
    growth = sum((at - mean_at) * (value - mean) for at, value in used) / sum(
        (at - mean_at) ** 2 for at, _ in used
    )
    last_at, last = used[-1]
    full_at = None
    if growth > 0 and (total - last) / growth <= 10 * 365 * samples.DAY:
        full_at = _moment(last_at + (total - last) / growth)
    return Trend(growth * samples.DAY, full_at, last >= total)


def forecast(used: Sequence[Point], total: float) -> str:
    """Return in words when a pool is full."""
    found = trend(used, total)
    if found is None:
        return 'A forecast needs samples of half a day.'
    if found.is_full:
        return 'It is full.'
    if found.full_at is None:
        return 'It does not fill up at the present rate.'
    return (
        f'At the present rate of {found.growth:,.1f} GiB a day it is full '
        f'on {found.full_at:%Y-%m-%d}.'
    )


def read_trends(session: Session, hosts: Sequence[str]) -> dict[str, Trend]:
    """Return the trends of pools that have enough samples, one of each day."""
    now = session.now.replace(tzinfo=datetime.UTC).timestamp()
    first = int(now // samples.DAY) - _FORECAST_DAYS
    trends = {}
    for host, found in samples.read_of_sources(
        session, hosts, samples.DAY, first
    ).items():
        total = found[-1].figures.get('total')
        known = total and trend(points(found, 'used', samples.DAY), total)
        if known:
            trends[host] = known
    return trends


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
