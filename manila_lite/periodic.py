"""Runs tasks again and again, each on its own interval."""

from collections.abc import Callable
import logging
import random
import threading
import time
import typing

LOG = logging.getLogger(__name__)


class Task(typing.NamedTuple):
    """A function, the seconds between its runs and before the first."""

    name: str
    interval: float
    run: Callable[[], object]
    initial_delay: float = 0.0


class Periodic:
    """Runs tasks, each in a thread of its own; failing is only logged.

    One that hangs, in a back end that does not answer say, keeps no other
    from running: the heartbeat above all. The first run of each comes
    within `fuzz` seconds, so that services started together do not stay in
    step.
    """

    def __init__(
        self,
        tasks: list[Task],
        *,
        jitter: float = 0.0,
        rng: random.Random | None = None,
    ):
        rng = rng or random.Random()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._repeat,
                name=task.name,
                args=(task, task.initial_delay + rng.uniform(0, jitter)),
                daemon=True,
            )
            for task in tasks
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Begin no more runs, and wait a while for those in hand."""
        self._stop.set()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _repeat(self, task: Task, pause: float) -> None:
        while not self._stop.wait(pause):
            try:
                task.run()
            except Exception:
                LOG.exception('Periodic task %s failed', task.name)
            # An interval of nothing would never let go of the processor.
            pause = max(task.interval, 0.1)
