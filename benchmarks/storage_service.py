"""Shares on btrfs by way of the API, and the restart of the service."""

from collections.abc import Iterator
from concurrent import futures
import contextlib
import pathlib
import statistics
import tempfile
import threading
import time

from benchmarks import service
from benchmarks.verdict import Verdict
from tests.support import storage
from tests.support.installation import Installation
from tests.support.nfs_client import NfsClient

MEASURED = 100
CLIENTS = 4
POLL_INTERVAL = 0.001


def record(verdict: Verdict, folder: pathlib.Path, shares: int) -> None:
    """Measure the creation of shares, and a restart with this many."""
    options = storage.options(folder, max_over_subscription_ratio=shares)
    options['btrfs_pools'] = f'pool:{folder}/pool.img'
    options['btrfs_export_addresses'] = '127.0.0.1'
    with (
        tempfile.TemporaryDirectory() as state,
        _running(pathlib.Path(state), options) as installation,
    ):
        port = options['btrfs_nfs_port']
        with contextlib.closing(service.Client(installation)) as client:
            _create_type(client)
            for _ in range(MEASURED // 10):
                _serve_new_share(client, port)  # fills the statement caches
            first = [_serve_new_share(client, port) for _ in range(MEASURED)]
            _create_more(installation, shares - 2 * MEASURED - MEASURED // 10)
            last = [_serve_new_share(client, port) for _ in range(MEASURED)]
        for part, name in enumerate(
            ('to available', 'and allow a client, until it is served')
        ):
            taken, later = (
                statistics.median(times[part] for times in some)
                for some in (first, last)
            )
            name = f'create on btrfs {name}'
            verdict.record(f'{name}, median', taken, 'ms', at_most=60)
            verdict.record(
                f'{name}, at {shares} shares, to the first {MEASURED}',
                later / taken,
                'times',
                at_most=1.5,
                ms=round(later, 2),
            )
        installation.stop()
        installation.start()
        verdict.record(
            f'service restarted with {shares} shares on btrfs, until up',
            installation.startup_seconds,
            's',
            at_most=5,
        )


@contextlib.contextmanager
def _running(state: pathlib.Path, options: dict[str, object]) -> Iterator[Installation]:
    installation = Installation(
        state,
        forked=False,
        backends={'fast': {'share_driver': 'btrfs'} | options},
        options='default_share_type = default\n',
        sections='[quota]\nshares = -1\ngigabytes = -1\n',
    )
    installation.start()
    try:
        yield installation
    finally:
        installation.close()


def _create_type(client: service.Client) -> None:
    client.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'default',
                'extra_specs': {'driver_handles_share_servers': 'False'},
            }
        },
    )


def _serve_new_share(client: service.Client, port: int) -> tuple[float, float]:
    """Return the milliseconds until it is available, and to its client."""
    began = time.perf_counter()
    share = _create(client)
    _wait_for(client, share, 'status', 'available')
    available_at = time.perf_counter()
    _allow(client, share)
    _wait_for(client, share, 'access_rules_status', 'active')
    _look_up(port, _location(client, share))
    served_at = time.perf_counter()
    return (available_at - began) * 1e3, (served_at - began) * 1e3


def _create(client: service.Client) -> str:
    body = {'share': {'share_proto': 'NFS', 'size': 1}}
    return client.request('POST', '/shares', body)['share']['id']


def _allow(client: service.Client, share: str) -> None:
    rule = {'access_type': 'ip', 'access_to': '127.0.0.1', 'access_level': 'rw'}
    client.request('POST', f'/shares/{share}/action', {'allow_access': rule})


def _wait_for(client: service.Client, share: str, field: str, wanted: str) -> None:
    while True:
        found = client.get(f'/shares/{share}')['share'][field]
        if found == wanted:
            return
        if found == 'error':
            raise RuntimeError(f'{field} of share {share} is {found}')
        time.sleep(POLL_INTERVAL)


def _location(client: service.Client, share: str) -> str:
    found = client.get(f'/shares/{share}/export_locations')
    return found['export_locations'][0]['path'].partition(':')[2]


def _look_up(port: int, path: str) -> None:
    """Raise NfsError unless the server lets this machine in."""
    with contextlib.closing(NfsClient('127.0.0.1', port)) as nfs:
        nfs.look_up(path)


def _create_more(installation: Installation, count: int) -> None:
    """Create shares that have a client each, by several connections."""
    connections = threading.local()

    def connect() -> None:
        connections.client = service.Client(installation)

    def create() -> None:
        share = _create(connections.client)
        _wait_for(connections.client, share, 'status', 'available')
        _allow(connections.client, share)
        _wait_for(connections.client, share, 'access_rules_status', 'active')

    with futures.ThreadPoolExecutor(CLIENTS, initializer=connect) as executor:
        for work in [executor.submit(create) for _ in range(count)]:
            work.result()
