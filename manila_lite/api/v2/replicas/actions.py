"""Actions on replicas."""

from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2.replicas.replicas import (
    DETAIL,
    EXPERIMENTAL,
    REFUSED,
    show_replica,
)
from manila_lite.api.v2.shares.actions import STATUS
from manila_lite.api.v2.targets import ShareReplicaTargetController
from manila_lite.db import rows

PROMOTE = s.schema(quiesce_wait_time=s.positive_int)
REPLICA_STATE = s.schema(['replica_state'], replica_state=s.string(255, 1))


class ShareReplicaActionsController(ShareReplicaTargetController):
    @wsgi.action(
        'promote',
        since='2.11',
        until='2.74',
        experimental=EXPERIMENTAL,
        policy='share_replica:promote',
        refused=REFUSED,
        answer={'share_replica': DETAIL},
        unchanged=200,
    )
    @wsgi.action(
        'promote',
        since='2.75',
        policy='share_replica:promote',
        body=PROMOTE,
        refused=REFUSED,
        answer={'share_replica': DETAIL},
        unchanged=200,
    )
    def promote(
        self, req: wsgi.Request, replica: rows.ReplicaTarget, args: dict | None = None
    ) -> wsgi.Result:
        """Request the promotion of a replica; 200 if it is active."""
        accepted = self.services.replicas.promote(
            req.ctx, replica, quiesce_wait_time=(args or {}).get('quiesce_wait_time')
        )
        if not accepted:
            return wsgi.Response(status=200)
        return show_replica(self.services.db, req, replica.id)

    @wsgi.action(
        'resync',
        since='2.11',
        experimental=EXPERIMENTAL,
        policy='share_replica:resync',
        refused=REFUSED,
        unchanged=200,
    )
    def resync(self, req: wsgi.Request, replica: rows.ReplicaTarget) -> wsgi.Result:
        """Request an update of a replica now; 200 if it is active."""
        accepted = self.services.replicas.resync(req.ctx, replica)
        return None if accepted else wsgi.Response(status=200)

    @wsgi.action(
        'force_delete',
        since='2.11',
        experimental=EXPERIMENTAL,
        policy='share_replica:force_delete',
        refused=REFUSED,
    )
    def force_delete(self, req: wsgi.Request, replica: rows.ReplicaTarget) -> None:
        """Request the deletion of a replica, ignoring driver errors."""
        self.services.replicas.force_delete(req.ctx, replica)

    @wsgi.action(
        'reset_status',
        since='2.11',
        experimental=EXPERIMENTAL,
        policy='share_replica:reset_status',
        body=STATUS,
    )
    def reset_status(
        self, req: wsgi.Request, replica: rows.ReplicaTarget, args: dict
    ) -> None:
        self.services.replicas.reset_status(req.ctx, replica, args['status'])

    @wsgi.action(
        'reset_replica_state',
        since='2.11',
        experimental=EXPERIMENTAL,
        policy='share_replica:reset_replica_state',
        body=REPLICA_STATE,
    )
    def reset_replica_state(
        self, req: wsgi.Request, replica: rows.ReplicaTarget, args: dict
    ) -> None:
        # As published, setting the replica state also requires the policy for
        # setting the status.
        req.ctx.authorize('share_replica:reset_status', replica)
        self.services.replicas.reset_replica_state(
            req.ctx, replica, args['replica_state']
        )
