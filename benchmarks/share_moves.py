"""A share that a client writes to moves between two btrfs back ends."""

from collections.abc import Callable
import os
import pathlib
import statistics
import subprocess
import threading
import time

from benchmarks.verdict import Verdict
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from tests.drivers.share_migration_contract import SharePair
from tests.support.nfs_client import NfsClient, NfsError

MIB = 1 << 20
CONTENT = 256 * MIB
CHANGED = MIB
MOVES = 3
POLL_INTERVAL = 0.001


class _Writer:
    """A client that writes until it has lost the share."""

    def __init__(self, client: NfsClient, path: str):
        self._client = client
        self._file = client.open(path, 'records', create=True)
        self.acknowledged_at = 0.0
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        try:
            while True:
                self._client.write_at(self._file, 0, b'record')
                self.acknowledged_at = time.perf_counter()
                time.sleep(POLL_INTERVAL)
        except (NfsError, OSError):
            return

    def join(self) -> None:
        self._thread.join()


class _Moves(SharePair):
    client = '127.0.0.1'

    def volume(self) -> pathlib.Path:
        pool, record = self.source.backend.get_share(self.share.name)
        return pool.path(Kind.SHARE, record['volume'])

    def nfs(self, driver: object, share: object) -> tuple[NfsClient, str]:
        port = driver.configuration.btrfs_nfs_port
        client = NfsClient('127.0.0.1', port, self.client)
        return client, f'/shares/{share.name}'

    def move(self) -> tuple[float, float]:
        """Move the share; return how long both phases were noticed."""
        (self.volume() / 'large').write_bytes(os.urandom(CONTENT))
        copied = _seconds(self.copy)
        writer = _Writer(*self.nfs(self.source, self.share))
        (self.volume() / 'changed').write_bytes(os.urandom(CHANGED))
        self.complete()
        self.allow(self.target, self.moved)
        client, path = self.nfs(self.target, self.moved)
        client.write(path, 'records', b'record')
        served_at = time.perf_counter()
        writer.join()
        return copied, served_at - writer.acknowledged_at


def record(verdict: Verdict, folder: pathlib.Path) -> None:
    """Measure both phases, and what the bare commands take for the same."""
    copied, bare_copies, cuts, bare_cuts = [], [], [], []
    for number in range(MOVES):
        moves = _Moves(folder / str(number), 'btrfs')
        moves.rules = [moves.made['here'].rule(moves.share, moves.client)]
        moves.allow(moves.source, moves.share)
        first, second = moves.move()
        copied.append(first)
        cuts.append(second)
        first, second = bare_move(
            *(
                folder / str(number) / name / 'pools' / 'pool'
                for name in ('here', 'there')
            )
        )
        bare_copies.append(first)
        bare_cuts.append(second)
        moves.clean_up()
    verdict.record(
        f'first phase of a migration on btrfs, {CONTENT // MIB} MiB, to a '
        'bare send and receive',
        statistics.median(copied) / statistics.median(bare_copies),
        'times',
        s=round(statistics.median(copied), 3),
        base_s=round(statistics.median(bare_copies), 3),
    )
    verdict.record(
        'cut-over of a migration on btrfs, without service',
        statistics.median(cuts),
        's',
        at_most=1,
        base_s=round(statistics.median(bare_cuts), 3),
        longest_s=round(max(cuts), 3),
    )


def bare_move(here: pathlib.Path, there: pathlib.Path) -> tuple[float, float]:
    """Send such a volume and such a change by the bare commands."""
    for top in (here, there):
        (top / 'bare').mkdir()
    volume = here / 'bare' / 'volume'
    kernel.create_subvolume(volume)
    (volume / 'large').write_bytes(os.urandom(CONTENT))

    def copy(name: str, *parent: str) -> None:
        kernel.create_snapshot(volume, here / 'bare' / name, read_only=True)
        subprocess.run(
            f'btrfs send -q {" ".join(parent)} {here}/bare/{name} | '
            f'btrfs receive -q {there}/bare',
            shell=True,
            check=True,
        )
        kernel.commit(there)

    first = _seconds(copy, 'one')
    (volume / 'changed').write_bytes(os.urandom(CHANGED))
    second = _seconds(copy, 'two', '-p', f'{here}/bare/one')
    return first, second


def _seconds(act: Callable[..., object], *args: object) -> float:
    began = time.perf_counter()
    act(*args)
    return time.perf_counter() - began
