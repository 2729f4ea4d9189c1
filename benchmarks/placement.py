"""Shares of one project accepted a second, and placed among a thousand pools."""

from concurrent import futures
import contextlib
import pathlib
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
    with futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: node.create(1), range(PLACEMENTS)))
    verdict.record(
        f'{PLACEMENTS} shares of one project accepted from {CLIENTS} clients, {kind}',
        PLACEMENTS / (time.perf_counter() - began),
        'a second',
        at_least=100,
    )
    (runner,) = node.scheduler.runners
    began, cpu = time.perf_counter(), time.process_time()
    runner.start()
    while waiting := _waiting(node):
        if time.perf_counter() - began > TIMEOUT:
            raise RuntimeError(f'{waiting} shares are not placed on {kind}')
        time.sleep(0.02)
    taken = time.perf_counter() - began
    cpu = time.process_time() - cpu
    refused = _refused(node)
    runner.stop()
    node.stop()
    verdict.record(
        f'placement among {SERVICES * POOLS_OF_EACH} pools, {kind}',
        (PLACEMENTS - refused) / taken,
        'a second',
        at_least=100,
        cpu_ms_each=round(cpu / PLACEMENTS * 1e3, 2),
    )
    verdict.record(f'refused shares, {kind}', refused, 'shares', at_most=0)


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
    return node.value(
        sa.select(sa.func.count()).where(WORK.c.queue == 'manila-scheduler')
    )


def _refused(node: ServiceProcess) -> int:
    """Return the number of shares that no pool could hold."""
    return node.value(sa.select(sa.func.count()).where(INSTANCE.c.host.is_(None)))
