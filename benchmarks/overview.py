"""The first page of /ui beside 100,000 shares, on each database."""

import contextlib
import pathlib
import statistics
import tempfile
import time

import pytest

from benchmarks import scrape
from benchmarks.application import Application
from benchmarks.verdict import Verdict
from tests.support import databases, mass_rows

PROJECT = 'project-1000'
"""One of the projects, which have equal numbers of shares."""

WARM_UP, PAGES = 3, 20


def run(verdict: Verdict) -> None:
    for kind in databases.KINDS:
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            try:
                url = stack.enter_context(databases.temporary_database(kind, folder))
            except pytest.skip.Exception as error:
                verdict.record_missing(f'overview on {kind}', str(error))
                continue
            databases.create_tables(url)
            application = Application(url, PROJECT)
            stack.callback(application.db.dispose)
            mass_rows.insert(application.db, scrape.SIZES)
            application.db.write(scrape.start_work)
            mass_rows.analyze(application.db)
            for role in ('admin', 'member'):
                verdict.record(
                    f'overview with {scrape.SIZES.shares} shares on {kind}, '
                    f'{role}, median',
                    statistics.median(_times(application, role)) * 1000,
                    'ms',
                    at_most=50,
                )


def _times(application: Application, role: str) -> list[float]:
    """Return the seconds that it took to make the page."""
    found = []
    for _ in range(WARM_UP + PAGES):
        began = time.perf_counter()
        page = application.get_page('/ui/', role)
        found.append(time.perf_counter() - began)
        assert b'kind=share_instance' in page
    return found[WARM_UP:]
