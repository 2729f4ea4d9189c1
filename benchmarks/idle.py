"""One process that does nothing: its start, memory, processor time, stop."""

import statistics
import tempfile
import time

from benchmarks import service
from benchmarks.verdict import Verdict

STARTS = 3
SETTLED_AFTER = 5.0
"""Seconds until the tasks of the start are over."""
WATCHED = 30.0


def run(verdict: Verdict) -> None:
    first, again = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(STARTS):
            first.append(_started(f'{folder}/{number}').startup_seconds)
            again.append(_started(f'{folder}/{number}').cpu_until_ready)
        verdict.record(
            'start from nothing until ready',
            statistics.median(first),
            's',
            at_most=3,
        )
        verdict.record(
            'start on an existing database, processor time',
            statistics.median(again),
            's',
            at_most=1.5,
        )
        _watch(verdict, folder)


def _started(folder: str) -> service.Service:
    """A service that was ready and has been stopped."""
    found = service.Service(folder)
    found.stop()
    return found


def _watch(verdict: Verdict, folder: str) -> None:
    found = service.Service(f'{folder}/watched')
    try:
        time.sleep(SETTLED_AFTER)
        began, cpu = time.monotonic(), found.cpu()
        time.sleep(WATCHED)
        seconds = time.monotonic() - began
        verdict.record('idle: memory (PSS)', found.memory(), 'MiB', at_most=90)
        verdict.record(
            'idle: processor time',
            (found.cpu() - cpu) / seconds * 1e3,
            'ms a second',
            at_most=3,
        )
    finally:
        took = found.stop()
    verdict.record('stop', took, 's', at_most=1)
