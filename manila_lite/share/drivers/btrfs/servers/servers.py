"""The share servers of a back end, each with a network and an NFS server.

One that has CIFS shares runs an smbd of its own as well, from the first on.

    servers/<id>/server.json    the links of a server, and whether it is ready
    servers/<id>/netns          its network namespace, see `server_network`
    servers/<id>/bus            the bus that controls its NFS server
    servers/<id>/nfs/           its daemons
    servers/<id>/exports/       what they export, see `exports`
    smb/<digest of the id>/     what smbd shares, see `smb_settings`

Sockets of smbd have long names, for which there is no space below the id.
What is in a directory without `server.json` belongs to no server.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import time
from typing import NamedTuple

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import ganesha, records
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import daemons, processes, supervisor
from manila_lite.share.drivers.btrfs.daemons.daemons import Supervision
from manila_lite.share.drivers.btrfs.exports.nfs.exports import Exports
from manila_lite.share.drivers.btrfs.exports.smb import smb_settings
from manila_lite.share.drivers.btrfs.exports.smb.smb_exports import SmbExports
from manila_lite.share.drivers.btrfs.exports.smb.smb_server import SmbServer
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.btrfs.servers import server_network, server_supervisor
from manila_lite.share.drivers.btrfs.servers.server_network import Link, ServerNetwork
from manila_lite.share.drivers.file_locks import Locks

LOG = log.getLogger(__name__)

FOLDER = 'servers'
_MODULE = 'manila_lite.share.drivers.btrfs.servers.server_supervisor'
_LENGTH_OF_ID = 36
_RECORD, _SOCKET = 'server.json', 'bus'
_SMB = 'smb'

FindVolume = Callable[[Kind, str], pathlib.Path | None]


class ShareServerMissing(exception.ShareBackendException):
    """There is no such share server, or it is not ready."""


class Ports(NamedTuple):
    """The ports that servers listen on; without CIFS there is no SMB port."""

    nfs: int
    smb: int | None = None


class ShareServer:
    """One share server, which may be there in part."""

    def __init__(
        self,
        folder: pathlib.Path,
        start_smb: Callable[[str], None] = lambda server_id: None,
    ):
        self.id = folder.name
        self._folder = folder
        self._daemons = folder / server_supervisor.NFS
        self.network = ServerNetwork(folder)
        self.nfs = ganesha.Ganesha(folder / _SOCKET)
        self.exports = Exports(folder / 'exports', self.nfs, Locks(folder / 'locks'))
        digest = hashlib.sha256(self.id.encode()).hexdigest()[:16]
        self.smb_folder = folder.parent.parent / _SMB / digest
        self.users = SmbUsers(self.smb_folder)
        self._smb_record = self._daemons / daemons.RECORD
        self._smbd = SmbServer(self.smb_folder, self._smb_record)
        self.smb = SmbExports(
            self.smb_folder, self._smbd, self.users, lambda: start_smb(self.id)
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

    def has_cifs(self) -> bool:
        """Return whether it runs smbd, or should."""
        record = records.find(self._folder / _RECORD)
        return bool(record and record.get('has_cifs'))

    def write(
        self, links: Sequence[Link], is_ready: bool, has_cifs: bool = False
    ) -> None:
        """Write the record; that it has CIFS shares is never forgotten."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        record = {'links': links, 'is_ready': is_ready}
        if has_cifs or self.has_cifs():
            record['has_cifs'] = True
        records.write(self._folder / _RECORD, record, durable=True)

    # Start

    def prepare(self, ports: Ports, find: FindVolume, locks: Locks) -> None:
        """Create the network and the mounts, and say what is to run."""
        links = self.links()
        if not self.network.has_namespace():
            server_network.require_ports(links)
            # Those in an earlier namespace have no network any more, and the
            # supervisor starts none before there is another.
            with locks.locked(server_supervisor.lock_of(self.id)):
                self._kill_daemons()
                self.network.ensure_namespace(links)
        if self.network.ensure(links) or not self.is_ready():
            self.network.announce(links)
        for folder in (self._folder / 'locks', self._daemons / 'recovery'):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.exports.prepare()
        self.exports.restore_mounts(find)
        daemons.end_blind(self._daemons / 'server.json', self.exports.is_seen_by)
        if self.has_cifs():
            self.smb.prepare()
        file = self._daemons / supervisor.SPECIFICATION
        wanted = self._specification(ports, links)
        if records.find(file) != wanted:
            records.write(file, wanted, durable=True)

    def _kill_daemons(self) -> None:
        for daemon in (self._daemons / 'server.json', self._smb_record):
            processes.end(daemon, signal.SIGKILL, daemons.STOP_TIMEOUT)

    def _specification(self, ports: Ports, links: Sequence[Link]) -> records.Record:
        prefix = ['nsenter', f'--net={self.network.namespace}', '--']
        specification = daemons.nfs_specification(
            self._daemons,
            self._folder / 'exports',
            self._folder / _SOCKET,
            ports.nfs,
            prefix,
        ) | {'trash': [], 'namespace': str(self.network.namespace)}
        if ports.smb is not None and self.has_cifs():
            config = smb_settings.base_config(
                self.smb_folder, ports.smb, [link.host for link in links]
            )
            specification |= daemons.smb_specification(self.smb_folder, config, prefix)
        return specification

    def runs_smb(self) -> bool:
        """Return whether the supervisor has been asked to run smbd."""
        return 'smbd' in self._wanted()

    def _wanted(self) -> records.Record:
        return records.find(self._daemons / supervisor.SPECIFICATION) or {}

    def has_ended(self) -> bool:
        """Return whether it was torn down or disabled."""
        return not (
            self.is_ready() or (self._daemons / supervisor.SPECIFICATION).exists()
        )

    def silent_daemon(self) -> str:
        """Return which daemon does not run with the settings it should."""
        wanted = self._wanted()
        running = records.find(self._daemons / supervisor.RUNNING)
        if (
            wanted != running
            or not self.nfs.is_answering()
            or not ganesha.is_listening(wanted['nfs_port'], self._open_socket)
        ):
            return 'NFS'
        if self.runs_smb() and not self._smbd.is_answering():
            return 'SMB'
        return ''

    def _open_socket(self) -> socket.socket:
        return kernel.socket_in(self.network.namespace, socket.AF_INET)

    def log_of(self, daemon: str) -> pathlib.Path:
        """Return where a daemon says why it does not start."""
        if daemon == 'SMB':
            return self.smb_folder / smb_settings.LOG
        return self._daemons / 'ganesha.log'

    def reconcile(self) -> None:
        """Let its daemons export what they should, and nothing else."""
        self.exports.reconcile()
        if self.runs_smb():
            self.smb.reconcile()
        self.require_guarded()

    def require_guarded(self) -> None:
        """End its NFS server if clients could leave their shares."""
        daemons.require_guarded(self._daemons, self.nfs)

    def open_files(self) -> processes.OpenFiles | None:
        """Return the open files of its NFS server, if it runs."""
        return daemons.open_files(self._daemons)

    def require_free_files(self) -> None:
        """Raise StorageUnavailable if clients can open hardly any file."""
        daemons.require_free_files(self._daemons)

    # End

    def disable(self, locks: Locks) -> None:
        """Stop serving clients, now and after a restart.

        What it has is kept. Clients are disconnected at once: the kernel
        closes the connections of the servers that are killed.
        """
        self.write(self.links(), is_ready=False)
        self._forget_daemons(locks)
        if not processes.end(
            self._daemons / 'server.json', signal.SIGKILL, daemons.STOP_TIMEOUT
        ):
            raise self._not_ending('NFS')
        if not processes.end_session(self._smb_record, daemons.STOP_TIMEOUT):
            raise self._not_ending('SMB')

    def _not_ending(self, daemon: str) -> exception.ShareBackendException:
        return exception.ShareBackendException(
            msg=f'the {daemon} server of share server {self.id} does not end'
        )

    def _forget_daemons(self, locks: Locks) -> None:
        """Prevent the supervisor from starting its servers."""
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
        if self.smb_folder.exists():
            shutil.rmtree(self.smb_folder)
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
        for name in ('smbd', 'server', 'bus'):
            processes.stop(self._daemons / f'{name}.json', daemons.STOP_TIMEOUT)
        processes.end_session(self._smb_record, daemons.STOP_TIMEOUT)
        kernel.unmount_below(self._folder / 'exports')
        self.network.remove(self.links())


class Silent(NamedTuple):
    """A daemon of a share server that does not answer."""

    server: ShareServer
    daemon: str


class Servers:
    """All share servers of a back end, and the supervisor of their daemons.

    Callers lock the id of a server before they set it up or tear it down.
    """

    def __init__(
        self,
        root: pathlib.Path,
        ports: Ports,
        trash: Sequence[pathlib.Path],
        find: FindVolume,
    ):
        self._root = root
        self._folder = root / FOLDER
        self._locks = Locks(root / 'locks')
        self._ports, self._trash, self._find = ports, trash, find
        self._supervision = Supervision(root / 'nfs', _MODULE)
        self._known: dict[str, ShareServer] = {}

    def find(self, server_id: str) -> ShareServer | None:
        """Return a server that is ready, or None."""
        server = self._at(server_id)
        return server if server.is_ready() else None

    def get(self, server_id: str) -> ShareServer:
        found = self.find(server_id)
        if found is None:
            raise ShareServerMissing(msg=f'share server {server_id} does not exist')
        return found

    def find_exporting(self, kind: Kind, volume: str) -> ShareServer | None:
        """Return the server that exports a volume, or None."""
        return next(
            (
                server
                for server in self.ready()
                if server.exports.number(kind, volume) is not None
                or server.smb.is_known(kind, volume)
            ),
            None,
        )

    def ready(self) -> Iterator[ShareServer]:
        """Yield the servers that may export something."""
        if self._folder.is_dir():  # else the back end was never started
            yield from (each for each in self._all() if each.is_ready())

    def _at(self, server_id: str) -> ShareServer:
        name = records.checked_file_name(server_id)
        return self._known.setdefault(
            name, ShareServer(self._folder / name, self.start_smb)
        )

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
                server.end(self._locks)  # it was created for other addresses
            server.write(links, is_ready=False)
            found = list(links)
        assert found is not None
        self._complete(server)
        if not server.is_ready():
            server.write(found, is_ready=True)
        return found

    def _complete(self, server: ShareServer) -> None:
        server.prepare(self._ports, self._find, self._locks)
        self._supervise()
        self._require_answers([server])
        server.reconcile()

    def start_smb(self, server_id: str) -> None:
        """Let a server have CIFS shares from now on, unless it has some.

        Without such shares a server saves the memory of smbd.
        """
        if self.get(server_id).runs_smb():
            return
        with self._locks.locked(server_id):
            server = self.get(server_id)
            server.write(server.links(), is_ready=True, has_cifs=True)
            self._complete(server)

    def disable(self, server_id: str) -> None:
        """Disable a server: it serves no clients and counts as missing."""
        server = self._at(server_id)
        if server.find_links() is not None:
            server.disable(self._locks)

    def enable(self, server_id: str) -> None:
        """Let a server that was disabled serve its clients again.

        One that was torn down meanwhile is left alone.
        """
        server = self._at(server_id)
        links = server.find_links()
        if links is not None and not server.is_ready():
            self._complete(server)
            server.write(links, is_ready=True)

    def users(self, server_id: str) -> SmbUsers:
        """Return the users of a server, which may have been disabled."""
        return self._at(server_id).users

    def close(self, server_id: str) -> None:
        """End the network and the mounts of a server that was disabled."""
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
            try:
                server.reconcile()
            except exception.ManilaLiteError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _prepare(self, server: ShareServer) -> bool:
        """Prepare a server that is ready; return whether it is."""
        if server.find_links() is None:
            server.end(self._locks)
        elif server.is_ready():
            server.prepare(self._ports, self._find, self._locks)
            return True
        return False

    def detach_lost(self, pool: pathlib.Path, tops: Iterable[pathlib.Path]) -> None:
        """Let go of file systems other than those that are mounted."""
        for server in self._all():
            server.exports.detach_lost(tops)
            if server.runs_smb():
                server.smb.close_below(pool)

    def check_health(self) -> None:
        """Repair what can be repaired; raise StorageUnavailable otherwise.

        A server that cannot be repaired does not stop the repair of others.
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
        if silent is not None and silent.server.is_ready():
            raise exception.StorageUnavailable(
                reason=f'the {silent.daemon} server of share server '
                f'{silent.server.id} does not answer'
            )
        for server in ready:
            if server.is_ready():
                server.require_guarded()
                server.require_free_files()

    def watch(self) -> None:
        """Replace the supervisor if it has ended or hangs."""
        self._supervision.watch()

    def _repair(self, server: ShareServer) -> None:
        with self._locks.locked(server.id):
            if server.is_ready():
                LOG.warning('The network of share server %s is incomplete', server.id)
                server.prepare(self._ports, self._find, self._locks)

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
                msg=f'the {silent.daemon} server of share server '
                f'{silent.server.id} does not start, see '
                f'{silent.server.log_of(silent.daemon)}'
            )

    def _silent(self, servers: Sequence[ShareServer], seconds: float) -> Silent | None:
        """Return a server that does not answer; wait while they restart."""
        deadline = time.monotonic() + seconds
        for server in servers:
            while daemon := server.silent_daemon():
                if server.has_ended():
                    break
                if time.monotonic() > deadline:
                    return Silent(server, daemon)
                time.sleep(daemons.INTERVAL)
        return None


def check_root(root: pathlib.Path) -> None:
    """Raise BadConfiguration if the path is too long."""
    daemons.check_socket(root / FOLDER / ('-' * _LENGTH_OF_ID) / _SOCKET)


def has_servers(root: pathlib.Path) -> bool:
    """Return whether a back end has share servers."""
    folder = root / FOLDER
    return folder.is_dir() and bool(os.listdir(folder))


def users_of(root: pathlib.Path, server_id: str) -> SmbUsers:
    """Return the users of the CIFS shares on a share server."""
    name = records.checked_file_name(server_id)
    server = ShareServer(root / FOLDER / name)
    if not server.is_ready():
        raise ShareServerMissing(
            msg=f'share server {server_id} does not exist in {root}'
        )
    return server.users


def stop_all(root: pathlib.Path) -> None:
    """End the daemons and the networks of all share servers of a back end.

    Its supervisor has ended. The next start of the back end starts them again.
    """
    folder = root / FOLDER
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        # A daemon that was just being started has its record after this.
        with Locks(root / 'locks').locked(server_supervisor.lock_of(name)):
            ShareServer(folder / name).stop()
