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
from manila_lite.states.share_instance import S as ShareS
from manila_lite.states.share_replica import COUNTING
from manila_lite.states.share_replica import P
from manila_lite.states.snapshot_instance import DELETABLE
from manila_lite.states.snapshot_instance import MACHINE
from manila_lite.states.snapshot_instance import S

_GOING = frozenset({ShareS.DELETING, ShareS.DEFERRED_DELETING})


class Replicas(typing.NamedTuple):
    """All replicas of a share, which the transaction keeps as they are."""

    share_id: str
    rows: Sequence[typing.Any]

    @property
    def are_several(self) -> bool:
        """Whether drivers are asked in the ways of replication."""
        return len(self.rows) > 1

    @property
    def active(self) -> typing.Any | None:
        """Where snapshots are taken: the active one, the oldest if several."""
        return min(
            (
                row
                for row in self.rows
                if row.replica_state == P.ACTIVE and row.host
            ),
            key=lambda row: (row.created_at, row.id),
            default=None,
        )

    @property
    def staying(self) -> list[str]:
        """The ids of those that a new snapshot is to be on.

        Not one for which no place was found: nobody would see to it.
        """
        return [
            row.id
            for row in self.rows
            if row.status not in _GOING
            and (row.host is not None or row.status != ShareS.ERROR)
        ]

    def refuse_change(self, what: str) -> None:
        """Raise InvalidStatus while one of them is being promoted.

        It is the status that the whole share has then.
        """
        for row in self.rows:
            if row.status == ShareS.REPLICATION_CHANGE:
                raise exception.InvalidStatus(
                    resource='share',
                    id=self.share_id,
                    status=row.status,
                    event=what,
                    allowed=ShareS.AVAILABLE,
                )

    def get_active(self) -> typing.Any:
        """The same; raises ReplicationException when none is active."""
        if self.active is None:
            raise exception.ReplicationException(
                reason=f'share {self.share_id} has no active replica'
            )
        return self.active


def take(session: Session, share_id: str) -> Replicas:
    return Replicas(share_id, replicas.take(session, share_id))


def are_replicated(rows: Iterable[typing.Any]) -> bool:
    """Whether these instances are of a share that may have replicas."""
    return any(row.replica_state is not None for row in rows)


def check_shown(
    snapshot_id: str,
    rows: Sequence[typing.Any],
    allowed: Iterable[str],
    event: str,
) -> None:
    """Raise InvalidStatus unless the snapshot shows one of these."""
    status = snapshots.shown_status(rows)
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
    check_shown(snapshot_id, rows, DELETABLE, 'delete')
    for row in rows:
        if (
            row.replica_state in COUNTING
            and row.status != S.DELETING
            and row.status in MACHINE.in_flight
        ):
            raise exception.InvalidStatus(
                resource='snapshot',
                id=snapshot_id,
                status=row.status,
                event='delete',
                allowed=', '.join(sorted(DELETABLE)),
            )


def event_of(row: typing.Any) -> str:
    """The move that deletes an instance, whatever it is waiting for."""
    return 'delete' if MACHINE['delete'].leaves(row.status) else 'force_delete'


def about(rows: Sequence[typing.Any], active: typing.Any) -> typing.Any:
    """The instance that work about all of them names."""
    return next(
        (row for row in rows if row.share_instance_id == active.id), rows[0]
    )


def speaking(rows: Sequence[typing.Any]) -> list[typing.Any]:
    """The instances that say what the snapshot is."""
    return [row for row in rows if row.replica_state in COUNTING] or list(rows)
