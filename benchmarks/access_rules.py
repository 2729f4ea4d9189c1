"""Access rules over HTTP: many at once, and random changes."""

from collections.abc import Callable
from concurrent import futures
import contextlib
import functools
import multiprocessing
import pathlib
import random
import sqlite3
import statistics
import tempfile
import threading
import time
import typing

from benchmarks import service
from benchmarks.creation import (
    CLIENTS,
    LIST_POLL_INTERVAL,
    QUIET_READS,
    READ_INTERVAL,
    _read,
    _read_until,
)
from benchmarks.verdict import Verdict, percentile
from tests.support.installation import Installation

RULES = 100
MORE = 400
PHASES = 9
PROCESSES = 4
"""Processes for the clients that add rules beside a reader."""

SHARES = 20
REQUESTS = 10_000
TARGETS = 20
"""Number of possible clients of a share; the driver refuses one."""


def run(verdict: Verdict) -> None:
    with (
        service.running() as serve,
        contextlib.closing(service.Client(serve)) as client,
    ):
        _concurrently(verdict, serve, client)
        _interference(verdict, serve, client)
    with tempfile.TemporaryDirectory() as folder:
        _at_random(verdict, pathlib.Path(folder))


def _concurrently(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    share = _share(client)
    _add(serve, client, share, 1)  # fills the statement caches
    before = _calls(serve)
    seconds = _add(serve, client, share, RULES)
    verdict.record(
        f'{RULES} rules by {CLIENTS} clients, active', seconds, 's', at_most=2
    )
    verdict.record(
        f'{RULES} rules by {CLIENTS} clients, driver calls',
        _calls(serve) - before,
        'calls',
        at_most=5,
    )


def _interference(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    """Measure the latency of a reader of another share under many rules.

    The reader and the writers run in separate processes: threads of one
    process would wait for each other instead of the service. The reader
    pauses between reads in both cases, and both are measured in turn.
    """
    address = service.Address(serve.port)
    path = '/shares/' + _share(client)
    spawned = multiprocessing.get_context('spawn')
    stop = spawned.Event()
    latencies = []
    with (
        futures.ProcessPoolExecutor(1, spawned, _set_stop_event, (stop,)) as reader,
        futures.ProcessPoolExecutor(PROCESSES, spawned) as writers,
    ):
        for _ in range(1 + PHASES):
            share = _share(client)
            quiet = reader.submit(_reads_alone, address, path).result()
            stop.clear()
            reads = reader.submit(_reads_under_load, address, path)
            try:
                list(
                    writers.map(
                        functools.partial(_add_part, address, share), range(PROCESSES)
                    )
                )
            finally:
                stop.set()
            latencies.append(
                [percentile(sorted(found), 95) for found in (quiet, reads.result())]
            )
            _wait_until_active(client, share)
    latencies = latencies[1:]  # the first one fills the statement caches
    alone, among = map(statistics.median, zip(*latencies, strict=True))
    ratios = [later / before for before, later in latencies]
    verdict.record(
        'reader of another share, 95th percentile while '
        f'{CLIENTS} clients add rules, to alone',
        statistics.median(ratios),
        'times',
        at_most=3,
        alone_ms=round(alone, 2),
        among_ms=round(among, 2),
        smallest=round(min(ratios), 2),
        largest=round(max(ratios), 2),
    )


def _set_stop_event(stop: typing.Any) -> None:
    """Pass the event that stops the reads to a process."""
    global _stop
    _stop = stop


_stop: typing.Any = None


def _reads_alone(address: service.Address, path: str) -> list[float]:
    with contextlib.closing(service.Client(address)) as reader:
        found = []
        for _ in range(QUIET_READS):
            time.sleep(READ_INTERVAL)
            found.append(_read(reader, path))
        return found


def _reads_under_load(address: service.Address, path: str) -> list[float]:
    with contextlib.closing(service.Client(address)) as reader:
        return _read_until(_stop, reader, path)


def _add_part(address: service.Address, share: str, part: int) -> None:
    """Add the rules of one process, with its part of the clients."""
    _by_all(
        lambda: service.Client(address),
        lambda own_client, number: _allow(own_client, share, number),
        range(part, MORE, PROCESSES),
        CLIENTS // PROCESSES,
    )


def _share(client: service.Client) -> str:
    share = client.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'share_type': 'dummy'}},
    )['share']['id']
    while client.get(f'/shares/{share}')['share']['status'] == 'creating':
        time.sleep(LIST_POLL_INTERVAL)
    return share


def _add(
    serve: service.Service, client: service.Client, share: str, count: int
) -> float:
    """Add rules to a share; return the seconds until all are active."""
    existing = len(_rules(client, share))

    began = time.perf_counter()
    _by_all(
        lambda: service.Client(serve),
        lambda own_client, number: _allow(own_client, share, existing + number),
        range(count),
    )
    _wait_until_active(client, share)
    return time.perf_counter() - began


def _allow(client: service.Client, share: str, number: int) -> None:
    client.request(
        'POST',
        f'/shares/{share}/action',
        {
            'allow_access': {
                'access_type': 'ip',
                'access_to': f'10.0.{number // 250}.{number % 250}',
            }
        },
    )


def _wait_until_active(client: service.Client, share: str) -> None:
    deadline = time.monotonic() + service.TIMEOUT
    while {rule['state'] for rule in _rules(client, share)} != {'active'}:
        if time.monotonic() > deadline:
            raise RuntimeError('rules stay in transitional states')
        time.sleep(LIST_POLL_INTERVAL)


def _rules(client: service.Client, share: str) -> list[dict]:
    return client.get(f'/share-access-rules?share_id={share}')['access_list']


def _calls(serve: service.Service) -> int:
    """Return the number of driver calls according to the journal."""
    (file,) = serve.folder.glob('state/manila_lite.sqlite')
    with contextlib.closing(sqlite3.connect(file)) as journal:
        return journal.execute(
            'SELECT count(DISTINCT made_at) FROM transitions WHERE '
            "resource = 'access_rule' AND event = 'apply'"
        ).fetchone()[0]


def _by_all(
    connect: Callable[[], typing.Any],
    request: Callable[[typing.Any, int], object],
    numbers: range,
    clients: int = CLIENTS,
) -> None:
    """Call `ask` for every number; each thread has its own connection."""
    local = threading.local()

    def run(number: int) -> None:
        if not hasattr(local, 'client'):
            local.client = connect()
        request(local.client, number)

    with futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(run, numbers))


# At random


def _at_random(verdict: Verdict, folder: pathlib.Path) -> None:
    """Count violated invariants after random requests and refusals."""
    installation = Installation(
        folder, backends={'dummy': {'dummy_driver_refuse_clients': f'*.{TARGETS - 1}'}}
    )
    try:
        installation.start()
        with contextlib.closing(service.Client(installation)) as client:
            client.request(
                'POST',
                '/types',
                {
                    'share_type': {
                        'name': 'dummy',
                        'extra_specs': {'driver_handles_share_servers': 'False'},
                    }
                },
            )
            client.request('PUT', '/quota-sets/admin', {'quota_set': {'shares': -1}})
            shares = [_share(client) for _ in range(SHARES)]
        began = time.perf_counter()
        _by_all(
            lambda: service.Client(installation),
            lambda own_client, number: _request(
                own_client, random.Random(number), shares
            ),
            range(REQUESTS),
        )
        request_seconds = time.perf_counter() - began
        _wait_for_rest(installation)
        verdict.record(
            f'{REQUESTS} rules added and denied at random, wrong at rest',
            len(installation.problems()),
            'problems',
            at_most=0,
            requests_a_second=round(REQUESTS / request_seconds, 1),
            seconds_until_rest=round(time.perf_counter() - began - request_seconds, 2),
        )
    finally:
        installation.close()


def _wait_for_rest(installation: Installation) -> None:
    """Wait until no work is pending in several polls, also for stale rules."""
    quiet = 0
    deadline = time.monotonic() + service.TIMEOUT
    while quiet < 3:
        if time.monotonic() > deadline:
            raise RuntimeError('rules stay in transitional states')
        quiet = 0 if installation.pending_work() else quiet + 1
        time.sleep(0.5)


def _request(client: service.Client, rng: random.Random, shares: list[str]) -> None:
    """Add or deny a rule; it may be refused, but must not fail."""
    share, verb = rng.choice(shares), rng.choice(['allow', 'deny'])
    args = {'access_type': 'ip', 'access_to': f'10.0.0.{rng.randrange(TARGETS)}'}
    if verb == 'deny':
        existing = _rules(client, share)
        if not existing:
            return
        args = {'access_id': rng.choice(existing)['id']}
    try:
        client.request('POST', f'/shares/{share}/action', {f'{verb}_access': args})
    except RuntimeError as error:
        if ': 400 ' not in str(error) and ': 404 ' not in str(error):
            raise
