"""Metrics of what all processes share: the rows of the database.

Every process that has them reads the same, so alerts take the maximum over
processes. A scrape reads the database once in some seconds at most, however
many scrapers there are, and ends without these metrics when the database
does not answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import datetime
import functools
from importlib import metadata
import typing

import orjson

from manila_lite import metrics
from manila_lite.api.metrics_page import MetricsPage
from manila_lite.cmd import backups
from manila_lite.cmd.build.health import Throttled
from manila_lite.cmd.build.process import Process
from manila_lite.db import errors, read_limit
from manila_lite.db.models.base import NEVER
from manila_lite.db.queries.recovery import figures
from manila_lite.db.queries.services import services
from manila_lite.db.rows import ServicePoolRow, StatusCountRow, WorkCountRow
from manila_lite.db.session import Database
from manila_lite.states.machine import Machine

INTERVAL = 5.0
"""Seconds for which a scrape uses what another one has read."""

PATIENCE = 2.0
"""Seconds after which a scrape goes on without the database."""

GIB = 1 << 30

DATABASE_UP = metrics.Metric(
    'database_up',
    'Whether the database answered; if it is 0, the metrics that are read '
    'from it are missing.',
)
WORK = metrics.Metric(
    'work',
    'Accepted work that is owed. Delayed is work that waits for its next '
    'try, abandoned is work whose process has lost its lease. Of waiting and '
    f'of begun work {figures.MOST_WORK} at most are counted together.',
    'kind',
    'state',
)
WORK_AGE = metrics.Metric(
    'work_oldest_age_seconds',
    'Time since the oldest work was accepted.',
    'kind',
    'state',
)
IN_FLIGHT = metrics.Metric(
    'in_flight',
    'Rows in a status that work is to end, '
    f'{figures.MOST_ROWS} at most of each resource in all statuses together.',
    'resource',
    'status',
)
IN_FLIGHT_AGE = metrics.Metric(
    'in_flight_oldest_age_seconds',
    'Time since the first of them got its status.',
    'resource',
    'status',
)
UNHEALTHY = metrics.Metric(
    'unhealthy',
    'Rows at rest in a status that needs attention, such as an error or '
    'a replica that is out of sync; '
    f'{figures.MOST_ROWS} at most of each resource in all statuses together.',
    'resource',
    'status',
)
UNHEALTHY_AGE = metrics.Metric(
    'unhealthy_oldest_age_seconds',
    'Time since the first of them got its status.',
    'resource',
    'status',
)
SERVICE_UP = metrics.Metric(
    'service_up',
    'Whether a service is up, as "service list" shows it.',
    'binary',
    'host',
)
SERVICE_ENABLED = metrics.Metric(
    'service_enabled',
    'Whether a service is enabled: it gets new shares.',
    'binary',
    'host',
)
HEARTBEAT = metrics.Metric(
    'service_heartbeat_timestamp_seconds',
    'Time of the last heartbeat, by the clock of the database.',
    'binary',
    'host',
)
POOL_TOTAL = metrics.Metric(
    'pool_total_bytes', 'Capacity of a pool, if it is known.', 'pool'
)
POOL_FREE = metrics.Metric(
    'pool_free_bytes', 'Free capacity at the last report, if known.', 'pool'
)
POOL_PROVISIONED = metrics.Metric(
    'pool_provisioned_bytes',
    'Sizes of all shares at the last report, if the driver reports it.',
    'pool',
)
POOL_OPEN_FILES = metrics.Metric(
    'pool_server_open_files_ratio',
    'Open files by their limit, of the server of the pool that has most at '
    'the last report, if the driver reports it.',
    'pool',
)
POOL_ALLOCATED = metrics.Metric(
    'pool_allocated_bytes', 'Sizes of the shares that we placed.', 'pool'
)
POOL_PENDING = metrics.Metric(
    'pool_pending_bytes',
    'The part of them that was placed since the last report.',
    'pool',
)
SYNC_AGE = metrics.Metric(
    'replica_sync_oldest_age_seconds',
    'Time since the last sync of the replica of a back end that is furthest '
    'behind; of replicas whose driver reports it, and that were synchronised '
    'before.',
    'host',
)
QUOTA_IN_USE = metrics.Metric(
    'quota_in_use',
    'Use of a quota, of the projects that the option names.',
    'project',
    'resource',
)
QUOTA_RESERVED = metrics.Metric(
    'quota_reserved',
    'What work in progress has reserved of a quota.',
    'project',
    'resource',
)
QUOTA_LIMIT = metrics.Metric(
    'quota_limit', 'Limit of a quota; missing if there is none.', 'project', 'resource'
)

METRICS = (
    DATABASE_UP,
    WORK,
    WORK_AGE,
    IN_FLIGHT,
    IN_FLIGHT_AGE,
    UNHEALTHY,
    UNHEALTHY_AGE,
    SERVICE_UP,
    SERVICE_ENABLED,
    HEARTBEAT,
    POOL_TOTAL,
    POOL_FREE,
    POOL_PROVISIONED,
    POOL_OPEN_FILES,
    POOL_ALLOCATED,
    POOL_PENDING,
    SYNC_AGE,
    QUOTA_IN_USE,
    QUOTA_RESERVED,
    QUOTA_LIMIT,
)

_MACHINES: dict[str, Machine] = {
    machine.resource: machine for machine in figures.HEALTHY
}


class DatabaseMetrics:
    """A source of metrics; `projects` are those whose quota it shows."""

    def __init__(
        self,
        db: Database,
        down_time: float,
        projects: Sequence[str],
        interval: float = INTERVAL,
    ):
        self._db, self._down_time, self._projects = db, down_time, projects
        self._figures: figures.Figures | None = None
        self._problem = Throttled(
            self._read, interval, interval, patience=PATIENCE, late='does not answer'
        )

    def __call__(self) -> Iterator[metrics.Family]:
        problem, found = self._problem(), self._figures
        yield DATABASE_UP.of({(): 0 if problem else 1})
        if problem or found is None:  # the first scrape has not read yet
            return
        yield from _work(found)
        yield from _statuses(found)
        yield from _services(found.services, self._down_time)
        yield from _pools(found.services)
        yield _sync_ages(found)
        yield from _quotas(found)

    def _read(self) -> str | None:
        try:
            with read_limit.limit_reads(PATIENCE):
                self._figures = self._db.read(figures.read, self._projects)
        except errors.UNAVAILABLE:
            return 'does not answer'
        return None


def _ages(
    now: datetime.datetime, rows: Mapping[typing.Any, WorkCountRow | StatusCountRow]
) -> dict[typing.Any, float]:
    """Return the ages that are known: the journal forgets old moves."""
    return {
        key: max(0.0, (now - row.since).total_seconds())
        for key, row in rows.items()
        if row.since is not None
    }


def _work(found: figures.Figures) -> Iterator[metrics.Family]:
    rows = {(row.kind, row.state): row for row in found.work}
    yield WORK.of({key: row.number for key, row in rows.items()})
    yield WORK_AGE.of(_ages(found.now, rows))


def _statuses(found: figures.Figures) -> Iterator[metrics.Family]:
    for is_in_flight, number, age in (
        (True, IN_FLIGHT, IN_FLIGHT_AGE),
        (False, UNHEALTHY, UNHEALTHY_AGE),
    ):
        rows = {
            (row.resource, row.status): row
            for row in found.statuses
            if (row.status in _MACHINES[row.resource].in_flight) is is_in_flight
        }
        yield number.of({key: row.number for key, row in rows.items()})
        yield age.of(_ages(found.now, rows))


def _services(
    rows: Iterable[ServicePoolRow], down_time: float
) -> Iterator[metrics.Family]:
    found = {(row.binary, row.host): row for row in rows}
    yield SERVICE_UP.of(
        {key: float(services.is_up(row, down_time)) for key, row in found.items()}
    )
    yield SERVICE_ENABLED.of(
        {key: float(not row.disabled) for key, row in found.items()}
    )
    yield HEARTBEAT.of({key: row.heartbeat_at for key, row in found.items()})


def _pools(rows: Iterable[ServicePoolRow]) -> Iterator[metrics.Family]:
    found = {(row.pool,): row for row in rows if row.pool is not None}
    for metric, column in (
        (POOL_TOTAL, 'total_gb'),
        (POOL_FREE, 'free_gb'),
        (POOL_ALLOCATED, 'allocated_gb'),
        (POOL_PENDING, 'pending_gb'),
    ):
        yield metric.of(
            {
                key: value * GIB
                for key, row in found.items()
                if (value := getattr(row, column)) is not None
            }
        )
    for metric, name, unit in (
        (POOL_PROVISIONED, 'provisioned_capacity_gb', GIB),
        (POOL_OPEN_FILES, 'server_open_files_ratio', 1),
    ):
        yield metric.of(
            {
                key: value * unit
                for key, row in found.items()
                if (value := _reported(row, name)) is not None
            }
        )


def _reported(row: ServicePoolRow, name: str) -> float | None:
    """Return what the driver reports, unless it is a word or missing."""
    found = orjson.loads(row.capabilities).get(name)
    return found if type(found) in (int, float) else None


def _sync_ages(found: figures.Figures) -> metrics.Family:
    return SYNC_AGE.of(
        {
            (row.host,): max(0.0, (found.now - synced_at).total_seconds())
            for row in found.services
            if (synced_at := row.oldest_sync_at) and synced_at != NEVER
        }
    )


def _quotas(found: figures.Figures) -> Iterator[metrics.Family]:
    rows = {(row.project_id, row.resource): row for row in found.quotas}
    yield QUOTA_IN_USE.of({key: row.in_use for key, row in rows.items()})
    yield QUOTA_RESERVED.of({key: row.reserved for key, row in rows.items()})
    yield QUOTA_LIMIT.of(
        {key: row.hard_limit for key, row in rows.items() if row.hard_limit >= 0}
    )


BUILD = metrics.Metric('build_info', 'Always 1; the label is the version.', 'version')
CONNECTIONS = metrics.Metric(
    'database_connections',
    'Connections to the database; SQLite has one pool for both uses.',
    'use',
    'state',
)

PROCESS_METRICS: tuple[metrics.Metric, ...] = (
    BUILD,
    *metrics.COUNTED,
    CONNECTIONS,
    *METRICS,
    backups.AGE,
)
"""All metrics of our own, for the documentation."""


def page_of_process(process: Process) -> MetricsPage:
    """Return the page with the metrics of a process by itself."""
    return MetricsPage(_sources(process))


def page_of_service(process: Process) -> MetricsPage:
    """Return the page with those of the database as well."""
    conf = process.conf
    sources: list[metrics.Source] = [
        *_sources(process),
        DatabaseMetrics(
            process.db, conf.service_down_time, conf.monitoring.metrics_projects
        ),
    ]
    if conf.monitoring.backup_directory:
        sources.append(
            functools.partial(backups.ages, conf.monitoring.backup_directory)
        )
    return MetricsPage(sources)


def _sources(process: Process) -> list[metrics.Source]:
    return [_build, metrics.counted, lambda: _connections(process.db)]


def _build() -> Iterator[metrics.Family]:
    yield BUILD.of({(_version(),): 1})


@functools.cache
def _version() -> str:
    return metadata.version('manila_lite')


def _connections(db: Database) -> Iterator[metrics.Family]:
    yield CONNECTIONS.of(db.connections())
