"""smbd: changes to what it shares while it runs.

A command reaches the first smbd, which hands it to those that serve clients,
one process per client. Each command is a process, which takes longer to start
than all else, so that as few as possible are sent.
"""

from collections.abc import Collection, Iterable
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import NamedTuple

from manila_lite import exception
from manila_lite.share.drivers import records, silence
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.exports.smb import smb_settings
from manila_lite.share.drivers.records import Record

Command = tuple[str, ...]

CONFIG, RECORD = 'smb.conf', 'smbd.json'
_RETRY_INTERVAL = 0.05
# What is sent to an smbd that is starting is lost.
_REPLY_TIMEOUT = 1
_CLOSE_TIMEOUT = 10
_RELOAD: Command = ('reload-config',)
_CLOSE, _CLOSE_DENIED = 'close-share', 'close-denied-share'
_HELPERS = ('smbd-notifyd', 'cleanupd')


class Session(NamedTuple):
    """A process of smbd, and what its client uses: a user or a share."""

    pid: int
    user: str
    share: str

    def signal(self, number: signal.Signals) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


def sessions(folder: pathlib.Path) -> list[Session]:
    """Return who is signed in; the share is empty."""
    return _sessions(folder, '--processes', 'sessions', 'username', '')


def _sessions(
    folder: pathlib.Path, option: str, table: str, user: str, share: str
) -> list[Session]:
    done = _run(folder, 'smbstatus', '--json', option)
    try:
        found = json.loads(done.stdout)[table]
    except (ValueError, KeyError):
        return []  # smbd has never run
    return [
        Session(int(one['server_id']['pid']), one.get(user, ''), one.get(share, ''))
        for one in found.values()
    ]


class SmbServer:
    """The smbd of one back end; while it restarts, callers wait for it."""

    def __init__(self, folder: pathlib.Path, record: pathlib.Path):
        self._folder = folder
        self._record = record
        self._timeout = silence.TIMEOUT
        self._started: Record | None = None
        """The smbd that is known to have started."""

    def is_answering(self) -> bool:
        """Return whether the smbd that the supervisor has started answers."""
        record = self._running()
        return record is not None and _answers(self._folder, record['pid'])

    def reload(self) -> bool:
        """Let smbd read its configuration again, before this returns.

        Returns False if no client was connected to it at the end.
        """
        return self._tell(_RELOAD)

    def shares_in_use(self) -> set[str]:
        """Return the names of what clients are connected to."""
        return {one.share for one in self._uses()}

    def _uses(self) -> list[Session]:
        """Return who uses what, with names in lower case."""
        found = _sessions(self._folder, '--shares', 'tcons', '', 'service')
        return [one._replace(share=one.share.lower()) for one in found]

    def close(self, share: str) -> None:
        """End the use of a share."""
        self._end_use(share, (_CLOSE, share))

    def close_for(self, share: str, users: Collection[str]) -> None:
        """Do the same for the clients of some users, and no others."""
        pids = {one.pid for one in sessions(self._folder) if one.user in users}
        for one in self._uses():
            if one.pid in pids and one.share == share.lower():
                _control(self._folder, one.pid, _CLOSE, share)
                if not _answers(self._folder, one.pid, _CLOSE_TIMEOUT):
                    one.signal(signal.SIGKILL)

    def replace(self, share: str, denied: bool) -> None:
        """Share as the configuration says now, and end the use as before.

        With `denied`, for those only that may not even read any more.
        """
        self._end_use(share, _RELOAD, (_CLOSE_DENIED if denied else _CLOSE, share))

    def withdraw(self, share: str) -> None:
        """End the use of a share that the configuration does not have.

        An smbd forgets only what none of its clients uses.
        """
        self._end_use(share, (_CLOSE, share), _RELOAD, (_CLOSE, share))

    def _end_use(self, share: str, *commands: Command) -> None:
        """Send commands; disconnect clients that do not let go of a share."""
        if not self._tell(*commands):
            return
        for pid in {one.pid for one in self._uses() if one.share == share.lower()}:
            # The answer comes after the share has been closed.
            if not _answers(self._folder, pid, _CLOSE_TIMEOUT):
                Session(pid, '', share).signal(signal.SIGKILL)

    def _tell(self, *commands: Command) -> bool:
        """Send commands to an smbd that answers before and after them.

        Returns False if no client was connected to it at the end.
        """
        deadline = time.monotonic() + self._timeout
        while not silence.is_known(self):
            record = self._running()
            if record is not None and self._has_started(record):
                children = self._told(record['pid'], commands)
                if children is not None:
                    return children > _helpers(record['pid'])
            if time.monotonic() > deadline:
                silence.record(self)
                break
            time.sleep(_RETRY_INTERVAL)
        raise exception.FileServerUnresponsive(server='SMB')

    def _has_started(self, record: Record) -> bool:
        """Return whether an smbd takes commands; it continues to do so."""
        if record != self._started and _answers(self._folder, record['pid']):
            self._started = record
        return record == self._started

    def _told(self, pid: int, commands: Iterable[Command]) -> int | None:
        """Send commands; return how many children smbd has afterwards.

        It takes one after the other, so that its answer to the last one says
        that it has handed all of them on.
        """
        for command in commands:
            sys.audit('manila_lite.smb', command[0])
            if _control(self._folder, pid, *command).returncode:
                return None
        answer = _control(self._folder, pid, 'num-children')
        count = answer.stdout.partition(' ')[0]
        return int(count) if not answer.returncode and count.isdigit() else None

    def _running(self) -> Record | None:
        if not processes.is_running(self._record):
            return None
        return records.find(self._record)


def _helpers(pid: int) -> int:
    """Return how many children of smbd serve no client.

    The kernel may leave out one of several children that end at this moment:
    the count is then too low, and one process is not found.
    """
    try:
        children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(_name_of(child) in _HELPERS for child in children.split())


def _name_of(pid: str) -> str:
    try:
        return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ''


def _answers(folder: pathlib.Path, pid: int, seconds: int = _REPLY_TIMEOUT) -> bool:
    return not _control(folder, pid, 'ping', seconds=seconds).returncode


def _control(
    folder: pathlib.Path, pid: int, *command: str, seconds: int = _REPLY_TIMEOUT
) -> subprocess.CompletedProcess[str]:
    return _run(folder, 'smbcontrol', f'--timeout={seconds}', str(pid), *command)


def _run(
    folder: pathlib.Path, program: str, *args: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, f'--configfile={folder / CONFIG}', *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=smb_settings.command_environment(folder),
        **privileges.as_root(),
    )
