"""Shares of one project accepted a second, and placed among a thousand pools."""

from concurrent import futures
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time

import pytest
import sqlalchemy as sa

from benchmarks.verdict import Verdict
from manila_lite.db.queries.services import incarnations, pools
from manila_lite.db.session import Session
from tests.support import databases
from tests.support.service_process import INSTANCE, WORK, ServiceProcess

SERVICES, POOLS_OF_EACH = 200, 5
PLACEMENTS = 400
CLIENTS = 8
"""Each change of the usage of their project waits for those of the others."""
SCHEDULERS = 2
SCHEDULER_QUEUE = 'manila-scheduler'
TIMEOUT = 120.0
"""Seconds until the placement of all of them fails."""
CAPABILITIES = {
    'share_backend_name': 'backend',
    'driver_handles_share_servers': False,
    'vendor_name': 'vendor',
    'driver_version': '1.0',
    'storage_protocol': 'NFS_CIFS',
    'reserved_percentage': 0,
    'reserved_snapshot_percentage': 0,
    'reserved_share_extend_percentage': 0,
    'max_over_subscription_ratio': 1.0,
    'thin_provisioning': False,
    'snapshot_support': True,
    'create_share_from_snapshot_support': True,
    'revert_to_snapshot_support': True,
    'mount_snapshot_support': True,
    'dedupe': [True, False],
    'compression': [True, False],
    'ipv4_support': True,
    'ipv6_support': False,
    'qos': True,
    'replication_type': None,
    'replication_domain': None,
    'filter_function': None,
    'goodness_function': None,
    'server_pools_mapping': {},
}


def run(verdict: Verdict) -> None:
    for kind in databases.KINDS:
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            try:
                url = stack.enter_context(databases.temporary_database(kind, folder))
            except pytest.skip.Exception as error:
                verdict.record_missing(f'placement on {kind}', str(error))
                continue
            databases.create_tables(url)
            _measure(verdict, kind, folder, url)


def _measure(verdict: Verdict, kind: str, folder: pathlib.Path, url: str) -> None:
    node = ServiceProcess(folder, url, backends=['alpha'], work='max_queue = 0')
    node.scheduler.register()
    node.db.write(_add_pools)
    began = time.perf_counter()
    _create(node)
    verdict.record(
        f'{PLACEMENTS} shares of one project accepted from {CLIENTS} clients, {kind}',
        PLACEMENTS / (time.perf_counter() - began),
        'a second',
        at_least=100,
    )
    (runner,) = node.scheduler.runners
    began, cpu = time.perf_counter(), time.process_time()
    runner.start()
    _wait_until_placed(node)
    taken = time.perf_counter() - began
    cpu = time.process_time() - cpu
    refused = _refused(node)
    runner.stop()
    verdict.record(
        f'placement among {SERVICES * POOLS_OF_EACH} pools, {kind}',
        (PLACEMENTS - refused) / taken,
        'a second',
        at_least=100,
        cpu_ms_each=round(cpu / PLACEMENTS * 1e3, 2),
    )
    _create(node)
    taken = _time_of_processes(node, folder, url)
    verdict.record(
        f'the same by {SCHEDULERS} schedulers, {kind}',
        (PLACEMENTS - (_refused(node) - refused)) / taken,
        'a second',
        at_least=300,
    )
    verdict.record(f'refused shares, {kind}', _refused(node), 'shares', at_most=0)
    node.stop()


def _create(node: ServiceProcess) -> None:
    with futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: node.create(1), range(PLACEMENTS)))


def _wait_until_placed(node: ServiceProcess) -> None:
    began = time.perf_counter()
    while waiting := _waiting(node):
        if time.perf_counter() - began > TIMEOUT:
            raise RuntimeError(f'{waiting} shares are not placed')
        time.sleep(0.02)


def _time_of_processes(node: ServiceProcess, folder: pathlib.Path, url: str) -> float:
    """Return the seconds in which processes place what waits."""
    with contextlib.ExitStack() as stack:
        schedulers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, '-m', __name__, folder, url, str(number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for number in range(SCHEDULERS)
        ]
        for one in schedulers:
            one.stdout.readline()
        began = time.perf_counter()
        for one in schedulers:
            one.stdin.close()
        _wait_until_placed(node)
        return time.perf_counter() - began


def _place_part(folder: str, url: str, number: str) -> None:
    """Place each second share, or so, of which hints would tell this process."""
    node = ServiceProcess(
        pathlib.Path(folder), url, backends=['alpha'], work='max_queue = 0', fill=False
    )
    (runner,) = node.scheduler.runners
    waiting = node.rows(sa.select(WORK.c.id).where(WORK.c.queue == SCHEDULER_QUEUE))
    node.scheduler.call_endpoints[0].pools.read()  # as one that runs has done
    print('ready', flush=True)
    sys.stdin.read()
    for row in waiting[int(number) :: SCHEDULERS]:
        runner.wake(row.id)
    while runner.step():
        pass
    node.stop()


def _add_pools(session: Session) -> None:
    for number in range(SERVICES):
        host = f'host{number}@backend'
        incarnations.register(
            session,
            host=host,
            binary='manila-share',
            topic='manila-share',
            zone='nova',
            incarnation='i',
            enabled=True,
            down_time=60.0,
        )
        pools.save_report(
            session,
            host,
            [
                pools.PoolReport(
                    f'{host}#pool{pool}',
                    CAPABILITIES,
                    100_000.0,
                    50_000.0 + number + pool,
                )
                for pool in range(POOLS_OF_EACH)
            ],
            {},
        )


def _waiting(node: ServiceProcess) -> int:
    """Return the number of shares that have yet to be placed."""
    return node.value(sa.select(sa.func.count()).where(WORK.c.queue == SCHEDULER_QUEUE))


def _refused(node: ServiceProcess) -> int:
    """Return the number of shares that no pool could hold."""
    return node.value(sa.select(sa.func.count()).where(INSTANCE.c.host.is_(None)))


if __name__ == '__main__':
    _place_part(*sys.argv[1:])
