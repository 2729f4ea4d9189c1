"""An idle process: start, memory, CPU time and stop."""

import statistics
import tempfile
import time

from benchmarks import service
from benchmarks.verdict import Verdict

STARTS = 3
IDLE_AFTER = 5.0
"""Seconds until the startup tasks are done."""
MEASURED_FOR = 30.0


def run(verdict: Verdict) -> None:
    starts, restarts = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(STARTS):
            starts.append(_started(f'{folder}/{number}').startup_seconds)
            restarts.append(_started(f'{folder}/{number}').cpu_until_ready)
        verdict.record(
            'start from nothing until ready', statistics.median(starts), 's', at_most=3
        )
        verdict.record(
            'start on an existing database, processor time',
            statistics.median(restarts),
            's',
            at_most=1.5,
        )
        _measure_idle(verdict, folder)


def _started(folder: str) -> service.Service:
    """Start a service until it is ready, stop it and return it."""
    running_service = service.Service(folder)
    running_service.stop()
    return running_service


def _measure_idle(verdict: Verdict, folder: str) -> None:
    running_service = service.Service(f'{folder}/watched')
    try:
        time.sleep(IDLE_AFTER)
        began, cpu = time.monotonic(), running_service.cpu_of_threads()
        time.sleep(MEASURED_FOR)
        seconds = time.monotonic() - began
        verdict.record(
            'idle: memory (PSS)', running_service.memory(), 'MiB', at_most=90
        )
        verdict.record(
            'idle: processor time',
            (running_service.cpu_of_threads() - cpu) / seconds * 1e3,
            'ms a second',
            at_most=3,
        )
    finally:
        took = running_service.stop()
    verdict.record('stop', took, 's', at_most=1)
