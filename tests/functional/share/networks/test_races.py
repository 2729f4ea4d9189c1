"""Share networks on every database, and with concurrent clients."""

import pytest

from tests.functional.share.networks.networks_in_use import NEUTRON, NetworkCloud
from tests.support import sampling
from tests.support.concurrent_calls import each

pytestmark = sampling.dialects


THREADS = 6


@pytest.fixture
def cloud(build_cloud, database_url):
    return build_cloud(kind=NetworkCloud, url=database_url, backends=['alpha'])


def test_lifecycle_of_networks_in_use_on_each_database(cloud):
    """Lists, changes with their checks, and deletion."""
    api = cloud.api
    for query in (
        'name~=x',
        'security_service=x',
        'ip_version=9',
        'neutron_net_id=x',
        'created_since=2100-01-01',
    ):
        assert api.get(f'/share-networks/detail?{query}')['share_networks'] == []
    assert cloud.attached() == {cloud.service}
    ask = {'current_service_id': cloud.service, 'new_service_id': cloud.new_service()}
    path = f'/security-services/{cloud.service}'
    api.request('PUT', path, {'security_service': {'user': 'x'}}, expect=403)
    assert cloud.check('update_security_service_check', **ask)['compatible']
    cloud.act('update_security_service', **ask)
    cloud.settle()
    api.request('PUT', path, {'security_service': {'type': 'kerberos'}}, expect=200)
    api.request('DELETE', path, expect=202)
    assert cloud.check('share_network_subnet_create_check', **NEUTRON)['compatible']
    subnet = cloud.add_subnet_like(**NEUTRON)['share_network_subnet']['id']
    cloud.settle()
    assert cloud.status() == cloud.server_status() == 'active'
    api.delete(cloud.used_by)
    cloud.settle()
    for one in (f'/subnets/{subnet}', ''):
        api.request('DELETE', f'/share-networks/{cloud.network}{one}', expect=202)
    cloud.settle()
    assert cloud.addresses() == {}
    assert cloud.usage('share_networks') == (0, 0)
    cloud.check_invariants()


def test_concurrent_changes_are_accepted_only_as_often_as_allowed(cloud):
    api, network = cloud.api, cloud.add_network()
    action = f'/share-networks/{network}/action'
    services = [cloud.new_service() for _ in range(THREADS)]
    assert sorted(
        each(
            lambda number: (
                api.request(
                    'POST',
                    action,
                    {'add_security_service': {'security_service_id': services[number]}},
                ).status_int
            ),
            THREADS,
        )
    ) == [200] + [409] * (THREADS - 1)
    assert sorted(
        each(
            lambda number: (
                api.request(
                    'POST',
                    f'/share-networks/{network}/subnets',
                    {'share-network-subnet': {'availability_zone': 'nova'}},
                    version='2.69',
                ).status_int
            ),
            THREADS,
        )
    ) == [200] + [409] * (THREADS - 1)
    api.request(
        'PUT', '/quota-sets/project', {'quota_set': {'share_networks': 4}}, expect=200
    )
    assert sorted(
        each(
            lambda number: (
                api.request('POST', '/share-networks', {'share_network': {}}).status_int
            ),
            THREADS,
        )
    ) == [200] * 2 + [413] * (THREADS - 2)
    other = cloud.api.get('/share-networks')['share_networks'][0]['id']
    assert sorted(
        each(
            lambda number: api.request('DELETE', f'/share-networks/{other}').status_int,
            THREADS,
        )
    ) == [202] + [404] * (THREADS - 1)
    assert cloud.usage('share_networks') == (3, 0)
    cloud.settle()
    cloud.check_invariants()


def test_share_and_deletion_of_its_network_exclude_each_other(cloud):
    api, network = cloud.api, cloud.add_network()

    def ask(number: int) -> int:
        if number % 2:
            return api.request('DELETE', f'/share-networks/{network}').status_int
        return api.request(
            'POST',
            '/shares',
            {'share': {'share_proto': 'NFS', 'size': 1, 'share_network_id': network}},
        ).status_int

    codes = each(ask, 4)
    created, deleted = codes.count(200), codes.count(202)
    assert (created == 0) != (deleted == 0), codes
    cloud.settle()
    cloud.check_invariants()
