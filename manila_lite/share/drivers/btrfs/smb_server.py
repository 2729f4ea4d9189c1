"""smbd: changes to what it shares while it runs.

A command reaches the first smbd, which hands it to those that serve clients,
one process per client.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import NamedTuple

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import processes
from manila_lite.share.drivers.btrfs import smb_settings

CONFIG, RECORD = 'smb.conf', 'smbd.json'
_RETRY_INTERVAL = 0.05
# What is sent to an smbd that is starting is lost.
_REPLY_TIMEOUT = 1
_CLOSE_TIMEOUT = 10


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
        Session(
            int(one['server_id']['pid']), one.get(user, ''), one.get(share, '')
        )
        for one in found.values()
    ]


class SmbServer:
    """The smbd of one back end; while it restarts, callers wait for it."""

    def __init__(self, folder: pathlib.Path, record: pathlib.Path):
        self._folder = folder
        self._record = record
        self._timeout = 60.0

    def is_answering(self) -> bool:
        """Return whether the smbd that the supervisor has started answers."""
        pid = self._pid()
        return pid is not None and _answers(self._folder, pid)

    def reload(self) -> None:
        """Let smbd read its configuration again, before this returns."""
        self._tell('reload-config')

    def close(self, share: str, denied: bool = False) -> None:
        """End the use of a share, for those that may no longer use it so.

        Without `denied`, for all. A client that does not let go is
        disconnected.
        """
        command = 'close-denied-share' if denied else 'close-share'
        self._tell(command, share)
        for pid in {
            one.pid
            for one in _sessions(
                self._folder, '--shares', 'tcons', '', 'service'
            )
            if one.share.lower() == share.lower()
        }:
            # The answer comes after the share has been closed.
            if not _answers(self._folder, pid, _CLOSE_TIMEOUT):
                Session(pid, '', share).signal(signal.SIGKILL)

    def _tell(self, command: str, *args: str) -> None:
        """Send a command to an smbd that answers before and after it."""
        sys.audit('manila_lite.smb', command)
        deadline = time.monotonic() + self._timeout
        while True:
            pid = self._pid()
            if (
                pid is not None
                and _answers(self._folder, pid)
                and _control(self._folder, pid, command, *args)
                and _answers(self._folder, pid)
            ):
                return
            if time.monotonic() > deadline:
                raise exception.ShareBackendException(
                    msg='the SMB server does not answer'
                )
            time.sleep(_RETRY_INTERVAL)

    def _pid(self) -> int | None:
        if not processes.is_running(self._record):
            return None
        record = records.find(self._record)
        return record['pid'] if record else None


def _answers(
    folder: pathlib.Path, pid: int, seconds: int = _REPLY_TIMEOUT
) -> bool:
    return _control(folder, pid, 'ping', seconds=seconds)


def _control(
    folder: pathlib.Path,
    pid: int,
    *command: str,
    seconds: int = _REPLY_TIMEOUT,
) -> bool:
    done = _run(
        folder, 'smbcontrol', f'--timeout={seconds}', str(pid), *command
    )
    return done.returncode == 0


def _run(
    folder: pathlib.Path, program: str, *args: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, f'--configfile={folder / CONFIG}', *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=smb_settings.command_environment(folder),
    )
