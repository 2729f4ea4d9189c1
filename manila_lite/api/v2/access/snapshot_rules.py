"""Access rules of snapshots."""

from manila_lite.api import schema as s, wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.api.v2.targets import SnapshotTargetController
from manila_lite.db import rows
from manila_lite.db.queries.access import snapshot_rules

IPV6_SINCE = 38
"""The minor version since which rules may name IPv6 clients."""

ALLOW = s.schema(
    ['access_type', 'access_to'],
    access_type=s.string(255, 1),
    access_to=s.string(255, 1),
)
DENY = s.schema(['access_id'], access_id=s.trimmed(255, 1))

VIEW = fields(Field('id'), Field('access_type'), Field('access_to'), Field('state'))


class SnapshotAccessActionsController(SnapshotTargetController):
    @wsgi.action(
        'allow_access',
        since='2.32',
        policy='share_snapshot:allow_access',
        body=ALLOW,
        answer={'snapshot_access': VIEW},
    )
    def allow_access(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> dict:
        """Accept a rule; responds before the back end has applied it."""
        rule = self.services.snapshot_access.allow(
            req.ctx,
            snapshot,
            args['access_type'],
            args['access_to'],
            ipv6=req.minor >= IPV6_SINCE,
        )
        return {'snapshot_access': VIEW.function(req.minor)(rule)}

    @wsgi.action(
        'deny_access', since='2.32', policy='share_snapshot:deny_access', body=DENY
    )
    def deny_access(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> None:
        self.services.snapshot_access.deny(req.ctx, snapshot, args['access_id'])


class SnapshotAccessListController(SnapshotTargetController):
    @wsgi.method(
        'share_snapshot:access_list',
        target=True,
        answer={'snapshot_access_list': [VIEW]},
    )
    def index(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> dict:
        rules = self.services.db.read(snapshot_rules.list_rules, snapshot.id)
        return {'snapshot_access_list': VIEW.many(req.minor)(rules)}
