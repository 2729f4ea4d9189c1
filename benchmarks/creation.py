"""Shares created over HTTP, until `available`: by 1 and by 16 clients."""

from collections.abc import Callable
from concurrent import futures
import contextlib
import statistics
import threading
import time

from benchmarks import http_load, service
from benchmarks.application import VERSION
from benchmarks.verdict import Verdict, percentile

ALONE = 200
BURST = 200
CLIENTS = 16
POLL_INTERVAL = 0.001
"""Seconds between two polls of a share."""
LIST_POLL_INTERVAL = 0.02
"""Seconds between two polls for shares that are not available yet."""

LOAD_FOR = 3.0

QUIET_READS = 200
READ_INTERVAL = 0.01


def run(verdict: Verdict) -> None:
    with (
        service.running() as serve,
        contextlib.closing(service.Client(serve)) as client,
    ):
        client.request(
            'PUT', '/quota-sets/admin', {'quota_set': {'shares': -1, 'gigabytes': -1}}
        )
        _alone(verdict, client)
        _burst(verdict, serve, client)
        _interference(verdict, serve, client)
        _reads(verdict, serve, client)


def _alone(verdict: Verdict, client: service.Client) -> None:
    for _ in range(ALONE // 10):
        _to_available(client)  # fills the statement caches
    taken = sorted(_to_available(client) for _ in range(ALONE))
    verdict.record(
        'create to available, median', statistics.median(taken), 'ms', at_most=15
    )
    verdict.record(
        'create to available, 99th percentile', percentile(taken, 99), 'ms', at_most=30
    )


def _reads(verdict: Verdict, serve: service.Service, client: service.Client) -> None:
    path = f'/shares/{_create(client)}'
    headers = {'X-OpenStack-Manila-API-Version': VERSION}
    http_load.record_few(
        verdict,
        'serve',
        lambda: http_load.run(
            [serve.port], path, headers, connections=http_load.FEW, seconds=LOAD_FOR
        ),
    )


def _to_available(client: service.Client) -> float:
    """Create a share; return the milliseconds until it is available."""
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


def _burst(verdict: Verdict, serve: service.Service, client: service.Client) -> None:
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
    verdict.record('memory after the burst (PSS)', serve.memory(), 'MiB', at_most=90)


def _create_many(serve: service.Service, client: service.Client) -> tuple[float, float]:
    """Create a burst; return seconds until accepted and until available."""
    create = _each_on_its_own_connection(serve)
    began = time.perf_counter()
    with futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(create, range(BURST)))
    accepted = time.perf_counter() - began
    while client.get('/shares?status=creating&limit=1')['shares']:
        if time.perf_counter() - began > service.TIMEOUT:
            raise RuntimeError('shares stay in creating')
        time.sleep(LIST_POLL_INTERVAL)
    return accepted, time.perf_counter() - began


def _interference(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    """Measure the latency of a reader during a burst."""
    with (
        contextlib.closing(service.Client(serve)) as reader,
        futures.ThreadPoolExecutor(1) as executor,
    ):
        path = '/shares/' + _create(client)
        quiet = [_read(reader, path) for _ in range(QUIET_READS)]
        stop = threading.Event()
        reads = executor.submit(_read_until, stop, reader, path)
        try:
            _create_many(serve, client)
        finally:
            stop.set()
        for name, taken in (('alone', quiet), ('during a burst', reads.result())):
            verdict.record(
                f'reader {name}, 95th percentile', percentile(sorted(taken), 95), 'ms'
            )


def _each_on_its_own_connection(serve: service.Service) -> Callable[[object], str]:
    """Return a function that creates a share, with a client per thread."""
    local = threading.local()

    def create(_: object) -> str:
        if not hasattr(local, 'client'):
            local.client = service.Client(serve)
        return _create(local.client)

    return create


def _read_until(
    stop: threading.Event, reader: service.Client, path: str
) -> list[float]:
    found = []
    while not stop.wait(READ_INTERVAL):
        found.append(_read(reader, path))
    return found


def _read(reader: service.Client, path: str) -> float:
    """Return the milliseconds of one response."""
    began = time.perf_counter()
    reader.get(path)
    return (time.perf_counter() - began) * 1e3
