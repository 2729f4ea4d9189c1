"""Services are listed, filtered, enabled and disabled."""

import pytest

from tests.functional.api.plain_client import MEMBER


@pytest.fixture
def three(api, clock):
    """Register a dead scheduler, a live back end and a disabled one."""
    api.register('node', 'manila-scheduler', zone='east')
    clock.now += 61
    api.register('node@a', zone='west')
    api.register('node@b', zone='west', enabled=False, health='no disks')


def hosts(api, query='', **options):
    return [
        item['host'] for item in api.get('/services' + query, **options)['services']
    ]


@pytest.mark.facts('LP1853940')
def test_a_service_shows_its_state(api, three):
    dead, live, broken = api.get('/services')['services']
    assert live == {
        'id': live['id'],
        'binary': 'manila-share',
        'host': 'node@a',
        'zone': 'west',
        'status': 'enabled',
        'state': 'up',
        'updated_at': '2023-11-14T22:14:21.000000',
        'disabled_reason': None,
        'ensuring': False,
    }
    assert isinstance(live['id'], int)
    assert (dead['state'], dead['status']) == ('down', 'enabled')
    assert (broken['state'], broken['status']) == ('down', 'disabled')


@pytest.mark.facts('LP2146491', 'LP2146840', 'allow-filtering-services-by-ensuring')
@pytest.mark.parametrize(
    'query, shown',
    [
        ('?host=node', ['node']),
        ('?host=node@a', ['node@a']),
        ('?host=nod', []),
        ('?binary=manila-share', ['node@a', 'node@b']),
        ('?zone=west', ['node@a', 'node@b']),
        ('?zone=west&host=node', []),
        ('?state=up', ['node@a']),
        ('?state=down', ['node', 'node@b']),
        ('?state=sideways', []),
        ('?status=disabled', ['node@b']),
        ('?status=enabled', ['node', 'node@a']),
        ('?status=off', []),
        ('?ensuring=False', ['node', 'node@a', 'node@b']),
        ('?ensuring=true', []),
        ('?ensuring=perhaps', []),
        ('?unknown=1', ['node', 'node@a', 'node@b']),
    ],
)
def test_filters_are_exact(api, three, query, shown):
    assert hosts(api, query, minor=93) == shown


@pytest.mark.facts('allow-filtering-services-by-ensuring')
def test_ensuring_is_no_filter_in_older_versions(api, three):
    assert len(hosts(api, '?ensuring=perhaps', minor=92)) == 3


@pytest.mark.facts(
    'add_disabled_reason_to_services.1', 'add_disabled_reason_to_services.2'
)
def test_a_service_is_disabled_with_a_reason_and_enabled(api, three):
    service = {'host': 'node@a', 'binary': 'manila-share'}
    assert api(
        'PUT', '/services/disable', service | {'disabled_reason': 'new disks'}
    ) == service | {
        'status': 'disabled',
        'disabled_reason': 'new disks',
        'ensuring': None,
    }
    item = api.get('/services?host=node@a')['services'][0]
    assert (item['status'], item['disabled_reason'], item['state']) == (
        'disabled',
        'new disks',
        'up',
    )
    assert api(
        'PUT', '/services/enable', service | {'disabled_reason': 'none any more'}
    ) == service | {'status': 'enabled', 'disabled_reason': None, 'ensuring': None}
    item = api.get('/services?host=node@a')['services'][0]
    assert (item['status'], item['disabled_reason']) == ('enabled', None)


def test_older_versions_have_fewer_fields_and_other_paths(api, three):
    service = {'host': 'node@a', 'binary': 'manila-share'}
    assert api('PUT', '/os-services/disable', service, minor=6) == service | {
        'status': 'disabled'
    }
    assert api('PUT', '/services/enable', service, minor=83) == service | {
        'status': 'enabled',
        'disabled_reason': None,
    }
    api.refused('GET', '/os-services', expect=404, minor=7)
    api.refused('GET', '/services', expect=404, minor=6)
    api.refused('PUT', '/os-services/enable', service, expect=404, minor=7)
    api.refused('PUT', '/services/enable', service, expect=404, minor=6)


@pytest.mark.parametrize(
    'body, message',
    [
        ({}, 'is required'),
        ({'host': 'node@a'}, 'binary is required'),
        ({'binary': 'manila-share'}, 'host is required'),
        ({'host': 5, 'binary': 'manila-share'}, 'host must be'),
        ({'host': 'node@a', 'binary': ''}, 'binary must be'),
        (
            {'host': 'node@a', 'binary': 'manila-share', 'disabled_reason': ''},
            'disabled_reason must be',
        ),
        (
            {'host': 'node@a', 'binary': 'manila-share', 'disabled_reason': 'x' * 256},
            'disabled_reason must be',
        ),
        (None, 'Malformed'),
        ([], 'Malformed'),
        (b'\xff', 'Malformed'),
    ],
)
def test_a_bad_body_is_refused_and_changes_nothing(api, three, body, message):
    before = api.all_rows()
    assert message in api.refused('PUT', '/services/disable', body)
    assert api.all_rows() == before


def test_disabled_reason_is_refused_in_older_versions(api, three):
    assert 'disabled_reason' in api.refused(
        'PUT',
        '/services/disable',
        {'host': 'node@a', 'binary': 'manila-share', 'disabled_reason': 'because'},
        minor=82,
    )


def test_unknown_service_cannot_be_disabled(api, three):
    before = api.all_rows()
    for host, binary in (('node@c', 'manila-share'), ('node@a', 'manila-data')):
        assert host in api.refused(
            'PUT', '/services/disable', {'host': host, 'binary': binary}, expect=404
        )
    api.refused(
        'PUT',
        '/services/restart',
        {'host': 'node@a', 'binary': 'manila-share'},
        expect=404,
    )
    assert api.all_rows() == before


@pytest.mark.facts('services.members')
def test_projects_see_no_services(api, three):
    service = {'host': 'node@a', 'binary': 'manila-share'}
    before = api.all_rows()
    api.refused('GET', '/services', expect=403, roles=MEMBER)
    api.refused('PUT', '/services/disable', service, expect=403, roles=MEMBER)
    assert api.all_rows() == before


def test_list_takes_one_statement(api, three):
    with api.record_statements() as sent:
        api.get('/services?state=up')
    assert len(sent) == 1
