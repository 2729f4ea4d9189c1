"""Share replicas."""

from manila_lite.exception.families import Conflict, Forbidden, Invalid, NotFound


class ShareReplicaNotFound(NotFound):
    message = 'Share replica {replica_id} could not be found.'


class ShareHasReplicas(Conflict):
    message = 'Share {share_id} has replicas; remove them first.'


class ReplicationException(Invalid):
    message = 'Replication: {reason}'


class PromotionNeedsAdmin(Forbidden):
    message = (
        'Share replica {replica_id} is {replica_state}, not in_sync; '
        'only an administrator may promote it.'
    )
