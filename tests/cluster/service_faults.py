"""What may happen to the nodes of services, and to their names."""

from collections.abc import Callable, Iterator
import contextlib
import random
import time

from tests.cluster.cluster import Cluster
from tests.cluster.fault import Fault
from tests.cluster.nodes import Node
from tests.cluster.services import Service
from tests.cluster.slow_readers import SlowReaders
from tests.support.processes import wait_until

CUTS = 30
CUT_FOR = 10.0
"""Seconds in which so many answers are to be cut off."""


class ServiceFaults:
    """The faults of processes, machines, answers and names."""

    def __init__(self, cluster: Cluster, rng: random.Random):
        self._cluster = cluster
        self._rng = rng
        self._cuts = 0
        self._incomplete = 0

    def __iter__(self) -> Iterator[Fault]:
        yield from self._of_services()
        yield from self._of_machines()

    def _of_services(self) -> Iterator[Fault]:
        lease = self._cluster.timing.lease
        for service in self._cluster.services.values():
            node = service.node
            yield Fault(
                f'{node.name} killed',
                (0.2, 2.0),
                lambda node=node: _kill(node),
                lambda one=service: _start(one),
                lambda node=node: not node.pids(),
            )
            yield Fault(
                f'{node.name} paused',
                (lease + 1, lease + 3),
                lambda node=node: _pause(node),
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
            if service.kind == 'api':
                yield Fault(
                    f'{node.name} answers cut',
                    (0.0, 0.5),
                    lambda node=node: self._cut_answers(node),
                    lambda: None,
                    lambda: self._cuts > 0 and self._incomplete > 0,
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
        yield Fault(
            'names away',
            (3.0, 6.0),
            self._forget_names,
            self._cluster.network.restore_names,
            self._are_names_away,
            # Connections to the database are closed.
            may_lose_lease=tuple(self._cluster.services.values()),
        )

    def _cut_answers(self, node: Node) -> None:
        """Close the connections of an API while it answers, many times.

        Go on until a client has got an answer in part.
        """
        with SlowReaders(self._cluster.url) as readers:
            self._cuts = self._cut(node, CUTS, CUT_FOR, lambda: True)
            while not readers.incomplete and self._cut(
                node, 1, CUT_FOR, lambda: readers.are_reading
            ):
                # They notice at their next read.
                with contextlib.suppress(AssertionError):
                    wait_until(lambda: readers.incomplete, 'one notices', 1)
            self._incomplete = readers.incomplete

    def _cut(
        self, node: Node, number: int, seconds: float, may_cut: Callable[[], bool]
    ) -> int:
        """Close connections of an API, if it has any; return how often."""
        proxy, done = self._cluster.proxy, 0
        deadline = time.monotonic() + seconds
        while done < number and time.monotonic() < deadline:
            if may_cut() and proxy.sessions('api')[node.name]:
                proxy.close('api', node.name)
                done += 1
            time.sleep(self._rng.uniform(0.02, 0.1))
        return done

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


def _kill(node: Node) -> None:
    _wait_for_process(node)
    node.kill()


def _pause(node: Node) -> None:
    _wait_for_process(node)
    node.pause()


def _wait_for_process(node: Node) -> None:
    """Wait until one that has just been started is on its node."""
    wait_until(node.pids, f'{node.name} has a process')


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
