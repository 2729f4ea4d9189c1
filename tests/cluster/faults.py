"""What may happen to the nodes of a cluster, and how it is mended.

A fault begins and is mended after some seconds, while clients send requests.
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import random
import time
from typing import NamedTuple

from tests.cluster.brokers import RabbitCluster
from tests.cluster.cluster import Cluster
from tests.cluster.databases import Galera
from tests.cluster.databases import PostgresPair
from tests.cluster.nodes import Node
from tests.cluster.overlaps import LostLease
from tests.cluster.services import Service
from tests.support.processes import wait_until

BROKERS_AWAY = 'all brokers away'
CUTS = 30
CUT_FOR = 10.0
"""Seconds in which so many answers are to be cut off."""


class Fault(NamedTuple):
    """What to do, for how many seconds at least and at most, and the mend.

    `has_effect` is asked before it is mended. `may_lose_lease` are the
    services that live and may be unable to renew a lease meanwhile: they are
    stopped, or do not reach the database.
    """

    name: str
    seconds: tuple[float, float]
    begin: Callable[[], None]
    mend: Callable[[], None]
    has_effect: Callable[[], bool]
    may_lose_lease: tuple[Service, ...] = ()


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
        self._all_services = tuple(cluster.services.values())
        self.all = [
            fault
            for fault in (
                *self._of_services(),
                *self._of_machines(),
                *self._of_servers(),
                *self._of_replication(),
            )
            if part in fault.name
        ]
        self.lost: set[str] = set()
        """The ids of what the database has forgotten moves of."""
        self._cuts = 0
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
            self.lost_leases.append(
                LostLease(frozenset(pids), began, ended + lease)
            )
        self.happened.append(f'{fault.name} for {ended - began:.1f} s')

    def _of_services(self) -> Iterator[Fault]:
        lease = self._cluster.timing.lease
        for service in self._cluster.services.values():
            node = service.node
            yield Fault(
                f'{node.name} killed',
                (0.2, 2.0),
                node.kill,
                lambda one=service: _start(one),
                lambda node=node: not node.pids(),
            )
            yield Fault(
                f'{node.name} paused',
                (lease + 1, lease + 3),
                node.pause,
                node.resume,
                node.is_stopped,
                may_lose_lease=(service,),
            )
            yield Fault(
                f'{node.name} cut off',
                (1.0, lease + 2),
                node.unplug,
                node.plug,
                node.is_unplugged,
                may_lose_lease=(service,),
            )

    def _of_machines(self) -> Iterator[Fault]:
        """Yield what happens to the clock, the disk and the names of nodes."""
        for service in self._cluster.services.values():
            node = service.node
            yield Fault(
                f'{node.name} disk full',
                (2.0, 5.0),
                node.fill_disk,
                node.clear_disk,
                node.has_full_disk,
            )
            if not service.has_clock:
                continue
            for hours, name in ((1, 'an hour ahead'), (-1, 'an hour behind')):
                yield Fault(
                    f'{node.name} clock {name}',
                    (3.0, 6.0),
                    lambda node=node, to=3600 * hours: node.set_clock(to),
                    lambda node=node: node.set_clock(0),
                    lambda one=service, to=3600 * hours: _has_clock(one, to),
                )
            if service.kind == 'api':
                yield Fault(
                    f'{node.name} answers cut',
                    (0.0, 0.5),
                    lambda node=node: self._cut_answers(node),
                    lambda: None,
                    lambda: self._cuts > 0,
                )
        yield Fault(
            'names away',
            (3.0, 6.0),
            self._forget_names,
            self._cluster.network.restore_names,
            self._are_names_away,
            # Connections to the database are closed.
            may_lose_lease=self._all_services,
        )

    def _cut_answers(self, node: Node) -> None:
        """Close the connections of an API while it answers, many times."""
        self._cuts = 0
        proxy = self._cluster.proxy
        deadline = time.monotonic() + CUT_FOR
        while self._cuts < CUTS and time.monotonic() < deadline:
            if proxy.sessions('api')[node.name]:
                proxy.close('api', node.name)
                self._cuts += 1
            time.sleep(self._rng.uniform(0.02, 0.1))

    def _forget_names(self) -> None:
        """Let names not resolve, also for what is connected already."""
        self._cluster.network.forget_names()
        for name in ('database', 'broker', 'locks'):
            for server in self._cluster.proxy.status(name):
                self._cluster.proxy.close(name, server)

    def _are_names_away(self) -> bool:
        """Whether no service resolves a name or has a database connection."""
        network, services = self._cluster.network, self._cluster.services
        return all(
            network.has_forgotten_names(pid)
            for one in services.values()
            for pid in one.node.pids()
        ) and not any(self._cluster.proxy.sessions('database').values())

    def _of_servers(self) -> Iterator[Fault]:
        gate = self._cluster.network.nodes['proxy']
        yield Fault(
            'proxy cut off',
            (1.0, 3.0),
            gate.unplug,
            gate.plug,
            gate.is_unplugged,
            # It leads to the database.
            may_lose_lease=self._all_services,
        )
        for node in self._cluster.database.nodes:
            yield from self._of_database(node)
        for node in self._cluster.broker.nodes:
            yield Fault(
                f'{node.name} killed',
                (1.0, 3.0),
                node.kill,
                lambda one=node: self._cluster.broker.start_node(one),
                lambda node=node: not node.pids(),
            )
        broker = self._cluster.broker
        if isinstance(broker, RabbitCluster):
            yield Fault(
                BROKERS_AWAY,
                (60.0, 65.0),
                broker.kill_all,
                broker.start_all,
                lambda: not any(node.pids() for node in broker.nodes),
            )
        if 'locks' in self._cluster.network.nodes:
            locks = self._cluster.network.nodes['locks']
            yield Fault(
                'locks killed',
                (1.0, 4.0),
                locks.kill,
                self._cluster.start_locks,
                lambda: not locks.pids(),
            )
        for name in ('database', 'broker', 'locks'):
            if name not in self._cluster.proxied:
                continue
            yield Fault(
                f'{name} away',
                (1.0, 4.0),
                lambda one=name: self._cluster.proxy.cut(one, one),
                lambda one=name: self._cluster.proxy.mend(one, one),
                lambda one=name: (
                    not any(self._cluster.proxy.sessions(one).values())
                ),
                may_lose_lease=self._all_services
                if name == 'database'
                else (),
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
            lambda: not node.pids(),
            may_lose_lease=self._all_services,
        )
        yield Fault(
            f'{node.name} cut off',
            (8.0, 12.0),
            node.unplug,
            lambda: _rejoin(database, node),
            # Its peers have gone on without it.
            lambda: database.state(node) != 'Synced',
            may_lose_lease=self._all_services,
        )

    def _of_replication(self) -> Iterator[Fault]:
        database = self._cluster.database
        if isinstance(database, PostgresPair):
            yield Fault(
                'database failed over',
                (0.0, 1.0),
                lambda: self._fail_over(database),
                database.restore_standby,
                lambda: self._is_primary(database),
                may_lose_lease=self._all_services,
            )

    def _fail_over(self, database: PostgresPair) -> None:
        """Let the primary die with what its standby has not received."""
        database.standby.unplug()
        time.sleep(self._rng.uniform(0.3, 1.5))
        database.primary.kill()
        database.standby.plug()
        database.fail_over()
        self._cluster.forget_connections()
        self.lost |= database.lost()

    @staticmethod
    def _is_primary(database: PostgresPair) -> bool:
        """Whether the former standby accepts writes."""
        answer = database.ask(database.primary, 'SELECT pg_is_in_recovery()')
        return answer == [(False,)]


def _pids(services: Iterable[Service]) -> set[int]:
    return {pid for service in services for pid in service.node.pids()}


def _start(service: Service) -> None:
    service.kill()  # its end is noticed
    service.start()


def _has_clock(service: Service, ahead: float) -> bool:
    """Whether the answers of a service, once it answers, have such a time."""

    def shown() -> list[float]:
        seconds = service.node.clock_of(service.health_url)
        return [] if seconds is None else [seconds]

    (found,) = wait_until(shown, f'{service.name} answers', 120, interval=0.5)
    return abs(found - ahead) < 60


def _rejoin(database: Galera, node: Node) -> None:
    node.plug()
    with contextlib.suppress(AssertionError):
        database.wait_until_synced(node)
