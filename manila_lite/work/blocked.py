"""Work of this process that waits for other work on its resource."""

import collections
import threading


class BlockedWork:
    """Remembers which work to try again when a job of this process ends.

    Jobs and work are known by their exclusion keys. Safe for threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: collections.Counter[str] = collections.Counter()
        self._waiting: dict[str, set[str]] = {}
        self._tried_again: set[str] = set()
        self._free: set[str] = set()

    def hold(self, work_id: str, key: str) -> None:
        """Record that a job with this key runs."""
        with self._lock:
            self._held[key] += 1
            self._tried_again.discard(work_id)

    def release(self, key: str) -> None:
        """Record that the job has ended; what waits for it is free."""
        with self._lock:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
            self._free |= self._waiting.pop(key, set())

    def add(self, work_id: str, key: str) -> None:
        """Record that this work was refused.

        If no job here has the resource, one may have ended since, so the
        work is free at once. The second time another process has it, and
        the sweep finds the work.
        """
        with self._lock:
            if key in self._held:
                self._waiting.setdefault(key, set()).add(work_id)
            elif work_id in self._tried_again:
                self._tried_again.discard(work_id)
            else:
                self._tried_again.add(work_id)
                self._free.add(work_id)

    def take_free(self) -> set[str]:
        """Return the ids of the work to try again, once."""
        with self._lock:
            free, self._free = self._free, set()
            return free
