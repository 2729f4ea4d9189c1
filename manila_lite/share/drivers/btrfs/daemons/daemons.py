"""The daemons of a back end, which outlive the share service."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import fcntl
from importlib import metadata
import os
import pathlib
import signal
import subprocess
import sys
import time

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import ganesha, records
from manila_lite.share.drivers.btrfs.daemons import processes, supervisor
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD
from manila_lite.share.drivers.btrfs.exports.smb import smb_settings
from manila_lite.share.drivers.btrfs.exports.smb.smb_server import (
    CONFIG,
    RECORD,
    SmbServer,
)

LOG = log.getLogger(__name__)

START_TIMEOUT = supervisor.START_TIMEOUT
RESTART_TIMEOUT = 10.0
STOP_TIMEOUT = 10.0
INTERVAL = 0.01
SUPERVISOR_SILENCE = 3.0
"""Seconds without a sign of life after which a supervisor is replaced.

It wakes up every second. If it was only slow, nothing is lost: its daemons
go on. What has hung together with it is then replaced in time, too."""

_LOOKS = 3
_ALMOST_ALL = 0.95
_SUPERVISOR = 'manila_lite.share.drivers.btrfs.daemons.supervisor'
# The bus accepts shorter paths than the kernel.
_SOCKET_PATH_LENGTH = 99


class Supervision:
    """A supervisor and what it is to run, in one folder.

    Several processes may have the same one: that of a service which is being
    replaced, for example. The lock of the folder lets one supervisor run, and
    only that one kills daemons.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        module: str = _SUPERVISOR,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._folder, self._module, self._clock = folder, module, clock
        self._applied: records.Record | None = None
        self._activity: processes.Activity | None = None
        self._active_at = clock()
        self._looks = 0

    def apply(self, wanted: records.Record) -> bool:
        """Let a supervisor run what it should; return whether it does.

        Daemons keep running until a supervisor has read the new settings, so
        this process may be killed at any moment. A supervisor of another
        release is replaced; its daemons keep running if their settings are the
        same.
        """
        wanted = wanted | {'release': metadata.version('manila_lite')}
        file = self._folder / supervisor.SPECIFICATION
        if records.find(file) != wanted:
            records.write(file, wanted, durable=True)
        if not self._has(wanted):
            self.end()
        self.keep()
        deadline = time.monotonic() + START_TIMEOUT
        while not self._has(wanted):
            if time.monotonic() > deadline:
                return False
            time.sleep(INTERVAL)
            self.keep()
        self._applied = wanted
        return True

    def _has(self, wanted: records.Record) -> bool:
        return records.find(self._folder / supervisor.RUNNING) == wanted

    def keep(self) -> None:
        """Start a supervisor if there is none."""
        if not processes.is_running(self._folder / supervisor.RECORD):
            self._start()

    def _start(self, *arguments: str) -> None:
        with open(self._folder / supervisor.LOG_FILE, 'ab') as file:
            subprocess.run(
                [
                    *(sys.executable, '-m', self._module),
                    *(str(self._folder), *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                check=True,
            )

    def watch(self) -> None:
        """Replace the supervisor if it has ended or hangs.

        This is called every second. It does nothing if the daemons were
        stopped on purpose, or if another process has applied other settings
        since this one has, such as those of a later release.
        """
        if not self._is_in_charge():
            self._activity = None
            return
        now, before = self._clock(), self._activity
        found = processes.find_activity(self._folder / supervisor.RECORD)
        if before is None or (found is not None and found != before):
            self._activity, self._active_at, self._looks = found, now, 0
        if found is not None:
            self._looks += 1
            if self._looks <= _LOOKS or now - self._active_at < SUPERVISOR_SILENCE:
                return
            LOG.warning('The supervisor in %s hangs, and is replaced', self._folder)
            # This process and no other one, which may have just begun.
            processes.end_process(found.process, signal.SIGKILL, RESTART_TIMEOUT)
        self._start(supervisor.REPLACE, f'{self._clock() - self._active_at:.3f}')

    def _is_in_charge(self) -> bool:
        """Return whether there should be a supervisor as applied here."""
        return (
            self._applied is not None
            and (self._folder / supervisor.RECORD).exists()
            and records.find(self._folder / supervisor.SPECIFICATION) == self._applied
        )

    def end(self) -> None:
        """End the supervisor; the daemons keep running."""
        processes.end(self._folder / supervisor.RECORD, signal.SIGKILL, STOP_TIMEOUT)

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """End the supervisor; no other one starts daemons in the block.

        A daemon that is just being started has its lock until the record of
        the daemon is there. After the block the supervisor is not replaced.
        """
        self.end()
        if not self._folder.is_dir():
            yield
            return
        lock = os.open(self._folder / supervisor.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + STOP_TIMEOUT
            while not _try_lock(lock) and time.monotonic() < deadline:
                time.sleep(INTERVAL)
                self.end()
            # While it is locked: the next supervisor looks for the record.
            (self._folder / supervisor.RECORD).unlink(missing_ok=True)
            yield
        finally:
            os.close(lock)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def check_socket(path: pathlib.Path) -> None:
    """Raise BadConfiguration if a path is too long for a socket."""
    if len(str(path)) > _SOCKET_PATH_LENGTH:
        raise exception.BadConfiguration(
            reason=f'the path {path} is too long for a socket'
        )


def nfs_specification(
    folder: pathlib.Path,
    exports: pathlib.Path,
    socket: pathlib.Path,
    port: int,
    prefix: Sequence[str] = (),
) -> records.Record:
    """Return what a supervisor runs for an NFS server and its bus.

    The prefix comes before the command of the server.
    """
    bus, server = folder / 'bus.conf', folder / 'server.conf'
    return {
        'socket': str(socket),
        'nfs_port': port,
        'exports': str(exports),
        'bus': {
            'config': str(bus),
            'text': ganesha.bus_config(socket),
            'command': [
                'dbus-daemon',
                f'--config-file={bus}',
                '--nofork',
                '--nopidfile',
            ],
        },
        'server': {
            'config': str(server),
            'text': ganesha.base_config(
                port, ganesha.without_grace(folder / 'recovery'), GUARD.require().parent
            ),
            'command': [
                *prefix,
                'ganesha.nfsd',
                '-F',
                '-f',
                str(server),
                '-L',
                str(folder / 'ganesha.log'),
                '-p',
                str(folder / 'ganesha.pid'),
                '-N',
                'NIV_EVENT',
            ],
        },
    }


def require_guarded(folder: pathlib.Path, server: ganesha.Ganesha) -> None:
    """End an NFS server that exports volumes without the guard of handles.

    The supervisor starts another one, as its specification says.
    """
    record = folder / 'server.json'
    pid = processes.find_pid(record)
    if (
        not server.numbers()
        or GUARD.is_loaded(folder, pid)
        or processes.find_pid(record) != pid  # it has just been started
    ):
        return
    processes.end(record, signal.SIGKILL, STOP_TIMEOUT)
    raise exception.StorageUnavailable(
        reason=f'the NFS server of {folder} had not loaded the guard of file '
        'handles, and was ended'
    )


def open_files(folder: pathlib.Path) -> processes.OpenFiles | None:
    """Return the open files of an NFS server, or None if it has ended."""
    pid = processes.find_pid(folder / 'server.json')
    return None if pid is None else processes.open_files(pid)


def require_free_files(folder: pathlib.Path) -> None:
    """Raise StorageUnavailable if an NFS server can open hardly any file.

    One client may have them all, and those of other shares get errors.
    """
    found = open_files(folder)
    if found is not None and found.used >= found.most * _ALMOST_ALL:
        raise exception.StorageUnavailable(
            reason=f'the NFS server of {folder} has {found.used} files open, '
            f'of {found.most} that it may have'
        )


def smb_specification(
    folder: pathlib.Path, settings: smb_settings.SmbConfig, prefix: Sequence[str] = ()
) -> records.Record:
    """Return the same for smbd, whose configuration begins with a text."""
    config = folder / CONFIG
    return {
        'smb_address': settings.addresses[0],
        'smb_port': settings.port,
        'smbd': {
            'config': str(config),
            'text': settings.text,
            'environment': smb_settings.environment(folder),
            'command': [
                *prefix,
                'smbd',
                '--foreground',
                '--no-process-group',
                f'--configfile={config}',
            ],
        },
    }


def end_blind(record: pathlib.Path, sees: Callable[[int], bool]) -> None:
    """End a server that does not see the mounts of its exports."""
    pid = processes.find_pid(record)
    if pid is not None and not sees(pid):
        processes.end(record, signal.SIGKILL, STOP_TIMEOUT)


class Daemons:
    """The bus, the servers and their supervisor, in one folder."""

    def __init__(
        self,
        folder: pathlib.Path,
        exports: pathlib.Path,
        port: int,
        trash: list[pathlib.Path],
        smb_config: smb_settings.SmbConfig | None = None,
    ):
        self._folder = folder
        self._exports = exports
        self._port = port
        self._trash = trash
        self._supervision = Supervision(folder)
        self.socket = folder / 'bus.sock'
        self.server = ganesha.Ganesha(self.socket)
        self._smb_config = smb_config
        self.smb_server = (
            SmbServer(folder.parent / 'smb', folder / RECORD) if smb_config else None
        )

    def start(self) -> None:
        """Start what does not run, and wait until the server answers.

        Daemons that run with other settings are restarted by the supervisor.
        """
        check_socket(self.socket)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / 'recovery').mkdir(exist_ok=True)
        if not self._supervision.apply(self._specification()):
            raise self._not_starting('NFS')
        silent = self.silent_server(START_TIMEOUT)
        if silent:
            raise self._not_starting(silent)

    def _not_starting(self, server: str) -> exception.ShareBackendException:
        log = 'ganesha.log' if server == 'NFS' else '../smb/smbd.log'
        return exception.ShareBackendException(
            msg=f'the {server} server does not start, see {log} and '
            f'supervisor.log in {self._folder}'
        )

    def end_blind_server(self, sees: Callable[[int], bool]) -> None:
        """End an NFS server that does not see the mounts of its exports.

        The supervisor starts another one.
        """
        end_blind(self._folder / 'server.json', sees)

    def keep_supervised(self) -> None:
        """Start a supervisor if there is none."""
        self._supervision.keep()

    def watch(self) -> None:
        """Replace the supervisor if it has ended or hangs."""
        self._supervision.watch()

    def silent_server(self, seconds: float = RESTART_TIMEOUT) -> str:
        """Return which server does not answer; wait while it restarts."""
        deadline = time.monotonic() + seconds
        servers = {'NFS': self._is_nfs_answering}
        if self.smb_server:
            servers['SMB'] = self.smb_server.is_answering
        for name, is_answering in servers.items():
            while not is_answering():
                if time.monotonic() > deadline:
                    return name
                time.sleep(INTERVAL)
        return ''

    def _is_nfs_answering(self) -> bool:
        return self.server.is_answering() and ganesha.is_listening(self._port)

    def require_guarded(self) -> None:
        """End the NFS server if clients could leave their shares."""
        require_guarded(self._folder, self.server)

    def open_files(self) -> processes.OpenFiles | None:
        """Return the open files of the NFS server, if it runs."""
        return open_files(self._folder)

    def require_free_files(self) -> None:
        """Raise StorageUnavailable if clients can open hardly any file."""
        require_free_files(self._folder)

    def stop(self) -> None:
        """End the daemons; clients are interrupted."""
        with self._supervision.ended():
            for name in (RECORD, 'server.json', 'bus.json'):
                processes.stop(self._folder / name, STOP_TIMEOUT)
            processes.end_orphans(self._folder / RECORD)

    def _smb_specification(self) -> records.Record:
        if self._smb_config is None:
            return {}
        return smb_specification(self._folder.parent / 'smb', self._smb_config)

    def _specification(self) -> records.Record:
        """Return what the supervisor is to run."""
        return (
            self._smb_specification()
            | nfs_specification(self._folder, self._exports, self.socket, self._port)
            | {'trash': [str(folder) for folder in self._trash]}
        )
