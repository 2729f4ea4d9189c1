"""Driver calls that ran at once for different work, and when they did.

The dummy back ends record them without a time, so that the record is read
again and again while nodes fail.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import math
import threading
import time
from typing import NamedTuple

from manila_lite.share.drivers.dummy.fencing import FencingGate, Overlap

INTERVAL = 0.1


class SeenOverlap(NamedTuple):
    """An overlap, and between which monotonic times it was recorded."""

    backend: str
    overlap: Overlap
    after: float
    before: float


class LostLease(NamedTuple):
    """Processes that could not renew a lease, and between which times.

    The time ends a lease after the fault: until then another process may take
    over what they had claimed before.
    """

    pids: frozenset[int]
    began: float
    ended: float

    def explains(self, seen: SeenOverlap) -> bool:
        """Whether the earlier call is of these processes, and of that time.

        A call that another one overlaps at some time began before it.
        """
        return (
            seen.overlap.during_pid in self.pids
            and seen.before >= self.began
            and seen.after <= self.ended
        )


class OverlapWatch:
    """Reads what the back ends record; their gates are by their names."""

    def __init__(self, gates: Callable[[], Mapping[str, FencingGate]]):
        self._gates = gates
        self._known: dict[str, int] = {}
        self._read_at = -math.inf
        self._seen: list[SeenOverlap] = []
        self._reading = threading.Lock()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Read the records during the block."""
        end = threading.Event()

        def read() -> None:
            while not end.wait(INTERVAL):
                self._read()

        self._read_at = -math.inf
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def _read(self) -> None:
        with self._reading:
            now = time.monotonic()
            for backend, gate in self._gates().items():
                found = gate.overlaps
                for overlap in found[self._known.get(backend, 0) :]:
                    self._seen.append(
                        SeenOverlap(backend, overlap, self._read_at, time.monotonic())
                    )
                self._known[backend] = len(found)
            self._read_at = now

    def take(self, explained: Iterable[LostLease]) -> list[SeenOverlap]:
        """Return the overlaps since the last call that none explains."""
        self._read()
        with self._reading:
            seen, self._seen = self._seen, []
        explained = list(explained)
        return [
            one for one in seen if not any(lost.explains(one) for lost in explained)
        ]
