"""Share networks with their subnets and security services."""

import functools

from manila_lite.api.ui import actions, listing
from manila_lite.api.ui.actions import Action, Actions, Form, Request
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.listing import Collection, Column, Find
from manila_lite.api.ui.visit import SERVERS_POLICY, Answer, Handler, Visit
from manila_lite.db.queries.servers import views as server_views
from manila_lite.db.queries.shares import views
from manila_lite.states.share_network import SHARE_NETWORK

_COLLECTION = 'share-networks'
_FIELDS = ('name', 'availability_zone', 'neutron_net_id', 'neutron_subnet_id')
_NEUTRON = ('neutron_net_id', 'neutron_subnet_id')
SERVICE_TYPES = ('active_directory', 'kerberos', 'ldap')
SERVICE_FIELDS = (
    ('name', 'Name'),
    ('dns_ip', 'Address of DNS'),
    ('server', 'Server'),
    ('domain', 'Domain'),
    ('ou', 'Organizational unit'),
    ('user', 'User'),
)
"""Those that are shown; the password is only sent."""

SERVICES = Collection(
    '/ui/security-services',
    'security services',
    (
        Column('Type'),
        Column('Name', is_wide=False),
        *(Column(label) for _, label in SERVICE_FIELDS[1:]),
        Column('Project'),
        Column('Share networks'),
        Column('Delete', is_wide=False),
    ),
    (
        Find('type', 'Type', SERVICE_TYPES),
        Find('name', 'Name'),
        Find('domain', 'Domain'),
        Find('server', 'Server'),
    ),
)


def _given(form: Form, *names: str) -> dict[str, object]:
    return {name: form[name] for name in names if form.get(name)}


def _add_subnet(network: dict, form: Form) -> Request:
    body = _given(form, 'availability_zone', *_NEUTRON)
    path = f'/{_COLLECTION}/{network["id"]}/subnets'
    return 'POST', path, {'share-network-subnet': body}


def _delete_subnet(network: dict, form: Form) -> Request:
    subnet = actions.id_of(form, 'subnet_id')
    path = f'/{_COLLECTION}/{network["id"]}/subnets/{subnet}'
    return 'DELETE', path, None


_ACTIONS = Actions(
    'share network',
    SHARE_NETWORK,
    {
        'add-subnet': Action('share_network_subnet:create', _add_subnet),
        'delete-subnet': Action(
            'share_network_subnet:delete', _delete_subnet, is_dangerous=True
        ),
        'add-security-service': Action(
            'share_network:add_security_service',
            actions.on(_COLLECTION, 'add_security_service', security_service_id=str),
        ),
        'replace-security-service': Action(
            'share_network:update_security_service',
            actions.on(
                _COLLECTION,
                'update_security_service',
                current_service_id=str,
                new_service_id=str,
            ),
        ),
        'remove-security-service': Action(
            'share_network:remove_security_service',
            actions.on(_COLLECTION, 'remove_security_service', security_service_id=str),
            is_dangerous=True,
        ),
        **actions.usual(_COLLECTION, 'share_network', 'deleted'),
    },
)


# Networks


COLLECTION = Collection(
    '/ui/networks',
    'share networks',
    (
        Column('Name', is_wide=False),
        Column('Status', is_wide=False),
        Column('Subnets'),
        Column('Project'),
        Column('Created'),
    ),
    (
        Find('name~', 'Name contains'),
        Find('status', 'Status', sorted(SHARE_NETWORK.statuses)),
        Find(listing.ID, 'Id'),
        Find('cidr', 'Range of addresses'),
    ),
    ('delete', 'reset-status'),
    sorted(SHARE_NETWORK.resets),
)


def index(visit: Visit) -> Answer:
    """Show a page of the share networks."""
    return listing.found_by_id(visit, COLLECTION) or _list(visit)


def create(visit: Visit) -> Answer:
    """Create a share network with its first subnet."""
    names = ('name', 'description', 'availability_zone', *_NEUTRON)
    body = {'share_network': _given(visit.form, *names)}
    try:
        found = visit.api.send('POST', f'/{_COLLECTION}', body)
    except Refused as error:
        return _list(visit, error)
    id = found['share_network']['id']
    return visit.see(f'/ui/networks/{id}', done='create-network')


def _list(visit: Visit, refused: Refused | None = None) -> Answer:
    found = listing.read(
        visit, COLLECTION, f'/{_COLLECTION}/detail', 'share_networks', all_projects=True
    )
    return visit.page(
        'networks.html',
        refused,
        list=found,
        many=_ACTIONS.allowed(visit, COLLECTION.many),
        zones=actions.zones(visit),
        wrong=actions.wrong_field(refused, _FIELDS),
        may_create=visit.ctx.can('share_network:create'),
        sees_services=visit.ctx.can('security_service:index'),
    )


act_on_selected: Handler = _ACTIONS.on_selected(
    COLLECTION, f'/{_COLLECTION}', 'share_network', _list
)
"""Act on the selected rows of the list."""


def _act(name: str, visit: Visit) -> Answer:
    id = visit.names['network_id']
    network = visit.api.get(f'/{_COLLECTION}/{id}')['share_network']
    try:
        _ACTIONS.carry_out(visit, network, name)
    except Refused as error:
        return show(visit, error)
    if name == 'delete':
        return visit.see('/ui/networks', done='delete-network')
    return visit.see(f'/ui/networks/{id}', done=name)


ACTIONS: dict[str, Handler] = {name: functools.partial(_act, name) for name in _ACTIONS}


def show(visit: Visit, refused: Refused | None = None) -> Answer:
    """Show a share network with its parts and what is on it."""
    id = visit.names['network_id']
    api = visit.api
    network = api.get(f'/{_COLLECTION}/{id}')['share_network']
    most = listing.PARTS
    attached = api.find(
        '/security-services/detail', share_network_id=id, limit=most
    ) or {'security_services': []}
    # Those of the project of the network may be attached.
    known = api.find('/security-services/detail', limit=most, all_tenants=1) or {
        'security_services': []
    }
    shares = visit.services.db.read(views.list_on_network, id, most=most)
    servers = None
    if visit.ctx.can(SERVERS_POLICY):
        servers = visit.services.db.read(
            server_views.list_page,
            server_views.ShareServerFilter(exact={'share_network_id': id}),
            listing.FIRST,
        )
    ids = {one['id'] for one in attached['security_services']}
    return visit.page(
        'network.html',
        refused,
        network=network,
        title=actions.title(network),
        services=attached['security_services'],
        others=[
            one
            for one in known['security_services']
            if one['project_id'] == network['project_id'] and one['id'] not in ids
        ],
        servers=servers,
        shares=[row for row in shares if visit.project_id in (None, row.project_id)],
        most=most,
        statuses=sorted(SHARE_NETWORK.resets),
        on=_ACTIONS.forms(visit, network, f'/ui/networks/{id}', refused=refused),
    )


# Security services


def security_services(visit: Visit) -> Answer:
    """Show a page of the security services."""
    return _list_services(visit)


def create_security_service(visit: Visit) -> Answer:
    """Create a security service."""
    names = [name for name, _ in SERVICE_FIELDS]
    body = _given(visit.form, 'type', 'password', *names)
    try:
        visit.api.send('POST', '/security-services', {'security_service': body})
    except Refused as error:
        return _list_services(visit, error)
    return visit.see('/ui/security-services', done='create-security-service')


def delete_security_service(visit: Visit) -> Answer:
    """Delete a security service."""
    path = f'/security-services/{visit.names["security_service_id"]}'
    service = visit.api.get(path)['security_service']
    try:
        actions.confirm(visit, actions.title(service))
        visit.api.send('DELETE', path)
    except Refused as error:
        return _list_services(visit, error)
    return visit.see('/ui/security-services', done='delete-security-service')


def _list_services(visit: Visit, refused: Refused | None = None) -> Answer:
    found = listing.read(
        visit,
        SERVICES,
        '/security-services/detail',
        'security_services',
        all_projects=True,
    )
    return visit.page(
        'security_services.html',
        refused,
        list=found,
        many=(),
        shown=SERVICE_FIELDS,
        types=[(one, one.replace('_', ' ')) for one in SERVICE_TYPES],
        wrong=actions.wrong_field(
            refused, ('type', 'password', *(name for name, _ in SERVICE_FIELDS))
        ),
        may_create=visit.ctx.can('security_service:create'),
        may_delete=visit.ctx.can('security_service:delete'),
    )
