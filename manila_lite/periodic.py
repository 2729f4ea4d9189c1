"""Runs tasks again and again, each on its own interval."""

from collections.abc import Callable
import logging
import random
import threading
import time
import typing

LOG = logging.getLogger(__name__)


class Task(typing.NamedTuple):
    """A function and the seconds between its runs."""

    name: str
    interval: float
    run: Callable[[], object]


class Periodic:
    """One thread that runs tasks in turn; a failing one is only logged.

    The first run of each comes within `fuzz` seconds, so that services
    started together do not stay in step.
    """

    def __init__(self, tasks: list[Task], *, fuzz: float = 0.0,
                 chance: random.Random | None = None):
        chance = chance or random.Random()
        self._due = [(time.monotonic() + chance.uniform(0, fuzz), number)
                     for number in range(len(tasks))]
        self._tasks = tasks
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='periodic', daemon=True)

    def start(self) -> None:
        if self._tasks:
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            when, number = min(self._due)
            if self._stop.wait(max(0.0, when - time.monotonic())):
                return
            task = self._tasks[number]
            try:
                task.run()
            except Exception:
                LOG.exception('Periodic task %s failed', task.name)
            # An interval of nothing would never let go of the processor.
            self._due[number] = (
                time.monotonic() + max(task.interval, 0.1), number)
