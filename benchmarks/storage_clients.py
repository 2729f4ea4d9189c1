"""Changed rules and a restarted NFS server, as clients notice them."""

from collections.abc import Callable, Sequence
from concurrent import futures
import contextlib
import pathlib
import signal
import statistics
import time

from benchmarks.verdict import Verdict
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.btrfs.exports.nfs.exports import Exports
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support.nfs_client import NfsClient, NfsError

CLIENT, OTHER_CLIENT = '127.0.0.2', '10.0.0.1'
READERS = 4
FILE, CONTENT = 'notes', b'content'
POLL_INTERVAL = 0.0002
TIMEOUT = 60.0


def export_number(backend: BtrfsBackend, volume: str) -> int | None:
    """Return the number of an NFS export of a back end without servers."""
    exports = Exports(backend.root / 'exports', backend.daemons.server, backend.locks)
    return exports.number(Kind.SHARE, volume)


class Clients:
    """Clients of shares of a driver."""

    def __init__(self, driver: BtrfsDriver, harness: DriverHarness):
        self._driver = driver
        self._harness = harness
        self._port: int = driver.configuration.btrfs_nfs_port
        self._root = pathlib.Path(driver.configuration.btrfs_root)

    def record_rule_changes(
        self, verdict: Verdict, shares: Sequence[ShareForDriver]
    ) -> None:
        """Compare the driver with the bare call, until a client notices.

        The client looks the share up again and again, and the file that the
        bare call reads is written before.
        """
        changes: dict[bool, list[float]] = {True: [], False: []}
        bare: dict[bool, list[float]] = {True: [], False: []}
        server = self._driver.backend.daemons.server
        with contextlib.closing(self._connect()) as nfs:
            for share in shares:
                number = export_number(self._driver.backend, share.name)
                name = f'{Kind.SHARE}.{share.name}.conf'
                file = self._root / 'exports' / name
                self.let_in(share, False)
                texts = {}
                for is_in in (True, False):
                    changes[is_in].append(
                        _until_noticed(nfs, share, is_in, self.let_in, share, is_in)
                    )
                    texts[is_in] = file.read_text()
                # The last one leaves the share as the driver has it.
                for is_in in (True, False):
                    file.write_text(texts[is_in])
                    bare[is_in].append(
                        _until_noticed(nfs, share, is_in, server.apply, file, number)
                    )
        for is_in, outcome in ((True, 'served'), (False, 'refused')):
            taken, base = map(statistics.median, (changes[is_in], bare[is_in]))
            verdict.record(
                f'rule change until its client is {outcome}, to a bare UpdateExport',
                taken / base,
                'times',
                at_most=3,
                ms=round(taken, 2),
                base_ms=round(base, 2),
            )

    def let_in(self, share: ShareForDriver, is_in: bool) -> None:
        """Give the client access besides another one, or take it away."""
        rules = [
            self._harness.rule(share, client)
            for client in (OTHER_CLIENT, *([CLIENT] if is_in else []))
        ]
        self._driver.update_access(CTX, share, rules, [], [], [])

    def record_restart(
        self, verdict: Verdict, shares: Sequence[ShareForDriver]
    ) -> None:
        """Kill the NFS server, and read from all shares."""
        for share in shares:
            pool, record = self._driver.backend.get_share(share.name)
            volume = pool.path(Kind.SHARE, record['volume'])
            (volume / FILE).write_bytes(CONTENT)
            self.let_in(share, True)
        base = self._read_all(shares)
        began = time.perf_counter()
        processes.end(self._root / 'nfs' / 'server.json', signal.SIGKILL, TIMEOUT)
        self._read_all(shares)
        verdict.record(
            f'NFS server killed, until {READERS} clients have read from '
            f'{len(shares)} shares',
            time.perf_counter() - began,
            's',
            at_most=10,
            without_restart_s=round(base, 3),
        )

    def _read_all(self, shares: Sequence[ShareForDriver]) -> float:
        """Return the seconds until all have been read from."""
        began = time.perf_counter()
        with futures.ThreadPoolExecutor(READERS) as executor:
            for work in [
                executor.submit(self._read, shares[number::READERS])
                for number in range(READERS)
            ]:
                work.result()
        return time.perf_counter() - began

    def _read(self, shares: Sequence[ShareForDriver]) -> None:
        deadline = time.monotonic() + TIMEOUT
        with contextlib.ExitStack() as stack:
            nfs: NfsClient | None = None
            for share in shares:
                while True:
                    try:
                        nfs = nfs or stack.enter_context(
                            contextlib.closing(self._connect())
                        )
                        content = nfs.read(_path(share), FILE)
                    except (OSError, NfsError):
                        if time.monotonic() > deadline:
                            raise
                        nfs = None
                        time.sleep(POLL_INTERVAL)
                    else:
                        assert content == CONTENT
                        break

    def _connect(self) -> NfsClient:
        return NfsClient('127.0.0.1', self._port, CLIENT)


def _until_noticed(
    nfs: NfsClient,
    share: ShareForDriver,
    is_in: bool,
    act: Callable[..., object],
    *args: object,
) -> float:
    """Return the milliseconds until a client is served, or refused."""
    began = time.perf_counter()
    act(*args)
    while _is_served(nfs, share) != is_in:
        if time.perf_counter() - began > TIMEOUT:
            raise TimeoutError(f'the client of {share.name} notices nothing')
        time.sleep(POLL_INTERVAL)
    return (time.perf_counter() - began) * 1e3


def _is_served(nfs: NfsClient, share: ShareForDriver) -> bool:
    try:
        nfs.look_up(_path(share))
    except NfsError:
        return False
    return True


def _path(share: ShareForDriver) -> str:
    return f'/shares/{share.name}'
