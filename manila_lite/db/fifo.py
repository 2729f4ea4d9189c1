"""A lock that serves its waiters in the order they came."""

import collections
import threading


class FifoLock:
    """A mutual exclusion lock without starvation, for `with`.

    SQLite lets waiting writers poll, and an unlucky one may wait for
    seconds; behind this lock each waits for those before it and no more.
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
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *exc: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
