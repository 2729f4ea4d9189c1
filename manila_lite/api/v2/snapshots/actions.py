"""Actions on snapshots, their metadata, and managing them."""

import typing

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2 import targets
from manila_lite.api.v2.access.rules import SnapshotAccessActionsController
from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.shares.actions import SHARE_SERVERS_SINCE
from manila_lite.api.v2.snapshots.snapshots import DETAIL, show_snapshot
from manila_lite.db import rows
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.share.operations.managing import ManageSnapshotRequest


class SnapshotActionsController(SnapshotAccessActionsController):
    @wsgi.action(
        'reset_status', 'share_snapshot:reset_status', renamed='2.7', body=s.STATUS
    )
    def reset_status(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> None:
        """Set the status of all instances of the snapshot."""
        self.services.snapshots.reset_status(req.ctx, snapshot, args['status'])

    @wsgi.action(
        'force_delete',
        'share_snapshot:force_delete',
        renamed='2.7',
        refused={exception.InvalidStatus: exception.Forbidden},
    )
    def force_delete(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        self.services.snapshots.force_delete(req.ctx, snapshot)

    @wsgi.action(
        'unmanage',
        'share_snapshot:unmanage_snapshot',
        since='2.12',
        refused={
            exception.InvalidStatus: exception.Forbidden,
            exception.InvalidShareSnapshot: exception.Forbidden,
        },
    )
    def unmanage(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        """Request that a snapshot is unmanaged; it stays on the back end."""
        refuse_servers(req, snapshot)
        self.services.managing.unmanage_snapshot(req.ctx, snapshot)


_NAME = s.string(255, nullable=True)

MANAGE = s.schema(
    ['share_id', 'provider_location'],
    wrapper='snapshot',
    share_id=s.trimmed(255, 1),
    provider_location=s.string(255, 1),
    name=s.alias('display_name', _NAME),
    description=s.alias('display_description', _NAME),
    driver_options=s.obj(extra='allow', nullable=True),
    metadata=s.since('2.73', s.mapping(s.string(1023, 1), nullable=True)),
)


class SnapshotManageController(wsgi.Controller):
    @wsgi.method(
        'share_snapshot:manage_snapshot',
        body=MANAGE,
        status=202,
        answer={'snapshot': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a snapshot; responds before the back end is asked."""
        share = targets.SHARE.get(self.services.db, req.ctx, args['share_id'])
        refuse_servers(req, share)
        snapshot_id = self.services.managing.manage_snapshot(
            req.ctx,
            share,
            ManageSnapshotRequest(
                provider_location=args['provider_location'],
                name=args.get('name'),
                description=args.get('description'),
                metadata=args.get('metadata') or {},
                driver_options=args.get('driver_options') or {},
            ),
        )
        return show_snapshot(self.services.db, req, snapshot_id)


def refuse_servers(req: wsgi.Request, row: typing.Any) -> None:
    """Refuse snapshots on share servers before version 2.49."""
    if row.share_server_id and req.minor < SHARE_SERVERS_SINCE:
        raise exception.ShareNotAllowed(
            reason='snapshots on a share server can be managed and '
            'unmanaged from version 2.49 on'
        )


class SnapshotMetadataController(MetadataController):
    target = targets.SNAPSHOT.loader

    table = snapshots.METADATA
    policies = {
        'get': 'share_snapshot:get_metadata',
        'update': 'share_snapshot:update_metadata',
        'delete': 'share_snapshot:delete_metadata',
    }
