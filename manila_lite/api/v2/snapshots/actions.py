"""Actions on snapshots."""

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.v2.access.snapshot_rules import SnapshotAccessActionsController
from manila_lite.api.v2.shares.actions import STATUS
from manila_lite.api.v2.snapshots.manage import refuse_servers
from manila_lite.db import rows


class SnapshotActionsController(SnapshotAccessActionsController):
    @wsgi.action(
        'os-reset_status',
        until='2.6',
        policy='share_snapshot:reset_status',
        body=STATUS,
    )
    @wsgi.action(
        'reset_status', since='2.7', policy='share_snapshot:reset_status', body=STATUS
    )
    def reset_status(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> None:
        """Set the status of all instances of the snapshot."""
        self.services.snapshots.reset_status(req.ctx, snapshot, args['status'])

    @wsgi.action(
        'os-force_delete',
        until='2.6',
        policy='share_snapshot:force_delete',
        refused={exception.InvalidStatus: exception.Forbidden},
    )
    @wsgi.action(
        'force_delete',
        since='2.7',
        policy='share_snapshot:force_delete',
        refused={exception.InvalidStatus: exception.Forbidden},
    )
    def force_delete(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        self.services.snapshots.force_delete(req.ctx, snapshot)

    @wsgi.action(
        'unmanage',
        since='2.12',
        policy='share_snapshot:unmanage_snapshot',
        refused={
            exception.InvalidStatus: exception.Forbidden,
            exception.InvalidShareSnapshot: exception.Forbidden,
        },
    )
    def unmanage(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        """Request that a snapshot is unmanaged; it stays on the back end."""
        refuse_servers(req, snapshot)
        self.services.managing.unmanage_snapshot(req.ctx, snapshot)
