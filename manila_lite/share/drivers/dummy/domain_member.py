"""Dummy back ends that hold replicas of each other's shares.

They find each other in the directory of their replication domain, whether
they belong to one share service or to several.
"""

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.replication_domain import (
    ACTIVE,
    WRITABLE,
    ReplicaSet,
    ReplicationDomain,
    describe_replica,
    is_synced,
)
from manila_lite.share.drivers.dummy.state import DummyState

_REPLICA_FIELDS = frozenset({'replica_of', 'version', 'epoch', 'updates_left'})
# Record fields that are copied from replica to replica.
_REPLICATED_FIELDS = ('size', 'content', 'used_gb', 'version')


class DomainMember:
    """A back end in its replication domain, or one without replication."""

    def __init__(self, backend: DummyBackend):
        self._backend = backend
        self.replication_type = backend.replication_type

    def change_content(self, share_id: str, content: str, used_gb: float) -> None:
        """Write as users of a share do; raises if they could not."""
        if self._backend.state.is_unreachable():
            raise exception.ShareBackendException(
                msg=f'share {share_id} is unreachable'
            )
        record = self.current_record(share_id)
        if self.role(share_id, record) != ACTIVE:
            raise exception.ShareBackendException(
                msg=f'share {share_id} is not an active replica'
            )
        self.put_replicated(
            share_id,
            record
            | {'content': content, 'used_gb': used_gb, **self.next_version(record)},
        )

    # Membership

    def register(self) -> None:
        """Register the back end with its domain."""
        if self._backend.domain is not None:
            with self._backend.lock:
                self._backend.domain.register(
                    self._backend.state, self.replication_type
                )

    def require_domain(self) -> ReplicationDomain:
        """Return the domain of a back end that replicates."""
        if self._backend.domain is None:
            raise NotImplementedError
        return self._backend.domain

    def replica_fields(self, share: base.ShareForDriver) -> records.Record:
        """Return the record fields of a share that may have replicas.

        Such a share is added to its replica set.
        """
        if self._backend.domain is None or share['replica_state'] is None:
            return {}
        replica_set = self._join(
            share['share_id'], share['id'], share['replica_state'] == ACTIVE
        )
        return {
            'replica_of': share['share_id'],
            'version': 0,
            'epoch': replica_set.epoch,
        }

    def _join(self, share_id: str, replica_id: str, active: bool) -> ReplicaSet:
        domain = self.require_domain()
        replica_set = domain.find(share_id) or ReplicaSet(active=None)
        if replica_id not in replica_set.members:
            replica_set = replica_set._replace(
                members=[*replica_set.members, replica_id]
            )
        if (
            active
            and self.replication_type != WRITABLE
            and replica_set.active is None
            and replica_set.previous in (None, replica_id)
        ):
            # An abandoned promotion is undone: no client could write
            # since.
            replica_set = replica_set._replace(active=replica_id, previous=None)
        domain.put(share_id, replica_set)
        return replica_set

    def leave(self, share: base.ShareForDriver) -> None:
        if self._backend.domain is not None:
            self._backend.domain.remove_replica(share['share_id'], share['id'])

    def join_replica_set(
        self, replica_list: list[base.ShareForDriver], replica: base.ShareForDriver
    ) -> ReplicaSet:
        """Add a replica, and all active ones, to the replica set.

        The active ones may have been created or managed as plain shares.
        """
        domain = self.require_domain()
        for each in replica_list:
            if each['replica_state'] != ACTIVE:
                continue
            self._join(each['share_id'], each['id'], True)
            backend = domain.find_state_of(each['id'])
            record = backend.shares.find(each['id']) if backend else None
            if backend and record and 'replica_of' not in record:
                backend.shares.put(
                    each['id'],
                    record | {'replica_of': each['share_id'], 'version': 0, 'epoch': 0},
                )
        return self._join(replica['share_id'], replica['id'], False)

    def role(self, share_id: str, record: records.Record) -> str:
        if self._backend.domain is None or 'replica_of' not in record:
            return ACTIVE
        return describe_replica(
            self._backend.domain.find(record['replica_of']),
            share_id,
            record,
            self.replication_type,
        ).role

    def get_snapshot(self, snapshot_id: str) -> records.Record:
        """Return a snapshot of this back end, or of another in its domain.

        Raises SnapshotResourceNotFound if no reachable one has it.
        """
        domain = self._backend.domain
        if self._backend.state.snapshots.find(snapshot_id) is None and domain:
            found = domain.find_snapshot(snapshot_id)
            if found is not None:
                return found
        return self._backend.get_snapshot(snapshot_id)

    # Copying between replicas

    def source_of(
        self, replica_set: ReplicaSet, excluding: str | None = None
    ) -> tuple[DummyState, str] | None:
        """Return the replica with the current content, if reachable.

        Of writable replicas, `excluding` is not considered: it may have the
        current content itself and lack only snapshots.
        """
        if self.replication_type == WRITABLE:
            return self._most_recent(replica_set, excluding)
        leading = replica_set.active or replica_set.previous
        backend = leading and self.require_domain().find_state_of(leading)
        if not backend or not leading or _is_unusable(backend, leading):
            return None
        return backend, leading

    def _most_recent(
        self, replica_set: ReplicaSet, excluding: str | None
    ) -> tuple[DummyState, str] | None:
        """Return the writable replica that has all changes.

        If no replica is known to have all, return the one with the most,
        unless another might have more.
        """
        best: tuple[tuple[int, int], DummyState, str] | None = None
        seen = 0  # by an unusable or unreachable replica
        for each in replica_set.members:
            if each == excluding:
                continue
            backend = self.require_domain().find_state_of(each)
            if backend is None:
                seen = replica_set.epoch
                continue
            record = self.source_record((backend, each))
            if record.get('epoch') is None:
                continue
            if _is_unusable(backend, each):
                seen = max(seen, record['epoch'])
                continue
            rank = record['epoch'], record['version']
            if best is None or rank > best[0]:
                best = rank, backend, each
        return best[1:] if best is not None and best[0][0] >= seen else None

    def source_record(self, source: tuple[DummyState, str]) -> records.Record:
        backend, id = source
        record = backend.shares.find(id)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=id)
        return record

    def next_version(self, record: records.Record) -> records.Record:
        """Return the next version, for a share that has one."""
        return {'version': record['version'] + 1} if 'version' in record else {}

    def current_record(self, share_id: str) -> records.Record:
        """Return the record of a share that is about to change.

        Raises if it is a writable replica that lacks changes of others which
        cannot be obtained now.
        """
        self.catch_up(share_id)
        record = self._backend.get_share(share_id)
        if self.replication_type == WRITABLE and self.role(share_id, record) != ACTIVE:
            raise exception.ShareBackendException(
                msg=f'share {share_id} lacks changes of its other replicas'
            )
        return record

    def put_replicated(self, share_id: str, record: records.Record) -> None:
        """Change a share and all writable replicas of it.

        Replicas that are not changed, because the process is killed or they
        are unreachable, are outdated afterwards.
        """
        if self.replication_type != WRITABLE or 'replica_of' not in record:
            if record != self._backend.state.shares.find(share_id):
                self._backend.state.shares.put(share_id, record)
            return
        domain, share = self.require_domain(), record['replica_of']
        replica_set = domain.find(share) or ReplicaSet(None, members=[share_id])
        backends = [(each, domain.find_state_of(each)) for each in replica_set.members]
        copies = [
            (each, backend, copy)
            for each, backend in backends
            if backend
            and (copy := backend.shares.find(each))
            and copy.get('epoch') is not None
        ]
        if record == self._backend.state.shares.find(share_id) and all(
            with_replicated_fields(copy, record) == copy for _, _, copy in copies
        ):
            return
        replica_set = replica_set._replace(epoch=replica_set.epoch + 1)
        domain.put(share, replica_set)
        new_epoch = {'epoch': replica_set.epoch}
        self._backend.state.shares.put(share_id, record | new_epoch)
        for each, backend, copy in copies:
            if each != share_id:
                backend.shares.put(
                    each, with_replicated_fields(copy, record) | new_epoch
                )

    def catch_up(self, share_id: str) -> None:
        """Update an outdated writable replica from the others."""
        record = self._backend.get_share(share_id)
        if (
            self.replication_type != WRITABLE
            or 'replica_of' not in record
            or record['epoch'] is None
        ):
            return
        replica_set = self.require_domain().find(record['replica_of'])
        if replica_set is None or is_synced(record, replica_set):
            return
        source = self.source_of(replica_set)
        if source is not None:
            self._backend.state.shares.put(
                share_id,
                with_replicated_fields(record, self.source_record(source))
                | {'epoch': replica_set.epoch},
            )


def with_replicated_fields(
    record: records.Record, leading: records.Record
) -> records.Record:
    """Return a replica's record with the replicated fields of its source."""
    return record | {name: leading[name] for name in _REPLICATED_FIELDS}


def _is_unusable(backend: DummyState, replica_id: str) -> bool:
    record = backend.shares.find(replica_id)
    return record is None or record['status'] != 'available'


def without_replica_fields(record: records.Record) -> records.Record:
    """Return the record of a share that is no longer a replica."""
    return {
        name: value for name, value in record.items() if name not in _REPLICA_FIELDS
    }
