"""Figures of a large deployment: a million shares, 200 services.

Measured on an empty database that is filled by SQL, or on one that an
earlier run has filled and kept (`--keep`). Times of passes are those of the
database only.
"""

import argparse
from collections.abc import Callable, Iterator
import contextlib
import functools
import pathlib
import statistics
import tempfile
import threading
import time
import typing
import urllib.parse

import sqlalchemy as sa

from benchmarks import scale_database, scale_upgrade, scale_work
from benchmarks.application import Application
from benchmarks.listing import compared
from benchmarks.scale_work import build_node
from benchmarks.service_start import seconds_until_up
from benchmarks.verdict import Verdict
from manila_lite.db.models import services, shares
from manila_lite.db.queries.work import retention
from manila_lite.db.session import Database, Session
from tests.support import mass_rows

PASSES = 7
LAST_PAGE = 50
PURGED_BATCHES = 20

OPTIONS = ('shares', 'rules_of_share', 'services', 'pools', 'journal')


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark; they are ignored by the others."""
    parser.add_argument(
        '--database',
        metavar='URL',
        help='an empty database, or one kept by an earlier run, for `scale`',
    )
    parser.add_argument(
        '--keep',
        action='store_true',
        help='leave the rows, for the next run of `scale`',
    )
    for name in OPTIONS:
        parser.add_argument(
            f'--{name.replace("_", "-")}',
            type=int,
            default=getattr(mass_rows.Sizes, name),
            help=f'number of {name.replace("_", " ")}, for `scale`',
        )


def run(verdict: Verdict, args: argparse.Namespace) -> None:
    """Measure; the tables are dropped at the end unless they are kept."""
    if not args.database:
        verdict.record_missing('scale', 'needs --database URL')
        return
    sizes = mass_rows.Sizes(**{name: getattr(args, name) for name in OPTIONS})
    db = Database(args.database)
    fill = functools.partial(_fill, verdict, db, sizes)
    with contextlib.ExitStack() as stack:
        stack.callback(db.dispose)
        try:
            stack.enter_context(scale_database.filled(db, fill, keep=args.keep))
        except scale_database.ForeignTables as error:
            raise SystemExit(f'scale: {error}') from error
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        db.write(_revive_services)
        _measure_start(verdict, db, sizes, folder)
        _measure_passes(verdict, db, sizes, folder)
        _measure_lists(verdict, db, sizes)
        scale_work.measure_claims(verdict, db, sizes, folder)
        scale_work.measure_placement(verdict, db, folder)
        _measure_purge(verdict, db)
        scale_upgrade.measure_upgrade(verdict, db)


def _fill(verdict: Verdict, db: Database, sizes: mass_rows.Sizes) -> None:
    began = time.perf_counter()
    mass_rows.insert(db, sizes)
    verdict.record(
        f'{db.dialect}: {sizes.shares} shares inserted',
        time.perf_counter() - began,
        's',
    )


def _revive_services(session: Session) -> None:
    """Write the heartbeats of services that have no process."""
    session.run(
        sa.update(services.Service.__table__).values(heartbeat_at=session.db.clock())
    )


# Start


def _measure_start(
    verdict: Verdict, db: Database, sizes: mass_rows.Sizes, folder: pathlib.Path
) -> None:
    seconds, processor = seconds_until_up(db, sizes.service_host(1), folder)
    verdict.record(
        f'{db.dialect}: start of a share service with '
        f'{sizes.shares // sizes.services} shares until up',
        seconds,
        's',
        at_most=3,
        processor_s=processor,
    )


# Passes


class DatabaseTime:
    """The milliseconds that statements of one thread have taken."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.statements = 0
        self._thread = threading.get_ident()

    @contextlib.contextmanager
    def measured(self) -> Iterator['DatabaseTime']:
        handlers = (
            ('before_cursor_execute', self._begin),
            ('after_cursor_execute', self._end),
        )
        for name, handler in handlers:
            sa.event.listen(sa.Engine, name, handler)
        try:
            yield self
        finally:
            for name, handler in handlers:
                sa.event.remove(sa.Engine, name, handler)

    def _begin(self, *args: object) -> None:
        self._began = time.perf_counter()

    def _end(self, *args: object) -> None:
        if threading.get_ident() == self._thread:
            self.ms += (time.perf_counter() - self._began) * 1e3
            self.statements += 1


def _measure_passes(
    verdict: Verdict, db: Database, sizes: mass_rows.Sizes, folder: pathlib.Path
) -> None:
    node = build_node(folder / 'passes', db.url, sizes.service_host(0))
    try:
        node.register()
        (backend,) = node.share.backends
        passes: dict[str, Callable[[], object]] = {
            task.name: task.run for task in node.share.tasks
        }
        passes['recovery at start'] = functools.partial(
            backend.endpoints.reconciliation.request_pass, db.utcnow()
        )
        passes['sweep'] = backend.runner.sweep
        passes['orphans (scheduler)'] = node.scheduler.orphan_sweep.run_pass
        for name, run_pass in passes.items():
            _measure_pass(verdict, db, name, run_pass)
    finally:
        node.stop()


def _measure_pass(
    verdict: Verdict, db: Database, name: str, run_pass: Callable[[], object]
) -> None:
    run_pass()  # fills caches
    taken = []
    for _ in range(PASSES):
        with DatabaseTime().measured() as measured:
            run_pass()
        taken.append(measured.ms)
    verdict.record(
        f'{db.dialect}: pass "{name}", database time, shortest of {PASSES}',
        min(taken),
        'ms',
        at_most=20,
        median=round(statistics.median(taken), 1),
        statements=measured.statements,
    )


# Lists


def _measure_lists(verdict: Verdict, db: Database, sizes: mass_rows.Sizes) -> None:
    app = Application(db.url)
    first = '/shares/detail?limit=50&all_tenants=1'
    for name, offset in (
        ('middle', sizes.shares // 2),
        ('last', sizes.shares - LAST_PAGE),
    ):
        row = db.read(_newest_before, sizes, offset)
        link = f'offset={offset}&after={offset},{row.created_at},{row.id}'
        page, begin, ratio = compared(
            functools.partial(
                app.get, f'{first}&{urllib.parse.quote(link, safe="=&")}'
            ),
            functools.partial(app.get, first),
            time.perf_counter,
            pairs=PASSES,
        )
        verdict.record(
            f'{db.dialect}: {name} page of all tenants, to the first',
            ratio,
            'times',
            at_most=2,
            page_ms=page,
            first_ms=begin,
        )
    app.db.dispose()


def _newest_before(session: Session, sizes: mass_rows.Sizes, offset: int) -> typing.Any:
    """Return the last share of the page that ends at this offset."""
    return session.first(
        sa.select(shares.Share.id, shares.Share.created_at).where(
            shares.Share.display_name == f'share-{10**9 + sizes.shares - offset}'
        )
    )


# Purge


def _measure_purge(verdict: Verdict, db: Database) -> None:
    taken = []
    for _ in range(PURGED_BATCHES):
        began = time.perf_counter()
        db.write(retention.delete_until, retention.MOVES, db.utcnow())
        taken.append((time.perf_counter() - began) * 1e3)
    verdict.record(
        f'{db.dialect}: {retention.BATCH} moves purged, median',
        statistics.median(taken),
        'ms',
        longest=round(max(taken), 1),
    )
