"""Availability zones and pools reported by services."""

import re

import pytest

from manila_lite.db.queries.services import pools
from tests.functional.api.plain_client import GUEST, MEMBER, READER


@pytest.fixture
def reported(api):
    """Report four pools: two of alpha, one of beta, one of another node."""
    for host, names in (
        ('one@alpha', ['A', 'B']),
        ('one@beta', ['A']),
        ('two@alpha', ['A']),
    ):
        api.register(host)
        api.db.write(
            pools.save_report,
            host,
            [
                pools.PoolReport(
                    f'{host}#{name}',
                    {
                        'pool_name': name,
                        'snapshot_support': host != 'one@beta',
                        'driver_handles_share_servers': False,
                        'storage_protocol': ['NFS', 'CIFS'],
                        'vendor_name': host,
                        'timestamp': '2023-11-14T22:13:20.000000',
                    },
                    None,
                    None,
                )
                for name in names
            ],
            {},
        )


def names(api, query='', **options):
    return [
        pool['name']
        for pool in api.get('/scheduler-stats/pools' + query, **options)['pools']
    ]


def test_services_create_their_zones(api):
    api.register('node@a', zone='west')
    api.register('node@b', zone='east')
    answer = api.get('/availability-zones', roles=READER)
    east, west = answer['availability_zones']
    assert east == {
        'id': east['id'],
        'name': 'east',
        'created_at': '2023-11-14T22:13:20.000000',
        'updated_at': None,
    }
    assert west['name'] == 'west'
    assert api.get('/os-availability-zone', minor=6, roles=MEMBER) == answer
    api.refused('GET', '/availability-zones', expect=403, roles=GUEST)


@pytest.mark.facts('pools.detail')
def test_a_pool_is_shown_with_its_parts(api, reported):
    assert api.get('/scheduler-stats/pools?pool=B') == {
        'pools': [
            {'name': 'one@alpha#B', 'host': 'one', 'backend': 'alpha', 'pool': 'B'}
        ]
    }
    (detail,) = api.get('/scheduler-stats/pools/detail?pool=B')['pools']
    assert detail['capabilities'] == {
        'pool_name': 'B',
        'snapshot_support': True,
        'driver_handles_share_servers': False,
        'storage_protocol': ['NFS', 'CIFS'],
        'vendor_name': 'one@alpha',
        'timestamp': '2023-11-14T22:13:20.000000',
    }


@pytest.mark.facts('backend_query')
@pytest.mark.parametrize(
    'query, shown',
    [
        ('', ['one@alpha#A', 'one@alpha#B', 'one@beta#A', 'two@alpha#A']),
        ('?host=two', ['two@alpha#A']),
        ('?host=.*', ...),
        ('?host=wo', []),
        ('?backend=alpha|beta', ...),
        ('?backend=b', ['one@beta#A']),
        ('?host=one&pool=A$', ['one@alpha#A', 'one@beta#A']),
        ("?capabilities={'vendor_name': 'two.*'}", ['two@alpha#A']),
        ("?capabilities={'snapshot_support': 'False'}", ['one@beta#A']),
        ("?capabilities={'storage_protocol': 'CIFS'}", ...),
        ("?capabilities={'unheard_of': 'True'}", []),
        ('?unknown=1', ...),
    ],
)
def test_filters_are_regular_expressions(api, reported, query, shown):
    assert names(api, query) == (names(api) if shown is ... else shown)


@pytest.mark.parametrize('name', ['host', 'backend', 'pool'])
@pytest.mark.parametrize(
    'text', ['(', '*', '[a', 'a{99999999999}', '(?P<1>a)', 'x' * 256]
)
def test_a_broken_expression_is_refused(api, reported, name, text):
    assert f'{name} must be a regular expression' in api.refused(
        'GET', f'/scheduler-stats/pools/detail?{name}={text}'
    )


@pytest.mark.parametrize('text', ['{', 'x', '[1]', "{'a': '('}"])
def test_broken_capabilities_are_refused(api, reported, text):
    assert re.match(
        '.*capabilities must be',
        api.refused('GET', f'/scheduler-stats/pools?capabilities={text}'),
    )


@pytest.mark.facts(
    'add-share-type-filter-to-pool-list',
    'add-share-type-filter-to-pool-list.2',
    'share_type_query',
)
def test_pools_are_filtered_by_share_type(api, reported):
    item = api.create_type('snapshots', {'snapshot_support': '<is> True'})
    serving = ['one@alpha#A', 'one@alpha#B', 'two@alpha#A']
    for id_or_name in (item['id'], 'snapshots'):
        query = f'?share_type={id_or_name}'
        assert names(api, query, minor=23) == serving
        assert len(names(api, query, minor=22)) == 4
    assert 'share_type' in api.refused(
        'GET', '/scheduler-stats/pools?share_type=missing'
    )


def test_pools_the_scheduler_ignores_are_not_shown(api, reported, clock):
    api('PUT', '/services/disable', {'host': 'one@alpha', 'binary': 'manila-share'})
    assert names(api) == ['one@beta#A', 'two@alpha#A']
    clock.now += 61
    assert names(api) == []


@pytest.mark.facts('LP1917520')
def test_projects_see_no_pools(api, reported):
    for path in ('/scheduler-stats/pools', '/scheduler-stats/pools/detail'):
        message = api.refused('GET', path, expect=403, roles=MEMBER)
        assert 'Policy does not allow' in message
        assert 'Traceback' not in message
        assert '\n' not in message


@pytest.mark.parametrize(
    'path, count',
    [
        ('/availability-zones', 1),
        ('/scheduler-stats/pools', 1),
        ('/scheduler-stats/pools/detail?share_type=t', 2),
    ],
)
def test_statement_count_of_lists_is_constant(api, reported, path, count):
    api.create_type('t')
    with api.record_statements() as sent:
        api.get(path)
    assert len(sent) == count
