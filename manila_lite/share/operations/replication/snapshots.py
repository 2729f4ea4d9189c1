"""What requests about snapshots find of a share that has replicas.

What is done to a snapshot of such a share depends on what all of its
replicas do, so a request takes them all before it decides on one.
"""

from collections.abc import Iterable, Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import UP_TO_DATE
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import DELETABLE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus

_GOING = frozenset({InstanceStatus.DELETING, InstanceStatus.DEFERRED_DELETING})


class LockedReplicas(typing.NamedTuple):
    """All replicas of a share, which the transaction keeps as they are."""

    share_id: str
    rows: Sequence[typing.Any]

    @property
    def has_several(self) -> bool:
        """Whether drivers are asked in the ways of replication."""
        return len(self.rows) > 1

    @property
    def active(self) -> typing.Any | None:
        """Where snapshots are taken: the active one, the oldest if several."""
        return min(
            (
                row
                for row in self.rows
                if row.replica_state == ReplicaState.ACTIVE and row.host
            ),
            key=lambda row: (row.created_at, row.id),
            default=None,
        )

    @property
    def ids_for_new_snapshot(self) -> list[str]:
        """The ids of those that a new snapshot is to be on.

        Not one for which no place was found: nobody would see to it.
        """
        return [
            row.id
            for row in self.rows
            if row.status not in _GOING
            and (row.host is not None or row.status != InstanceStatus.ERROR)
        ]

    def refuse_during_promotion(self, what: str) -> None:
        """Raise InvalidStatus while one of them is being promoted.

        It is the status that the whole share has then.
        """
        for row in self.rows:
            if row.status == InstanceStatus.REPLICATION_CHANGE:
                raise exception.InvalidStatus(
                    resource='share',
                    id=self.share_id,
                    status=row.status,
                    event=what,
                    allowed=InstanceStatus.AVAILABLE,
                )

    def get_active(self) -> typing.Any:
        """The same; raises ReplicationException when none is active."""
        if self.active is None:
            raise exception.ReplicationException(
                reason=f'share {self.share_id} has no active replica'
            )
        return self.active


def lock_replicas(session: Session, share_id: str) -> LockedReplicas:
    return LockedReplicas(share_id, replicas.lock_instances(session, share_id))


def are_replicated(rows: Iterable[typing.Any]) -> bool:
    """Whether these instances are of a share that may have replicas."""
    return any(row.replica_state is not None for row in rows)


def check_displayed_status(
    snapshot_id: str,
    rows: Sequence[typing.Any],
    allowed: Iterable[str],
    event: str,
) -> None:
    """Raise InvalidStatus unless the snapshot shows one of these."""
    status = snapshots.displayed_status(rows)
    if status not in allowed:
        raise exception.InvalidStatus(
            resource='snapshot',
            id=snapshot_id,
            status=status,
            event=event,
            allowed=', '.join(sorted(allowed)),
        )


def check_deletable(snapshot_id: str, rows: Sequence[typing.Any]) -> None:
    """Raise InvalidStatus while a snapshot is not to be deleted.

    What only waits to reach a replica that has fallen behind, or was not
    removed there, does not keep it from being deleted.
    """
    check_displayed_status(snapshot_id, rows, DELETABLE, 'delete')
    for row in rows:
        if (
            row.replica_state in UP_TO_DATE
            and row.status != SnapshotStatus.DELETING
            and row.status in SNAPSHOT_INSTANCE.in_flight
        ):
            raise exception.InvalidStatus(
                resource='snapshot',
                id=snapshot_id,
                status=row.status,
                event='delete',
                allowed=', '.join(sorted(DELETABLE)),
            )


def deletion_event(row: typing.Any) -> str:
    """The move that deletes an instance, whatever it is waiting for."""
    return (
        'delete'
        if SNAPSHOT_INSTANCE['delete'].can_leave(row.status)
        else 'force_delete'
    )


def instance_for_work(
    rows: Sequence[typing.Any], active: typing.Any
) -> typing.Any:
    """The instance that work about all of them names."""
    return next(
        (row for row in rows if row.share_instance_id == active.id), rows[0]
    )


def status_determining(rows: Sequence[typing.Any]) -> list[typing.Any]:
    """The instances that say what the snapshot is."""
    return [row for row in rows if row.replica_state in UP_TO_DATE] or list(
        rows
    )
