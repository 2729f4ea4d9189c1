"""Actions on share servers."""

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2.servers.migrations import ShareServerMigrationsController
from manila_lite.api.v2.shares.actions import STATUS
from manila_lite.api.v2.targets import ShareServerTargetController
from manila_lite.db import rows

UNMANAGE = s.schema(force=s.boolean)


class ShareServerActionsController(
    ShareServerMigrationsController, ShareServerTargetController
):
    @wsgi.action(
        'unmanage',
        since='2.49',
        policy='share_server:unmanage_share_server',
        body=UNMANAGE,
        refused={
            exception.InvalidStatus: exception.InvalidShareServer,
            # The published code of this error is 400 for unmanage.
            exception.ShareServerInUse: exception.InvalidShareServer,
        },
    )
    def unmanage(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> None:
        """Request that a server is unmanaged; it stays on the back end."""
        self.services.share_servers.unmanage(
            req.ctx, server, force=args.get('force', False)
        )

    @wsgi.action(
        'reset_status', since='2.49', policy='share_server:reset_status', body=STATUS
    )
    def reset_status(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> None:
        self.services.share_servers.reset_status(req.ctx, server, args['status'])
