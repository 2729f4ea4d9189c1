"""The daemons of a back end, which outlive the share service."""

from collections.abc import Iterator, Sequence
import contextlib
import fcntl
from importlib import metadata
import os
import pathlib
import signal
import subprocess
import sys
import time

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import ganesha
from manila_lite.share.drivers.btrfs import processes
from manila_lite.share.drivers.btrfs import smb_settings
from manila_lite.share.drivers.btrfs import supervisor
from manila_lite.share.drivers.btrfs.smb_server import CONFIG
from manila_lite.share.drivers.btrfs.smb_server import RECORD
from manila_lite.share.drivers.btrfs.smb_server import SmbServer

START_TIMEOUT = 60.0
RESTART_TIMEOUT = 10.0
STOP_TIMEOUT = 10.0
INTERVAL = 0.01
_SUPERVISOR = 'manila_lite.share.drivers.btrfs.supervisor'
# The longest path that the bus takes, less than the kernel does.
_SOCKET_PATH_LENGTH = 99


class Supervision:
    """A supervisor and what it is to run, in one folder."""

    def __init__(self, folder: pathlib.Path, module: str = _SUPERVISOR):
        self._folder = folder
        self._module = module

    def apply(self, wanted: records.Record) -> bool:
        """Let a supervisor run what it should; return whether it does.

        Daemons go on until a supervisor has read the new settings, so that
        this process may be killed at any moment. A supervisor of another
        release is replaced; its daemons go on if their settings are the same.
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
        return True

    def _has(self, wanted: records.Record) -> bool:
        return records.find(self._folder / supervisor.RUNNING) == wanted

    def keep(self) -> None:
        """Start a supervisor if there is none."""
        if not processes.is_running(self._folder / supervisor.RECORD):
            with open(self._folder / supervisor.LOG_FILE, 'ab') as log:
                subprocess.run(
                    [sys.executable, '-m', self._module, str(self._folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=True,
                )

    def end(self) -> None:
        """End the supervisor; the daemons go on."""
        processes.end(
            self._folder / supervisor.RECORD, signal.SIGKILL, STOP_TIMEOUT
        )

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """End the supervisor; no other one starts daemons in the block.

        A daemon that is just being started has its lock until the record of
        the daemon is there.
        """
        self.end()
        if not self._folder.is_dir():
            yield
            return
        lock = os.open(
            self._folder / supervisor.LOCK, os.O_RDWR | os.O_CREAT, 0o600
        )
        try:
            deadline = time.monotonic() + STOP_TIMEOUT
            while not _try_lock(lock) and time.monotonic() < deadline:
                time.sleep(INTERVAL)
                self.end()
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
            'text': ganesha.base_config(port, folder / 'recovery'),
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


def smb_specification(
    folder: pathlib.Path, text: str, prefix: Sequence[str] = ()
) -> records.Record:
    """Return the same for smbd, whose configuration begins with a text."""
    config = folder / CONFIG
    return {
        'smbd': {
            'config': str(config),
            'text': text,
            'environment': smb_settings.environment(folder),
            'command': [
                *prefix,
                'smbd',
                '--foreground',
                '--no-process-group',
                f'--configfile={config}',
            ],
        }
    }


class Daemons:
    """The bus, the servers and their supervisor, in one folder."""

    def __init__(
        self,
        folder: pathlib.Path,
        exports: pathlib.Path,
        port: int,
        trash: list[pathlib.Path],
        smb_config: str | None = None,
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
            SmbServer(folder.parent / 'smb', folder / RECORD)
            if smb_config
            else None
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

    def keep_supervised(self) -> None:
        """Start a supervisor if there is none."""
        self._supervision.keep()

    def silent_server(self, seconds: float = RESTART_TIMEOUT) -> str:
        """Return which server does not answer; wait while it restarts."""
        deadline = time.monotonic() + seconds
        servers = {'NFS': self.server.is_answering}
        if self.smb_server:
            servers['SMB'] = self.smb_server.is_answering
        for name, is_answering in servers.items():
            while not is_answering():
                if time.monotonic() > deadline:
                    return name
                time.sleep(INTERVAL)
        return ''

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
            | nfs_specification(
                self._folder, self._exports, self.socket, self._port
            )
            | {'trash': [str(folder) for folder in self._trash]}
        )
