"""Snapshots of replicated shares.

A snapshot is created on the back end of the active replica; each of the
others copies it from there.
"""

import abc
from collections.abc import Sequence
from typing import Generic, Protocol

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ReplicaList,
    SnapshotList,
    instances_on_active,
)
from manila_lite.share.drivers.files.replicas import Peers, R

LOG = log.getLogger(__name__)


class Snapshots(Protocol):
    """What a back end does with snapshots that have no copies."""

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> object: ...

    def delete_snapshot(self, snapshot: base.SnapshotForDriver) -> None: ...

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int | None: ...

    def reply(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        """Return where a snapshot is on this back end, and its size.

        Raises SnapshotResourceNotFound.
        """
        ...


class ReplicatedSnapshots(abc.ABC, Generic[R]):
    """Snapshots that the back ends of a share copy from the active one."""

    def __init__(self, peers: Peers[R], snapshots: Snapshots):
        self._replicas = peers
        self._snapshots = snapshots

    @abc.abstractmethod
    def _copy_snapshot(
        self, own: R, leader: R, source: str, snapshot: base.SnapshotForDriver
    ) -> bool:
        """Copy a snapshot of the leader; return False if it does not have it."""

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
        active = self._replicas.reachable_active(replica_list)
        source = next(iter(instances_on_active(replica_snapshots, replica_list)), None)
        own = self._replicas.own_replica(share_replica)
        with own.copying() as is_free:
            if is_free and self._ensure(own, active, source, replica_snapshot):
                return self._available_reply(replica_snapshot)
        if (
            active is not None
            and source is not None
            and source['status'] == 'available'
            and not active.has_snapshot(source['name'])
        ):
            raise missing
        return {'id': replica_snapshot['id'], 'status': 'creating'}

    def _ensure(
        self,
        own: R,
        leader: R | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Return whether a snapshot exists here; copy it if possible.

        The caller has locked the content of our replica.
        """
        name = snapshot['name']
        if own.has_snapshot(name):
            return True
        if leader is None or source is None or own.find() is None:
            return False
        try:
            return self._copy_snapshot(own, leader, source['name'], snapshot)
        except exception.StaleFencingToken:
            raise
        except (OSError, exception.DriverError) as error:
            LOG.warning(
                'Cannot copy snapshot %(name)s: %(error)s',
                {'name': name, 'error': error},
            )
        return False

    def revert_to_replicated_snapshot(
        self, active_replica_snapshot: base.SnapshotForDriver
    ) -> int | None:
        """Revert the active replica; the others copy the changes as usual."""
        return self._snapshots.revert_to_snapshot(active_replica_snapshot)

    def _available_reply(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ReplicatedSnapshotReply:
        return {
            **self._snapshots.reply(snapshot),
            'id': snapshot['id'],
            'status': 'available',
            'progress': '100%',
        }
