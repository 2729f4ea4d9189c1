"""Replicas of shares: list, show, create, delete."""

from collections.abc import Callable

from manila_lite import exception
from manila_lite.api import answers, paging, schema as s, wsgi
from manila_lite.api.fields import Field, View, child, fields
from manila_lite.api.filters import Filter, filters
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import literals, targets
from manila_lite.api.v2.replicas.replica_state_names import replica_state_field
from manila_lite.db import rows
from manila_lite.db.queries.replicas import views as replica_views
from manila_lite.db.session import Database

EXPERIMENTAL = '2.11-2.55'
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
_QUERY = (*paging.query_keys(), _FILTERS)


def show_replica(
    db: Database, req: wsgi.Request, share_replica_id: str, policy: str | None = None
) -> dict:
    """Return one replica in detail if the policy allows it."""
    listing = db.read(replica_views.get, share_replica_id)
    row = listing.rows[0] if listing.rows else None
    if row is None or not targets.is_replica_visible(req.ctx, row):
        if policy:  # a role that may see no replica gets 403 for every id
            req.ctx.authorize(policy)
        raise exception.ShareReplicaNotFound(replica_id=share_replica_id)
    if policy:
        req.ctx.authorize(policy, row)
    view = DETAIL.function(req.minor, req.ctx.is_admin)
    return {'share_replica': view(row, {'metadata': listing.metadata})}


class ShareReplicasController(targets.ShareReplicaTargetController):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._max_limit = services.conf.osapi_max_limit

    @wsgi.method(
        'share_replica:get_all',
        answer=answers.page('share_replicas', SUMMARY, links_key='share_replica_links'),
        query=_QUERY,
    )
    def index(self, req: wsgi.Request) -> dict:
        return self._list(req, replica_views.list_summaries, SUMMARY, 'share-replicas')

    @wsgi.method(
        'share_replica:get_all',
        answer=answers.page('share_replicas', DETAIL, links_key='share_replica_links'),
        query=_QUERY,
    )
    def detail(self, req: wsgi.Request) -> dict:
        return self._list(
            req, replica_views.list_details, DETAIL, 'share-replicas/detail'
        )

    def _list(self, req: wsgi.Request, read: Callable, view: View, path: str) -> dict:
        page = paging.parse(req.query, cap=self._max_limit)
        listing = self.services.db.read(read, self._parse_filters(req), page)
        items = view.many(req.minor, req.ctx.is_admin)(
            listing.rows, {'metadata': listing.metadata}
        )
        return paging.answer(
            req,
            page,
            path,
            'share_replicas',
            items,
            listing.rows,
            links_key='share_replica_links',
        )

    def _parse_filters(self, req: wsgi.Request) -> replica_views.ShareReplicaFilter:
        ctx = req.ctx
        return replica_views.ShareReplicaFilter(
            project_id=None if ctx.is_admin else ctx.project_id,
            # A share that the caller does not see has no replicas here, so
            # the response does not reveal that the share exists.
            **_FILTERS.values(req),
            include_hidden=targets.sees_hidden(ctx),
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
        share = targets.get_share(self.services.db, req.ctx, args['share_id'])
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
