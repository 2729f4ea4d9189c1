"""The plain records match the published tables in all versions."""

import functools
import inspect

import pytest

from manila_lite import messages
from manila_lite.api import router, versions, wsgi
from manila_lite.db.queries.services import pools
from tests.functional.api.plain_client import (
    ADMIN,
    GUEST,
    MEMBER,
    MINE,
    PLAIN_ROUTES,
    READER,
)
from tests.support import reference

EVERY_VERSION = range(versions.MIN, versions.MAX + 1)
RESOURCES = (
    'availability zone',
    'message',
    'qos type',
    'qos type specs',
    'scheduler stats',
    'service',
    'share group type',
    'share group type action',
    'share group type specs',
    'share type',
    'share type access',
    'share type action',
    'share type extra specs',
)
PERSONAS = {
    'admin': {ADMIN},
    'admin or project reader': {ADMIN, MEMBER, READER},
    'admin or project member': {ADMIN, MEMBER},
}


def window(row, since, until):
    return versions.window(row[since] or None, row[until] or None)


def published(name, **wanted):
    return [
        row
        for row in reference.table(name)
        if all(row[key] == value for key, value in wanted.items())
    ]


def operations():
    return [
        row
        for row in reference.table('api-surface.csv')
        if row['resource'] in RESOURCES
    ]


def fields_of(resource, view, minor):
    return {
        row['field']
        for row in published('response-fields.csv', resource=resource, view=view)
        if minor in window(row, 'since', 'until')
    }


@functools.cache
def index():
    return router.RouteIndex(PLAIN_ROUTES, '[0-9a-f-]+')


def declared(row, minor):
    """Return the declaration of a published operation, or None."""
    found = index().find(row['method'], row['path'].removeprefix('/v2'))
    for route in found.routes if found else ():
        if minor not in route.window:
            continue
        controller = route.controller
        if route.handler != router.ACTION:
            return wsgi.declaration(controller, route.handler)
        for _, handler in inspect.getmembers(controller):
            for action in getattr(handler, 'actions', ()):
                if action.name == row['action'] and minor in action.window:
                    return wsgi.with_policy(controller, action.declared)
    return None


def test_every_operation_is_served_in_its_versions():
    for row in operations():
        asked = window(row, 'min_version', 'max_version')
        for minor in EVERY_VERSION:
            found = declared(row, minor)
            assert (found is not None) == (minor in asked), (row, minor)
            if found:
                policy = '' if found.policy is wsgi.OPEN else found.policy
                assert policy == row['policy'], row
                assert found.status == int(row['success_code']), row


def test_every_route_is_published():
    paths = {
        (
            row['method'],
            index().find(row['method'], row['path'].removeprefix('/v2')).routes[0],
        )
        for row in operations()
    }
    shapes = {(method, route.shape) for method, route in paths}
    assert {(route.method, route.shape) for route in PLAIN_ROUTES} == shapes


@pytest.fixture
def filled(api):
    """Create one record of each kind; return the path of the private type."""
    api.register('node@a')
    api.create_type('default')
    path = '/types/' + api.create_type('private', public=False)['id']
    api('POST', f'{path}/action', {'addProjectAccess': {'project': MINE}}, expect=202)
    return path


def test_types_show_the_published_fields(api, filled):
    inferred = {
        'snapshot_support',
        'create_share_from_snapshot_support',
        'revert_to_snapshot_support',
        'mount_snapshot_support',
    }
    wrappers = [
        row['field']
        for view in ('show wrapper', 'list wrapper')
        for row in published('response-fields.csv', resource='share type', view=view)
    ]
    for minor in EVERY_VERSION:
        fields = fields_of('share type', 'item', minor)
        of_specs = {field for field in fields if field.startswith('extra_specs')} - {
            'extra_specs'
        }
        specs = {'driver_handles_share_servers'}
        for field in of_specs:
            specs |= {field.partition('.')[2]} if '.' in field else inferred
        for roles in (ADMIN, MEMBER):
            shown = api.get(filled, minor=minor, roles=roles)
            listed = api.get('/types', minor=minor, roles=roles)
            assert [*shown, *listed] == wrappers
            for item in (shown['share_type'], listed['share_types'][0]):
                assert set(item) == fields - of_specs, minor
                if roles == MEMBER:
                    assert set(item['extra_specs']) == specs, minor
                else:
                    assert set(item['extra_specs']) - {'snapshot_support'} == {
                        'driver_handles_share_servers'
                    }


def test_other_lists_show_the_published_fields(api, filled):
    for minor in EVERY_VERSION:
        prefix = 'os-' if minor < 7 else ''
        zones = 'os-availability-zone' if prefix else 'availability-zones'
        access = f'{filled}/' + (
            'os-share-type-access' if prefix else 'share_type_access'
        )
        service = {'host': 'node@a', 'binary': 'manila-share'}
        for shown, resource, view in (
            (
                api.get(f'/{zones}', minor=minor)['availability_zones'][0],
                'availability zone',
                'item',
            ),
            (
                api.get(f'/{prefix}services', minor=minor)['services'][0],
                'service',
                'list item',
            ),
            (
                api('PUT', f'/{prefix}services/enable', service, minor=minor),
                'service',
                'update answer (flat)',
            ),
            (
                api.get(access, minor=minor)['share_type_access'][0],
                'share type access',
                'share_type_access[]',
            ),
        ):
            assert set(shown) == fields_of(resource, view, minor), minor


def test_pools_show_the_published_fields(api, filled):
    api.db.write(
        pools.save_report,
        'node@a',
        [pools.PoolReport('node@a#p', {'pool_name': 'p'}, None, None)],
        {},
    )
    path = '/scheduler-stats/pools'
    for minor in EVERY_VERSION:
        summary = fields_of('scheduler stats', 'pool summary', minor)
        detail = fields_of('scheduler stats', 'pool detail', minor)
        assert set(api.get(path, minor=minor)['pools'][0]) == summary
        assert set(api.get(f'{path}/detail', minor=minor)['pools'][0]) == (
            summary | detail
        )


def test_operations_are_allowed_for_published_personas(api, filled):
    message_id = api.db.write(
        messages.record,
        project_id=MINE,
        action=messages.Action.CREATE,
        resource=('SHARE', 'x'),
        ttl=9,
    )
    for row in operations():
        path = (
            row['path']
            .removeprefix('/v2')
            .replace('/types/{id}', filled)
            .replace('{key}', 'k')
            .replace('{id}', message_id)
        )
        body = {row['action']: {}} if row['action'] else None
        minor = window(row, 'min_version', 'max_version').until
        for roles in (GUEST, READER, MEMBER):
            answer = api.send(row['method'], path, body, minor=minor, roles=roles)
            allowed = roles in PERSONAS[row['default_role']]
            assert (answer.status_int != 403) == allowed, (row, roles)
