"""Lists of shares against the bare driver, and first pages of long lists.

Two variants alternate, A B A B; the result is the median of the ratios of
neighbours, since a busy machine slows both.
"""

from collections.abc import Callable
import contextlib
import functools
import pathlib
import statistics
import tempfile
import time

import pytest

from benchmarks import application
from benchmarks import raw
from benchmarks.application import Application
from benchmarks.verdict import Verdict
from tests.support import databases

FEW, MANY = 1_000, 100_000
PAIRS = 40
WHOLE = '/shares/detail'
PAGES = (
    ('a project', '/shares/detail?limit=50', 'admin'),
    ('a project, for a member', '/shares/detail?limit=50', 'member'),
    ('all tenants', '/shares/detail?limit=50&all_tenants=1', 'admin'),
)


def run(verdict: Verdict, kinds: tuple[str, ...] = databases.KINDS) -> None:
    for kind in kinds:
        try:
            _on(kind, verdict)
        except (pytest.skip.Exception, pytest.fail.Exception) as error:
            verdict.record_missing(f'lists on {kind}', str(error))


def _on(kind: str, verdict: Verdict) -> None:
    # The work of a database server shows in wall-clock time only.
    clock = time.process_time if kind == 'sqlite' else time.perf_counter
    with contextlib.ExitStack() as stack:
        few, many = (_filled(stack, kind, number) for number in (FEW, MANY))
        with raw.reader(few, WHOLE) as bare_read:
            ours, bare, ratio = compared(
                lambda: few.get(WHOLE), bare_read, clock
            )
        verdict.record(
            f'{kind}: {FEW} in detail, against the bare driver',
            ratio,
            'times',
            at_most=2,
            ours_ms=ours,
            bare_ms=bare,
        )
        for name, *request in PAGES:
            long, short, ratio = compared(
                functools.partial(many.get, *request),
                functools.partial(few.get, *request),
                clock,
            )
            verdict.record(
                f'{kind}: first page of {name}, {MANY} against {FEW}',
                ratio,
                'times',
                at_most=1.3,
                long_ms=long,
                short_ms=short,
            )


def _filled(
    stack: contextlib.ExitStack, kind: str, number: int
) -> Application:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    url = stack.enter_context(databases.temporary_database(kind, folder))
    return stack.enter_context(application.filled(url, number))


def compared(
    one: Callable[[], object],
    other: Callable[[], object],
    clock: Callable[[], float] = time.process_time,
) -> tuple[float, float, float]:
    """Return the milliseconds of each, and the ratio of one to the other."""
    pairs = [
        (_taken(one, clock), _taken(other, clock)) for _ in range(PAIRS + 1)
    ][1:]  # the first fills caches
    return (
        round(statistics.median(a for a, _ in pairs), 3),
        round(statistics.median(b for _, b in pairs), 3),
        statistics.median(a / b for a, b in pairs),
    )


def _taken(call: Callable[[], object], clock: Callable[[], float]) -> float:
    began = clock()
    call()
    return (clock() - began) * 1e3
