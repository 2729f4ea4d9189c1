"""Work of this process that waits for other work on its resource."""

import collections
import threading


class BlockedWork:
    """Remembers which work to try again when a job of this process ends.

    Jobs and work are known by their exclusion keys. Of the work that waits for
    one key, the end of a job frees only what has waited longest: all others
    would be refused. Once that has been tried the next one follows. Safe for
    threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: collections.Counter[str] = collections.Counter()
        self._waiting: dict[str, dict[str, None]] = {}  # ids, in order
        self._turns: dict[str, str] = {}  # the key of work that is free
        self._tried_again: set[str] = set()
        self._free: set[str] = set()

    def hold(self, work_id: str, key: str) -> None:
        """Record that a job with this key runs."""
        with self._lock:
            self._held[key] += 1
            self._tried_again.discard(work_id)
            self._turns.pop(work_id, None)
            self._waiting.get(key, {}).pop(work_id, None)  # a sweep found it

    def release(self, key: str) -> None:
        """Record that the job has ended; the first that waits for it is free."""
        with self._lock:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
            self._free_next(key)

    def add(self, work_id: str, key: str) -> None:
        """Record that this work was refused.

        If no job here has the resource, one may have ended since, so the
        work is free at once. The second time another process has it, and
        the sweep finds the work, and what waits behind it.
        """
        with self._lock:
            self._turns.pop(work_id, None)
            if key in self._held or key in self._turns.values():
                self._waiting.setdefault(key, {})[work_id] = None
            elif work_id in self._tried_again:
                self._tried_again.discard(work_id)
                self._waiting.pop(key, None)
            else:
                self._tried_again.add(work_id)
                self._turns[work_id] = key
                self._free.add(work_id)

    def pass_on(self, work_id: str) -> None:
        """Record that this work did not run; what waits behind it is free."""
        with self._lock:
            key = self._turns.pop(work_id, None)
            if key is not None:
                self._free_next(key)

    def leave_to_sweep(self, work_id: str) -> None:
        """Forget this work, which could not be tried, and what waits behind it."""
        with self._lock:
            key = self._turns.pop(work_id, None)
            if key is not None:
                self._waiting.pop(key, None)

    def leave_all_to_sweep(self) -> None:
        """Forget all work that waits."""
        with self._lock:
            for remembered in (
                self._waiting,
                self._turns,
                self._tried_again,
                self._free,
            ):
                remembered.clear()

    def take_free(self) -> set[str]:
        """Return the ids of the work to try again, once."""
        with self._lock:
            free, self._free = self._free, set()
            return free

    def _free_next(self, key: str) -> None:
        waiting = self._waiting.get(key)
        if waiting:
            work_id = next(iter(waiting))
            del waiting[work_id]
            self._turns[work_id] = key
            self._free.add(work_id)
        if not waiting:
            self._waiting.pop(key, None)
