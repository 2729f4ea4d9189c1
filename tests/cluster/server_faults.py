"""What may happen to the proxy, databases, brokers and locks."""

from collections.abc import Iterator
import contextlib
import random
import time

from tests.cluster.brokers import RabbitCluster
from tests.cluster.cluster import Cluster
from tests.cluster.contention import Contention
from tests.cluster.databases import Galera, PostgresPair
from tests.cluster.fault import Fault
from tests.cluster.nodes import Node
from tests.support.processes import wait_until

BROKERS_AWAY = 'all brokers away'


class ServerFaults:
    """The faults of servers, of this machine or of nodes.

    `lost` gets the ids of what the database has forgotten.
    """

    def __init__(self, cluster: Cluster, rng: random.Random, lost: set[str]):
        self._cluster = cluster
        self._rng = rng
        self._lost = lost
        self._has_lost = False
        self._all = tuple(cluster.services.values())

    def __iter__(self) -> Iterator[Fault]:
        yield from self._of_servers()
        yield from self._of_replication()

    def _of_servers(self) -> Iterator[Fault]:
        gate = self._cluster.network.nodes['proxy']
        yield Fault(
            'proxy cut off',
            (1.0, 3.0),
            gate.unplug,
            gate.plug,
            gate.is_unplugged,
            # It leads to the database.
            may_lose_lease=self._all,
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
                lambda one=name: not any(self._cluster.proxy.sessions(one).values()),
                may_lose_lease=self._all if name == 'database' else (),
            )

    def _of_database(self, node: Node) -> Iterator[Fault]:
        database = self._cluster.database
        if not isinstance(database, Galera):
            return
        others = [one for one in database.nodes if one is not node]
        yield Fault(
            f'{node.name} parted',
            (8.0, 12.0),
            lambda: self._cluster.network.part([[node], others]),
            lambda: self._rejoin(database, node),
            lambda: database.state(node) != 'Synced',
            may_lose_lease=self._all,
        )
        yield Fault(
            f'{node.name} killed',
            (1.0, 3.0),
            node.kill,
            lambda: database.start_node(node),
            lambda: not node.pids(),
            may_lose_lease=self._all,
        )
        yield Fault(
            f'{node.name} cut off',
            (8.0, 12.0),
            node.unplug,
            lambda: self._rejoin(database, node),
            # Its peers have gone on without it.
            lambda: database.state(node) != 'Synced',
            may_lose_lease=self._all,
        )

    def _rejoin(self, database: Galera, node: Node) -> None:
        node.plug()
        self._cluster.network.join()
        with contextlib.suppress(AssertionError):
            database.wait_until_synced(node)

    def _of_replication(self) -> Iterator[Fault]:
        database = self._cluster.database
        if isinstance(database, Galera):
            contention = Contention(database)
            yield Fault(
                'rows contested',
                (5.0, 8.0),
                lambda: contention.begin(self._cluster.written_node()),
                contention.mend,
                contention.has_failed_commits,
            )
        if isinstance(database, PostgresPair):
            yield Fault(
                'database failed over',
                (0.0, 1.0),
                lambda: self._fail_over(database),
                database.restore_standby,
                # Otherwise nothing would be left to find.
                lambda: self._is_primary(database) and self._has_lost,
                may_lose_lease=self._all,
            )

    def _fail_over(self, database: PostgresPair) -> None:
        """Let the primary die with what its standby has not received."""
        database.stop_receiving()
        before = database.moves()
        time.sleep(self._rng.uniform(0.3, 1.5))
        wait_until(
            lambda: database.moves() > before, 'the primary has more than its standby'
        )
        database.primary.kill()
        database.fail_over()
        self._cluster.forget_connections()
        lost = database.lost()
        self._lost |= lost
        self._has_lost = bool(lost)

    @staticmethod
    def _is_primary(database: PostgresPair) -> bool:
        """Whether the former standby accepts writes."""
        answer = database.ask(database.primary, 'SELECT pg_is_in_recovery()')
        return answer == [(False,)]
