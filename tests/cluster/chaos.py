"""Requests of many clients to a cluster while its nodes fail at random.

After each round everything is mended. Then nothing may be in flight, and what
clients were promised, the quota, the journal and the back ends have to agree.
"""

from collections.abc import Iterator
import random
import time
from typing import NamedTuple

from manila_lite.db.queries.admin import recovery
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.drivers.dummy.fencing import FencingGate
from manila_lite.work import table
from tests.cluster.cluster import Cluster
from tests.cluster.faults import Faults
from tests.cluster.load import ClusterLoad
from tests.cluster.services import Timing
from tests.support import invariants
from tests.support import snapshot_access_invariants
from tests.support import snapshot_invariants
from tests.support.processes import wait_until

TIMING = Timing(
    report_interval=1,
    service_down_time=6,
    lease=3,
    sweep=0.3,
    recovery=5,
    delay=0.1,
)
CLIENTS = 16
AT_REST_WITHIN = 180.0
"""Seconds after which something counts as stuck; far more than it takes."""


class Result(NamedTuple):
    """What one round found; nothing in `problems` is how it should be."""

    text: str
    problems: list[str]


class Chaos:
    """Rounds of faults under load, decided by a seed."""

    def __init__(self, cluster: Cluster, seed: int, per_minute: int = 300):
        self.cluster = cluster
        self.faults = Faults(cluster, random.Random(f'{seed} faults'))
        self.load = ClusterLoad(
            cluster.rest, seed, per_minute=per_minute, clients=CLIENTS
        )
        self._known: dict[str, int] = {}

    def round(self, seconds: float) -> Result:
        """Let faults happen for some seconds; return what became of it."""
        self.faults.forget()
        before = sum(self.load.accepted.values())
        deadline = time.monotonic() + seconds
        self.load.start()
        try:
            while time.monotonic() < deadline:
                self.faults.happen()
        finally:
            self.load.stop()
        self.cluster.wait_until_ready()
        began = time.monotonic()
        stuck = self._wait_until_at_rest()
        text = (
            f'{sum(self.load.accepted.values()) - before} accepted, '
            f'at rest after {time.monotonic() - began:.1f} s; '
            + ', '.join(self.faults.happened)
        )
        return Result(text, stuck or list(self._problems()))

    def _wait_until_at_rest(self) -> list[str]:
        """Return what is still in flight when it should be at rest."""
        try:
            wait_until(
                lambda: not self._in_flight(),
                'nothing is in flight',
                AT_REST_WITHIN,
                interval=0.5,
            )
        except AssertionError:
            return self._in_flight()
        return []

    def _in_flight(self) -> list[str]:
        db = self.cluster.db
        return [
            *(
                f'{row.kind} for {row.resource_id} is {row.state}'
                for row in db.read(table.list_work)
            ),
            *(
                f'{row.resource} {row.id} is {row.status}'
                for kind in recovery.KINDS
                for row in db.read(recovery.list_in_flight, kind, most=1000)
            ),
        ]

    def _problems(self) -> Iterator[str]:
        folders = {
            service.service_host: self.cluster.dummy_state(service.backend)
            for service in self.cluster.of_kind('share')
        }
        read = self.cluster.db.read
        yield from read(invariants.problems, folders)
        for check, inventory in (
            (snapshot_invariants, dummy.snapshot_inventory),
            (snapshot_access_invariants, dummy.snapshot_access_inventory),
        ):
            yield from read(
                check.problems,
                {host: inventory(path) for host, path in folders.items()},
            )
        yield from self.load.check(self.cluster.rest())
        yield from self._overlaps()

    def _overlaps(self) -> Iterator[str]:
        """Yield the driver calls that ran at once for different work.

        A process that could not renew its lease is in its call when another
        one takes over; the token keeps it from changing anything.
        """
        for backend in {one.backend for one in self.cluster.of_kind('share')}:
            file = self.cluster.dummy_state(backend)
            gate = FencingGate(file)
            known = self._known.setdefault(backend, 0)
            overlaps = gate.overlaps
            self._known[backend] = len(overlaps)
            for overlap in overlaps[known:]:
                if overlap.during_pid not in self.faults.without_lease:
                    yield f'overlapping calls on {backend}: {overlap}'
