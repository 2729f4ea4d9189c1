"""An NFS server with the volumes of a pool, and its clients."""

from collections.abc import Callable
import contextlib
import json
import os
import pathlib
import resource
import signal
import time
import uuid

from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons.daemons import Daemons
from manila_lite.share.drivers.btrfs.exports.nfs.exports import Exports
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.file_locks import Locks
from manila_lite.share.drivers.nfs_clients import Client
from tests.support import storage
from tests.support.nfs_client import NfsClient

WRITER, READER, STRANGER = '127.0.0.2', '127.0.0.3', '127.0.0.4'


class NfsSite:
    """Daemons and exports of their own, for one pool."""

    def __init__(self, pool: Pool, folder: pathlib.Path):
        self.pool = pool
        self.root = folder / 'root'
        (self.root / 'locks').mkdir(parents=True)
        self.port = storage.free_port()
        self.trash = pool.folders
        self.daemons = self.other_daemons(self.port)
        self.exports = Exports(
            self.root / 'exports', self.daemons.server, Locks(self.root / 'locks')
        )
        self.exports.prepare()

    def other_daemons(self, port: int) -> Daemons:
        """Return the daemons as another process sees them."""
        return Daemons(self.root / 'nfs', self.root / 'exports', port, self.trash)

    def create(self, *clients: tuple[str, str]) -> str:
        """Create a volume that is exported to clients."""
        volume = f'share-{uuid.uuid4()}'
        self.pool.create(volume, 1)
        self.publish(volume, *clients)
        return volume

    def publish(
        self, volume: str, *clients: tuple[str, str], kind: Kind = Kind.SHARE
    ) -> None:
        self.exports.publish(
            kind,
            volume,
            self.pool.path(kind, volume),
            [Client(*client) for client in clients],
        )

    @contextlib.contextmanager
    def client(self, source: str):
        """Connect from an address of this machine."""
        host = '::1' if ':' in source else '127.0.0.1'
        client = NfsClient(host, self.port, source)
        try:
            yield client
        finally:
            client.close()

    def pid(self, name: str) -> int:
        """Return the recorded pid of a daemon."""
        return json.loads((self.root / 'nfs' / f'{name}.json').read_text())['pid']

    def kill(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGKILL)


@contextlib.contextmanager
def all_files_open(folder: pathlib.Path):
    """Let the NFS server of a folder open no more; yield what it has."""
    pid = json.loads((folder / 'server.json').read_text())['pid']
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f'/proc/{pid}/fd'))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, most))
    try:
        yield used
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def eventually(condition, seconds: float = 60.0) -> float:
    """Wait until a condition holds; return the seconds that it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, 'it does not happen'
        time.sleep(0.02)
    return time.monotonic() - start


def stop(*pids: int) -> None:
    """Let processes hang; they do nothing any more when this returns."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        stat = pathlib.Path(f'/proc/{pid}/stat')
        eventually(
            lambda stat=stat: stat.read_text().rpartition(')')[2].split()[0] == 'T'
        )


def require_five_seconds(seconds: float, start: Callable[[], object]) -> None:
    """Fail if a restart took more than that and the time of a start.

    `start` ends and starts the same daemons at once. What it takes is the
    work itself, on a machine that may be busy with other things.
    """
    began = time.monotonic()
    start()
    assert seconds < 5 + time.monotonic() - began
