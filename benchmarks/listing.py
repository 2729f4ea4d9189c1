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

import orjson
import pytest

from benchmarks import application, raw
from benchmarks.application import Application
from benchmarks.verdict import Verdict
from tests.support import databases

FEW, MANY = 1_000, 100_000
DEEP = 90_000
LIMIT = 50
PAIRS = 40
WHOLE = '/shares/detail'
PAGES = (
    ('a project', f'/shares/detail?limit={LIMIT}', 'admin'),
    ('a project, for a member', f'/shares/detail?limit={LIMIT}', 'member'),
    ('all tenants', f'/shares/detail?limit={LIMIT}&all_tenants=1', 'admin'),
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
            ours, bare, ratio = compared(lambda: few.get(WHOLE), bare_read, clock)
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
            later, first, ratio = compared(
                functools.partial(many.get, _later(many, *request), request[1]),
                functools.partial(many.get, *request),
                clock,
            )
            verdict.record(
                f'{kind}: page behind {DEEP} of {name}, against the first',
                ratio,
                'times',
                at_most=2,
                later_ms=later,
                first_ms=first,
            )


def _later(application: Application, path: str, role: str) -> str:
    """Return the path of the page behind the DEEP newest shares.

    The link of a page of one share leads there.
    """
    one = path.replace(f'limit={LIMIT}', f'limit=1&offset={DEEP - 1}')
    (link,) = orjson.loads(application.get(one, role))['shares_links']
    _, _, following = link['href'].partition('/v2')
    return following.replace('limit=1&', f'limit={LIMIT}&')


def _filled(stack: contextlib.ExitStack, kind: str, number: int) -> Application:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    url = stack.enter_context(databases.temporary_database(kind, folder))
    return stack.enter_context(application.filled(url, number))


def compared(
    one: Callable[[], object],
    other: Callable[[], object],
    clock: Callable[[], float] = time.process_time,
    pairs: int = PAIRS,
) -> tuple[float, float, float]:
    """Return the milliseconds of each, and the ratio of one to the other."""
    taken = [(_taken(one, clock), _taken(other, clock)) for _ in range(pairs + 1)][
        1:
    ]  # the first fills caches
    return (
        round(statistics.median(a for a, _ in taken), 3),
        round(statistics.median(b for _, b in taken), 3),
        statistics.median(a / b for a, b in taken),
    )


def _taken(call: Callable[[], object], clock: Callable[[], float]) -> float:
    began = clock()
    call()
    return (clock() - began) * 1e3
