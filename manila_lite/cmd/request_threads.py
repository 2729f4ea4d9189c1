"""Threads that answer the requests of a server, one by one while they are quick.

A thread lets others run at each call of the system and of the database, and needs
the interpreter again a moment later. With a second thread on another core each of
these moments wakes that up, and two requests take several times the processor
time of one after the other. So one thread, the leader, waits for all connections
and answers what it reads. Another one, the watcher, leads in its place when a
request takes longer than a few milliseconds. Requests that may wait for locks are
left to other threads at once.
"""

import collections
from collections.abc import Callable
import logging
import threading
import time
import typing

LOG = logging.getLogger(__name__)

PATIENCE = 0.005
"""Seconds for which a request may keep others waiting."""

BETWEEN_POLLS = 4
"""Requests that are answered before connections are looked at again, at most."""

_POLL_TIME = 1.0
_QUIET_ROUNDS = 2
"""How often the watcher finds no request before it waits to be woken up."""


class Task(typing.Protocol):
    """The next request of a connection."""

    @property
    def is_quick(self) -> bool:
        """Whether it waits for no lock."""
        ...

    def service(self) -> None: ...

    def cancel(self) -> None: ...


class RequestThreads:
    """At most `count` threads, one of which is the caller of `run`.

    `poll` waits for connections for some seconds, calls `add_task`, and returns
    whether there are any left; `wake` ends that. The last thread only polls.
    """

    def __init__(
        self,
        count: int,
        poll: Callable[[float], bool],
        wake: Callable[[], None],
        patience: float = PATIENCE,
    ):
        self._poll = poll
        self._wake = wake
        self._patience = patience
        self._queue: collections.deque[Task] = collections.deque()
        self._given: collections.deque[Task] = collections.deque()
        self._lock = threading.Lock()
        self._for_watcher = threading.Condition(self._lock)
        self._for_workers = threading.Condition(self._lock)
        self._workers = 0  # those that wait for a task
        self._leader: int | None = None
        self._busy_since: float | None = None  # the leader, with a task
        self._has_watcher = self._is_asleep = False
        self._drops = self._has_ended = False
        self._failure: Exception | None = None
        for number in range(1, count):
            threading.Thread(
                target=self._serve, name=f'request-{number}', daemon=True
            ).start()

    def run(self) -> None:
        """Answer requests until `poll` returns False; raise what it raises."""
        self._leader = threading.get_ident()
        self._serve()
        if self._failure is not None:
            raise self._failure

    def is_leader(self) -> bool:
        """Whether the calling thread polls next."""
        return self._leader == threading.get_ident()

    def add_task(self, task: Task) -> None:
        self._queue.append(task)
        if self._drops:
            self.drop_waiting()

    def drop_waiting(self) -> None:
        """Cancel the tasks that have not begun, and all that are added."""
        self._drops = True
        with self._lock:
            while self._queue:
                self._queue.popleft().cancel()

    def _serve(self) -> None:
        while not self._has_ended:
            if not self.is_leader():
                self._follow()
                continue
            try:
                self._lead()
            except Exception as error:  # noqa: BLE001 `run` raises it
                self._failure = error
                self._end()

    # The leader

    def _lead(self) -> None:
        """Poll and answer until another thread leads, or no connection is left."""
        while self._poll(0.0 if self._queue and self._has_watcher else _POLL_TIME):
            for _ in range(BETWEEN_POLLS):
                task = self._next()
                if task is None:
                    break
                if not self._answer_as_leader(task):
                    return
        self._end()

    def _end(self) -> None:
        with self._lock:
            self._has_ended = True
            self._for_watcher.notify_all()
            self._for_workers.notify_all()

    def _next(self) -> Task | None:
        """Return a task for the leader; leave those before it to workers."""
        with self._lock:
            while self._queue and self._has_watcher:
                task = self._queue.popleft()
                if task.is_quick or self._workers <= len(self._given):
                    return task
                self._given.append(task)
                self._for_workers.notify()
        return None

    def _answer_as_leader(self, task: Task) -> bool:
        """Answer a request; return whether the thread still leads."""
        self._busy_since = time.monotonic()
        if self._is_asleep:
            with self._lock:
                self._for_watcher.notify()
        _answer(task)
        with self._lock:
            if not self.is_leader():
                return False
            self._busy_since = None
            return True

    # The others

    def _follow(self) -> None:
        """Watch the leader, or wait for a task and answer it."""
        task = None
        with self._lock:
            if not self._has_watcher:
                self._watch()
                return
            self._workers += 1
            while not self._given and self._has_watcher and not self._has_ended:
                self._for_workers.wait()
            self._workers -= 1
            if self._given:
                task = self._given.popleft()
        if task is not None:
            _answer(task)

    def _watch(self) -> None:
        """Return as the leader, or at the end; the caller has the lock."""
        self._has_watcher = True
        if self._queue:  # the leader had no watcher, and left it alone
            self._wake()
        quiet = 0
        while not self._has_ended:
            since = self._busy_since
            left = self._patience
            if since is not None:
                quiet = 0
                left += since - time.monotonic()
                if left <= 0:
                    self._leader, self._busy_since = threading.get_ident(), None
                    break
            elif (quiet := quiet + 1) > _QUIET_ROUNDS:
                self._sleep()
                continue
            self._for_watcher.wait(left)
        self._has_watcher = False
        self._for_workers.notify()  # one of them watches now

    def _sleep(self) -> None:
        """Wait until the leader has a task."""
        self._is_asleep = True
        # The leader, which has no lock, sets one of the two and reads the other.
        if self._busy_since is None:
            self._for_watcher.wait()
        self._is_asleep = False


def _answer(task: Task) -> None:
    try:
        task.service()
    except BaseException:  # noqa: BLE001 the thread goes on, as those of waitress
        LOG.exception('A request has failed')
