"""The documents of the identity API, in their published forms."""

from collections.abc import Iterable, Iterator, Mapping
import datetime
import typing

from manila_lite.api.auth.tokens import Token
from manila_lite.api.auth.users import User

DOMAIN = {'id': 'default', 'name': 'Default'}
_INTERFACES = ('public', 'internal', 'admin')
_SERVICES = (
    # Clients cut the version off to find the others; at the root are those
    # of the share API.
    ('identity', 'keystone', '/identity/v3'),
    ('shared-file-system', 'manila', '/v2'),
    # The name of the type that older clients look for.
    ('sharev2', 'manilav2', '/v2'),
)


def version(url: str) -> dict[str, typing.Any]:
    """Return the description of the only version."""
    return {
        'id': 'v3.14',
        'status': 'stable',
        'updated': '2020-04-07T00:00:00Z',
        'links': [{'rel': 'self', 'href': f'{url}/v3/'}],
        'media-types': [
            {
                'base': 'application/json',
                'type': 'application/vnd.openstack.identity-v3+json',
            }
        ],
    }


def catalog(url: str, region: str) -> list[dict[str, typing.Any]]:
    """Return the service catalog: this API, and the share API."""
    return [
        {
            'id': kind,
            'type': kind,
            'name': name,
            'endpoints': [
                {
                    'id': f'{kind}-{interface}',
                    'interface': interface,
                    'region': region,
                    'region_id': region,
                    'url': url + path,
                }
                for interface in _INTERFACES
            ],
        }
        for kind, name, path in _SERVICES
    ]


def services(url: str) -> Iterator[dict[str, typing.Any]]:
    for kind, name, _ in _SERVICES:
        yield {
            'id': kind,
            'type': kind,
            'name': name,
            'description': '',
            'enabled': True,
            'links': {'self': f'{url}/v3/services/{kind}'},
        }


def endpoints(url: str, region: str) -> Iterator[dict[str, typing.Any]]:
    for service in catalog(url, region):
        for endpoint in service['endpoints']:
            yield {
                **endpoint,
                'service_id': service['id'],
                'enabled': True,
                'links': {'self': f'{url}/v3/endpoints/{endpoint["id"]}'},
            }


def region(name: str, url: str) -> dict[str, typing.Any]:
    return {
        'id': name,
        'description': '',
        'parent_region_id': None,
        'links': {'self': f'{url}/v3/regions/{name}'},
    }


def token(found: Token) -> dict[str, typing.Any]:
    """Return the description of a token, without a catalog."""
    user = found.user
    return {
        'methods': list(found.methods),
        'audit_ids': [found.id],
        'issued_at': _timestamp(found.issued_at),
        'expires_at': _timestamp(found.expires_at),
        'user': {
            'id': user.user_id,
            'name': user.name,
            'domain': DOMAIN,
            'password_expires_at': None,
        },
        'project': {'id': user.project_id, 'name': user.project_id, 'domain': DOMAIN},
        'is_domain': False,
        'roles': [{'id': role, 'name': role} for role in user.all_roles],
    }


def domain(url: str) -> dict[str, typing.Any]:
    return {
        **DOMAIN,
        'description': 'All users and projects of this service',
        'enabled': True,
        'links': {'self': f'{url}/v3/domains/{DOMAIN["id"]}'},
    }


def project(project_id: str, url: str) -> dict[str, typing.Any]:
    return {
        'id': project_id,
        'name': project_id,
        'description': '',
        'domain_id': DOMAIN['id'],
        'parent_id': DOMAIN['id'],
        'enabled': True,
        'is_domain': False,
        'options': {},
        'tags': [],
        'links': {'self': f'{url}/v3/projects/{project_id}'},
    }


def user(found: User, url: str) -> dict[str, typing.Any]:
    return {
        'id': found.user_id,
        'name': found.name,
        'domain_id': DOMAIN['id'],
        'default_project_id': found.project_id,
        'enabled': True,
        'options': {},
        'password_expires_at': None,
        'links': {'self': f'{url}/v3/users/{found.user_id}'},
    }


def role(name: str, url: str) -> dict[str, typing.Any]:
    return {
        'id': name,
        'name': name,
        'description': None,
        'domain_id': None,
        'options': {},
        'links': {'self': f'{url}/v3/roles/{name}'},
    }


def role_assignment(
    found: User, role: str, url: str, *, with_names: bool
) -> dict[str, typing.Any]:
    """Return that a user has a role in the project of the user."""
    names: dict[str, dict[str, typing.Any]] = {
        'role': {'name': role},
        'user': {'name': found.name, 'domain': DOMAIN},
        'project': {'name': found.project_id, 'domain': DOMAIN},
    }

    def named(kind: str, id: str) -> dict[str, typing.Any]:
        return {'id': id, **(names[kind] if with_names else {})}

    return {
        'role': named('role', role),
        'user': named('user', found.user_id),
        'scope': {'project': named('project', found.project_id)},
        'links': {
            'assignment': f'{url}/v3/projects/{found.project_id}/users/'
            f'{found.user_id}/roles/{role}'
        },
    }


_FILTERS = ('name', 'domain_id', 'type', 'service_id', 'interface', 'region_id')


def listing(
    name: str,
    items: Iterable[dict[str, typing.Any]],
    filters: Mapping[str, str],
    url: str,
) -> dict[str, typing.Any]:
    """Return the list of the items that match the filters."""
    wanted = {key: filters[key] for key in _FILTERS if key in filters}
    return {
        name: [
            item
            for item in items
            if all(
                # A domain belongs to no domain, for instance.
                item.get(key, value) == value
                for key, value in wanted.items()
            )
        ],
        'links': {'self': f'{url}/v3/{name}', 'next': None, 'previous': None},
    }


def _timestamp(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime('%Y-%m-%dT%H:%M:%S.%fZ')
