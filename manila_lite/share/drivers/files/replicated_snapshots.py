"""Snapshots of replicated shares.

A snapshot is created on the back end of the active replica; each of the
others copies it from there.
"""

import abc
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ReplicaList,
    SnapshotList,
    instances_on_active,
)

Replica = TypeVar('Replica')
Found = TypeVar('Found', covariant=True)


class Peers(Protocol[Found]):
    """The back ends that have replicas of a share."""

    def reachable_active(self, replica_list: ReplicaList) -> Found | None: ...


class Snapshots(Protocol):
    """What a back end does with snapshots that have no copies."""

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> object: ...

    def delete_snapshot(self, snapshot: base.SnapshotForDriver) -> None: ...

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int | None: ...


class ReplicatedSnapshots(abc.ABC, Generic[Replica]):
    """Snapshots that the back ends of a share copy from the active one."""

    def __init__(self, peers: Peers[Replica], snapshots: Snapshots):
        self._active = peers
        self._snapshots = snapshots

    @abc.abstractmethod
    def _copy(
        self,
        share_replica: base.ShareForDriver,
        active: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Return whether a snapshot exists here; copy it if possible."""

    @abc.abstractmethod
    def _has_snapshot(self, replica: Replica, name: str) -> bool:
        """Return whether the back end of a replica has a snapshot."""

    @abc.abstractmethod
    def _place(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        """Return where a snapshot is on this back end, and its size.

        Raises SnapshotResourceNotFound if it was deleted meanwhile.
        """

    def create_replicated_snapshot(
        self, replica_list: ReplicaList, replica_snapshots: SnapshotList
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        """Create it on the active replica; the other back ends copy it."""
        replies = []
        for snapshot in instances_on_active(replica_snapshots, replica_list):
            self._snapshots.create_snapshot(snapshot)
            replies.append(self._available_reply(snapshot))
        return replies

    def delete_replicated_snapshot(
        self, replica_list: ReplicaList, replica_snapshots: SnapshotList
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        replies: list[base.ReplicatedSnapshotReply] = []
        for snapshot in instances_on_active(replica_snapshots, replica_list):
            self._snapshots.delete_snapshot(snapshot)
            replies.append({'id': snapshot['id'], 'status': 'deleted'})
        return replies

    def update_replicated_snapshot(
        self,
        replica_list: ReplicaList,
        share_replica: base.ShareForDriver,
        replica_snapshots: SnapshotList,
        replica_snapshot: base.SnapshotForDriver,
    ) -> base.ReplicatedSnapshotReply:
        """Copy or delete it; nothing runs in the background."""
        missing = exception.SnapshotResourceNotFound(snapshot_id=replica_snapshot['id'])
        if replica_snapshot['status'] == 'deleting':
            self._snapshots.delete_snapshot(replica_snapshot)
            raise missing
        active = self._active.reachable_active(replica_list)
        source = next(iter(instances_on_active(replica_snapshots, replica_list)), None)
        if self._copy(share_replica, active, source, replica_snapshot):
            return self._available_reply(replica_snapshot)
        if (
            active is not None
            and source is not None
            and source['status'] == 'available'
            and not self._has_snapshot(active, source['name'])
        ):
            raise missing
        return {'id': replica_snapshot['id'], 'status': 'creating'}

    def revert_to_replicated_snapshot(
        self, active_replica_snapshot: base.SnapshotForDriver
    ) -> int | None:
        """Revert the active replica; the others copy the changes as usual."""
        return self._snapshots.revert_to_snapshot(active_replica_snapshot)

    def _available_reply(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ReplicatedSnapshotReply:
        return {
            **self._place(snapshot),
            'id': snapshot['id'],
            'status': 'available',
            'progress': '100%',
        }
