"""Checks for requests about snapshots of shares that have replicas.

What may be done with a snapshot of such a share depends on the state of all
its replicas, so a request locks them all before it decides.
"""

from collections.abc import Iterable, Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import RankedRow, ReplicaRow, SnapshotInstanceRow
from manila_lite.db.session import Session
from manila_lite.states import snapshot_instance
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import LEAVING, UP_TO_DATE, ReplicaState

_BEING_DELETED = frozenset({InstanceStatus.DELETING, InstanceStatus.DEFERRED_DELETING})

Ranked = typing.TypeVar('Ranked', bound=RankedRow)


class LockedReplicas(typing.NamedTuple):
    """All replicas of a share, locked by the transaction."""

    share_id: str
    rows: Sequence[ReplicaRow]

    @property
    def has_several(self) -> bool:
        """Whether the replication methods of the drivers are called."""
        return len(self.rows) > 1

    @property
    def active(self) -> ReplicaRow | None:
        """The active replica that snapshots are taken of.

        The oldest one on a back end; one that stays, if there is any.
        """
        return min(
            (
                row
                for row in self.rows
                if row.replica_state == ReplicaState.ACTIVE and row.host
            ),
            key=lambda row: (row.status in LEAVING, row.created_at, row.id),
            default=None,
        )

    @property
    def ids_for_new_snapshot(self) -> list[str]:
        """The ids of the replicas that a new snapshot gets an instance on.

        A replica that could not be placed is left out: no back end would
        create the instance.
        """
        return [
            row.id
            for row in self.rows
            if row.status not in _BEING_DELETED
            and (row.host is not None or row.status != InstanceStatus.ERROR)
        ]

    def refuse_during_promotion(self, event: str) -> None:
        """Raise InvalidStatus while one of them is being promoted.

        `replication_change` is then displayed as the status of the share.
        """
        for row in self.rows:
            if row.status == InstanceStatus.REPLICATION_CHANGE:
                raise exception.InvalidStatus(
                    resource='share',
                    id=self.share_id,
                    status=row.status,
                    event=event,
                    allowed=InstanceStatus.AVAILABLE,
                )

    def get_active(self) -> ReplicaRow:
        """Return `active`; raises ReplicationException without one."""
        if self.active is None:
            raise exception.ReplicationException(
                reason=f'share {self.share_id} has no active replica'
            )
        return self.active


def lock_replicas(session: Session, share_id: str) -> LockedReplicas:
    """Lock all replicas of a share and return them."""
    return LockedReplicas(share_id, replicas.lock_instances(session, share_id))


def are_replicated(rows: Iterable[RankedRow]) -> bool:
    """Return whether the instances belong to a share with replication."""
    return any(row.replica_state is not None for row in rows)


def check_displayed_status(
    snapshot_id: str, rows: Sequence[RankedRow], allowed: Iterable[str], event: str
) -> None:
    """Raise InvalidStatus unless the displayed status is allowed."""
    status = snapshots.displayed_status(rows)
    if status is None or status not in allowed:
        raise exception.InvalidStatus(
            resource='snapshot',
            id=snapshot_id,
            status=status,
            event=event,
            allowed=', '.join(sorted(allowed)),
        )


def check_deletable(snapshot_id: str, rows: Sequence[SnapshotInstanceRow]) -> None:
    """Raise InvalidStatus while a snapshot must not be deleted.

    An instance on a replica that is out of sync, still to be created or not
    removed there, does not prevent the deletion.
    """
    check_displayed_status(snapshot_id, rows, snapshot_instance.DELETABLE, 'delete')
    for row in rows:
        if (
            row.replica_state in UP_TO_DATE
            and row.status != snapshot_instance.SnapshotStatus.DELETING
            and row.status in snapshot_instance.SNAPSHOT_INSTANCE.in_flight
        ):
            raise exception.InvalidStatus(
                resource='snapshot',
                id=snapshot_id,
                status=row.status,
                event='delete',
                allowed=', '.join(sorted(snapshot_instance.DELETABLE)),
            )


def deletion_event(row: SnapshotInstanceRow) -> str:
    """Return the move that deletes an instance from its present status."""
    return (
        'delete'
        if snapshot_instance.SNAPSHOT_INSTANCE['delete'].can_leave(row.status)
        else 'force_delete'
    )


def instance_for_work(
    rows: Sequence[SnapshotInstanceRow], active: ReplicaRow
) -> SnapshotInstanceRow:
    """Return the instance that the work about all of them is filed under."""
    return next((row for row in rows if row.share_instance_id == active.id), rows[0])


def status_determining(rows: Sequence[Ranked]) -> list[Ranked]:
    """Return the instances that determine the status of the snapshot."""
    return [row for row in rows if row.replica_state in UP_TO_DATE] or list(rows)
