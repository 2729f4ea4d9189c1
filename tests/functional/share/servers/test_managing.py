"""Share servers are managed and unmanaged."""

import pytest

from tests.functional.share.servers.server_calls import manage
from tests.support import cloud_snapshots


@pytest.mark.facts('manage-unmanage-share-servers.1')
def test_server_is_managed_with_its_addresses(cloud):
    network = cloud.add_network()
    identifier = cloud.driver().add_unmanaged_server('theirs', ['10.10.0.50'])
    server_id = manage(cloud, network, identifier)
    (server,) = cloud.servers()
    assert (server.id, server.status) == (server_id, 'active')
    assert server.identifier == 'theirs'
    assert not server.is_auto_deletable
    assert server.network_allocation_update_support
    assert cloud.addresses() == {server_id: {'10.10.0.50'}}
    share = cloud.create_share_on_network(network)
    assert cloud.server_of(share) == server_id


@pytest.mark.parametrize(
    'identifier, addresses', [('nowhere', None), ('theirs', ['192.0.2.1'])]
)
def test_server_that_does_not_fit_its_network_is_not_managed(
    cloud, identifier, addresses
):
    if addresses:
        cloud.driver().add_unmanaged_server(identifier, addresses)
    server_id = manage(cloud, cloud.add_network(), identifier)
    assert cloud.servers()[0].status == 'manage_error'
    assert cloud.addresses() == {}
    cloud.api.request(
        'POST',
        f'/share-servers/{server_id}/action',
        {'unmanage': {'force': True}},
        expect=202,
    )
    cloud.settle()
    assert cloud.servers() == []


def test_wrong_identifier_does_not_block_the_right_one(cloud):
    """Identifiers that end alike are of one server."""
    network = cloud.add_network()
    cloud.driver().add_unmanaged_server('theirs', ['10.10.0.50'])
    for identifier in ('node-theirs', 'theirs'):
        manage(cloud, network, identifier)
    assert [(one.identifier, one.status) for one in cloud.servers()] == [
        ('node-theirs', 'manage_error'),
        ('theirs', 'active'),
    ]


@pytest.mark.facts('manage-unmanage-share-servers.1')
def test_unmanaged_server_releases_its_addresses(cloud):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    (server,) = cloud.servers()
    cloud.api.request(
        'POST',
        f'/share-servers/{server.id}/action',
        {'unmanage': {'force': False}},
        expect=202,
    )
    cloud.settle()
    assert cloud.servers() == []
    assert cloud.addresses() == {}
    again = manage(cloud, cloud.add_network(), server.identifier)
    assert cloud.addresses() == {again: {'10.10.0.2'}}


@pytest.mark.parametrize('force, status', [(False, 'unmanage_error'), (True, None)])
def test_driver_without_unmanage_support_requires_force(cloud, force, status):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    (server,) = cloud.servers()
    cloud.driver().faults.fail_next('unmanage_server', error=NotImplementedError())
    cloud.api.request(
        'POST',
        f'/share-servers/{server.id}/action',
        {'unmanage': {'force': force}},
        expect=202,
    )
    cloud.settle()
    assert [row.status for row in cloud.servers()] == ([status] if status else [])
    if force:  # it still exists, but is no longer managed, as requested
        cloud.driver().backend.state.servers.drop(server.id)


@pytest.mark.facts('snapshots.unmanage')
def test_snapshots_on_servers_are_managed_from_2_49_on(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share = cloud.create_share_on_network(cloud.add_network())
    path = f'/snapshots/{cloud_snapshots.create_available(cloud, share)}'
    location = cloud.api.get(path)['snapshot']['provider_location']
    requests = (
        (f'{path}/action', {'unmanage': None}),
        (
            '/snapshots/manage',
            {'snapshot': {'share_id': share, 'provider_location': location}},
        ),
    )
    for url, body in requests:
        for version, code in (('2.48', 403), ('2.49', 202)):
            answer = cloud.api.request('POST', url, body, version=version, expect=code)
        cloud.settle()
    cloud.api.get(path, expect=404)
    managed = answer.json['snapshot']['id']
    shown = cloud.api.get(f'/snapshots/{managed}')['snapshot']
    assert shown['status'] == 'available'
