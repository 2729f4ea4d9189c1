"""The metrics of each kind of process behind /metrics."""

from collections.abc import Iterator
import functools
from importlib import metadata

from manila_lite import metrics
from manila_lite.api.metrics_page import MetricsPage
from manila_lite.cmd.build import database_metrics
from manila_lite.cmd.build.database_metrics import DatabaseMetrics
from manila_lite.cmd.build.process import Process
from manila_lite.db.session import Database

BUILD = metrics.Metric('build_info', 'Always 1; the label is the version.', 'version')
CONNECTIONS = metrics.Metric(
    'database_connections',
    'Connections to the database; SQLite has one pool for both uses.',
    'use',
    'state',
)

METRICS: tuple[metrics.Metric, ...] = (
    BUILD,
    *metrics.COUNTED,
    CONNECTIONS,
    *database_metrics.METRICS,
)
"""All metrics of our own, for the documentation."""


def page_of_process(process: Process) -> MetricsPage:
    """Return the page with the metrics of a process by itself."""
    return MetricsPage(_sources(process))


def page_of_service(process: Process) -> MetricsPage:
    """Return the page with those of the database as well."""
    conf = process.conf
    return MetricsPage(
        [
            *_sources(process),
            DatabaseMetrics(
                process.db, conf.service_down_time, conf.monitoring.metrics_projects
            ),
        ]
    )


def _sources(process: Process) -> list[metrics.Source]:
    return [_build, metrics.counted, lambda: _connections(process.db)]


def _build() -> Iterator[metrics.Family]:
    yield BUILD.of({(_version(),): 1})


@functools.cache
def _version() -> str:
    return metadata.version('manila_lite')


def _connections(db: Database) -> Iterator[metrics.Family]:
    yield CONNECTIONS.of(db.connections())
