"""Snapshots of the CephFS driver: those of subvolumes.

Shares are reverted in place, under their clients: what differs from the snapshot is
rewritten, see `copies`. Shares stay where they are, so that clients keep their mounts
and open files. The alternative, a clone that takes the place of the share, leaves
clients with the directory that was there before.

The record of the share says that it is being reverted before anything is
changed, and after the process has mounted it. A call that ends on the way leaves
that: the share is in error until another call has completed it.
"""

from collections.abc import Callable

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import (
    MISSING,
    CephfsBackend,
    State,
    owner_key,
    quota_gib,
    refuse_reverting,
    removing_orphan,
    require,
)
from manila_lite.share.drivers.cephfs.cluster import ignoring
from manila_lite.share.drivers.cephfs.copies import CephfsCopies, Snapshot
from manila_lite.share.drivers.cephfs.records import SHARE, SNAPSHOT, Record, Values

SYNC = 'manila-lite-sync-'
"""The prefix of the names of snapshots that replicas are made of."""


class CephfsSnapshots:
    """A snapshot of Ceph each; shares that are cloned from one outlive it."""

    def __init__(self, backend: CephfsBackend, copies: CephfsCopies):
        self._backend = backend
        self._copies = copies

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        return self.create(snapshot)

    def create(
        self, snapshot: base.SnapshotForDriver, size: int | None = None
    ) -> base.SnapshotReply:
        """Do the same with the size in GiB that the share had, if it is a copy."""
        record = self._begin(snapshot, size)
        if record['state'] == State.CREATING:
            self._backend.order(
                'subvolume snapshot create',
                sub_name=record['subvolume'],
                snap_name=record['snapshot'],
            )
            record = self._finish(snapshot, record)
        return _reply(record)

    def reply(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        """Return where a snapshot is, and its size."""
        return _reply(self._backend.get_snapshot(snapshot))

    def _begin(self, snapshot: base.SnapshotForDriver, size: int | None) -> Record:
        """Record that a snapshot is being created, and return the record."""
        share_id = snapshot['share_id']
        share_key = SHARE + snapshot['share_name']
        key = SNAPSHOT + snapshot['name']
        share = self._backend.admit_share(share_id, snapshot['share_name'])
        subvolume = share['subvolume']
        if size is None:
            size = quota_gib(self._backend.get_info(share_id, subvolume))
        owner = owner_key(subvolume, snapshot['name'])

        def decide(values: Values) -> Values:
            present = require(share_id, values[share_key])
            if values[key] is not None:
                return {}
            refuse_reverting(snapshot['share_name'], present)
            if values[owner] is not None:
                raise exception.ShareBackendException(
                    msg=f'snapshot {snapshot["name"]} belongs to {values[owner]}'
                )
            return {
                key: {
                    'state': State.CREATING,
                    'subvolume': subvolume,
                    'snapshot': snapshot['name'],
                    'size': size or share['size'],
                },
                owner: snapshot['name'],
            }

        record = self._backend.records.change(key, owner, share_key, decide=decide)[key]
        if record['state'] in (State.CREATING, State.AVAILABLE):
            return record
        raise exception.ShareBackendException(
            msg=f'snapshot {snapshot["name"]} is {record["state"]}'
        )

    def _finish(self, snapshot: base.SnapshotForDriver, record: Record) -> Record:
        def decide(present: Record | None) -> Record:
            if present is None:
                raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
            is_new = present['state'] == State.CREATING
            return present | ({'state': State.AVAILABLE} if is_new else {})

        owner = owner_key(record['subvolume'], record['snapshot'])
        run = self._backend.run
        with removing_orphan(self._backend, owner, lambda: _remove(run, record)):
            return self._backend.records.update(SNAPSHOT + snapshot['name'], decide)

    def delete_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        """Remove a snapshot; Ceph refuses it while it is being cloned."""
        key = SNAPSHOT + snapshot['name']

        def decide(record: Record | None) -> Record | None:
            if record is None or record['state'] == State.UNMANAGED:
                return record
            return record | {'state': State.DELETING}

        record = self._backend.records.update(key, decide)
        if record is None or record['state'] == State.UNMANAGED:
            return
        _remove(self._backend.order, record)
        owner = owner_key(record['subvolume'], record['snapshot'])
        self._backend.records.change(
            key, owner, decide=lambda values: {key: None, owner: None}
        )

    def get_snapshot_status(self, snapshot: base.SnapshotForDriver) -> base.StatusReply:
        record = self._backend.get_snapshot(snapshot)
        if record['state'] != State.AVAILABLE:
            return {'status': 'error'}
        if not is_there(self._backend, record['subvolume'], record['snapshot']):
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        return {
            **_reply(record),
            'status': 'available',
            'share_proto': snapshot['share_proto'],
        }

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


def _remove(run: Callable[..., str], record: Record) -> None:
    """Remove a snapshot of Ceph if it is there."""
    with ignoring(MISSING):
        run(
            'subvolume snapshot rm',
            sub_name=record['subvolume'],
            snap_name=record['snapshot'],
        )


def _reply(record: Record) -> base.SnapshotReply:
    return {'provider_location': location_of(record), 'size': record['size']}


def location_of(record: Record) -> str:
    """Return where a snapshot is, as its subvolume and its name there."""
    return f'{record["subvolume"]}@{record["snapshot"]}'


def list_snapshots(backend: CephfsBackend, subvolume: str) -> list[str]:
    """Return the names that Ceph has for the snapshots of a subvolume."""
    found = backend.ask('subvolume snapshot ls', sub_name=subvolume)
    return [one['name'] for one in found]


def is_there(backend: CephfsBackend, subvolume: str, snapshot: str) -> bool:
    with ignoring(MISSING):
        backend.ask('subvolume snapshot info', sub_name=subvolume, snap_name=snapshot)
        return True
    return False
