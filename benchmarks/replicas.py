"""Replicas: a list of a thousand, and a pass that looks how they follow.

In this process, on SQLite, with a driver that answers at once: what counts
is what the service itself takes. One that hangs is given a small limit.
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
"""Seconds after which a driver that hangs is given up."""


class Driver:
    """Replicas follow; about one of them nothing is heard until then."""

    def __init__(self, driver: typing.Any):
        self._driver = driver
        self.silent: str | None = None
        self.released = threading.Event()
        self.asked_at: dict[str, float] = {}

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
        self.asked_at[replica['id']] = time.perf_counter()
        if replica['id'] == self.silent:
            self.released.wait()
        return 'in_sync'


def run(verdict: Verdict) -> None:
    with _filled() as cloud:
        updates = cloud.share.backends[1].replica_updates
        driver = updates.driver = Driver(updates.driver)
        # What a busy machine adds is a look now and then.
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
        cloud = ReplicatedCloud(
            pathlib.Path(folder), backends=('alpha', 'beta')
        )
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
            backend.replica_updates.locks = locks
        try:
            yield cloud
        finally:
            locks.stop()
            cloud.db.dispose()


def _pass(cloud: ReplicatedCloud) -> None:
    """The share service of `beta` looks at all of its replicas."""
    cloud.share.backends[1].replica_updates.request_pass()
    assert cloud.share.backends[1].runner.step()


def _measure(
    verdict: Verdict,
    cloud: ReplicatedCloud,
    name: str,
    call: Callable[[], object],
    statements: int,
) -> None:
    call()  # fills caches of statements
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
    verdict: Verdict,
    cloud: ReplicatedCloud,
    updates: typing.Any,
    driver: Driver,
) -> None:
    """How much later others are asked when the driver hangs on one."""
    before = dict(driver.asked_at)
    driver.silent, driver.asked_at = min(before), {}
    updates.probe = ReplicaProbe(DriverProbe(LIMIT, 8))
    _pass(cloud)
    driver.released.set()
    since = [
        at - driver.asked_at[driver.silent]
        for id, at in driver.asked_at.items()
        if id != driver.silent
    ]
    verdict.record(
        'next replica after one that a driver hangs on, to its time limit',
        min(since) / LIMIT,
        'times',
        at_most=1.2,
        asked=len(since),
        limit_s=LIMIT,
    )
