"""A small process that keeps the daemons of a back end running.

    python -m manila_lite.share.drivers.btrfs.daemons.supervisor FOLDER

It keeps running while share services stop, crash and are upgraded. The
specification in FOLDER says what to run. If the supervisor is killed, the
daemons keep running, and the next one finds them by their records. It ends
daemons that an earlier one has started with other settings, and a server that
cannot be used because the bus it talks to is gone. It starts no second one:
only one supervisor has the lock.

A daemon that runs and does not answer is killed and started again, too, see
`probes`. Only the supervisor kills daemons for that, and a share service the
supervisor, see `daemons.Supervision`.

It also removes the volumes in the trash of the pools.
"""

from collections.abc import Callable, Sequence
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

from manila_lite.share.drivers import handle_guard, records
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs.daemons import probes, processes, root_directory
from manila_lite.share.drivers.btrfs.daemons.probes import Probe, Question
from manila_lite.share.drivers.btrfs.exports.nfs import mount_table
from manila_lite.share.drivers.btrfs.failures import LimitedLog
from manila_lite.share.drivers.btrfs.volumes.trash import Trash

LOG = logging.getLogger(__name__)

SPECIFICATION, LOCK, RECORD = 'spec.json', 'supervisor.lock', 'supervisor.json'
LOG_FILE = 'supervisor.log'
REPLACE = '--replace'
RUNNING = 'running.json'
"""The specification that the supervisor and its daemons were started with."""

INTERVAL = 1.0
START_TIMEOUT = 60.0
"""Seconds until a daemon that was started answers for the first time.

With many exports an NFS server needs more than those of `probes.SILENCE`, but
then it has something to do."""

GANESHA = 'org.ganesha.nfsd'
"""The name of the NFS server on its bus."""

_LONGEST_GAP = 10.0
_RESTART_INTERVAL = 1.0
_BUS_TIMEOUT = 10.0
_STOP_TIMEOUT = 10.0
_LOG_SIZE = 16 << 20
# What Debian's own unit allows NFS-Ganesha.
_OPEN_FILES = 524288


class Daemon:
    """One daemon, which may have been started by an earlier supervisor.

    `questions` are asked to see whether it answers; `unwatched` is the time in
    seconds for which no supervisor has asked them.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        name: str,
        specification: dict[str, Any],
        questions: Sequence[Question] = (),
        unwatched: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.name = name
        self._clock = clock
        self.config = pathlib.Path(specification['config'])
        self._text: str = specification['text']
        self._command: list[str] = specification['command']
        self._record = folder / f'{name}.json'
        self._log = folder / f'{name}.log'
        self._answered = folder / f'{name}.answered'
        self._descriptor: int | None = processes.find_running(self._record)
        self._start_after = 0.0
        # Nothing is known of a longer time: it may have answered meanwhile.
        waited = unwatched if unwatched < _LONGEST_GAP else 0.0
        self._probes = [Probe(each, waited, clock) for each in questions]
        self._has_answered = self._descriptor is not None and (
            records.find(self._answered) == records.find(self._record)
        )
        self._processor_time: int | None = None
        self._idle_since = 0.0

    @property
    def descriptor(self) -> int | None:
        """A pidfd while it runs."""
        return self._descriptor

    def has_ended(self) -> bool:
        """Return whether it is not running, or no longer."""
        if self._descriptor is not None and processes.wait([self._descriptor], 0):
            self._forget()
        if self._descriptor is None:
            # It may have been started by a call that failed afterwards.
            self._descriptor = processes.find_running(self._record)
        return self._descriptor is None

    def ask(self) -> None:
        """Check whether it answers, at most every half second."""
        if self._descriptor is None:
            return
        for probe in self._probes:
            probe.ask()
        if self._has_answered:
            return
        now = processes.find_processor_time(self._record)
        if now != self._processor_time:
            self._processor_time, self._idle_since = now, self._clock()
        if all(probe.has_reply for probe in self._probes):
            # The next supervisor waits less for it than for one that starts.
            self._has_answered = True
            record = records.find(self._record)
            if record is not None:
                records.write(self._answered, record)

    def is_silent(self) -> bool:
        """Return whether it runs and does not answer."""
        if self._descriptor is None:
            return False
        if self._has_answered or self._is_idle():
            return self.silent_for() >= probes.SILENCE
        return self.silent_for() >= START_TIMEOUT

    def silent_for(self) -> float:
        """Return for how many seconds it has not answered."""
        return max((one.silent_for() for one in self._probes), default=0.0)

    def _is_idle(self) -> bool:
        """Return whether one that starts has done nothing for a while."""
        return self._clock() - self._idle_since >= probes.SILENCE

    @property
    def is_waiting(self) -> bool:
        """Whether there was no reply to the last question but one."""
        return self._descriptor is not None and any(
            probe.is_waiting for probe in self._probes
        )

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
        self._forget()
        records.write_text(self.config, self._text + lines)
        self._start_after = time.monotonic() + _RESTART_INTERVAL
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
        """End the server; its clients reconnect to the next one."""
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
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            enter()
            processes.allow_open_files(_OPEN_FILES)
            privileges.become_root()
            os.execvpe(self._command[0], self._command, os.environ | environment)
        except OSError:
            LOG.exception('%s cannot be started', self.name)
        finally:
            os._exit(1)

    def _forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None
        self._has_answered = False
        self._processor_time = None
        for probe in self._probes:
            probe.reset()


class Supervisor:
    """The NFS server, the bus that controls it, and perhaps smbd."""

    def __init__(
        self,
        folder: pathlib.Path,
        specification: dict[str, Any],
        unwatched: float = 0.0,
        root: pathlib.Path | None = None,
    ):
        """`root` has the reserve, and is the parent of the folder if None."""
        self._specification = specification
        self._root = root or folder.parent
        self._running = folder / RUNNING
        self._socket = specification['socket']
        self._exports = pathlib.Path(specification['exports'])
        self._trash = Trash(pathlib.Path(each) for each in specification['trash'])
        self._errors = LimitedLog(LOG)
        self._is_well = True
        self._guard = folder / handle_guard.RECORD
        self._environment = {
            'DBUS_SYSTEM_BUS_ADDRESS': f'unix:path={self._socket}',
            handle_guard.VARIABLE: str(self._guard),
        }
        questions = questions_of(specification)
        self._bus, self._server = (
            Daemon(folder, name, specification[name], questions[name], unwatched)
            for name in ('bus', 'server')
        )
        self._smb_record = folder / 'smbd.json'
        self._smb = (
            Daemon(folder, 'smbd', specification['smbd'], questions['smbd'], unwatched)
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

        A failure does not prevent the rest from being started.
        """
        reap()
        self.ask()
        parts = {
            'SMB': self._check_smb,
            'NFS': self._check_nfs,
            'trash': self._trash.empty,
        }
        failed = [name for name in parts if not self._try(name, parts[name])]
        self.ask()  # what has been started
        self._is_well = not failed
        return self._is_well

    def _try(self, name: str, part: Callable[[], None]) -> bool:
        try:
            root_directory.use_reserve(self._root, part)
        except (OSError, ValueError) as error:  # a file is damaged
            self._errors.error(f'{self._running.parent}: {name}', error)
            return False
        return True

    def ask(self) -> None:
        """Check whether the daemons answer."""
        for daemon in self._daemons:
            self._try(daemon.name, daemon.ask)

    def _check_smb(self) -> None:
        if self._smb and self._smb.is_silent():
            _replace(self._smb)
        if self._smb and self._smb.has_ended():
            processes.end_orphans(self._smb_record)
            self._smb.start(self._specification['smbd']['environment'])

    def _check_nfs(self) -> None:
        if self._bus.is_silent():  # then nothing on it is heard, either
            _replace(self._bus)
        elif self._server.is_silent():
            _replace(self._server)
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
        processes.wait(self.descriptors if self._is_well else [], self.interval)

    @property
    def interval(self) -> float:
        """Return how long to wait: a daemon that may hang is probed more often."""
        if any(daemon.is_waiting for daemon in self._daemons):
            return probes.RETRY_INTERVAL
        return INTERVAL

    @property
    def descriptors(self) -> list[int]:
        """The pidfds of the daemons that run."""
        return [
            daemon.descriptor
            for daemon in self._daemons
            if daemon.descriptor is not None
        ]

    def is_complete(self) -> bool:
        """Return whether all daemons run and answer."""
        return not any(
            daemon.has_ended() or daemon.is_silent() for daemon in self._daemons
        )

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
        self._guard.unlink(missing_ok=True)
        self._server.start(
            self._environment, ''.join(lines), lambda: enter(mounts) if enter else None
        )


def questions_of(specification: dict[str, Any]) -> dict[str, list[Question]]:
    """Return what the daemons are asked, by their names.

    A specification of an earlier release does not say where they listen.
    """
    address = specification['socket']
    name = specification.get('namespace')
    namespace = pathlib.Path(name) if name else None
    found: dict[str, list[Question]] = {'bus': [], 'server': [], 'smbd': []}
    if 'nfs_port' in specification:
        found['bus'] = [probes.bus(address)]
        found['server'] = [
            probes.nfs(specification['nfs_port'], namespace),
            probes.bus(address, GANESHA),
        ]
    if 'smb_address' in specification:
        found['smbd'] = [
            probes.smb(
                specification['smb_address'], specification['smb_port'], namespace
            )
        ]
    return found


def _replace(daemon: Daemon) -> None:
    """Kill a daemon that does not answer; it is then started again."""
    LOG.error(
        '%s has not answered for %.1f s, and is replaced',
        daemon.name,
        daemon.silent_for(),
    )
    daemon.kill()


def _rotate(log: pathlib.Path) -> bool:
    """Rotate the log file if it is large; return whether it was."""
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
    arguments: Sequence[str],
    supervise: Callable[[pathlib.Path, dict[str, Any], float], Runnable] = Supervisor,
) -> None:
    """Continue in the background, unless there is a supervisor already.

    The arguments are a folder and perhaps REPLACE, with the seconds since the
    last sign of life of the supervisor that is replaced. If its record is
    missing, it was stopped on purpose meanwhile.
    """
    folder = pathlib.Path(arguments[0])
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
    unwatched = 0.0
    if arguments[1:2] == [REPLACE]:
        if not (folder / RECORD).exists():
            os._exit(0)
        unwatched = float(arguments[2])
    logging.basicConfig(
        level=logging.INFO, format='%(asctime)s %(levelname)s %(message)s'
    )
    root_directory.use_reserve(
        folder.parent,
        lambda: processes.write(folder / RECORD, processes.this_process()),
    )
    os.close(is_recorded)
    supervisor = supervise(
        folder, json.loads((folder / SPECIFICATION).read_bytes()), unwatched
    )
    _run(supervisor, folder / LOG_FILE)


if __name__ == '__main__':
    main(sys.argv[1:])
