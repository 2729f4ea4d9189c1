"""Share networks: list, show, create, update, delete."""

from collections.abc import Callable
import typing

from manila_lite import exception
from manila_lite.api import answers, paging, schema as s, wsgi
from manila_lite.api.services import ApiServices
from manila_lite.api.v2.networks import filters as share_network_filters, views
from manila_lite.api.v2.targets import ShareNetworkTargetController
from manila_lite.db import rows
from manila_lite.db.queries.networks import views as network_views
from manila_lite.db.session import Database
from manila_lite.share.operations import network_rules

_NAME = s.string(255, nullable=True)
NEUTRON_FIELDS: dict[str, typing.Any] = {
    # Not all clients send UUIDs here.
    name: s.optional_id(36)
    for name in network_rules.NEUTRON_IDS
}

CREATE = s.schema(
    wrapper='share_network',
    name=_NAME,
    description=_NAME,
    nova_net_id=s.anything,
    availability_zone=s.since('2.51', s.optional_id()),
    **NEUTRON_FIELDS,
)

UPDATE = s.schema(
    wrapper='share_network',
    name=_NAME,
    description=_NAME,
    nova_net_id=s.anything,
    **NEUTRON_FIELDS,
)


def neutron_ids(args: dict) -> dict[str, typing.Any]:
    """Return the Neutron ids in a body; both must be given, or none."""
    found = _sent_neutron_ids(args)
    network_rules.check_neutron_ids(found)
    return found


def _sent_neutron_ids(args: dict) -> dict[str, typing.Any]:
    return {name: args[name] for name in NEUTRON_FIELDS if name in args}


def show_network(db: Database, req: wsgi.Request, network_id: str) -> dict:
    """Return one network in detail."""
    found = db.read(network_views.get, network_id)
    if not found.rows:
        raise exception.ShareNetworkNotFound(share_network_id=network_id)
    return {'share_network': views.show_networks(req, found)[0]}


class ShareNetworksController(ShareNetworkTargetController):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._max_limit = services.conf.osapi_max_limit

    @wsgi.method(
        'share_network:index',
        answer=answers.page('share_networks', views.SUMMARY),
        query=share_network_filters.QUERY,
    )
    def index(self, req: wsgi.Request) -> dict:
        return self._list(
            req,
            network_views.list_summaries,
            lambda found: views.SUMMARY.many(req.minor)(found.rows),
            'share-networks',
        )

    @wsgi.method(
        'share_network:detail',
        answer=answers.page('share_networks', views.DETAIL),
        query=share_network_filters.QUERY,
    )
    def detail(self, req: wsgi.Request) -> dict:
        return self._list(
            req,
            network_views.list_details,
            lambda found: views.show_networks(req, found),
            'share-networks/detail',
        )

    def _list(
        self,
        req: wsgi.Request,
        read: Callable,
        show: Callable[[network_views.ShareNetworkListing], list[dict]],
        path: str,
    ) -> dict:
        page = paging.parse(req.query, cap=self._max_limit)
        filters = share_network_filters.parse(req)
        found = self.services.db.read(read, filters, page)
        return paging.answer(req, page, path, 'share_networks', show(found), found.rows)

    @wsgi.method(
        'share_network:show', target=True, answer={'share_network': views.DETAIL}
    )
    def show(self, req: wsgi.Request, network: rows.ShareNetworkRow) -> dict:
        return show_network(self.services.db, req, network.id)

    @wsgi.method(
        'share_network:create', body=CREATE, answer={'share_network': views.DETAIL}
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Create a network with its first subnet."""
        _refuse_nova(args)
        return show_network(
            self.services.db,
            req,
            self.services.share_networks.create(
                req.ctx,
                name=args.get('name'),
                description=args.get('description'),
                zone=args.get('availability_zone'),
                subnet=neutron_ids(args),
            ),
        )

    @wsgi.method(
        'share_network:update',
        target=True,
        body=UPDATE,
        answer={'share_network': views.DETAIL},
    )
    def update(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Update a network; one in use only its name and description."""
        _refuse_nova(args)
        self.services.share_networks.update(
            req.ctx,
            network.id,
            {name: args[name] for name in ('name', 'description') if name in args},
            _sent_neutron_ids(args),
        )
        return show_network(self.services.db, req, network.id)

    @wsgi.method('share_network:delete', target=True, status=202)
    def delete(self, req: wsgi.Request, network: rows.ShareNetworkRow) -> None:
        self.services.share_networks.delete(req.ctx, network.id)


def _refuse_nova(args: dict) -> None:
    if 'nova_net_id' in args:
        raise exception.InvalidInput(reason='nova_net_id is no longer supported')
