"""Reverting shares of the CephFS driver in place, under their clients.

What differs from the snapshot is rewritten, see `copies`. Shares stay where they are,
so that clients keep their mounts and open files. The alternative, a clone that takes
the place of the share, leaves clients with the directory that was there before.

The record of the share says that it is being reverted before anything is
changed, and after the process has mounted it. A call that ends on the way leaves
that: the share is in error until another call has completed it.
"""

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import CephfsBackend, State, require
from manila_lite.share.drivers.cephfs.copies import CephfsCopies, Snapshot
from manila_lite.share.drivers.cephfs.records import SHARE, SNAPSHOT, Record, Values
from manila_lite.share.drivers.cephfs.snapshots import is_there


class CephfsReverts:
    def __init__(self, backend: CephfsBackend, copies: CephfsCopies):
        self._backend = backend
        self._copies = copies

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int:
        """Give the share the content and the size of the snapshot."""
        source = self._backend.get_snapshot(snapshot)
        if not is_there(self._backend, source['subvolume'], source['snapshot']):
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        key = SHARE + snapshot['share_name']
        record = require(snapshot['share_id'], self._backend.records.get(key))
        wanted = Snapshot(self._backend, record, source['snapshot'])
        with self._copies.prepared(record, wanted) as copy:
            self._set_state(snapshot, State.REVERTING, {})
            copy.run()
        self._backend.resize(record['subvolume'], source['size'])
        self._set_state(snapshot, State.AVAILABLE, {'size': source['size']})
        return source['size']

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
