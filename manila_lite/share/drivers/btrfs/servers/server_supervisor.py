"""A small process that keeps the daemons of all share servers running.

    python -m manila_lite.share.drivers.btrfs.servers.server_supervisor FOLDER

It differs from `supervisor` in that share servers come and go:

    servers/<id>/nfs/spec.json    what to run for a share server

The daemons of a server are started while the name `daemons.<id>` is locked.
Thus one that has removed its file under this lock finds the records of all
daemons that were ever started for it.
"""

import contextlib
import errno
import logging
import os
import pathlib
import resource
import sys
from typing import Any

from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs.daemons import processes, supervisor
from manila_lite.share.drivers.btrfs.daemons.supervisor import Supervisor
from manila_lite.share.drivers.btrfs.failures import LimitedLog
from manila_lite.share.drivers.btrfs.volumes.trash import Trash
from manila_lite.share.drivers.file_locks import Locks

LOG = logging.getLogger(__name__)

NFS = 'nfs'
"""The folder of the daemons in that of a share server."""

_WAKE = 'wake'
_STOP_TIMEOUT = 10.0

Version = tuple[int, int]


def lock_of(server_id: str) -> str:
    """Return the name that is locked while daemons are started."""
    return f'daemons.{server_id}'


def wake(folder: pathlib.Path) -> None:
    """Let the supervisor look at once for what has changed."""
    try:
        descriptor = os.open(folder / _WAKE, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):
            return  # it is starting, and looks anyway
        raise
    try:
        with contextlib.suppress(BlockingIOError):
            os.write(descriptor, b'.')
    finally:
        os.close(descriptor)


class ServerSupervisor:
    """The NFS servers of all share servers, each with its bus."""

    def __init__(
        self,
        folder: pathlib.Path,
        specification: dict[str, Any],
        unwatched: float = 0.0,
    ):
        self._folder = folder
        self._unwatched = unwatched
        self._specification = specification
        self._servers = pathlib.Path(specification['servers'])
        self._locks = Locks(pathlib.Path(specification['locks']))
        self._trash = Trash(pathlib.Path(each) for each in specification['trash'])
        self._errors = LimitedLog(LOG)
        self._is_well = True
        self._watched: dict[str, tuple[Version, Supervisor]] = {}
        with contextlib.suppress(FileExistsError):
            os.mkfifo(folder / _WAKE, 0o600)
        # Open for writing, too: its end is never reached.
        self._wake = os.open(folder / _WAKE, os.O_RDWR | os.O_NONBLOCK)

    def adopt_settings(self) -> None:
        """End the server that the back end had without share servers."""
        for name in ('smbd', 'server', 'bus'):
            processes.stop(self._folder / f'{name}.json', _STOP_TIMEOUT)
        processes.end_session(self._folder / 'smbd.json', _STOP_TIMEOUT)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        records.write(
            self._folder / supervisor.RUNNING, self._specification, durable=True
        )

    def check(self) -> bool:
        """Start what does not run; return whether nothing has failed."""
        supervisor.reap()
        names = set(os.listdir(self._servers))
        for server_id in self._watched.keys() - names:
            del self._watched[server_id]
            self._errors.forget(server_id)
        failed = [each for each in sorted(names) if not self._try(each)]
        self._unwatched = 0.0
        self._trash.empty()
        self._is_well = not failed
        return self._is_well

    def _try(self, server_id: str) -> bool:
        try:
            return self._check(server_id)
        except (OSError, ValueError) as error:  # a file is damaged
            self._errors.error(server_id, error)
            return False

    def _check(self, server_id: str) -> bool:
        if self._is_as_it_should_be(server_id):
            return True
        with self._locks.locked(lock_of(server_id)):
            folder = self._servers / server_id / NFS
            version = _version(folder)
            wanted = records.find(folder / supervisor.SPECIFICATION)
            if version is None or wanted is None:
                self._watched.pop(server_id, None)
                return True
            if self._watched.get(server_id, (None,))[0] != version:
                found = Supervisor(
                    folder, wanted, self._unwatched, self._servers.parent
                )
                found.adopt_settings()
                self._watched[server_id] = version, found
            return self._watched[server_id][1].check()

    def _is_as_it_should_be(self, server_id: str) -> bool:
        version = _version(self._servers / server_id / NFS)
        known = self._watched.get(server_id)
        if version is None or known is None:
            return version is None and known is None
        if version != known[0]:
            return False
        known[1].ask()
        return known[1].is_complete()

    def wait(self) -> None:
        """Wait until a daemon ends or there is a change, or for a while."""
        descriptors = [
            descriptor
            for _, each in self._watched.values()
            for descriptor in each.descriptors
            if self._is_well
        ]
        interval = min(
            (each.interval for _, each in self._watched.values()),
            default=supervisor.INTERVAL,
        )
        processes.wait([self._wake, *descriptors], interval)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)


def _version(folder: pathlib.Path) -> Version | None:
    """Return what changes whenever a specification is written."""
    try:
        found = (folder / supervisor.SPECIFICATION).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


if __name__ == '__main__':
    supervisor.main(sys.argv[1:], ServerSupervisor)
