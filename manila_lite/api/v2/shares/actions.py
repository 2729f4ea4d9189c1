"""Actions on shares, and managing them."""

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import targets
from manila_lite.api.v2.access.rules import ShareAccessActionsController
from manila_lite.api.v2.shares.migrations import ShareMigrationActionsController
from manila_lite.api.v2.shares.shares import DETAIL, show_share
from manila_lite.db import rows
from manila_lite.share.operations.managing import ManageShareRequest

SHARE_SERVERS_SINCE = 49
"""The minor version since which this works with share servers."""

_NAME = s.string(255, nullable=True)
_PATH = s.string(2000, 1)


class _ExportPath(s.Type):
    """A path, or an object with the key 'path'."""

    def at(self, minor: int) -> s.Check:
        path = _PATH.at(minor)
        inside = s.obj(['path'], path=_PATH).at(minor)

        def check(value: object) -> str:
            if isinstance(value, dict):
                return inside(value)['path']
            return path(value)

        return check

    def json_schema(self, minor: int) -> dict:
        return {
            'anyOf': [
                _PATH.json_schema(minor),
                s.obj(['path'], path=_PATH).json_schema(minor),
            ]
        }


MANAGE = s.schema(
    ['protocol', 'export_path', 'service_host'],
    wrapper='share',
    protocol=s.string(255, 1),
    export_path=_ExportPath(),
    service_host=s.string(255, 1),
    share_type=s.trimmed(255, nullable=True),
    name=s.alias('display_name', _NAME),
    description=s.alias('display_description', _NAME),
    driver_options=s.obj(extra='allow', nullable=True),
    is_public=s.since('2.8', s.boolean),
    share_server_id=s.since('2.49', s.optional_id(36)),
    mount_point_name=s.since('2.92', s.string(255, nullable=True)),
)

UNMANAGE_REFUSED: wsgi.Refusals = {exception.InvalidStatus: exception.ShareNotAllowed}


class ShareManageController(wsgi.Controller):
    @wsgi.method(
        'share:manage',
        body=MANAGE,
        # The published code for an unknown server in a body is 400.
        refused={exception.ShareServerNotFound: exception.InvalidInput},
        answer={'share': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a share; responds before the back end is asked."""
        if args.get('is_public'):
            req.ctx.authorize('share:create_public_share')
        share_id = self.services.managing.manage_share(
            req.ctx,
            ManageShareRequest(
                service_host=args['service_host'],
                export_path=args['export_path'],
                share_proto=args['protocol'],
                share_type=args.get('share_type'),
                name=args.get('name'),
                description=args.get('description'),
                is_public=args.get('is_public', False),
                share_server_id=args.get('share_server_id'),
                mount_point_name=args.get('mount_point_name'),
                driver_options=args.get('driver_options') or {},
            ),
        )
        return show_share(self.services.db, req, share_id, 'share:manage')


class ShareUnmanageController(wsgi.Controller):
    """The resource that was replaced by the action `unmanage`."""

    target = targets.SHARE.loader

    @wsgi.method('share:unmanage', target=True, status=202, refused=UNMANAGE_REFUSED)
    def unmanage(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        unmanage(self.services, req, share)


def unmanage(services: ApiServices, req: wsgi.Request, share: rows.ShareTarget) -> None:
    """Request that a share is unmanaged; its data stays."""
    if share.share_server_id and req.minor < SHARE_SERVERS_SINCE:
        raise exception.ShareNotAllowed(
            reason='a share on a share server can be unmanaged since version 2.49'
        )
    services.managing.unmanage_share(req.ctx, share)


NEW_SIZE = s.schema(['new_size'], new_size=s.positive_int)
EXTEND = s.schema(
    ['new_size'], new_size=s.positive_int, force=s.since('2.64', s.boolean)
)
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
        'extend', 'share:extend', renamed='2.7', body=EXTEND, refused=EXTEND_REFUSED
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
        'shrink', 'share:shrink', renamed='2.7', body=NEW_SIZE, refused=SHRINK_REFUSED
    )
    def shrink(self, req: wsgi.Request, share: rows.ShareTarget, args: dict) -> None:
        """Request a smaller share."""
        self.services.shares.shrink(req.ctx, share, args['new_size'])

    @wsgi.action('revert', 'share:revert_to_snapshot', since='2.27', body=REVERT)
    def revert(self, req: wsgi.Request, share: rows.ShareTarget, args: dict) -> None:
        """Request that the share is reverted to its newest snapshot."""
        self.services.snapshots.revert(req.ctx, share, args['snapshot_id'])

    @wsgi.action('reset_status', 'share:reset_status', renamed='2.7', body=s.STATUS)
    def reset_status(
        self, req: wsgi.Request, share: rows.ShareTarget, args: dict
    ) -> None:
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        self.services.shares.reset_status(req.ctx, share.instance_id, args['status'])

    @wsgi.action(
        'force_delete',
        'share:force_delete',
        renamed='2.7',
        refused=FORCE_DELETE_REFUSED,
    )
    def force_delete(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        self.services.shares.force_delete(req.ctx, share)

    @wsgi.action('unmanage', 'share:unmanage', since='2.7', refused=UNMANAGE_REFUSED)
    def unmanage(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        """Request that a share is unmanaged; its data stays."""
        unmanage(self.services, req, share)

    @wsgi.action('soft_delete', 'share:soft_delete', since='2.69')
    def soft_delete(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        self.services.shares.soft_delete(req.ctx, share)

    @wsgi.action('restore', 'share:restore', since='2.69', unchanged=200)
    def restore(
        self, req: wsgi.Request, share: rows.ShareTarget
    ) -> wsgi.Response | None:
        if self.services.shares.restore(req.ctx, share):
            return None
        return wsgi.Response(status=200)
