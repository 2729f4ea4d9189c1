"""Reverting shares of the CephFS driver in place, under their clients.

A process that mounts the share as a user of its own, who can use nothing else,
rewrites what differs from the snapshot. Shares stay where they are, so that clients
keep their mounts and open files. The alternative, a clone that takes the place of
the share, leaves clients with the directory that was there before.

The record of the share says that it is being reverted before anything is
changed, and after the process has mounted it. A call that ends on the way leaves
that: the share is in error until another call has completed it.
"""

from collections.abc import Iterator
import contextlib
import pathlib
import sys
from typing import Any
import uuid

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs import revert_worker
from manila_lite.share.drivers.cephfs.backend import CephfsBackend, State, require
from manila_lite.share.drivers.cephfs.cluster import Process, error_for
from manila_lite.share.drivers.cephfs.records import SHARE, SNAPSHOT, Record, Values
from manila_lite.share.drivers.cephfs.snapshots import is_there
from manila_lite.share.drivers.cephfs.users import INTERNAL, REVERTING, revoke_all

_SCRIPT = pathlib.Path(revert_worker.__file__)


class CephfsReverts:
    """Each runs in steps, between which it is checked that it is not late."""

    step_seconds = 0.5

    def __init__(self, backend: CephfsBackend):
        self._backend = backend
        self._limit: float = backend.configuration.cephfs_command_timeout

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int:
        """Give the share the content and the size of the snapshot."""
        source = self._backend.get_snapshot(snapshot)
        if not is_there(self._backend, source['subvolume'], source['snapshot']):
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        key = SHARE + snapshot['share_name']
        record = require(snapshot['share_id'], self._backend.records.get(key))
        # An earlier call stops at its next check, as this one was admitted; what
        # it has mounted by then is cut off.
        revoke_all(self._backend, record['subvolume'], REVERTING)
        with self._mounted(record, source) as process:
            self._set_state(snapshot, State.REVERTING, {})
            self._rewrite(process)
        self._backend.resize(record['subvolume'], source['size'])
        self._set_state(snapshot, State.AVAILABLE, {'size': source['size']})
        return source['size']

    @contextlib.contextmanager
    def _mounted(self, record: Record, source: Record) -> Iterator[Process]:
        """Provide a process that has mounted the share, and has changed nothing."""
        options = self._backend.configuration
        with self._user(record['subvolume']) as (user, key):
            settings = {
                'conffile': options.cephfs_conf_path,
                'user': user,
                'key': key,
                'filesystem': self._backend.filesystem,
                'root': record['path'],
                'snapshot': source['snapshot'],
                'limit': self._limit,
                'step': self.step_seconds,
            }
            process = Process(options.cephfs_python, _SCRIPT, settings, self._limit)
            try:
                _check(process.greeting)
                yield process
            finally:
                process.end()

    @contextlib.contextmanager
    def _user(self, subvolume: str) -> Iterator[tuple[str, str]]:
        """Provide a Ceph user and its key, for this share and this call only.

        A later call cuts off this one by its user, whatever is in flight.
        """
        user = f'{REVERTING}{uuid.uuid4().hex}'
        names = {'sub_name': subvolume, 'auth_id': user}
        key = self._backend.order(
            'subvolume authorize', access_level='rw', tenant_id=INTERNAL, **names
        )
        is_unmounted = False
        try:
            yield user, key.strip()
            is_unmounted = True
        finally:
            # This may be done late: nobody else has this user. A later call
            # finds it if this one cannot.
            with contextlib.suppress(exception.DriverError):
                if not is_unmounted:
                    self._backend.run('subvolume evict', **names)
                self._backend.run('subvolume deauthorize', **names)

    def _rewrite(self, process: Process) -> None:
        reply: dict[str, Any] = {'is_done': False}
        while not reply['is_done']:
            self._backend.records.check_call()
            sys.audit('manila_lite.ceph', 'revert')
            reply = process.call({}, self._limit)
            _check(reply)

    def _set_state(
        self, snapshot: base.SnapshotForDriver, state: str, more: Record
    ) -> None:
        key, source_key = SHARE + snapshot['share_name'], SNAPSHOT + snapshot['name']

        def decide(values: Values) -> Values:
            record = require(snapshot['share_id'], values[key])
            source = values[source_key]
            if source is None or source['state'] != State.AVAILABLE:
                raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
            if (
                record['state'] not in (State.AVAILABLE, State.REVERTING)
                or source['subvolume'] != record['subvolume']
            ):
                raise exception.ShareBackendException(
                    msg=f'{snapshot["share_name"]} is {record["state"]} and cannot be '
                    f'reverted to {snapshot["name"]} of {source["subvolume"]}'
                )
            return {key: record | {'state': state} | more}

        self._backend.records.change(key, source_key, decide=decide)


def _check(reply: dict[str, Any]) -> None:
    if reply['code'] != 0:
        raise error_for(reply['code'], 'revert', reply['status'])
