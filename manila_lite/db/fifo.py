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

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait until the lock is ours; return False if the time is over."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            released = threading.Lock()
            released.acquire()
            self._waiting.append(released)
        if released.acquire(timeout=-1 if timeout is None else timeout):
            return True
        with self._guard:
            if released not in self._waiting:
                return True  # it was released to us at the last moment
            self._waiting.remove(released)
            return False

    def release(self) -> None:
        """Pass the lock to the first waiter."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()
