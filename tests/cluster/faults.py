"""Faults that happen one after another, while clients send requests."""

from collections.abc import Callable, Iterable
import random
import time

from tests.cluster.cluster import Cluster
from tests.cluster.fault import Fault
from tests.cluster.overlaps import LostLease
from tests.cluster.server_faults import ServerFaults
from tests.cluster.service_faults import ServiceFaults
from tests.cluster.services import Service


class Faults:
    """The faults of a cluster, in an order that the seed decides.

    `part` is in the names of those that happen.
    """

    def __init__(self, cluster: Cluster, rng: random.Random, part: str = ''):
        self._cluster = cluster
        self._rng = rng
        self.happened: list[str] = []
        self.lost_leases: list[LostLease] = []
        """When which processes may have lost a lease without having ended."""
        self.lost: set[str] = set()
        """The ids of what the database has forgotten."""
        self.all = [
            fault
            for fault in (
                *ServiceFaults(cluster, rng),
                *ServerFaults(cluster, rng, self.lost),
            )
            if part in fault.name
        ]
        self._left: list[Fault] = []

    def next(self) -> Fault:
        """Return the next one; each comes once before any comes again."""
        if not self._left:
            self._left = self._rng.sample(self.all, len(self.all))
        return self._left.pop()

    def forget(self) -> None:
        """Begin a new record of what happened."""
        self.happened.clear()
        self.lost.clear()
        self.lost_leases.clear()

    def happen(self, before_mend: Callable[[Fault], None]) -> None:
        """Let the next one happen; call a function before it is mended."""
        fault = self.next()
        began = time.monotonic()
        pids = _pids(fault.may_lose_lease)
        fault.begin()
        try:
            time.sleep(self._rng.uniform(*fault.seconds))
            before_mend(fault)
        finally:
            pids |= _pids(fault.may_lose_lease)
            fault.mend()
        ended = time.monotonic()
        if pids:
            lease = self._cluster.timing.lease
            self.lost_leases.append(LostLease(frozenset(pids), began, ended + lease))
        self.happened.append(f'{fault.name} for {ended - began:.1f} s')


def _pids(services: Iterable[Service]) -> set[int]:
    return {pid for service in services for pid in service.node.pids()}
