"""Shares created over HTTP, to `available`: alone, and by 16 clients."""

from collections.abc import Callable
from concurrent import futures
import contextlib
import statistics
import threading
import time

from benchmarks import service
from benchmarks.verdict import Verdict

ALONE = 200
BURST = 200
CLIENTS = 16
POLL_INTERVAL = 0.001
"""Seconds between two looks at a share that is waited for."""
LIST_POLL_INTERVAL = 0.02
"""Seconds between two looks whether all shares are available."""

QUIET_READS = 200
READ_INTERVAL = 0.01


def run(verdict: Verdict) -> None:
    with (
        service.running() as serve,
        contextlib.closing(service.Client(serve)) as client,
    ):
        client.request(
            'PUT',
            '/quota-sets/admin',
            {'quota_set': {'shares': -1, 'gigabytes': -1}},
        )
        _alone(verdict, client)
        _burst(verdict, serve, client)
        _interference(verdict, serve, client)


def _alone(verdict: Verdict, client: service.Client) -> None:
    for _ in range(ALONE // 10):
        _to_available(client)  # fills caches of statements
    taken = sorted(_to_available(client) for _ in range(ALONE))
    verdict.record(
        'create to available, median',
        statistics.median(taken),
        'ms',
        at_most=15,
    )
    verdict.record(
        'create to available, 99th percentile',
        _percentile(taken, 99),
        'ms',
        at_most=30,
    )


def _to_available(client: service.Client) -> float:
    """Milliseconds until one share is available."""
    began = time.perf_counter()
    share = _create(client)
    while True:
        status = client.get(f'/shares/{share}')['share']['status']
        if status == 'available':
            return (time.perf_counter() - began) * 1e3
        if status != 'creating':
            raise RuntimeError(f'share {share} is {status}')
        time.sleep(POLL_INTERVAL)


def _create(client: service.Client) -> str:
    return client.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'share_type': 'dummy'}},
    )['share']['id']


def _burst(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    cpu = serve.cpu()
    accepted, available = _create_many(serve, client)
    cpu = serve.cpu() - cpu
    verdict.record(
        f'{BURST} creates by {CLIENTS} clients, available',
        BURST / available,
        'a second',
        at_least=100,
        accepted_a_second=round(BURST / accepted, 1),
        cpu_ms_each=round(cpu / BURST * 1e3, 2),
    )
    verdict.record(
        'memory after the burst (PSS)', serve.memory(), 'MiB', at_most=90
    )


def _create_many(
    serve: service.Service, client: service.Client
) -> tuple[float, float]:
    """Seconds until all were accepted, and until all are available."""
    create = _each_on_its_own_connection(serve)
    began = time.perf_counter()
    with futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(create, range(BURST)))
    accepted = time.perf_counter() - began
    while client.get('/shares?status=creating&limit=1')['shares']:
        if time.perf_counter() - began > service.TIMEOUT:
            raise RuntimeError('shares are creating for ever')
        time.sleep(LIST_POLL_INTERVAL)
    return accepted, time.perf_counter() - began


def _interference(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    """What somebody who reads one share notices of a burst."""
    with (
        contextlib.closing(service.Client(serve)) as reader,
        futures.ThreadPoolExecutor(1) as beside,
    ):
        path = '/shares/' + _create(client)
        quiet = [_read(reader, path) for _ in range(QUIET_READS)]
        over = threading.Event()
        reads = beside.submit(_read_until, over, reader, path)
        try:
            _create_many(serve, client)
        finally:
            over.set()
        for name, taken in (
            ('alone', quiet),
            ('during a burst', reads.result()),
        ):
            verdict.record(
                f'reader {name}, 95th percentile',
                _percentile(sorted(taken), 95),
                'ms',
            )


def _each_on_its_own_connection(
    serve: service.Service,
) -> Callable[[object], str]:
    """What creates a share, with a client for every thread."""
    kept = threading.local()

    def create(_: object) -> str:
        if not hasattr(kept, 'client'):
            kept.client = service.Client(serve)
        return _create(kept.client)

    return create


def _read_until(
    over: threading.Event, reader: service.Client, path: str
) -> list[float]:
    found = []
    while not over.wait(READ_INTERVAL):
        found.append(_read(reader, path))
    return found


def _read(reader: service.Client, path: str) -> float:
    """Milliseconds that one answer took."""
    began = time.perf_counter()
    reader.get(path)
    return (time.perf_counter() - began) * 1e3


def _percentile(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
