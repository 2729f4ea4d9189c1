"""What may happen to the nodes of a cluster, and how it is mended.

A fault begins and is mended after some seconds, while clients send requests.
"""

from collections.abc import Callable, Iterator
import contextlib
import random
import time
from typing import NamedTuple

from tests.cluster.cluster import Cluster
from tests.cluster.databases import Galera
from tests.cluster.nodes import Node
from tests.cluster.services import Service


class Fault(NamedTuple):
    """What to do, for how many seconds at least and at most, and the mend."""

    name: str
    seconds: tuple[float, float]
    begin: Callable[[], None]
    mend: Callable[[], None]


class Faults:
    """All faults of a cluster, in an order that the seed decides."""

    def __init__(self, cluster: Cluster, rng: random.Random):
        self._cluster = cluster
        self._rng = rng
        self.happened: list[str] = []
        self.without_lease: set[int] = set()
        """Processes that may have lost a lease without having ended."""
        self.all = [*self._of_services(), *self._of_servers()]
        self._left: list[Fault] = []

    def next(self) -> Fault:
        """Return the next one; each comes once before any comes again."""
        if not self._left:
            self._left = self._rng.sample(self.all, len(self.all))
        return self._left.pop()

    def forget(self) -> None:
        """Begin a new record of what happened."""
        self.happened.clear()
        self.without_lease.clear()

    def happen(self) -> None:
        fault = self.next()
        began = time.monotonic()
        if not fault.name.endswith('killed'):
            self.without_lease.update(self._pids(fault))
        fault.begin()
        try:
            time.sleep(self._rng.uniform(*fault.seconds))
        finally:
            fault.mend()
        self.happened.append(
            f'{fault.name} for {time.monotonic() - began:.1f} s'
        )

    def _pids(self, fault: Fault) -> Iterator[int]:
        """Yield the processes that a fault keeps from the database."""
        name = fault.name.partition(' ')[0]
        one = self._cluster.services.get(name)
        for service in [one] if one else self._cluster.services.values():
            yield from service.node.pids()

    def _of_services(self) -> Iterator[Fault]:
        lease = self._cluster.timing.lease
        for service in self._cluster.services.values():
            node = service.node
            yield Fault(
                f'{node.name} killed',
                (0.2, 2.0),
                node.kill,
                lambda one=service: _start(one),
            )
            yield Fault(
                f'{node.name} paused',
                (lease + 1, lease + 3),
                node.pause,
                node.resume,
            )
            yield Fault(
                f'{node.name} cut off',
                (1.0, lease + 2),
                node.unplug,
                node.plug,
            )

    def _of_servers(self) -> Iterator[Fault]:
        gate = self._cluster.network.nodes['proxy']
        yield Fault('proxy cut off', (1.0, 3.0), gate.unplug, gate.plug)
        for node in self._cluster.database.nodes:
            yield from self._of_database(node)
        for node in self._cluster.broker.nodes:
            yield Fault(
                f'{node.name} killed',
                (1.0, 3.0),
                node.kill,
                lambda one=node: self._cluster.broker.start_node(one),
            )
        if 'locks' in self._cluster.network.nodes:
            locks = self._cluster.network.nodes['locks']
            yield Fault(
                'locks killed',
                (1.0, 4.0),
                locks.kill,
                self._cluster.start_locks,
            )
        for name in ('database', 'broker', 'locks'):
            if name not in self._cluster.proxied:
                continue
            yield Fault(
                f'{name} away',
                (1.0, 4.0),
                lambda one=name: self._cluster.proxy.cut(one, one),
                lambda one=name: self._cluster.proxy.mend(one, one),
            )

    def _of_database(self, node: Node) -> Iterator[Fault]:
        database = self._cluster.database
        if not isinstance(database, Galera):
            return
        yield Fault(
            f'{node.name} killed',
            (1.0, 3.0),
            node.kill,
            lambda: database.start_node(node),
        )
        yield Fault(
            f'{node.name} cut off',
            (8.0, 12.0),
            node.unplug,
            lambda: _rejoin(database, node),
        )


def _start(service: Service) -> None:
    service.kill()  # its end is noticed
    service.start()


def _rejoin(database: Galera, node: Node) -> None:
    node.plug()
    with contextlib.suppress(AssertionError):
        database.wait_until_synced(node)
