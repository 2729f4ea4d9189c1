"""Share replicas, their export locations and metadata.

Clients wait for the published replica states; the API shows one of them for a
state that only the database has.
"""

import functools

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import Field, child, fields, fn
from manila_lite.api.filters import Filter, filters
from manila_lite.api.v2 import literals, targets
from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.shares import export_locations
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instance_views
from manila_lite.db.session import Database
from manila_lite.states.share_replica import ReplicaState

WIRE_NAMES = {ReplicaState.ERROR_DELETING: ReplicaState.ERROR}


def replica_state_to_wire(stored: str | None) -> str | None:
    """Return the wire name of a value of the column `replica_state`."""
    return stored if stored is None else WIRE_NAMES.get(stored, stored)


def replica_state_field(since: str | None = None) -> Field:
    """Return the field `replica_state` of a view."""
    return Field('replica_state', fn(replica_state_to_wire, 'replica_state'), since)


REFUSED: wsgi.Refusals = {exception.InvalidStatus: exception.ReplicationException}

CREATE = s.schema(
    ['share_id'],
    wrapper='share_replica',
    share_id=s.trimmed(255, 1),
    availability_zone=s.optional_id(),
    scheduler_hints=s.since('2.67', s.obj(nullable=True, only_host=s.string(255))),
    share_network_id=s.since('2.72', s.optional_id(), below='refuse'),
    metadata=s.since('2.95', s.mapping(s.string(1023, 1), nullable=True)),
)

SUMMARY = fields(Field('id'), Field('share_id'), Field('status'), replica_state_field())
DETAIL = fields(
    *SUMMARY.rows,
    Field('availability_zone'),
    Field('created_at'),
    Field('updated_at'),
    Field('share_network_id'),
    Field('share_server_id', admin_only=True),
    Field('host', admin_only=True),
    Field('cast_rules_to_readonly', since='2.30', admin_only=True),
    Field('metadata', child('metadata'), since='2.95', shape=dict[str, str]),
)


_FILTERS = filters(
    Filter('share_id'), Filter('metadata', since='2.95', parse=literals.parse_pairs)
)


def show_replica(
    db: Database, req: wsgi.Request, share_replica_id: str, policy: str | None = None
) -> dict:
    """Return one replica in detail if the policy allows it."""
    listing = db.read(replicas.get, share_replica_id)
    row = listing.rows[0] if listing.rows else None
    if row is None or not targets.is_replica_visible(req.ctx, row):
        if policy:  # a role that may see no replica gets 403 for every id
            req.ctx.authorize(policy)
        raise exception.ShareReplicaNotFound(replica_id=share_replica_id)
    if policy:
        req.ctx.authorize(policy, row)
    view = DETAIL.function(req.minor, req.ctx.is_admin)
    return {'share_replica': view(row, listing.children)}


class ShareReplicasController(paging.ListController):
    target = targets.REPLICA.loader

    path = 'share-replicas'
    key = 'share_replicas'
    links_key = 'share_replica_links'
    summary = SUMMARY
    details = DETAIL
    filters = (_FILTERS,)
    policies = dict.fromkeys(('index', 'detail'), 'share_replica:get_all')

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        ctx = req.ctx
        wanted = replicas.ShareReplicaFilter(
            project_id=None if ctx.is_admin else ctx.project_id,
            # A share that the caller does not see has no replicas here, so
            # the response does not reveal that the share exists.
            **_FILTERS.values(req),
            include_hidden=targets.sees_hidden(ctx),
        )
        return self.services.db.read(
            replicas.list_page, wanted, page, detailed=detailed
        )

    @wsgi.method(wsgi.IN_HANDLER, answer={'share_replica': DETAIL})
    def show(self, req: wsgi.Request, share_replica_id: str) -> dict:
        return show_replica(
            self.services.db, req, share_replica_id, 'share_replica:show'
        )

    @wsgi.method(
        'share_replica:create',
        body=CREATE,
        status=202,
        refused={
            **REFUSED,
            # The published code for an unknown network in a body is 400.
            exception.ShareNetworkNotFound: exception.InvalidInput,
        },
        answer={'share_replica': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a new replica; responds before it is placed."""
        share = targets.SHARE.get(self.services.db, req.ctx, args['share_id'])
        req.ctx.authorize('share_replica:create', share)
        replica_id = self.services.replicas.create(
            req.ctx,
            share,
            availability_zone=args.get('availability_zone'),
            share_network_id=targets.usable_network_id(
                self.services.db, req.ctx, args.get('share_network_id')
            ),
            scheduler_hints=args.get('scheduler_hints') or {},
            metadata=args.get('metadata') or {},
        )
        return show_replica(self.services.db, req, replica_id)

    @wsgi.method('share_replica:delete', target=True, status=202, refused=REFUSED)
    def delete(self, req: wsgi.Request, replica: rows.ReplicaTarget) -> None:
        self.services.replicas.delete(req.ctx, replica)


PROMOTE = s.schema(quiesce_wait_time=s.positive_int)
REPLICA_STATE = s.schema(['replica_state'], replica_state=s.string(255, 1))


_action = functools.partial(wsgi.action, since='2.11', experimental='2.11-2.55')


class ShareReplicaActionsController(wsgi.Controller):
    target = targets.REPLICA.loader

    @_action(
        'promote',
        'share_replica:promote',
        until='2.74',
        refused=REFUSED,
        answer={'share_replica': DETAIL},
        unchanged=200,
    )
    @wsgi.action(
        'promote',
        'share_replica:promote',
        since='2.75',
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

    @_action('resync', 'share_replica:resync', refused=REFUSED, unchanged=200)
    def resync(self, req: wsgi.Request, replica: rows.ReplicaTarget) -> wsgi.Result:
        """Request an update of a replica now; 200 if it is active."""
        accepted = self.services.replicas.resync(req.ctx, replica)
        return None if accepted else wsgi.Response(status=200)

    @_action('force_delete', 'share_replica:force_delete', refused=REFUSED)
    def force_delete(self, req: wsgi.Request, replica: rows.ReplicaTarget) -> None:
        """Request the deletion of a replica, ignoring driver errors."""
        self.services.replicas.force_delete(req.ctx, replica)

    @_action('reset_status', 'share_replica:reset_status', body=s.STATUS)
    def reset_status(
        self, req: wsgi.Request, replica: rows.ReplicaTarget, args: dict
    ) -> None:
        self.services.replicas.reset_status(req.ctx, replica, args['status'])

    @_action(
        'reset_replica_state', 'share_replica:reset_replica_state', body=REPLICA_STATE
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


_OF_REPLICAS = (replica_state_field(), Field('availability_zone'))
LOCATIONS = fields(*export_locations.SUMMARY.rows, *_OF_REPLICAS)
LOCATION = fields(*export_locations.DETAIL.rows, *_OF_REPLICAS)


class ShareReplicaExportLocationsController(export_locations.ExportLocationsController):
    target = targets.REPLICA.loader

    summary = LOCATIONS
    details = LOCATION
    policies = {
        'index': 'share_replica_export_location:index',
        'show': 'share_replica_export_location:show',
    }

    def read(self, req: wsgi.Request, target: rows.ReplicaTarget) -> pages.Listing:
        return self.services.db.read(instance_views.list_for_instance, target.id)


class ShareReplicaMetadataController(MetadataController):
    target = targets.REPLICA.loader

    table = replicas.METADATA
    policies = {
        'get': 'share_replica:get_metadata',
        'update': 'share_replica:update_metadata',
        'delete': 'share_replica:delete_metadata',
    }
