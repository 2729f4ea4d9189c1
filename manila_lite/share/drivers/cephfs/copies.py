"""Shares that get the content of a snapshot, of their own or of another share.

A process that mounts the share as a user of its own, who can use nothing else, writes
what differs; another user of its own reads the snapshot if that is of another share.
Both exist for one call only: a later one cuts them off before it begins.
"""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import pathlib
import sys
from typing import Any
import uuid

from manila_lite import exception
from manila_lite.share.drivers.cephfs import copy_worker
from manila_lite.share.drivers.cephfs.backend import CephfsBackend
from manila_lite.share.drivers.cephfs.cluster import Process, error_for
from manila_lite.share.drivers.cephfs.records import Record
from manila_lite.share.drivers.cephfs.users import (
    READING,
    WRITING,
    authorize,
    revoke_all,
)

_SCRIPT = pathlib.Path(copy_worker.__file__)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A snapshot of Ceph, and the share that it is of."""

    backend: CephfsBackend
    share: Record
    name: str


class CephfsCopies:
    """Each runs in steps, between which it is checked that it is not late."""

    step_seconds = 0.5

    def __init__(self, backend: CephfsBackend):
        self._backend = backend
        self._limit: float = backend.configuration.cephfs_command_timeout

    def cut_off(self, share: Record) -> None:
        """Stop what earlier calls have left that writes to a share."""
        revoke_all(self._backend, share['subvolume'], WRITING)

    @contextlib.contextmanager
    def prepared(
        self, share: Record, snapshot: Snapshot, bases: Sequence[str] = ()
    ) -> Iterator['Copy']:
        """Provide a copy to a share that has changed nothing yet.

        `bases` are snapshots of the same share as the one to be copied that the
        present content consists of. Without any, all of it is compared.
        """
        # An earlier call stops at its next check, as this one was admitted.
        self.cut_off(share)
        options = self._backend.configuration
        with contextlib.ExitStack() as stack:
            mounts = [stack.enter_context(_mount(self._backend, share, WRITING, 'rw'))]
            if snapshot.share['subvolume'] != share['subvolume']:
                prefix = f'{READING}{share["subvolume"]}-'
                revoke_all(snapshot.backend, snapshot.share['subvolume'], prefix)
                mounts.append(
                    stack.enter_context(
                        _mount(snapshot.backend, snapshot.share, prefix, 'r')
                    )
                )
            settings = {
                'mounts': mounts,
                'snapshot': snapshot.name,
                'bases': list(bases),
                'limit': self._limit,
                'step': self.step_seconds,
            }
            process = Process(options.cephfs_python, _SCRIPT, settings, self._limit)
            stack.callback(process.end)
            _check(process.greeting)
            yield Copy(self._backend, process, self._limit)


@contextlib.contextmanager
def _mount(
    backend: CephfsBackend, share: Record, prefix: str, level: str
) -> Iterator[dict[str, Any]]:
    """Provide what a process needs to mount a share, with a Ceph user of its own.

    A later call cuts off this one by its user, whatever is in flight.
    """
    user = f'{prefix}{uuid.uuid4().hex}'
    names = {'sub_name': share['subvolume'], 'auth_id': user}
    key = authorize(backend, share['subvolume'], user, level)
    is_unmounted = False
    try:
        yield {
            'conffile': backend.configuration.cephfs_conf_path,
            'user': user,
            'key': key,
            'filesystem': backend.filesystem,
            'root': share['path'],
        }
        is_unmounted = True
    finally:
        # This may be done late: nobody else has this user. A later call
        # finds it if this one cannot.
        with contextlib.suppress(exception.DriverError):
            if not is_unmounted:
                backend.run('subvolume evict', **names)
            backend.run('subvolume deauthorize', **names)


class Copy:
    """A copy that is prepared."""

    def __init__(self, backend: CephfsBackend, process: Process, limit: float):
        self._backend, self._process, self._limit = backend, process, limit

    def run(self) -> None:
        """Write what differs; the share is a mixture until this has returned."""
        reply: dict[str, Any] = {'is_done': False}
        while not reply['is_done']:
            self._backend.records.check_call()
            sys.audit('manila_lite.ceph', 'copy')
            reply = self._process.call({}, self._limit)
            _check(reply)


def _check(reply: dict[str, Any]) -> None:
    if reply['code'] != 0:
        raise error_for(reply['code'], 'copy', reply['status'])
