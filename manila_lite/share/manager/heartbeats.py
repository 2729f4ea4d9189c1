"""The heartbeats of all back ends of a process, in one transaction."""

from collections.abc import Callable, Sequence
import contextlib
import math
import threading
import time

from manila_lite.db.queries.services import incarnations
from manila_lite.db.session import Database
from manila_lite.rpc.share import BINARY
from manila_lite.share.manager.backend import Backend

SHARED_FOR = 0.75
"""The part of an interval for which a heartbeat written by another serves."""

PATIENCE = 1.0
"""Seconds that a back end waits for a heartbeat that another is writing."""


class Heartbeats:
    """Writes the heartbeats of the back ends that are well together.

    Each back end has a task, so that one that hangs holds up no other. The
    first to be due writes the heartbeats of all, the others find that done.
    A back end that is not healthy, or whose service row belongs to another
    process, writes its own.
    """

    def __init__(
        self,
        db: Database,
        backends: Sequence[Backend],
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._db = db
        self._backends = backends
        self._interval = interval
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[str, float] = {}

    def beat(self, backend: Backend) -> None:
        """Write the heartbeat of a back end, unless that has just been done."""
        if not backend.is_well:
            self._written.pop(backend.host, None)
            backend.beat()
        elif not self._is_written(backend):
            backend.beat()

    def _is_written(self, backend: Backend) -> bool:
        """Whether the heartbeat is written, now at the latest."""
        if not self._lock.acquire(timeout=PATIENCE):
            return False
        try:
            age = self._clock() - self._written.get(backend.host, -math.inf)
            return age < SHARED_FOR * self._interval or backend.host in self._write()
        finally:
            self._lock.release()

    def _write(self) -> list[str]:
        """Write those of the back ends that are well; return their hosts."""
        with contextlib.ExitStack() as stack:
            well = [
                one for one in self._backends if stack.enter_context(one.keep_well())
            ]
            if not well:
                return []
            now = self._clock()
            hosts = self._db.write(
                incarnations.renew,
                hosts=[one.host for one in well],
                binary=BINARY,
                incarnation=well[0].incarnation,
            )
            self._written.update(dict.fromkeys(hosts, now))
            return hosts
