"""What requests about a share must know of its replicas.

Who may have another replica made, promoted or removed takes all of them
first. So does who acts on the share as a whole: what is found then is so
until the end of the transaction.
"""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Session
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import ReplicaState

_UNSETTLED = frozenset(
    {InstanceStatus.REPLICATION_CHANGE, InstanceStatus.CREATING}
)


class ResizeTarget(typing.NamedTuple):
    """The instance to act upon, and how many replicas the share has.

    None, where it cannot have any.
    """

    instance_id: str
    replicas: int


def lock_for_resize(
    session: Session, share: typing.Any, event: str
) -> ResizeTarget:
    """The copies of a share whose size is to change.

    Raises InvalidStatus while one is being promoted, or made: the back end
    has been told the size that the share has now. `share` is a row of
    `shares.target`; another replica may have become active since.
    """
    if share.replica_state is None:
        return ResizeTarget(share.instance_id, 0)
    taken = replicas.lock_instances(session, share.id)
    for row in taken:
        if row.status in _UNSETTLED:
            raise exception.InvalidStatus(
                resource='share instance',
                id=row.id,
                status=row.status,
                event=event,
                allowed=InstanceStatus.AVAILABLE,
            )
    return ResizeTarget(get_active(taken, share.id).id, len(taken))


def get_active(taken: Sequence[typing.Any], share_id: str) -> typing.Any:
    """The oldest active replica; raises InvalidShare if there is none."""
    active = [row for row in taken if row.replica_state == ReplicaState.ACTIVE]
    if not active:
        raise exception.InvalidShare(
            reason=f'share {share_id} has no active replica'
        )
    return min(active, key=lambda row: (row.created_at, row.id))


def refuse_replicas(
    session: Session, share: typing.Any
) -> Sequence[typing.Any]:
    """The instances of a share; raises ShareHasReplicas.

    `share` is a row of `shares.target`. One that has a single replica has
    no other until the end of the transaction.
    """
    if share.replica_state is not None:
        replicas.lock_instances(session, share.id)
    found = shares.list_instances(session, share.id)
    if sum(1 for row in found if row.replica_state) > 1:
        raise exception.ShareHasReplicas(share_id=share.id)
    return found
