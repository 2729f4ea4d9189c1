"""A scrape of /metrics beside 100,000 shares, on each database."""

import contextlib
import pathlib
import statistics
import tempfile
import time

import pytest
import sqlalchemy as sa

from benchmarks.verdict import Verdict
from manila_lite import metrics
from manila_lite.api.metrics_page import MetricsPage
from manila_lite.cmd.build.database_metrics import DatabaseMetrics
from manila_lite.db.models import shares
from manila_lite.db.session import Database, Session
from tests.support import databases, mass_rows

SIZES = mass_rows.Sizes(
    shares=100_000,
    rules_of_share=1,
    snapshots=20_000,
    journal=100_000,
    messages=1000,
    services=50,
    pools=100,
    projects=100,
    servers=1000,
    migrations=1000,
    decisions=1000,
    waiting=200,
)
IN_FLIGHT = 100
WARM_UP, SCRAPES = 3, 30

INSTANCE = shares.ShareInstance.__table__


def run(verdict: Verdict) -> None:
    for kind in databases.KINDS:
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            try:
                url = stack.enter_context(databases.temporary_database(kind, folder))
            except pytest.skip.Exception as error:
                verdict.record_missing(f'scrape on {kind}', str(error))
                continue
            databases.create_tables(url)
            db = Database(url)
            stack.callback(db.dispose)
            mass_rows.insert(db, SIZES)
            db.write(start_work)
            mass_rows.analyze(db)
            verdict.record(
                f'scrape with {SIZES.shares} shares on {kind}, median',
                statistics.median(_scrapes(db)) * 1000,
                'ms',
                at_most=20,
            )


def start_work(session: Session) -> None:
    """Put some shares in flight."""
    ids = session.rows(sa.select(INSTANCE.c.id).limit(IN_FLIGHT))
    session.run(
        sa.update(INSTANCE)
        .where(INSTANCE.c.id.in_([row.id for row in ids]))
        .values(status='extending')
    )


def _scrapes(db: Database) -> list[float]:
    """Return the seconds of scrapes, each of which reads the database."""
    page = MetricsPage(
        [metrics.counted, DatabaseMetrics(db, 60.0, ['project'], interval=0)]
    )
    found = []
    for _ in range(WARM_UP + SCRAPES):
        began = time.perf_counter()
        text = b''.join(page({}, lambda status, headers: None))
        found.append(time.perf_counter() - began)
        assert b'manila_lite_database_up 1.0' in text
    return found[WARM_UP:]
