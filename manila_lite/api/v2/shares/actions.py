"""Actions on shares."""

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2.access.share_rules import ShareAccessActionsController
from manila_lite.api.v2.shares import manage as share_manage
from manila_lite.api.v2.shares.migrations import ShareMigrationActionsController
from manila_lite.db import rows

NEW_SIZE = s.schema(['new_size'], new_size=s.positive_int)
EXTEND = s.schema(
    ['new_size'], new_size=s.positive_int, force=s.since('2.64', s.boolean)
)
STATUS = s.schema(['status'], status=s.string(255, 1))
REVERT = s.schema(['snapshot_id'], snapshot_id=s.uuid)

SHRINK_REFUSED: wsgi.Refusals = {exception.InvalidStatus: exception.InvalidShare}
EXTEND_REFUSED: wsgi.Refusals = {
    **SHRINK_REFUSED,
    # The published code of this error is 403 for extend.
    exception.ShareSizeExceedsAvailableQuota: exception.Forbidden,
}
# The published code for dependents is 403 only without force.
FORCE_DELETE_REFUSED: wsgi.Refusals = {
    exception.ShareNotAllowed: exception.InvalidShare
}


class ShareActionsController(
    ShareMigrationActionsController, ShareAccessActionsController
):
    @wsgi.action(
        'os-extend',
        until='2.6',
        policy='share:extend',
        body=EXTEND,
        refused=EXTEND_REFUSED,
    )
    @wsgi.action(
        'extend',
        since='2.7',
        policy='share:extend',
        body=EXTEND,
        refused=EXTEND_REFUSED,
    )
    def extend(self, req: wsgi.Request, share: rows.ShareTarget, args: dict) -> None:
        """Request a larger share; responds before the back end has acted."""
        force = args.get('force', False)
        if force:
            req.ctx.authorize('share:force_extend', share)
        beyond = req.ctx.can('share:extend_beyond_max_share_size_spec', share)
        self.services.shares.extend(
            req.ctx, share, args['new_size'], force=force, allow_beyond_maximum=beyond
        )

    @wsgi.action(
        'os-shrink',
        until='2.6',
        policy='share:shrink',
        body=NEW_SIZE,
        refused=SHRINK_REFUSED,
    )
    @wsgi.action(
        'shrink',
        since='2.7',
        policy='share:shrink',
        body=NEW_SIZE,
        refused=SHRINK_REFUSED,
    )
    def shrink(self, req: wsgi.Request, share: rows.ShareTarget, args: dict) -> None:
        """Request a smaller share."""
        self.services.shares.shrink(req.ctx, share, args['new_size'])

    @wsgi.action('revert', since='2.27', policy='share:revert_to_snapshot', body=REVERT)
    def revert(self, req: wsgi.Request, share: rows.ShareTarget, args: dict) -> None:
        """Request that the share is reverted to its newest snapshot."""
        self.services.snapshots.revert(req.ctx, share, args['snapshot_id'])

    @wsgi.action(
        'os-reset_status', until='2.6', policy='share:reset_status', body=STATUS
    )
    @wsgi.action('reset_status', since='2.7', policy='share:reset_status', body=STATUS)
    def reset_status(
        self, req: wsgi.Request, share: rows.ShareTarget, args: dict
    ) -> None:
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        self.services.shares.reset_status(req.ctx, share.instance_id, args['status'])

    @wsgi.action(
        'os-force_delete',
        until='2.6',
        policy='share:force_delete',
        refused=FORCE_DELETE_REFUSED,
    )
    @wsgi.action(
        'force_delete',
        since='2.7',
        policy='share:force_delete',
        refused=FORCE_DELETE_REFUSED,
    )
    def force_delete(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        self.services.shares.force_delete(req.ctx, share)

    @wsgi.action(
        'unmanage',
        since='2.7',
        policy='share:unmanage',
        refused=share_manage.UNMANAGE_REFUSED,
    )
    def unmanage(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        """Request that a share is unmanaged; its data stays."""
        share_manage.unmanage(self.services, req, share)

    @wsgi.action('soft_delete', since='2.69', policy='share:soft_delete')
    def soft_delete(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        self.services.shares.soft_delete(req.ctx, share)

    @wsgi.action('restore', since='2.69', policy='share:restore', unchanged=200)
    def restore(
        self, req: wsgi.Request, share: rows.ShareTarget
    ) -> wsgi.Response | None:
        if self.services.shares.restore(req.ctx, share):
            return None
        return wsgi.Response(status=200)
