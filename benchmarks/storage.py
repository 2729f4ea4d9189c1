"""Shares on btrfs with a real NFS server, on pools in memory.

Most figures are ratios to what the kernel and the NFS server take for the
same change, or of the last shares to the first, so that they do not depend on
the machine.
"""

from collections.abc import Callable
from concurrent import futures
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import uuid

from benchmarks import bare_server, share_moves, storage_service
from benchmarks.storage_clients import Clients, export_number
from benchmarks.verdict import Verdict
from manila_lite.share.drivers import records
from manila_lite.share.drivers.base import AccessRuleForDriver, ShareForDriver
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.crashes import STEPS
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.drivers.migration_contract import BtrfsPair
from tests.support import storage, tenant_network
from tests.support.nfs_client import NfsError
from tests.support.tenant_network import TenantClient

SHARES = 1000
SOME = 100
"""How many of the shares are compared, at the beginning and at the end."""

SNAPSHOTS = 30
REPORTS = 5
BARE = 20
SERVERS = 20
MIGRATIONS = 5
FILLING = 200 << 20
SOURCE, DESTINATION, CLIENT = '10.20.0.5', '10.20.0.200', '10.20.0.99'
BARE_SERVER = '10.20.0.201'
NFS_PORT = 2049
POLL_INTERVAL = 0.001
TIMEOUT = 60.0


def run(verdict: Verdict) -> None:
    reason = storage.missing()
    if reason is not None:
        verdict.record_missing('storage', reason)
        return
    with storage.folder() as folder:
        _Backend(folder).measure(verdict)
    with storage.folder() as folder:
        storage_service.record(verdict, folder, SHARES)
    with storage.folder() as folder:
        share_moves.record(verdict, folder)
    with tenant_network.bridge() as bridge, storage.folder() as folder:
        _set_up_servers(verdict, folder, bridge)
    _migrate_servers(verdict)


class _Backend:
    """A driver, and the shares that were created with it."""

    def __init__(self, folder: pathlib.Path):
        options = storage.options(folder)
        self.configuration = Configuration.from_values(options)
        self.harness = DriverHarness('btrfs', lambda: self.configuration)
        self.root = pathlib.Path(options['btrfs_root'])
        self.driver = self._start()
        self.first_rules: list[float] = []

    def _start(self) -> BtrfsDriver:
        driver = BtrfsDriver(configuration=self.configuration)
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    def measure(self, verdict: Verdict) -> None:
        self._create(SOME // 10)
        first_bare = self._create_bare()
        first_steps = self._steps_of_a_creation()
        first = self._create(SOME)
        first_rules = self._rule_changes()
        self._record_bare_update(verdict)
        self._record_bare_snapshot(verdict)
        self._create(SHARES - SOME // 10 - 2 * SOME)
        last = self._create(SOME)
        bare = self._create_bare()
        verdict.record(
            f'create at {SHARES} shares: calls that the driver makes',
            self._steps_of_a_creation(),
            'calls',
            at_most=first_steps,
        )
        verdict.record(
            f'first rule of a share among {SHARES}',
            statistics.median(self.first_rules[-SOME:]),
            'ms',
            among_100_ms=round(statistics.median(self.first_rules[:SOME]), 2),
        )
        _record_growth(
            verdict,
            'create',
            first,
            last,
            # btrfs alone grows as well; the driver grows no more than that.
            at_most=max(1.5, round(bare / first_bare, 2)),
            bare=round(bare / first_bare, 2),
            bare_ms=round(bare, 2),
            base_bare_ms=round(first_bare, 2),
        )
        _record_growth(verdict, 'rule change', first_rules, self._rule_changes())
        clients = Clients(self.driver, self.harness)
        clients.record_rule_changes(verdict, self.harness.shares[-SOME:])
        self._record_reports(verdict)
        self._record_restarts(verdict)
        clients.record_restart(verdict, self.harness.shares[:SHARES])

    def _create(self, count: int) -> list[float]:
        """Create shares with a rule each; return how long they took."""
        taken = []
        for _ in range(count):
            share = self.harness.share()
            taken.append(_milliseconds(self.driver.create_share, CTX, share))
            self.first_rules.append(_milliseconds(self._allow, share, 1))
        return taken

    def _steps_of_a_creation(self) -> int:
        """Return how often the driver calls the system for one share."""
        share, steps, is_counting = self.harness.share(), 0, True

        def count(event: str, args: tuple[object, ...]) -> None:
            nonlocal steps
            steps += is_counting and event in STEPS

        sys.addaudithook(count)
        self.driver.create_share(CTX, share)
        is_counting = False
        return steps

    def _create_bare(self) -> float:
        """Return how long btrfs takes for what the driver asks of it.

        That is a durable file, and a durable subvolume with a limit.
        """
        (pool,) = self.driver.backend.pools.values()
        (pool.top / 'bare').mkdir(exist_ok=True)

        def create() -> None:
            name = f'bare-{uuid.uuid4()}'
            records.write_text(pool.top / 'bare' / name, name, durable=True)
            volume = pool.path(Kind.SHARE, name)
            kernel.create_subvolume(volume)
            kernel.set_limit(pool.top, kernel.subvolume_id(volume), 1 << 30)
            records.sync_directory(volume.parent)

        return statistics.median(_milliseconds(create) for _ in range(BARE))

    def _rule_changes(self) -> list[float]:
        """Allow more clients at each of the newest shares."""
        return [
            _milliseconds(self._allow, share, clients)
            for clients in (2, 3)
            for share in self.harness.shares[-SOME:]
        ]

    def _allow(self, share: ShareForDriver, clients: int) -> None:
        rules = [
            AccessRuleForDriver(
                id=f'rule-{number}',
                share_id=share.share_id,
                access_type='ip',
                access_to=f'10.0.0.{number}',
                access_level='rw',
            )
            for number in range(clients)
        ]
        self.driver.update_access(CTX, share, rules, [], [], [])

    def _record_bare_update(self, verdict: Verdict) -> None:
        backend, changes, bare = self.driver.backend, [], []
        for share in self.harness.shares[-SOME:]:
            file = self.root / 'exports' / f'{Kind.SHARE}.{share.name}.conf'
            number = export_number(backend, share.name)
            changes.append(_milliseconds(self._allow, share, 4))
            bare.append(_milliseconds(backend.daemons.server.apply, file, number))
        _record_ratio(verdict, 'rule change, to a bare UpdateExport', changes, bare, 3)

    def _record_bare_snapshot(self, verdict: Verdict) -> None:
        (pool,) = self.driver.backend.pools.values()
        changes, bare = [], []
        for share in self.harness.shares[-SNAPSHOTS:]:
            snapshot = self.harness.snapshot(share)
            source = pool.path(Kind.SHARE, share.name)
            target = pool.path(Kind.SNAPSHOT, f'bare-{uuid.uuid4()}')
            changes.append(_milliseconds(self.driver.create_snapshot, CTX, snapshot))
            bare.append(_milliseconds(kernel.create_snapshot, source, target, True))
        verdict.record(
            'snapshot on btrfs; at most 3 bare ioctls and 10 ms',
            statistics.median(changes),
            'ms',
            at_most=round(3 * statistics.median(bare) + 10, 2),
            bare_ms=round(statistics.median(bare), 2),
        )

    def _record_reports(self, verdict: Verdict) -> None:
        for name, act in (
            ('statistics', lambda: self.driver.get_share_stats(refresh=True)),
            (
                'usage',
                lambda: self.driver.update_share_usage_size(CTX, self.harness.shares),
            ),
        ):
            verdict.record(
                f'{name} of {SHARES} shares, median',
                _median(act, REPORTS),
                'ms',
                at_most=200,
                ioctls_ms=round(_median(self._count_bare, REPORTS), 2),
                qgroup_show_ms=round(_median(self._show_bare, REPORTS), 2),
            )

    def _count_bare(self) -> None:
        """Ask the kernel for the sizes of all subvolumes, and of the pool."""
        (pool,) = self.driver.backend.pools.values()
        kernel.sizes(pool.top)
        os.statvfs(pool.top)

    def _show_bare(self) -> None:
        (pool,) = self.driver.backend.pools.values()
        subprocess.run(
            ['btrfs', 'qgroup', 'show', '-r', '--raw', str(pool.top)],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def _record_restarts(self, verdict: Verdict) -> None:
        verdict.record(
            f'share service restarted with {SHARES} shares, driver ready',
            _milliseconds(self._start) / 1e3,
            's',
            at_most=5,
        )
        began = time.perf_counter()
        processes.end(self.root / 'nfs' / 'server.json', signal.SIGKILL, TIMEOUT)
        server = self.driver.backend.daemons.server
        while len(server.numbers()) < SHARES:
            time.sleep(POLL_INTERVAL)
        verdict.record(
            f'NFS server killed, until {SHARES} shares are exported again',
            time.perf_counter() - began,
            's',
            at_most=10,
        )


def _record_growth(
    verdict: Verdict,
    what: str,
    first: list[float],
    last: list[float],
    at_most: float = 1.5,
    **more: float,
) -> None:
    _record_ratio(
        verdict,
        f'{what} at {SHARES} shares, to the first {SOME}',
        last,
        first,
        at_most,
        **more,
    )


def _record_ratio(
    verdict: Verdict,
    name: str,
    taken: list[float],
    base: list[float],
    at_most: float | None = None,
    **more: float,
) -> None:
    verdict.record(
        name,
        statistics.median(taken) / statistics.median(base),
        'times',
        at_most=at_most,
        ms=round(statistics.median(taken), 2),
        base_ms=round(statistics.median(base), 2),
        **more,
    )


def _median(act: Callable[[], object], times: int) -> float:
    return statistics.median(_milliseconds(act) for _ in range(times))


def _milliseconds(act: Callable[..., object], *args: object) -> float:
    began = time.perf_counter()
    act(*args)
    return (time.perf_counter() - began) * 1e3


def _set_up_servers(verdict: Verdict, folder: pathlib.Path, bridge: str) -> None:
    """Measure the time and the memory that a share server takes."""
    options = storage.options(
        folder, driver_handles_share_servers=True, btrfs_bridge=bridge
    )
    configuration = Configuration.from_values(options)
    harness = DriverHarness('btrfs', lambda: configuration)
    driver = harness.start()
    infos = [
        harness.network_info(f'10.20.0.{number}') for number in range(10, 10 + SERVERS)
    ]
    taken, bare = [], []
    for number, info in enumerate(infos):
        taken.append(_milliseconds(driver.setup_server, info))
        bare.append(
            1e3
            * bare_server.set_up(folder / f'bare-{number}', bridge, f'{BARE_SERVER}/24')
        )
    verdict.record(
        'share server set up on btrfs, median',
        statistics.median(taken),
        'ms',
        at_most=150,
        bare_ms=round(statistics.median(bare), 2),
    )
    servers = pathlib.Path(options['btrfs_root'], 'servers')
    verdict.record(
        'share server on btrfs, memory (PSS)',
        statistics.median(
            sum(
                _pss_of(servers / info[0]['server_id'] / 'nfs' / name)
                for name in ('server.json', 'bus.json')
            )
            for info in infos
        ),
        'MiB',
        at_most=5,
    )


def _migrate_servers(verdict: Verdict) -> None:
    """Measure how long a client that writes all the time is interrupted.

    By hand, what has changed is sent and a server is started.
    """
    taken, sent, started = zip(
        *(_migrate_server() for _ in range(MIGRATIONS)), strict=True
    )
    verdict.record(
        'share server migrated on btrfs, clients interrupted, median',
        statistics.median(taken) * 1e3,
        'ms',
        at_most=1000,
        bare_send_ms=round(statistics.median(sent) * 1e3, 2),
        bare_server_ms=round(statistics.median(started) * 1e3, 2),
    )


def _migrate_server() -> tuple[float, float, float]:
    with (
        tenant_network.bridge() as bridge,
        tenant_network.client_on(bridge, f'{CLIENT}/24') as client,
        storage.folder() as folder,
    ):
        pair = BtrfsPair(folder, bridge)
        taken = _interruption(pair, client)
        here, there = (
            driver.backend.pools['pool'].top for driver in (pair.source, pair.target)
        )
        _, sent = share_moves.bare_move(here, there)
        started = bare_server.set_up(folder / 'bare', bridge, f'{BARE_SERVER}/24')
        return taken, sent, started


def _interruption(pair: BtrfsPair, client: TenantClient) -> float:
    rules = [pair.made['here'].rule(pair.share, CLIENT)]
    pair.source.update_access(CTX, pair.share, rules, [], [], [])
    filling = pair.volume(pair.source) / 'filling'
    filling.write_bytes(os.urandom(FILLING))
    path = f'/shares/{pair.share.name}'
    writes: list[float] = []

    def write_until_interrupted() -> None:
        nfs = client.nfs(SOURCE, NFS_PORT)
        with contextlib.suppress(OSError, NfsError):
            while True:
                nfs.write(path, 'notes', b'content')
                writes.append(time.perf_counter())

    destination = pair.destination(DESTINATION)
    with futures.ThreadPoolExecutor(1) as executor:
        work = executor.submit(write_until_interrupted)
        pair.run_first_phase(destination)
        pair.target.share_server_migration_complete(
            *pair.arguments(destination), pair.info
        )
        pair.target.update_access(CTX, pair.share, rules, [], [], [])
        work.result()
    client.nfs(DESTINATION, NFS_PORT).write(path, 'notes', b'content')
    return time.perf_counter() - writes[-1]


def _pss_of(record: pathlib.Path) -> float:
    pid = json.loads(record.read_text())['pid']
    lines = pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith('Pss:')) / (
        1 << 10
    )
