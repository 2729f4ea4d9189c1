"""What answers about replicas mean: pure, so that every case is a row."""

from collections.abc import Collection, Iterator, Mapping
import typing

from manila_lite import exception
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import UP_TO_DATE
from manila_lite.states.share_replica import WRITABLE
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SnapshotStatus

FAILED = object()
"""The answer of a driver that raises."""

_EVENTS = {
    ReplicaState.IN_SYNC: 'caught_up',
    ReplicaState.OUT_OF_SYNC: 'fell_behind',
    ReplicaState.ERROR: 'failed',
    ReplicaState.ACTIVE: 'activated',
}
HEALTHY = frozenset(
    {ReplicaState.IN_SYNC, ReplicaState.OUT_OF_SYNC, ReplicaState.ACTIVE}
)

POLLED = frozenset({SnapshotStatus.CREATING, SnapshotStatus.DELETING})


class DriverReply(typing.NamedTuple):
    """What a driver answered, or raised."""

    value: typing.Any = None
    error: Exception | None = None


class Transitions(typing.NamedTuple):
    """What is to be fired about a replica; None is nothing."""

    status: str | None = None
    state: str | None = None

    @property
    def healed(self) -> bool:
        return self.status == 'replica_healed'

    @property
    def failed(self) -> bool:
        return 'failed' in (self.state, self.status) or (
            self.status == 'replica_failed'
        )


# How a replica is


def reported_state(
    said: DriverReply, replication_type: str | None
) -> typing.Any:
    """The state that an answer tells, None for no news, or FAILED."""
    if said.error is not None:
        return None if _is_lacking(said, replication_type) else FAILED
    told = [ReplicaState.IN_SYNC, ReplicaState.OUT_OF_SYNC, ReplicaState.ERROR]
    if replication_type == WRITABLE:
        told.append(ReplicaState.ACTIVE)
    return said.value if said.value in told else None


def transitions_for(
    status: str, state: str, answer: typing.Any, missing: Collection[str]
) -> Transitions:
    """What follows for a replica from an answer about it.

    `missing` are the snapshots that it lacks and others have: without
    them nothing is in sync, whatever the driver says.
    """
    if answer is FAILED:
        return Transitions(
            'replica_failed' if status == InstanceStatus.AVAILABLE else None,
            'failed' if state != ReplicaState.ERROR else None,
        )
    wanted = state if answer is None else answer
    if wanted in UP_TO_DATE and missing:
        wanted = ReplicaState.OUT_OF_SYNC
    heals = status == InstanceStatus.ERROR and answer in HEALTHY
    return Transitions(
        'replica_healed' if heals else None,
        _EVENTS[wanted] if wanted != state else None,
    )


def missing_snapshots(view: ReplicatedShare, replica_id: str) -> set[str]:
    """Snapshots that are complete but for this replica, which has not."""
    return view.complete(but=replica_id) - {
        one.row.snapshot_id
        for one in view.snapshots_on(replica_id)
        if one.row.status == SnapshotStatus.AVAILABLE
    }


# How its snapshots are


class SnapshotOutcome(typing.NamedTuple):
    """What is to be fired about a snapshot instance, and to be noted."""

    event: str | None = None
    values: Mapping[str, typing.Any] = {}

    @property
    def failed(self) -> bool:
        return self.event in ('create_failed', 'delete_failed')


def pending_snapshots(
    view: ReplicatedShare, replica_id: str
) -> Iterator[typing.Any]:
    """The snapshots of a replica that are to be asked about.

    As long as that of the active replica is still being worked on there
    is nothing to be told of others.
    """
    active = view.active
    first = (
        {}
        if active is None
        else {
            one.row.snapshot_id: one.row.status
            for one in view.snapshots_on(active.row.id)
        }
    )
    for one in view.snapshots_on(replica_id):
        if (
            one.row.status in POLLED
            and first.get(one.row.snapshot_id) != one.row.status
        ):
            yield one


def snapshot_outcome(
    status: str, said: DriverReply, replication_type: str | None = None
) -> SnapshotOutcome:
    """What an answer says about a snapshot that is `status`."""
    if said.error is not None and _is_lacking(said, replication_type):
        return SnapshotOutcome()
    gone = isinstance(said.error, exception.SnapshotResourceNotFound)
    if status == SnapshotStatus.DELETING:
        if gone:
            return SnapshotOutcome('deleted')
        told, values = _told(said)
        return SnapshotOutcome(
            {
                'deleted': 'deleted',
                'error': 'delete_failed',
                'error_deleting': 'delete_failed',
            }.get(told)
        )
    told, values = _told(said)
    return SnapshotOutcome(
        {
            'available': 'created',
            'error': 'create_failed',
            'deleted': 'create_failed',
        }.get(told),
        values,
    )


def _told(said: DriverReply) -> tuple[str | None, Mapping[str, typing.Any]]:
    """The status of an answer, and what else it says."""
    if said.error is not None:
        return 'error', {}
    if said.value is None:
        return None, {}
    if not isinstance(said.value, Mapping):
        return 'error', {}
    status = said.value.get('status')
    return status if isinstance(status, str) else None, said.value


def _is_lacking(said: DriverReply, replication_type: str | None) -> bool:
    """Whether the driver need not be able to answer."""
    return replication_type == WRITABLE and isinstance(
        said.error, NotImplementedError
    )
