"""Run periodic tasks, each at its own interval."""

from collections.abc import Callable
import logging
import random
import threading
import time
import typing

LOG = logging.getLogger(__name__)


class Task(typing.NamedTuple):
    """A function with its interval and initial delay in seconds.

    With `drains` it goes on while the process waits for running work.
    """

    name: str
    interval: float
    run: Callable[[], object]
    initial_delay: float = 0.0
    drains: bool = False


class Periodic:
    """Runs tasks, each in its own thread; logs their errors.

    A task that hangs, for instance in an unresponsive back end, does not
    block others, above all the heartbeat. The first run of each task is
    delayed by up to `jitter` seconds, but not by more than an interval, so
    that services started together do not run in step.
    """

    def __init__(
        self,
        tasks: list[Task],
        *,
        jitter: float = 0.0,
        rng: random.Random | None = None,
    ):
        rng = rng or random.Random()
        self._drain = threading.Event()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._repeat,
                name=task.name,
                args=(
                    task,
                    task.initial_delay + rng.uniform(0, min(jitter, task.interval)),
                ),
                daemon=True,
            )
            for task in tasks
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def drain(self) -> None:
        """Start no task again that must not run while the process drains."""
        self._drain.set()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop starting tasks; wait up to `timeout` for running ones."""
        self._drain.set()
        self._stop.set()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _repeat(self, task: Task, delay: float) -> None:
        ended = self._stop if task.drains else self._drain
        while not ended.wait(delay):
            try:
                task.run()
            except Exception:
                LOG.exception('Periodic task %s failed', task.name)
            # An interval of 0 would keep the processor busy.
            delay = max(task.interval, 0.1)
