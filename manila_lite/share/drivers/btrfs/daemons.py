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
from manila_lite.share.drivers.btrfs import supervisor

_SUPERVISOR = 'manila_lite.share.drivers.btrfs.supervisor'
_START_TIMEOUT = 60.0
_RESTART_TIMEOUT = 10.0
_STOP_TIMEOUT = 10.0
_INTERVAL = 0.01
_SOCKET_PATH_LENGTH = 107


class Daemons:
    """The bus, the NFS server and their supervisor, in one folder."""

    def __init__(
        self,
        folder: pathlib.Path,
        exports: pathlib.Path,
        port: int,
        trash: list[pathlib.Path],
    ):
        self._folder = folder
        self._exports = exports
        self._port = port
        self._trash = trash
        self.socket = folder / 'bus.sock'
        self.server = ganesha.Ganesha(self.socket)

    def start(self) -> None:
        """Start what does not run, and wait until the server answers.

        Daemons that run with other settings are restarted.
        """
        if len(str(self.socket)) > _SOCKET_PATH_LENGTH:
            raise exception.BadConfiguration(
                reason=f'the path {self.socket} is too long for a socket'
            )
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / 'recovery').mkdir(exist_ok=True)
        if self._write_settings():
            self.stop()
        self.keep_supervised()
        if not self.is_answering(_START_TIMEOUT):
            raise exception.ShareBackendException(
                msg=f'the NFS server does not start, see {self._folder}'
                '/ganesha.log'
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

    def is_answering(self, seconds: float = _RESTART_TIMEOUT) -> bool:
        """Return whether the server answers; wait for it if it restarts."""
        deadline = time.monotonic() + seconds
        while not self.server.is_answering():
            if time.monotonic() > deadline:
                return False
            time.sleep(_INTERVAL)
        return True

    def stop(self) -> None:
        """End the daemons; clients are interrupted."""
        for name, number in (
            (supervisor.RECORD, signal.SIGKILL),
            ('server.json', signal.SIGTERM),
            ('server.json', signal.SIGKILL),
            ('bus.json', signal.SIGTERM),
        ):
            processes.end(self._folder / name, number, _STOP_TIMEOUT)

    def _write_settings(self) -> bool:
        """Write what the daemons read; return whether it has changed."""
        base, config = self._folder / 'base.conf', self._folder / 'server.conf'
        bus = self._folder / 'bus.conf'
        specification = {
            'socket': str(self.socket),
            'exports': str(self._exports),
            'base_config': str(base),
            'config': str(config),
            'trash': [str(folder) for folder in self._trash],
            'bus': [
                'dbus-daemon',
                f'--config-file={bus}',
                '--nofork',
                '--nopidfile',
            ],
            'server': [
                'ganesha.nfsd',
                '-F',
                '-f',
                str(config),
                '-L',
                str(self._folder / 'ganesha.log'),
                '-p',
                str(self._folder / 'ganesha.pid'),
                '-N',
                'NIV_EVENT',
            ],
        }
        settings = (
            (base, ganesha.base_config(self._port, self._folder / 'recovery')),
            (bus, ganesha.bus_config(self.socket)),
        )
        changed = [
            file
            for file, text in settings
            if not file.exists() or file.read_text() != text
        ]
        for file, text in settings:
            records.write_text(file, text)
        file = self._folder / supervisor.SPECIFICATION
        if records.find(file) != specification:
            changed.append(file)
        records.write(file, specification)
        return bool(changed)
