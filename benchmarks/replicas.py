"""Replicas: a list of a thousand, and an update pass over them.

In this process, on SQLite, with a driver that returns at once: only the cost
of the service itself is measured. A driver that hangs has a small limit.
"""

from collections.abc import Callable, Iterator
import contextlib
import pathlib
import statistics
import tempfile
import threading
import time
import typing

from benchmarks.verdict import Verdict
from manila_lite.coordination import Coordinator
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.replication.probe import ReplicaProbe
from tests.support import bulk_replicas as many_replicas
from tests.support.cloud import TYPE_ID
from tests.support.replicated import ReplicatedCloud

REPLICAS = 1_000
TIMES = 10
LIMIT = 0.5
"""Timeout in seconds of a driver call that hangs."""


class Driver:
    """All replicas are in sync; the call for one of them hangs."""

    def __init__(self, driver: typing.Any):
        self._driver = driver
        self.hanging_id: str | None = None
        self.released = threading.Event()
        self.called_at: dict[str, float] = {}

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._driver, name)

    def update_replica_state(
        self,
        context: typing.Any,
        replica_list: typing.Any,
        replica: typing.Any,
        *args: typing.Any,
        **kwargs: typing.Any,
    ) -> str:
        self.called_at[replica['id']] = time.perf_counter()
        if replica['id'] == self.hanging_id:
            self.released.wait()
        return 'in_sync'


def run(verdict: Verdict) -> None:
    with _filled() as cloud:
        updates = cloud.share.backends[1].endpoints.replica_updates
        driver = updates.driver = Driver(updates.driver)
        # A busy machine must not split the pass.
        updates.lock_seconds = updates.yield_after = 600.0
        path = f'/share-replicas/detail?limit={REPLICAS}'
        listed = cloud.api.get(path)['share_replicas']
        _measure(
            verdict,
            cloud,
            f'list of {len(listed)} replicas in detail',
            lambda: cloud.api.get(path),
            statements=5,
        )
        _measure(
            verdict,
            cloud,
            f'pass over {REPLICAS} healthy replicas',
            lambda: _pass(cloud),
            statements=2 * REPLICAS // 100,
        )
        _hang(verdict, cloud, updates, driver)


@contextlib.contextmanager
def _filled() -> Iterator[ReplicatedCloud]:
    with tempfile.TemporaryDirectory() as folder:
        cloud = ReplicatedCloud(pathlib.Path(folder), backends=('alpha', 'beta'))
        cloud.settle()
        cloud.db.write(
            many_replicas.insert_replicated_shares,
            REPLICAS,
            type_id=TYPE_ID,
            active_on='node@alpha#pool',
            passive_on='node@beta#pool',
        )
        locks = Coordinator(cloud.conf, 'benchmark')
        for backend in cloud.share.backends:
            backend.endpoints.replica_updates.locks = locks
        try:
            yield cloud
        finally:
            locks.stop()
            cloud.db.dispose()


def _pass(cloud: ReplicatedCloud) -> None:
    """Run one update pass over all replicas of `beta`."""
    cloud.share.backends[1].endpoints.replica_updates.request_pass()
    assert cloud.share.backends[1].runner.step()


def _measure(
    verdict: Verdict,
    cloud: ReplicatedCloud,
    name: str,
    call: Callable[[], object],
    statements: int,
) -> None:
    call()  # fills the statement caches
    taken, cpu, before = [], time.process_time(), cloud.statements
    for _ in range(TIMES):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1e3)
    verdict.record(
        name,
        (cloud.statements - before) / TIMES,
        'statements',
        at_most=statements,
        ms=round(statistics.median(taken), 1),
        cpu_ms=round((time.process_time() - cpu) / TIMES * 1e3, 1),
    )


def _hang(
    verdict: Verdict, cloud: ReplicatedCloud, updates: typing.Any, driver: Driver
) -> None:
    """Measure the delay of other replicas when the driver hangs on one."""
    before = dict(driver.called_at)
    driver.hanging_id, driver.called_at = min(before), {}
    updates.probe = ReplicaProbe(DriverProbe(LIMIT, 8))
    _pass(cloud)
    driver.released.set()
    since = [
        at - driver.called_at[driver.hanging_id]
        for id, at in driver.called_at.items()
        if id != driver.hanging_id
    ]
    verdict.record(
        'next replica after one that a driver hangs on, to its time limit',
        min(since) / LIMIT,
        'times',
        at_most=1.2,
        asked=len(since),
        limit_s=LIMIT,
    )
