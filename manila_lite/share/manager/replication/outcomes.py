"""What answers about replicas mean: pure, so that every case is a row."""

from collections.abc import Collection, Iterator, Mapping
import typing

from manila_lite import exception
from manila_lite.share.manager.driver_view.replica_view import Replicated
from manila_lite.states.share_instance import S
from manila_lite.states.share_replica import COUNTING
from manila_lite.states.share_replica import WRITABLE
from manila_lite.states.share_replica import P
from manila_lite.states.snapshot_instance import S as SnapshotS

FAILED = object()
"""The answer of a driver that raises."""

_EVENTS = {
    P.IN_SYNC: 'caught_up',
    P.OUT_OF_SYNC: 'fell_behind',
    P.ERROR: 'failed',
    P.ACTIVE: 'activated',
}
HEALTHY = frozenset({P.IN_SYNC, P.OUT_OF_SYNC, P.ACTIVE})

POLLED = frozenset({SnapshotS.CREATING, SnapshotS.DELETING})


class Said(typing.NamedTuple):
    """What a driver answered, or raised."""

    value: typing.Any = None
    error: Exception | None = None


class Moves(typing.NamedTuple):
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


def state_of(said: Said, replication_type: str | None) -> typing.Any:
    """The state that an answer tells, None for no news, or FAILED."""
    if said.error is not None:
        return None if _is_lacking(said, replication_type) else FAILED
    told = [P.IN_SYNC, P.OUT_OF_SYNC, P.ERROR]
    if replication_type == WRITABLE:
        told.append(P.ACTIVE)
    return said.value if said.value in told else None


def moves(
    status: str, state: str, answer: typing.Any, missing: Collection[str]
) -> Moves:
    """What follows for a replica from an answer about it.

    `missing` are the snapshots that it lacks and others have: without
    them nothing is in sync, whatever the driver says.
    """
    if answer is FAILED:
        return Moves(
            'replica_failed' if status == S.AVAILABLE else None,
            'failed' if state != P.ERROR else None,
        )
    wanted = state if answer is None else answer
    if wanted in COUNTING and missing:
        wanted = P.OUT_OF_SYNC
    heals = status == S.ERROR and answer in HEALTHY
    return Moves(
        'replica_healed' if heals else None,
        _EVENTS[wanted] if wanted != state else None,
    )


def missing(view: Replicated, replica_id: str) -> set[str]:
    """Snapshots that are complete but for this replica, which has not."""
    return view.complete(but=replica_id) - {
        one.row.snapshot_id
        for one in view.snapshots_on(replica_id)
        if one.row.status == SnapshotS.AVAILABLE
    }


# How its snapshots are


class SnapshotNews(typing.NamedTuple):
    """What is to be fired about a snapshot instance, and to be noted."""

    event: str | None = None
    values: Mapping[str, typing.Any] = {}

    @property
    def failed(self) -> bool:
        return self.event in ('create_failed', 'delete_failed')


def pending(view: Replicated, replica_id: str) -> Iterator[typing.Any]:
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


def news_of(
    status: str, said: Said, replication_type: str | None = None
) -> SnapshotNews:
    """What an answer says about a snapshot that is `status`."""
    if said.error is not None and _is_lacking(said, replication_type):
        return SnapshotNews()
    gone = isinstance(said.error, exception.SnapshotResourceNotFound)
    if status == SnapshotS.DELETING:
        if gone:
            return SnapshotNews('deleted')
        told, values = _told(said)
        return SnapshotNews(
            {
                'deleted': 'deleted',
                'error': 'delete_failed',
                'error_deleting': 'delete_failed',
            }.get(told)
        )
    told, values = _told(said)
    return SnapshotNews(
        {
            'available': 'created',
            'error': 'create_failed',
            'deleted': 'create_failed',
        }.get(told),
        values,
    )


def _told(said: Said) -> tuple[str | None, Mapping[str, typing.Any]]:
    """The status of an answer, and what else it says."""
    if said.error is not None:
        return 'error', {}
    if said.value is None:
        return None, {}
    if not isinstance(said.value, Mapping):
        return 'error', {}
    status = said.value.get('status')
    return status if isinstance(status, str) else None, said.value


def _is_lacking(said: Said, replication_type: str | None) -> bool:
    """Whether the driver need not be able to answer."""
    return replication_type == WRITABLE and isinstance(
        said.error, NotImplementedError
    )
