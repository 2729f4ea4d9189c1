"""Snapshots created over HTTP, until `available`, by one client."""

import contextlib
import statistics
import time

from benchmarks import service
from benchmarks.verdict import Verdict

SNAPSHOTS = 200
POLL_INTERVAL = 0.001
"""Seconds between two polls of a snapshot."""


def run(verdict: Verdict) -> None:
    with (
        service.running() as serve,
        contextlib.closing(service.Client(serve)) as client,
    ):
        client.request(
            'PUT',
            '/quota-sets/admin',
            {'quota_set': {'snapshots': -1, 'snapshot_gigabytes': -1}},
        )
        share = _share(client)
        for _ in range(SNAPSHOTS // 10):
            _to_available(client, share)  # fills the statement caches
        cpu = serve.cpu()
        taken = [_to_available(client, share) for _ in range(SNAPSHOTS)]
        cpu = serve.cpu() - cpu  # including the polls
        verdict.record(
            'snapshot to available, median',
            statistics.median(taken),
            'ms',
            at_most=15,
            cpu_ms_each=round(cpu / SNAPSHOTS * 1e3, 2),
        )


def _share(client: service.Client) -> str:
    share = client.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'share_type': 'dummy'}},
    )['share']['id']
    _wait(client, f'/shares/{share}', 'share', 'creating')
    return share


def _to_available(client: service.Client, share: str) -> float:
    """Create a snapshot; return the milliseconds until it is available."""
    began = time.perf_counter()
    snapshot = client.request('POST', '/snapshots', {'snapshot': {'share_id': share}})[
        'snapshot'
    ]['id']
    _wait(client, f'/snapshots/{snapshot}', 'snapshot', 'creating')
    return (time.perf_counter() - began) * 1e3


def _wait(client: service.Client, path: str, what: str, busy: str) -> None:
    """Poll a resource until it is available."""
    while True:
        status = client.get(path)[what]['status']
        if status == 'available':
            return
        if status != busy:
            raise RuntimeError(f'{path} is {status}')
        time.sleep(POLL_INTERVAL)
