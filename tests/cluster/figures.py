"""How long a cluster needs to recover, with the defaults of the service.

A share service is killed, and one is stopped, in the middle of a driver call.
A Galera node is killed, and one is cut off, under a stream of requests. All
of it happens in one run, and each figure is printed with its budget.
"""

from collections.abc import Callable, Iterator
import contextlib
import itertools
import os
import pathlib
import signal
import threading
import time
from typing import NamedTuple

import sqlalchemy as sa

from benchmarks.verdict import Verdict
from manila_lite.conf import core, recovery, service, work
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy.fencing import FencingGate
from manila_lite.work.statements import RUNNING, WORK
from tests.cluster.cluster import PAIR, Cluster
from tests.cluster.databases import Galera
from tests.cluster.nodes import Node
from tests.cluster.services import Service, Timing
from tests.support.load import NO_RESPONSE_ERRORS
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

CALL = 'delete_share'
# Repeated by the service that takes over, whatever was done of it.
CALL_SECONDS = 1.0
"""How long the driver call takes in which a service ends."""

OF_LEASE = 1.2
"""Leases after which work of a lost service has to be done."""

OUTAGE = 5.0
"""Seconds for which requests may fail when a Galera node is lost."""

CLIENTS = 8
PAUSE = 0.1
"""Seconds between the requests of a client."""

REPEAT_AFTER = 0.2
AWAY = 10.0
"""Seconds for which a Galera node is away."""

STEADY = 5.0
"""Seconds of requests without a fault, before and after each."""


def defaults() -> Timing:
    """Return what a service does that is not configured otherwise."""
    found = {
        option.name: option.default
        for module in (core, service, work, recovery)
        for option in module.OPTS
    }
    return Timing(
        report_interval=found['report_interval'],
        service_down_time=found['service_down_time'],
        lease=found['lease'],
        sweep=found['sweep_interval'],
        recovery=found['interval'],
        delay=0,
        delays=f'{CALL}:{CALL_SECONDS:g}',
    )


def measure(verdict: Verdict, cluster: Cluster, only: str = '') -> None:
    """Break a running cluster that has the timing of `defaults`."""
    cluster.create_types()
    if only in ('', 'services'):
        _measure_services(verdict, cluster)
    if only in ('', 'database'):
        _measure_database(verdict, cluster)


def _measure_services(verdict: Verdict, cluster: Cluster) -> None:
    cluster.rest('admin').create_type('pair', share_backend_name=PAIR)
    for what, lose, restore in (
        ('killed', _kill, Service.start),
        ('stopped', _pause, _resume),
    ):
        _measure_service(verdict, cluster, what, lose, restore)


def _measure_database(verdict: Verdict, cluster: Cluster) -> None:
    if not isinstance(cluster.database, Galera):
        verdict.record_missing('loss of a Galera node', 'there is none')
        return
    for is_written in (True, False):
        _measure_node(verdict, cluster, is_written, 'killed')
        _measure_node(verdict, cluster, is_written, 'cut off')


# Share services


def _kill(service: Service) -> None:
    for pid in service.node.pids():
        os.kill(pid, signal.SIGKILL)


def _pause(service: Service) -> None:
    service.node.pause()


def _resume(service: Service) -> None:
    service.node.resume()


def _measure_service(
    verdict: Verdict,
    cluster: Cluster,
    what: str,
    lose: Callable[[Service], None],
    restore: Callable[[Service], None],
) -> None:
    """Lose a service in a driver call; wait until another one has done it."""
    admin = cluster.rest('admin')
    share = admin.create_available(share_type='pair')['id']
    admin.delete(share)
    lost = wait_until(lambda: _caller(cluster), f'{CALL} has begun')
    owner = cluster.db.read(_owner)
    began = time.monotonic()
    lose(lost)
    wait_until(
        lambda: cluster.db.read(_owner) != owner,
        'another service has claimed the work',
        timeout=300,
    )
    claimed = time.monotonic() - began
    admin.wait_gone(share, timeout=300)
    done = time.monotonic() - began
    lease = cluster.timing.lease
    verdict.record(
        f'share service {what} in a driver call, until another one has done its work',
        done,
        's',
        at_most=OF_LEASE * lease,
        of_lease=round(done / lease, 2),
        claimed_after=round(claimed, 2),
        call_takes=CALL_SECONDS,
    )
    restore(lost)
    wait_until(lambda: lost.is_ready, f'{lost.name} is ready')
    wait_until(lambda: not _calls(cluster), 'it is in no call any more')
    assert admin.find(share) is None, share


def _caller(cluster: Cluster) -> Service | None:
    """Return the share service that is in the driver call."""
    pids = _calls(cluster)
    for one in cluster.of_kind('share'):
        if not pids.isdisjoint(one.node.pids()):
            return one
    return None


def _calls(cluster: Cluster) -> set[int]:
    """Return the processes that are in the driver call."""
    gate = FencingGate(cluster.dummy_state(PAIR))
    return {call.pid for call in gate.running() if call.method == CALL}


def _owner(session: Session) -> str | None:
    """Return the process that runs the only work of its kind."""
    return session.value(
        sa.select(WORK.c.owner).where(
            WORK.c.kind.like('%delete%'), WORK.c.state == RUNNING
        )
    )


# Galera nodes


class Request(NamedTuple):
    """A request and its repetitions, until one was answered as expected."""

    client: int
    method: str
    began: float
    seconds: float
    failures: tuple[str, ...]


class Stream:
    """Reads and writes of several clients, each about its own share.

    What fails is repeated until it succeeds.
    """

    def __init__(self, cluster: Cluster):
        self._users = [cluster.rest() for _ in range(CLIENTS)]
        self._shares = [user.create_available()['id'] for user in self._users]
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.done: list[Request] = []

    def __enter__(self) -> 'Stream':
        for number in range(CLIENTS):
            thread = threading.Thread(target=self._run, args=[number])
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, client: int) -> None:
        user, path = self._users[client], f'/shares/{self._shares[client]}'
        for number in itertools.count():
            if self._stop.wait(PAUSE):
                return
            name = {'share': {'display_name': f'name {number}'}}
            method, body = ('GET', None) if number % 2 else ('PUT', name)
            began = time.monotonic()
            failures = [*self._failures(user, method, path, body)]
            self.done.append(
                Request(
                    client, method, began, time.monotonic() - began, tuple(failures)
                )
            )

    @staticmethod
    def _failures(user: RestClient, *request: object) -> Iterator[str]:
        """Send a request until it succeeds; yield why it did not before."""
        while True:
            try:
                user.request(*request)
            except AssertionError:
                yield str(user.last.status_code)
            except NO_RESPONSE_ERRORS as error:
                yield type(error).__name__
            else:
                return
            time.sleep(REPEAT_AFTER)

    def since(self, began: float) -> list[Request]:
        """Return the requests that ended later."""
        return [one for one in self.done if one.began + one.seconds > began]


def _measure_node(
    verdict: Verdict, cluster: Cluster, is_written: bool, what: str
) -> None:
    """Lose a node under load and let it return; record the worst requests."""
    lose, restore = {
        'killed': (_kill_server, _start_server),
        'cut off': (lambda _, node: node.unplug(), _plug),
    }[what]
    cluster.wait_until_ready()
    database = cluster.database
    wait_until(
        lambda: set(cluster.proxy.status('database').values()) == {'UP'},
        'the proxy uses any node',
    )
    with Stream(cluster) as stream:
        time.sleep(STEADY)
        before = stream.since(0)
        written = cluster.written_node()
        node = next(one for one in database.nodes if (one is written) == is_written)
        lost_at = time.monotonic()
        lose(database, node)
        time.sleep(AWAY)
        returned_at = time.monotonic()
        during = stream.since(lost_at)
        restore(database, node)
        time.sleep(STEADY)
    role = 'that is written to' if is_written else 'beside it'
    name = f'Galera node {role} {what}'
    _record(verdict, f'{name}, longest failure of a request', during, before)
    _record(
        verdict,
        f'{name} and back, longest failure of a request',
        stream.since(returned_at),
        before,
    )


def _record(
    verdict: Verdict, name: str, found: list[Request], steady: list[Request]
) -> None:
    """Record how long one request, repeated, was without its answer."""
    kinds = sorted({one for request in found for one in request.failures})
    verdict.record(
        name,
        max(one.seconds for one in found),
        's',
        at_most=OUTAGE,
        requests=len(found),
        repeated=sum(bool(one.failures) for one in found),
        failures=', '.join(kinds) or 'none',
        slowest_before=round(max(one.seconds for one in steady), 2),
    )


def _kill_server(database: Galera, node: Node) -> None:
    for pid in node.pids():
        with contextlib.suppress(OSError):
            if pathlib.Path(f'/proc/{pid}/comm').read_text() == (
                f'{database.program}\n'
            ):
                os.kill(pid, signal.SIGKILL)


def _start_server(database: Galera, node: Node) -> None:
    node.kill()  # its check
    database.start_node(node)


def _plug(database: Galera, node: Node) -> None:
    node.plug()
    database.wait_until_synced(node)
