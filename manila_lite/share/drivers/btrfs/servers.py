"""The share servers of a back end, each with a network and an NFS server.

    servers/<id>/server.json    the links of a server, and whether it is ready
    servers/<id>/netns          its network namespace, see `server_network`
    servers/<id>/bus            the bus that controls its NFS server
    servers/<id>/nfs/           its daemons
    servers/<id>/exports/       what they export, see `exports`

What is in a directory without `server.json` belongs to no server.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
import pathlib
import shutil
import signal
import time

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import daemons
from manila_lite.share.drivers.btrfs import ganesha
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs import processes
from manila_lite.share.drivers.btrfs import server_supervisor
from manila_lite.share.drivers.btrfs import supervisor
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import Supervision
from manila_lite.share.drivers.btrfs.exports import Exports
from manila_lite.share.drivers.btrfs.locks import Locks
from manila_lite.share.drivers.btrfs.server_network import Link
from manila_lite.share.drivers.btrfs.server_network import ServerNetwork

LOG = log.getLogger(__name__)

FOLDER = 'servers'
_MODULE = 'manila_lite.share.drivers.btrfs.server_supervisor'
_LENGTH_OF_ID = 36
_RECORD, _SOCKET = 'server.json', 'bus'

FindVolume = Callable[[Kind, str], pathlib.Path | None]


class ShareServerMissing(exception.ShareBackendException):
    """There is no such share server, or it is not ready."""


class ShareServer:
    """One share server, which may be there in part."""

    def __init__(self, folder: pathlib.Path):
        self.id = folder.name
        self._folder = folder
        self._daemons = folder / server_supervisor.NFS
        self.network = ServerNetwork(folder)
        self.nfs = ganesha.Ganesha(folder / _SOCKET)
        self.exports = Exports(
            folder / 'exports', self.nfs, Locks(folder / 'locks')
        )

    # Record

    def find_links(self) -> list[Link] | None:
        """Return its links; None if there is no such server."""
        record = records.find(self._folder / _RECORD)
        return [Link(*link) for link in record['links']] if record else None

    def links(self) -> list[Link]:
        """Do the same; the links of a server that has no record are gone."""
        return self.find_links() or []

    def is_ready(self) -> bool:
        """Return whether it was set up completely at some time."""
        record = records.find(self._folder / _RECORD)
        return bool(record and record['is_ready'])

    def write(self, links: Sequence[Link], is_ready: bool) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        records.write(
            self._folder / _RECORD,
            {'links': links, 'is_ready': is_ready},
            durable=True,
        )

    # Start

    def prepare(self, port: int, find: FindVolume) -> None:
        """Create the network and the mounts, and say what is to run."""
        links = self.links()
        if self.network.ensure(links) or not self.is_ready():
            self.network.announce(links)
        for folder in (self._folder / 'locks', self._daemons / 'recovery'):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.exports.prepare()
        self.exports.restore_mounts(find)
        file = self._daemons / supervisor.SPECIFICATION
        wanted = self._specification(port)
        if records.find(file) != wanted:
            records.write(file, wanted, durable=True)
        server = self._daemons / 'server.json'
        pid = processes.find_pid(server)
        if pid is not None and not self.network.has_process(pid):
            # The namespace that it is in has been replaced.
            processes.end(server, signal.SIGKILL, daemons.STOP_TIMEOUT)

    def _specification(self, port: int) -> records.Record:
        return daemons.nfs_specification(
            self._daemons,
            self._folder / 'exports',
            self._folder / _SOCKET,
            port,
            ['nsenter', f'--net={self.network.namespace}', '--'],
        ) | {'trash': []}

    def has_ended(self) -> bool:
        """Return whether it was torn down or retired."""
        return not (
            self.is_ready()
            or (self._daemons / supervisor.SPECIFICATION).exists()
        )

    def is_answering(self) -> bool:
        """Return whether the NFS server runs with the settings it should."""
        wanted = records.find(self._daemons / supervisor.SPECIFICATION)
        running = records.find(self._daemons / supervisor.RUNNING)
        return wanted == running and self.nfs.is_answering()

    # End

    def retire(self, locks: Locks) -> None:
        """Serve no clients any more, neither now nor after a restart.

        What it has is kept. Clients are disconnected at once: the kernel
        closes the connections of the NFS server that is killed.
        """
        self.write(self.links(), is_ready=False)
        self._forget_daemons(locks)
        record = self._daemons / 'server.json'
        if not processes.end(record, signal.SIGKILL, daemons.STOP_TIMEOUT):
            raise exception.ShareBackendException(
                msg=f'the NFS server of share server {self.id} does not end'
            )

    def _forget_daemons(self, locks: Locks) -> None:
        """Let the supervisor start none any more."""
        with locks.locked(server_supervisor.lock_of(self.id)):
            records.remove(self._daemons / supervisor.SPECIFICATION)

    def end(self, locks: Locks) -> None:
        """End and remove everything; what is missing is success.

        The record comes last: without it the links would not be known.
        """
        self._forget_daemons(locks)
        self.stop()
        mounts = self._folder / 'exports' / 'mounts'
        for mount in mounts.iterdir() if mounts.exists() else ():
            mount.rmdir()  # never what is in a volume
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != _RECORD:
                path.unlink()
        records.remove(self._folder / _RECORD)
        with contextlib.suppress(FileNotFoundError):
            self._folder.rmdir()

    def stop(self) -> None:
        """End the daemons, the mounts and the network."""
        for name in ('server', 'bus'):
            processes.stop(
                self._daemons / f'{name}.json', daemons.STOP_TIMEOUT
            )
        kernel.unmount_below(self._folder / 'exports')
        self.network.remove(self.links())


class Servers:
    """All share servers of a back end, and the supervisor of their daemons.

    Callers lock the id of a server before they set it up or tear it down.
    """

    def __init__(
        self,
        root: pathlib.Path,
        port: int,
        trash: Sequence[pathlib.Path],
        find: FindVolume,
    ):
        self._root = root
        self._folder = root / FOLDER
        self._locks = Locks(root / 'locks')
        self._port = port
        self._trash = trash
        self._find = find
        self._supervision = Supervision(root / 'nfs', _MODULE)
        self._known: dict[str, ShareServer] = {}

    def find(self, server_id: str) -> ShareServer | None:
        """Return a server that is ready, or None."""
        server = self._at(server_id)
        return server if server.is_ready() else None

    def get(self, server_id: str) -> ShareServer:
        found = self.find(server_id)
        if found is None:
            raise ShareServerMissing(
                msg=f'share server {server_id} does not exist'
            )
        return found

    def _at(self, server_id: str) -> ShareServer:
        name = records.checked_file_name(server_id)
        return self._known.setdefault(name, ShareServer(self._folder / name))

    def _all(self) -> Iterator[ShareServer]:
        for name in sorted(os.listdir(self._folder)):
            yield self._at(name)

    # Life cycle

    def set_up(self, server_id: str, links: Sequence[Link]) -> list[Link]:
        """Create a server, unless it exists; return its links."""
        server = self._at(server_id)
        found = server.find_links()
        if not server.is_ready() and found != links:
            if found is not None:
                server.end(self._locks)  # it was to have other addresses
            server.write(links, is_ready=False)
            found = list(links)
        assert found is not None
        self._complete(server)
        if not server.is_ready():
            server.write(found, is_ready=True)
        return found

    def _complete(self, server: ShareServer) -> None:
        server.prepare(self._port, self._find)
        self._supervise()
        self._require_answers([server])
        server.exports.reconcile()

    def retire(self, server_id: str) -> None:
        """Let a server serve no clients; it is missing from now on."""
        server = self._at(server_id)
        if server.find_links() is not None:
            server.retire(self._locks)

    def reinstate(self, server_id: str) -> None:
        """Let a server that was retired serve its clients again.

        One that was torn down meanwhile is left alone.
        """
        server = self._at(server_id)
        links = server.find_links()
        if links is not None and not server.is_ready():
            self._complete(server)
            server.write(links, is_ready=True)

    def close(self, server_id: str) -> None:
        """End the network and the mounts of a server that was retired."""
        self._at(server_id).stop()

    def tear_down(self, server_id: str) -> None:
        """Remove a server and what is left of it."""
        server = self._at(server_id)
        server.end(self._locks)
        self._known.pop(server_id, None)

    def prepare(self) -> None:
        """Create the folders in which servers are set up."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        (self._root / 'nfs').mkdir(mode=0o700, exist_ok=True)

    def start(self) -> None:
        """Let all servers that are ready serve their clients.

        What has no record is removed: its removal has begun. Raises the
        error of one that cannot be started, when the others have been.
        """
        started: list[ShareServer] = []
        errors: list[Exception] = []
        for server in self._all():
            with self._locks.try_locked(server.id) as is_locked:
                try:
                    if is_locked and self._prepare(server):
                        started.append(server)
                except (exception.ManilaLiteError, OSError) as error:
                    errors.append(error)
        self._supervise()
        self._require_answers(started)
        for server in started:
            server.exports.reconcile()
        if errors:
            raise errors[0]

    def _prepare(self, server: ShareServer) -> bool:
        """Prepare a server that is ready; return whether it is."""
        if server.find_links() is None:
            server.end(self._locks)
        elif server.is_ready():
            server.prepare(self._port, self._find)
            return True
        return False

    def check_health(self) -> None:
        """Repair what can be repaired; raise StorageUnavailable otherwise.

        A server that cannot be repaired does not keep others from it.
        """
        self._supervision.keep()
        ready = [server for server in self._all() if server.is_ready()]
        errors: list[Exception] = []
        for server in ready:
            if not server.network.is_complete(server.links()):
                try:
                    self._repair(server)
                except (exception.ManilaLiteError, OSError) as error:
                    errors.append(error)
        if errors:
            raise errors[0]
        silent = self._silent(ready, daemons.RESTART_TIMEOUT)
        if silent is not None and silent.is_ready():
            raise exception.StorageUnavailable(
                reason=f'the NFS server of share server {silent.id} does not '
                'answer'
            )

    def _repair(self, server: ShareServer) -> None:
        with self._locks.locked(server.id):
            if server.is_ready():
                LOG.warning(
                    'The network of share server %s is incomplete', server.id
                )
                server.prepare(self._port, self._find)

    def _supervise(self) -> None:
        wanted = {
            'servers': str(self._folder),
            'locks': str(self._root / 'locks'),
            'trash': [str(folder) for folder in self._trash],
        }
        if not self._supervision.apply(wanted):
            raise exception.ShareBackendException(
                msg='the supervisor does not start, see supervisor.log in '
                f'{self._root / "nfs"}'
            )
        server_supervisor.wake(self._root / 'nfs')

    def _require_answers(self, servers: Sequence[ShareServer]) -> None:
        silent = self._silent(servers, daemons.START_TIMEOUT)
        if silent is not None:
            raise exception.ShareBackendException(
                msg=f'the NFS server of share server {silent.id} does not '
                f'start, see ganesha.log in {self._folder / silent.id / "nfs"}'
            )

    def _silent(
        self, servers: Sequence[ShareServer], seconds: float
    ) -> ShareServer | None:
        """Return a server that does not answer; wait while they restart."""
        deadline = time.monotonic() + seconds
        for server in servers:
            while not server.is_answering():
                if server.has_ended():
                    break
                if time.monotonic() > deadline:
                    return server
                time.sleep(daemons.INTERVAL)
        return None


def check_root(root: pathlib.Path) -> None:
    """Raise BadConfiguration if the path is too long."""
    daemons.check_socket(root / FOLDER / ('-' * _LENGTH_OF_ID) / _SOCKET)


def has_servers(root: pathlib.Path) -> bool:
    """Return whether a back end has share servers."""
    folder = root / FOLDER
    return folder.is_dir() and bool(os.listdir(folder))


def stop_all(root: pathlib.Path) -> None:
    """End the daemons and the networks of all share servers of a back end.

    Its supervisor has ended. The next start of the back end starts them again.
    """
    folder = root / FOLDER
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        # A daemon that was just being started has its record after this.
        with Locks(root / 'locks').locked(server_supervisor.lock_of(name)):
            ShareServer(folder / name).stop()
