"""The daemons of a back end, which outlive the share service."""

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

_SUPERVISOR = 'manila_lite.share.drivers.btrfs.supervisor'
_START_TIMEOUT = 60.0
_RESTART_TIMEOUT = 10.0
_STOP_TIMEOUT = 10.0
_INTERVAL = 0.01
_SOCKET_PATH_LENGTH = 107


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
        if len(str(self.socket)) > _SOCKET_PATH_LENGTH:
            raise exception.BadConfiguration(
                reason=f'the path {self.socket} is too long for a socket'
            )
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / 'recovery').mkdir(exist_ok=True)
        self._apply_settings(self._specification())
        silent = self.silent_server(_START_TIMEOUT)
        if silent:
            raise self._not_starting(silent)

    def _apply_settings(self, wanted: records.Record) -> None:
        """Let a supervisor run the daemons as they should.

        The daemons serve clients until a supervisor has read the new
        settings, so that this process may be killed at any moment.
        """
        file = self._folder / supervisor.SPECIFICATION
        if records.find(file) != wanted:
            records.write(file, wanted, durable=True)
        if not self._has_settings(wanted):
            processes.end(
                self._folder / supervisor.RECORD, signal.SIGKILL, _STOP_TIMEOUT
            )
        self.keep_supervised()
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._has_settings(wanted):
            if time.monotonic() > deadline:
                raise self._not_starting('NFS')
            time.sleep(_INTERVAL)
            self.keep_supervised()

    def _has_settings(self, wanted: records.Record) -> bool:
        return records.find(self._folder / supervisor.RUNNING) == wanted

    def _not_starting(self, server: str) -> exception.ShareBackendException:
        log = 'ganesha.log' if server == 'NFS' else '../smb/smbd.log'
        return exception.ShareBackendException(
            msg=f'the {server} server does not start, see {log} and '
            f'supervisor.log in {self._folder}'
        )

    def keep_supervised(self) -> None:
        """Start a supervisor if there is none."""
        if not processes.is_running(self._folder / supervisor.RECORD):
            with open(self._folder / 'supervisor.log', 'ab') as log:
                subprocess.run(
                    [sys.executable, '-m', _SUPERVISOR, str(self._folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=True,
                )

    def silent_server(self, seconds: float = _RESTART_TIMEOUT) -> str:
        """Return which server does not answer; wait while it restarts."""
        deadline = time.monotonic() + seconds
        servers = {'NFS': self.server.is_answering}
        if self.smb_server:
            servers['SMB'] = self.smb_server.is_answering
        for name, is_answering in servers.items():
            while not is_answering():
                if time.monotonic() > deadline:
                    return name
                time.sleep(_INTERVAL)
        return ''

    def stop(self) -> None:
        """End the daemons; clients are interrupted."""
        processes.end(
            self._folder / supervisor.RECORD, signal.SIGKILL, _STOP_TIMEOUT
        )
        for name in (RECORD, 'server.json', 'bus.json'):
            processes.stop(self._folder / name, _STOP_TIMEOUT)
        processes.end_orphans(self._folder / RECORD)

    def _smb_specification(self) -> records.Record:
        if self._smb_config is None:
            return {}
        folder = self._folder.parent / 'smb'
        return {
            'smbd': {
                'config': str(folder / CONFIG),
                'text': self._smb_config,
                'environment': smb_settings.environment(folder),
                'command': [
                    'smbd',
                    '--foreground',
                    '--no-process-group',
                    f'--configfile={folder / CONFIG}',
                ],
            }
        }

    def _specification(self) -> records.Record:
        """Return what the supervisor is to run."""
        bus, server = self._folder / 'bus.conf', self._folder / 'server.conf'
        return self._smb_specification() | {
            'socket': str(self.socket),
            'exports': str(self._exports),
            'trash': [str(folder) for folder in self._trash],
            'bus': {
                'config': str(bus),
                'text': ganesha.bus_config(self.socket),
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
                    self._port, self._folder / 'recovery'
                ),
                'command': [
                    'ganesha.nfsd',
                    '-F',
                    '-f',
                    str(server),
                    '-L',
                    str(self._folder / 'ganesha.log'),
                    '-p',
                    str(self._folder / 'ganesha.pid'),
                    '-N',
                    'NIV_EVENT',
                ],
            },
        }
