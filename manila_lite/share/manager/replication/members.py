"""One among the replicas of a share, or the instances of a snapshot."""

from manila_lite import exception
from manila_lite.messages import Detail
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    LoadedSnapshot,
)


def require_active(share: ReplicatedShare) -> LoadedInstance:
    """Return the active replica; raises ReplicationException without one."""
    if share.active is None:
        raise exception.ReplicationException(
            reason=f'share {share.share_id} has no active replica',
            message_detail=Detail.NO_ACTIVE_REPLICA,
        )
    return share.active


def find_on(
    instances: list[LoadedSnapshot], share_instance_id: str
) -> LoadedSnapshot | None:
    """Return the instance of a snapshot on one replica, if there is one."""
    return next(
        (one for one in instances if one.row.share_instance_id == share_instance_id),
        None,
    )
