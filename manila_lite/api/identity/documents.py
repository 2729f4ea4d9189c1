"""The documents of the identity API, in their published forms."""

from collections.abc import Iterable, Mapping
import datetime
import typing

from manila_lite.api.auth.tokens import Token
from manila_lite.api.auth.users import User

DOMAIN = {'id': 'default', 'name': 'Default'}
_INTERFACES = ('public', 'internal', 'admin')
_SERVICES = (
    ('identity', 'keystone', '/v3'),
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
        'project': {
            'id': user.project_id,
            'name': user.project_id,
            'domain': DOMAIN,
        },
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


def listing(
    name: str,
    items: Iterable[dict[str, typing.Any]],
    filters: Mapping[str, str],
    url: str,
) -> dict[str, typing.Any]:
    """Return the list of the items that match the filters."""
    wanted = {
        key: filters[key] for key in ('name', 'domain_id') if key in filters
    }
    return {
        name: [
            item
            for item in items
            if all(
                # A domain belongs to no domain.
                item.get(key, value) == value
                for key, value in wanted.items()
            )
        ],
        'links': {'self': f'{url}/v3/{name}', 'next': None, 'previous': None},
    }


def _timestamp(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime('%Y-%m-%dT%H:%M:%S.%fZ')
