"""Deletion of networks and servers concurrent with their use.

On each database, one of two concurrent requests is accepted and the other
refused, or both outcomes are consistent.
"""

import functools

import pytest

from tests.support import sampling
from tests.support.concurrent_calls import status_codes
from tests.support.dhss import ShareServersCloud
from tests.support.share_servers import HOST, insert_server

pytestmark = sampling.dialects


ROUNDS = 6


@pytest.fixture
def cloud(build_cloud, database_url):
    return build_cloud(kind=ShareServersCloud, url=database_url, backends=['alpha'])


def asked(cloud, method, path, body=None):
    return functools.partial(cloud.api.request, method, path, body)


def manage_share(cloud, server, number):
    return asked(
        cloud,
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'export_path': f'10.10.0.9:/{number}',
                'service_host': f'{HOST}#pool',
                'share_server_id': server,
            }
        },
    )


def test_either_network_deletion_or_share_creation_is_accepted(cloud):
    for _ in range(ROUNDS):
        network = cloud.add_network()
        created, gone = status_codes(
            asked(
                cloud,
                'POST',
                '/shares',
                {
                    'share': {
                        'share_proto': 'NFS',
                        'size': 1,
                        'share_network_id': network,
                    }
                },
            ),
            asked(cloud, 'DELETE', f'/share-networks/{network}'),
        )
        assert (created, gone) in [(200, 409), (404, 202)]


def test_either_server_deletion_or_managing_a_share_is_accepted(cloud):
    network = cloud.add_network()
    for number in range(ROUNDS):
        server = insert_server(cloud, network)
        taken, gone = status_codes(
            manage_share(cloud, server, number),
            asked(cloud, 'DELETE', f'/share-servers/{server}'),
        )
        assert (taken, gone) in [(200, 409), (409, 202)]
        shares = cloud.api.get(f'/shares?share_server_id={server}')
        assert len(shares['shares']) == (taken == 200)


def test_either_unmanage_or_deletion_of_a_server_is_accepted(cloud):
    network = cloud.add_network()
    for _ in range(ROUNDS):
        server = insert_server(cloud, network)
        unmanaged, gone = status_codes(
            asked(cloud, 'POST', f'/share-servers/{server}/action', {'unmanage': None}),
            asked(cloud, 'DELETE', f'/share-servers/{server}'),
        )
        assert (unmanaged, gone) in [(202, 403), (400, 202)]


def test_server_is_managed_once(cloud):
    network = cloud.add_network()
    for number in range(ROUNDS):
        codes = status_codes(
            *[
                asked(
                    cloud,
                    'POST',
                    '/share-servers/manage',
                    {
                        'share_server': {
                            'host': HOST,
                            'share_network_id': network,
                            'identifier': f'vs{number:06}',
                        }
                    },
                )
            ]
            * 3
        )
        assert sorted(codes) == [202, 400, 400]
    found = cloud.api.get('/share-servers')['share_servers']
    assert len(found) == ROUNDS


def test_server_lifecycle_on_each_database(cloud):
    network = cloud.add_network(None, 'nova')
    share = cloud.create_share_on_network(network)
    server = cloud.server_of(share)
    subnets = cloud.api.get(f'/share-servers/{server}')['share_server'][
        'share_network_subnet_ids'
    ]
    for query in (
        f'share_network={network}',
        f'share_network_id={network}',
        f'share_network_subnet_id={subnets[0]}',
        f'host={HOST}',
        'project_id=project',
        'is_auto_deletable=true',
        'status=active&task_state=migration_error',
        'name=x',
    ):
        found = cloud.api.get(f'/share-servers?{query}')['share_servers']
        assert [one['id'] for one in found] == (
            [] if '&' in query or 'name=x' in query else [server]
        ), query
    cloud.api.act(
        share,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=200,
    )
    cloud.settle()
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('DELETE', f'/share-servers/{server}', expect=202)
    cloud.settle()
    assert cloud.servers() == []
    cloud.check_invariants()
