"""Separate services with MariaDB, RabbitMQ and tokens of an identity service.

Two APIs, a scheduler, a share service with a back end `dummy` and a data
service.
"""

from collections.abc import Callable
from concurrent import futures
import contextlib
import pathlib
import shutil
import statistics
import tempfile
import threading
import time
import typing

import pytest
import sqlalchemy as sa

from benchmarks import cluster_services, http_load, instructions, service
from benchmarks.application import VERSION
from benchmarks.cluster_services import Cluster
from benchmarks.creation import BURST, CLIENTS
from benchmarks.verdict import Verdict
from manila_lite.db.models import shares as models

INSTANCE = models.ShareInstance.__table__

APIS = 2
MANY_APIS = 3
RULES = 100
WARM_UP = 40
"""Shares created before any are measured."""

ALONE = 60
"""Shares created one after the other."""

ASK_INTERVAL = 0.002
STARTS = 3
POLL_INTERVAL = 0.05
RETRY_INTERVAL = 0.02

IDLE_AFTER = 15.0
"""Seconds until the startup tasks are done."""
IDLE_FOR = 60.0

CONNECTIONS = 12
LOAD_FOR = 6.0
PAIRS = 3

_CORES = 2
_WRITES = ('Com_insert', 'Com_insert_select', 'Com_update', 'Com_delete')
_STATEMENTS = ('Com_select', *_WRITES)


def run(verdict: Verdict) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with cluster_services.running(pathlib.Path(folder)) as cluster:
                _measure(verdict, cluster, pathlib.Path(folder))
        except (pytest.skip.Exception, pytest.fail.Exception) as error:
            verdict.record_missing('separate services', str(error))


def _measure(verdict: Verdict, cluster: Cluster, folder: pathlib.Path) -> None:
    _first_start(cluster)
    _memory_without_data(verdict, cluster)
    _start_up(verdict, cluster)
    _memory(verdict, cluster, 'after the start')
    share = _burst(verdict, cluster)
    _rules(verdict, cluster, share)
    _alone(verdict, cluster)
    _memory(verdict, cluster, 'after the load')
    cluster.stop()
    _instructions(verdict, cluster, folder, share)
    _throughput(verdict, cluster, share)
    _few_connections(verdict, cluster, share)
    _idle(verdict, cluster)


def _first_start(cluster: Cluster) -> None:
    """Create the share type and what a back end reports."""
    cluster.start_node(APIS)
    cluster.wait()
    with contextlib.closing(cluster.client()) as client:
        spec = {'driver_handles_share_servers': False}
        client.request(
            'POST', '/types', {'share_type': {'name': 'default', 'extra_specs': spec}}
        )
    cluster.stop()


def _memory_without_data(verdict: Verdict, cluster: Cluster) -> None:
    """Measure APIs, scheduler, share service and their parent."""
    cluster.start_node(APIS, ['api', 'scheduler', 'share'])
    client, share = _first_share(cluster)
    _wait_until_available(client, share, RETRY_INTERVAL)
    client.close()
    cluster.wait()
    found = [service.memory(pid) for pid in cluster.pids()]
    cluster.stop()
    verdict.record(
        f'memory of {APIS} APIs, scheduler and share service, with their '
        f'parent {len(found)} processes (PSS), after the start',
        sum(found),
        'MiB',
        at_most=200,
    )


def _start_up(verdict: Verdict, cluster: Cluster) -> None:
    """Measure from the start of all to the first share; leave them running."""
    taken, cpu = [], []
    for _ in range(STARTS):
        cluster.stop()
        began = time.monotonic()
        cluster.start_node(APIS)
        client, share = _first_share(cluster)
        _wait_until_available(client, share, RETRY_INTERVAL)
        taken.append(time.monotonic() - began)
        cpu.append(cluster.cpu())
        client.close()
        cluster.wait()
    verdict.record(
        'start of separate services to the first share',
        statistics.median(taken),
        's',
        at_most=2.5,
        cpu_s=round(statistics.median(cpu), 2),
    )


def _first_share(cluster: Cluster) -> tuple[service.Client, str]:
    deadline = time.monotonic() + service.TIMEOUT
    while True:
        client = cluster.client()
        try:
            return client, _create(client)
        except OSError:
            client.close()
            if time.monotonic() > deadline:
                raise
        time.sleep(RETRY_INTERVAL)


def _wait_until_available(client: service.Client, share: str, interval: float) -> None:
    deadline = time.monotonic() + service.TIMEOUT
    while True:
        status = client.get(f'/shares/{share}')['share']['status']
        if status == 'available':
            return
        if status != 'creating' or time.monotonic() > deadline:
            raise RuntimeError(f'share {share} is {status}')
        time.sleep(interval)


def _create(client: service.Client) -> str:
    return client.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 1}}
    )['share']['id']


def _memory(verdict: Verdict, cluster: Cluster, when: str, **budget: float) -> None:
    found = {
        kind: sum(map(service.memory, cluster.pids(kind)))
        for kind in (cluster_services.API, *cluster_services.OTHERS)
    }
    verdict.record(
        f'memory of {APIS} APIs, scheduler, share and data service (PSS), {when}',
        sum(map(service.memory, cluster.pids())),
        'MiB',
        **budget,
        **{kind: round(value) for kind, value in found.items()},
    )


def _burst(verdict: Verdict, cluster: Cluster) -> str:
    """Create shares; return one of them."""
    with contextlib.closing(cluster.client()) as client:
        for _ in range(WARM_UP):
            share = _create(client)
        _wait_while(client, '/shares?status=creating&limit=1', 'shares')
        before = _costs(cluster)
        began = time.monotonic()
        _concurrently(cluster, _create, BURST)
        accepted = time.monotonic() - began
        _wait_while(client, '/shares?status=creating&limit=1', 'shares')
        seconds = time.monotonic() - began
    cost = {
        name: (value - before[name]) / BURST for name, value in _costs(cluster).items()
    }
    verdict.record(
        f'{BURST} creates by {CLIENTS} clients of {APIS} APIs, available',
        BURST / seconds,
        'a second',
        at_least=60,
        accepted_a_second=round(BURST / accepted, 1),
        statements_each=round(cost['statements'], 1),
        commits_each=round(cost['commits'], 1),
    )
    kinds = (cluster_services.API, *cluster_services.OTHERS)
    verdict.record(
        'one create, processor time of the services',
        sum(cost[kind] for kind in kinds) * 1e3,
        'ms',
        at_most=15,
        **{kind: round(cost[kind] * 1e3, 1) for kind in kinds},
    )
    verdict.record(
        'one create, processor time of the database',
        cost['database'] * 1e3,
        'ms',
        at_most=10,
    )
    return share


def _alone(verdict: Verdict, cluster: Cluster) -> None:
    """Measure one create after the other, as a client that waits for each."""
    before, taken, shares = _statements(cluster), [], []
    with contextlib.closing(cluster.client()) as client:
        for _ in range(ALONE):
            began = time.perf_counter()
            shares.append(_create(client))
            _wait_until_available(client, shares[-1], ASK_INTERVAL)
            taken.append((time.perf_counter() - began) * 1e3)
    after = _statements(cluster)
    verdict.record(
        f'create until available, asked every {ASK_INTERVAL * 1e3:g} ms, median',
        statistics.median(taken),
        'ms',
        at_most=14,
        worst=round(max(taken), 1),
        # Those of its questions are among the reads.
        writes_each=round((after - before) / ALONE, 1),
    )
    verdict.record(
        'from the request of a share until it is placed, median',
        statistics.median(_placed_after(cluster, shares)),
        'ms',
        at_most=4,
    )


def _statements(cluster: Cluster) -> int:
    """Return the number of statements that have written."""
    return sum(cluster.database.status(*_WRITES).values())


def _placed_after(cluster: Cluster, share_ids: list[str]) -> list[float]:
    """Return the milliseconds between the two times that a share has."""
    engine = sa.create_engine(cluster.database.url)
    try:
        with engine.connect() as connection:
            return [
                (row.scheduled_at - row.created_at).total_seconds() * 1e3
                for row in connection.execute(
                    sa.select(INSTANCE.c.created_at, INSTANCE.c.scheduled_at).where(
                        INSTANCE.c.share_id.in_(share_ids)
                    )
                )
            ]
    finally:
        engine.dispose()


def _costs(cluster: Cluster) -> dict[str, float]:
    status = cluster.database.status(*_STATEMENTS, 'Com_commit')
    return {
        'database': cluster.database_cpu(),
        'commits': status.pop('Com_commit'),
        'statements': sum(status.values()),
        **{
            kind: cluster.cpu(kind)
            for kind in (cluster_services.API, *cluster_services.OTHERS)
        },
    }


def _wait_while(client: service.Client, path: str, found: str) -> None:
    """Wait until a list is empty."""
    deadline = time.monotonic() + service.TIMEOUT
    while client.get(path)[found]:
        if time.monotonic() > deadline:
            raise RuntimeError(f'{path} does not end')
        time.sleep(POLL_INTERVAL)


def _concurrently(
    cluster: Cluster, request: Callable[..., object], number: int, *args: typing.Any
) -> None:
    """Send a number of requests by all clients, half of them to each API."""
    local = threading.local()
    numbers = iter(range(CLIENTS))

    def send(place: int) -> None:
        if not hasattr(local, 'client'):
            local.client = cluster.client(next(numbers))
        request(local.client, *args, *([place] if args else []))

    with futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(send, range(number)))


def _rules(verdict: Verdict, cluster: Cluster, share: str) -> None:
    path = f'/share-access-rules?share_id={share}'
    with contextlib.closing(cluster.client()) as client:
        _allow(client, share, RULES)  # fills the statement caches
        before = cluster.cpu(), cluster.database_cpu()
        began = time.monotonic()
        _concurrently(cluster, _allow, RULES, share)
        while not _all_active(client.get(path)['access_list']):
            time.sleep(POLL_INTERVAL)
        seconds = time.monotonic() - began
    verdict.record(
        f'{RULES} rules by {CLIENTS} clients of {APIS} APIs, active',
        seconds,
        's',
        at_most=1.5,
        services_ms_each=round((cluster.cpu() - before[0]) * 1e3 / RULES, 1),
        database_ms_each=round((cluster.database_cpu() - before[1]) * 1e3 / RULES, 1),
    )


def _allow(client: service.Client, share: str, number: int) -> None:
    client.request(
        'POST',
        f'/shares/{share}/action',
        {
            'allow_access': {
                'access_type': 'ip',
                'access_to': f'10.0.0.{number}',
                'access_level': 'rw',
            }
        },
    )


def _all_active(rules: list[dict[str, str]]) -> bool:
    found = {rule['state'] for rule in rules}
    if 'error' in found:
        raise RuntimeError('a rule is in error')
    return found == {'active'}


def _instructions(
    verdict: Verdict, cluster: Cluster, folder: pathlib.Path, share: str
) -> None:
    if shutil.which('valgrind') is None:
        verdict.record_missing('GET of a cluster', 'valgrind is missing')
        return
    one, page = instructions.counted(
        folder,
        cluster.token,
        [f'/shares/{share}', '/shares/detail?limit=50'],
        'benchmarks.cluster_request',
        MANILA_LITE_CONF=str(cluster.configuration(0)),
    )
    verdict.record(
        'GET share with a token, from MariaDB',
        one / 1e6,
        'million instructions',
        at_most=1.25,
        driver=cluster.driver,
    )
    verdict.record(
        'list of 50 in detail with a token, from MariaDB',
        page / 1e6,
        'million instructions',
    )


def _throughput(verdict: Verdict, cluster: Cluster, share: str) -> None:
    """Compare the throughput of some APIs with that of one, in pairs."""
    cluster.start(MANY_APIS)
    cluster.wait()
    _load(cluster, cluster.ports, share)  # warms up all of them
    pairs = [
        (_load(cluster, cluster.ports[:1], share), _load(cluster, cluster.ports, share))
        for _ in range(PAIRS)
    ]
    cluster.stop()
    one, costs = pairs[PAIRS // 2][0]
    all_cpu = sum(costs.values())
    verdict.record(
        f'GET throughput of {MANY_APIS} APIs, to one',
        statistics.median(many[0] / one[0] for one, many in pairs),
        'times',
        at_least=1.8,
        one_a_second=round(one),
        many_a_second=round(pairs[PAIRS // 2][1][0]),
        # What cores allow, if one API keeps one of them busy.
        possible=round(_CORES * costs['api_ms'] / all_cpu, 2),
        **{name: round(value, 2) for name, value in costs.items()},
    )


def _load(
    cluster: Cluster, ports: list[int], share: str
) -> tuple[float, dict[str, float]]:
    """Return requests per second, and processor time of each in ms."""
    before = cluster.cpu(), cluster.database_cpu(), time.process_time()
    found = _get(cluster, ports, share, CONNECTIONS).a_second
    after = cluster.cpu(), cluster.database_cpu(), time.process_time()
    each = [
        (later - earlier) / (found * LOAD_FOR) * 1e3
        for earlier, later in zip(before, after, strict=True)
    ]
    names = ('api_ms', 'database_ms', 'client_ms')
    return found, dict(zip(names, each, strict=True))


def _get(
    cluster: Cluster, ports: list[int], share: str, connections: int
) -> http_load.Load:
    return http_load.run(
        ports,
        f'/shares/{share}',
        {'X-Auth-Token': cluster.token, 'X-OpenStack-Manila-API-Version': VERSION},
        connections=connections,
        seconds=LOAD_FOR,
    )


def _few_connections(verdict: Verdict, cluster: Cluster, share: str) -> None:
    """Measure reads of the services that one process has started."""
    cluster.start_node(APIS)
    cluster.wait()
    _get(cluster, cluster.ports, share, http_load.FEW)  # warms up both
    http_load.record_few(
        verdict,
        f'services with {APIS} APIs',
        lambda: _get(cluster, cluster.ports, share, http_load.FEW),
    )
    cluster.stop()


def _idle(verdict: Verdict, cluster: Cluster) -> None:
    """Count what a share service alone asks the database."""
    cluster.backends = ['dummy', 'second', 'third']
    cluster.start(0, ['share'])
    cluster.wait()
    time.sleep(IDLE_AFTER)
    before = cluster.database.status(*_STATEMENTS, 'Questions')
    cpu = cluster.cpu()
    time.sleep(IDLE_FOR)
    cpu = cluster.cpu() - cpu
    after = cluster.database.status(*_STATEMENTS, 'Questions')
    each = {name: (value - before[name]) / IDLE_FOR for name, value in after.items()}
    verdict.record(
        f'idle share service with {len(cluster.backends)} back ends: SQL statements',
        sum(each[name] for name in _STATEMENTS),
        'a second',
        at_most=1.5,
        with_commits=round(each['Questions'], 2),
    )
    verdict.record(
        'the same: processor time', cpu / IDLE_FOR * 1e3, 'ms a second', at_most=3
    )
    cluster.stop()
