"""Manage existing snapshots of back ends, and unmanage snapshots."""

import typing

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2 import targets
from manila_lite.api.v2.shares.manage import SHARE_SERVERS_SINCE
from manila_lite.api.v2.snapshots.snapshots import DETAIL, show_snapshot
from manila_lite.share.operations.managing import ManageSnapshotRequest

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
        share = targets.get_share(self.services.db, req.ctx, args['share_id'])
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
