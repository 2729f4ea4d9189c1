"""A small process that keeps the daemons of a back end running.

    python -m manila_lite.share.drivers.btrfs.supervisor FOLDER

It goes on while share services stop, crash and are upgraded. The specification
in FOLDER says what to run. If the supervisor is killed, the daemons go on, and
the next one finds them by their records. It ends daemons that an earlier one
has started with other settings, and a server that cannot be used because the
bus it talks to is gone. It starts no second one: only one supervisor has the
lock.

It also removes the volumes in the trash of the pools.
"""

from collections.abc import Callable
import contextlib
import fcntl
import json
import logging
import os
import pathlib
import signal
import socket
import sys
import time
from typing import Any, NoReturn, Protocol

from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import mount_table
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs import processes
from manila_lite.share.drivers.btrfs.limited_log import LimitedLog
from manila_lite.share.drivers.btrfs.trash import Trash

LOG = logging.getLogger(__name__)

SPECIFICATION, LOCK, RECORD = 'spec.json', 'supervisor.lock', 'supervisor.json'
LOG_FILE = 'supervisor.log'
RUNNING = 'running.json'
"""The specification that the supervisor and its daemons were started with."""

INTERVAL = 1.0
_RESTART_INTERVAL = 1.0
_BUS_TIMEOUT = 10.0
_STOP_TIMEOUT = 10.0
_LOG_SIZE = 16 << 20


class Daemon:
    """One daemon, which may have been started by an earlier supervisor."""

    def __init__(
        self, folder: pathlib.Path, name: str, specification: dict[str, Any]
    ):
        self.name = name
        self.config = pathlib.Path(specification['config'])
        self._text: str = specification['text']
        self._command: list[str] = specification['command']
        self._record = folder / f'{name}.json'
        self._log = folder / f'{name}.log'
        self._descriptor: int | None = processes.find_running(self._record)
        self._start_after = 0.0

    @property
    def descriptor(self) -> int | None:
        """A pidfd while it runs."""
        return self._descriptor

    def has_ended(self) -> bool:
        """Return whether it is not running, or no longer."""
        if self._descriptor is not None and processes.wait(
            [self._descriptor], 0
        ):
            self._forget()
        if self._descriptor is None:
            # It may have been started by a call that failed afterwards.
            self._descriptor = processes.find_running(self._record)
        return self._descriptor is None

    def start(
        self,
        environment: dict[str, str],
        lines: str = '',
        enter: Callable[[], None] = lambda: None,
    ) -> bool:
        """Start it, unless it has just been started.

        The lines are added to its configuration. Its process calls `enter`
        first.
        """
        if time.monotonic() < self._start_after:
            return False
        self._start_after = time.monotonic() + _RESTART_INTERVAL
        records.write_text(self.config, self._text + lines)
        _rotate(self._log)
        child = os.fork()
        if child == 0:
            self._become_daemon(environment, enter)
        deadline = time.monotonic() + _BUS_TIMEOUT
        while time.monotonic() < deadline:
            has_ended = os.waitpid(child, os.WNOHANG)[0] == child
            # The record is written first, so that no daemon is ever unknown.
            self._descriptor = processes.find_running(self._record)
            if self._descriptor is not None:
                LOG.info('started %s', self.name)
                return True
            if has_ended:
                break
            time.sleep(0.002)
        return False

    def kill(self) -> None:
        """End it; its clients reconnect to the one that is started next."""
        processes.end(self._record, signal.SIGKILL, _BUS_TIMEOUT)
        self._forget()

    def stop(self) -> None:
        """Let it end."""
        processes.stop(self._record, _STOP_TIMEOUT)
        self._forget()

    def _become_daemon(
        self, environment: dict[str, str], enter: Callable[[], None]
    ) -> None:
        try:
            os.setsid()
            processes.write(self._record, processes.this_process())
            log = os.open(
                self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
            )
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            enter()
            privileges.become_root()
            os.execvpe(
                self._command[0], self._command, os.environ | environment
            )
        except OSError:
            LOG.exception('%s cannot be started', self.name)
        finally:
            os._exit(1)

    def _forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None


class Supervisor:
    """The NFS server, the bus that controls it, and perhaps smbd."""

    def __init__(self, folder: pathlib.Path, specification: dict[str, Any]):
        self._specification = specification
        self._running = folder / RUNNING
        self._socket = specification['socket']
        self._exports = pathlib.Path(specification['exports'])
        self._trash = Trash(
            pathlib.Path(each) for each in specification['trash']
        )
        self._errors = LimitedLog(LOG)
        self._is_well = True
        self._environment = {
            'DBUS_SYSTEM_BUS_ADDRESS': f'unix:path={self._socket}'
        }
        self._bus = Daemon(folder, 'bus', specification['bus'])
        self._server = Daemon(folder, 'server', specification['server'])
        self._smb_record = folder / 'smbd.json'
        self._smb = (
            Daemon(folder, 'smbd', specification['smbd'])
            if 'smbd' in specification
            else None
        )

    def adopt_settings(self) -> None:
        """End daemons that were started with other settings.

        If it is interrupted, the next supervisor does it again.
        """
        running = records.find(self._running) or {}
        if running == self._specification:
            return
        if any(
            running.get(part) != self._specification[part]
            for part in ('socket', 'exports', 'bus', 'server')
        ):
            self._server.stop()
            self._bus.stop()
        if running.get('smbd') != self._specification.get('smbd'):
            processes.stop(self._smb_record, _STOP_TIMEOUT)
            processes.end_session(self._smb_record, _STOP_TIMEOUT)
        records.write(self._running, self._specification, durable=True)

    def check(self) -> bool:
        """Start what does not run; return whether nothing has failed.

        What has failed does not keep the rest from it.
        """
        reap()
        parts = {
            'SMB': self._check_smb,
            'NFS': self._check_nfs,
            'trash': self._trash.empty,
        }
        failed = [name for name in parts if not self._try(name, parts[name])]
        self._is_well = not failed
        return self._is_well

    def _try(self, name: str, part: Callable[[], None]) -> bool:
        try:
            part()
        except (OSError, ValueError) as error:  # a file is damaged
            self._errors.error(f'{self._running.parent}: {name}', error)
            return False
        return True

    def _check_smb(self) -> None:
        if self._smb and self._smb.has_ended():
            processes.end_orphans(self._smb_record)
            self._smb.start(self._specification['smbd']['environment'])

    def _check_nfs(self) -> None:
        if self._bus.has_ended():
            # A server without its bus serves, but cannot be changed.
            self._server.kill()
            if not self._bus.start({}) or not self._bus_answers():
                return
        if self._server.has_ended():
            self._start_server()

    def wait(self) -> None:
        """Wait until a daemon ends, or for a while.

        One that has ended and cannot be started would not let it wait.
        """
        processes.wait(self.descriptors if self._is_well else [], INTERVAL)

    @property
    def descriptors(self) -> list[int]:
        """The pidfds of the daemons that run."""
        return [
            daemon.descriptor
            for daemon in self._daemons
            if daemon.descriptor is not None
        ]

    def is_complete(self) -> bool:
        """Return whether all daemons run."""
        return not any(daemon.has_ended() for daemon in self._daemons)

    @property
    def _daemons(self) -> list[Daemon]:
        return [self._bus, self._server, *([self._smb] if self._smb else [])]

    def _bus_answers(self) -> bool:
        deadline = time.monotonic() + _BUS_TIMEOUT
        while time.monotonic() < deadline and not self._bus.has_ended():
            with socket.socket(socket.AF_UNIX) as client:
                if client.connect_ex(self._socket) == 0:
                    return True
            time.sleep(0.005)
        return False

    def _start_server(self) -> None:
        """Let it export all volumes that are mounted.

        The directory below a missing mount is on the disk of the system.
        """
        enter = mount_table.begin(self._exports)
        lines, mounts = [], []
        for file in sorted(self._exports.glob('*.conf')):
            mount = self._exports / 'mounts' / file.stem
            if os.path.ismount(mount):
                lines.append(f'%include "{file}"\n')
                mounts.append(mount)
            else:
                LOG.error('%s is not exported: it is not mounted', file.stem)
        self._server.start(
            self._environment,
            ''.join(lines),
            lambda: enter(mounts) if enter else None,
        )


def _rotate(log: pathlib.Path) -> bool:
    """Begin another log file if this one is large; return whether it is."""
    try:
        is_large = log.stat().st_size > _LOG_SIZE
    except FileNotFoundError:
        return False
    if is_large:
        log.replace(log.with_name(f'{log.name}.1'))
    return is_large


def _rotate_own(log: pathlib.Path) -> None:
    """Do the same for the log of this process, unless that is elsewhere."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(2), log.stat()) and _rotate(log):
            new = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(new, 1)
            os.dup2(new, 2)
            os.close(new)


def reap() -> None:
    """Let ended children go."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


class Runnable(Protocol):
    """What the process does once it is the only supervisor."""

    def adopt_settings(self) -> None: ...

    def check(self) -> bool: ...

    def wait(self) -> None: ...


def _run(supervisor: Runnable, log: pathlib.Path) -> NoReturn:
    """Supervise for ever: nothing would restart this process."""
    errors = LimitedLog(LOG)
    is_adopted = False
    while True:
        try:
            _rotate_own(log)
            if not is_adopted:
                supervisor.adopt_settings()
                is_adopted = True
            supervisor.check()
            supervisor.wait()
        except Exception as error:  # noqa: BLE001 (the periodic loop)
            errors.error('supervisor', error)
            time.sleep(INTERVAL)


def main(
    folder: pathlib.Path,
    supervise: Callable[[pathlib.Path, dict[str, Any]], Runnable] = Supervisor,
) -> None:
    """Continue in the background, unless there is a supervisor already."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    recorded, is_recorded = os.pipe()
    if os.fork():
        os.close(is_recorded)
        os.read(recorded, 1)  # until the other process has closed it
        os._exit(0)
    os.setsid()
    os.chdir('/')
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os._exit(0)
    logging.basicConfig(
        level=logging.INFO, format='%(asctime)s %(levelname)s %(message)s'
    )
    processes.write(folder / RECORD, processes.this_process())
    os.close(is_recorded)
    supervisor = supervise(
        folder, json.loads((folder / SPECIFICATION).read_bytes())
    )
    _run(supervisor, folder / LOG_FILE)


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
