"""Outcomes of driver replies about replicas, as pure functions."""

from collections.abc import Collection, Iterator, Mapping
import datetime
import typing

from manila_lite import exception
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import (
    PROMOTABLE,
    UP_TO_DATE,
    WRITABLE,
    ReplicaState,
)
from manila_lite.states.snapshot_instance import (
    BEING_DELETED,
    DELETION_FAILURES,
    SnapshotStatus,
)

FAILED = object()
"""Stands for the state of a replica about which the driver raised."""

_EVENTS: dict[str | None, str] = {
    ReplicaState.IN_SYNC: 'caught_up',
    ReplicaState.OUT_OF_SYNC: 'fell_behind',
    ReplicaState.ERROR: 'failed',
    ReplicaState.ACTIVE: 'activated',
}
# Tuples: a driver may reply with something that has no hash.
_FOLLOWING = (ReplicaState.IN_SYNC, ReplicaState.OUT_OF_SYNC)
_REPORTED = (*_FOLLOWING, ReplicaState.ACTIVE, ReplicaState.ERROR)
HEALTHY = frozenset(
    {ReplicaState.IN_SYNC, ReplicaState.OUT_OF_SYNC, ReplicaState.ACTIVE}
)

_CREATION_EVENTS: dict[str | None, str] = {
    SnapshotStatus.AVAILABLE: 'created',
    SnapshotStatus.ERROR: 'create_failed',
    'deleted': 'create_failed',
}
_DELETION_EVENTS: dict[str | None, str] = {
    'deleted': 'deleted',
    SnapshotStatus.ERROR: 'delete_failed',
    SnapshotStatus.ERROR_DELETING: 'delete_failed',
}
_DEFERRED_DELETION_EVENTS: dict[str | None, str] = {
    reported: f'deferred_{event}' for reported, event in _DELETION_EVENTS.items()
}
"""Events by the status that a driver reports of a snapshot."""

POLLED = BEING_DELETED | {SnapshotStatus.CREATING}


class DriverReply(typing.NamedTuple):
    """What a driver has returned or raised."""

    value: typing.Any = None
    error: Exception | None = None


class Transitions(typing.NamedTuple):
    """The events to fire for a replica, None for no event."""

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


# The state of a replica


def split_state_reply(
    reply: DriverReply,
) -> tuple[DriverReply, datetime.datetime | None]:
    """Return the reply with the state alone, and the time of the last sync.

    That is without a zone, or None if the driver does not know it.
    """
    if not isinstance(reply.value, Mapping):
        return reply, None
    synced_at = reply.value.get('synced_at')
    if not isinstance(synced_at, datetime.datetime):
        synced_at = None
    elif synced_at.tzinfo is not None:
        synced_at = synced_at.astimezone(datetime.UTC).replace(tzinfo=None)
    return reply._replace(value=reply.value.get('replica_state')), synced_at


def reported_state(reply: DriverReply, replication_type: str | None) -> typing.Any:
    """Return the reported state, None for no news, or FAILED.

    A replica that is active on the back end, contrary to its row, is in
    error until that is corrected.
    """
    if reply.error is not None:
        return None if _is_unsupported(reply, replication_type) else FAILED
    if claims_active_role(reply, replication_type):
        return ReplicaState.ERROR
    return reply.value if reply.value in _REPORTED else None


def claims_active_role(reply: DriverReply, replication_type: str | None) -> bool:
    """Return whether a passive replica is active on its back end.

    Several may be, if the type is writable.
    """
    return replication_type in PROMOTABLE and reply.value == ReplicaState.ACTIVE


def denies_active_role(reply: DriverReply) -> bool:
    """Return whether the active replica is passive on its back end."""
    return isinstance(reply.value, Mapping) and (
        reply.value.get('replica_state') in _FOLLOWING
    )


def transitions_for(
    status: str, state: str | None, reported: typing.Any, missing: Collection[str]
) -> Transitions:
    """Return the events that follow from the reported state of a replica.

    `missing` are snapshots that other replicas have and this one lacks:
    it is then not in sync, whatever the driver reports.
    """
    if reported is FAILED:
        return Transitions(
            'replica_failed' if status == InstanceStatus.AVAILABLE else None,
            'failed' if state != ReplicaState.ERROR else None,
        )
    wanted = state if reported is None else reported
    if wanted in UP_TO_DATE and missing:
        wanted = ReplicaState.OUT_OF_SYNC
    heals = status == InstanceStatus.ERROR and reported in HEALTHY
    return Transitions(
        'replica_healed' if heals else None,
        _EVENTS[wanted] if wanted != state else None,
    )


def missing_snapshots(view: ReplicatedShare, replica_id: str) -> set[str]:
    """Return ids of snapshots that all other replicas have, not this one."""
    return view.complete_snapshots(excluding=replica_id) - {
        one.row.snapshot_id
        for one in view.snapshots_on(replica_id)
        if one.row.status == SnapshotStatus.AVAILABLE
    }


# The state of its snapshots


class SnapshotOutcome(typing.NamedTuple):
    """The event to fire for a snapshot instance, and values to store.

    `explanation` says why it has failed, for administrators.
    """

    event: str | None = None
    values: Mapping[str, typing.Any] = {}
    explanation: str | None = None

    @property
    def failed(self) -> bool:
        return self.event in ('create_failed', *DELETION_FAILURES.values())


def pending_snapshots(
    view: ReplicatedShare, replica_id: str
) -> Iterator[LoadedSnapshot]:
    """Yield the snapshots of a replica that the driver is polled about.

    A snapshot is skipped while its instance on the active replica is
    still in the same status.
    """
    active = view.active
    on_active = (
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
            and on_active.get(one.row.snapshot_id) != one.row.status
        ):
            yield one


def snapshot_outcome(
    status: str, reply: DriverReply, replication_type: str | None = None
) -> SnapshotOutcome:
    """Return what a reply means for a snapshot that is in `status`."""
    if reply.error is not None and _is_unsupported(reply, replication_type):
        return SnapshotOutcome()
    gone = isinstance(reply.error, exception.SnapshotResourceNotFound)
    if status in BEING_DELETED:
        events = (
            _DELETION_EVENTS
            if status == SnapshotStatus.DELETING
            else _DEFERRED_DELETION_EVENTS
        )
        return SnapshotOutcome(events.get('deleted' if gone else _parse(reply)[0]))
    reported, values = _parse(reply)
    return SnapshotOutcome(_CREATION_EVENTS.get(reported), values)


def _parse(reply: DriverReply) -> tuple[str | None, Mapping[str, typing.Any]]:
    """Return the reported status and all reported values."""
    if reply.error is not None:
        return SnapshotStatus.ERROR, {}
    if reply.value is None:
        return None, {}
    if not isinstance(reply.value, Mapping):
        return SnapshotStatus.ERROR, {}
    status = reply.value.get('status')
    return status if isinstance(status, str) else None, reply.value


def _is_unsupported(reply: DriverReply, replication_type: str | None) -> bool:
    """Return whether the driver lacks a method that is optional for it."""
    return replication_type == WRITABLE and isinstance(reply.error, NotImplementedError)
