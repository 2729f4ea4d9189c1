"""A lock that serves its waiters in order of arrival."""

import collections
import threading


class FifoLock:
    """A mutual exclusion lock without starvation, used in `with`.

    Writers that wait for SQLite poll, and an unlucky one may wait for
    seconds. With this lock each waits only for those before it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: collections.deque[threading.Lock] = collections.deque()
        self._held = False

    def __enter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            released = threading.Lock()
            released.acquire()
            self._waiting.append(released)
        released.acquire()

    def __exit__(self, *exc: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
