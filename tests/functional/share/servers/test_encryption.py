"""Encryption keys on their way to drivers and to share servers."""

import pytest

from tests.functional.share.servers.server_calls import set_up
from tests.support import cloud_snapshots
from tests.support.cloud import TYPE_ID
from tests.support.replicated import ReplicatedCloud

DRIVER = 'share_driver = tests.support.recording_driver.RecordingDriver'
KEY = '11111111-2222-4333-8444-555555555555'
OTHER = '66666666-7777-4888-9999-000000000000'


@pytest.fixture
def cloud(build_cloud):
    """A cloud whose share servers are encrypted."""
    cloud = build_cloud(backend_conf=DRIVER)
    set_support(cloud, 'share_server')
    return cloud


def set_support(cloud, value):
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'encryption_support': value}},
        expect=200,
    )


def create(cloud, network, key=None, **body):
    """Create a share, with the key if there is one; return its server."""
    if key is not None:
        body['encryption_key_ref'] = key
    return cloud.server_of(cloud.create_share_on_network(network, **body))


def given(cloud, method):
    return [
        arguments for called, arguments in cloud.driver().recorded if called == method
    ]


@pytest.mark.facts('add-share-and-share-server-encryption-key.1')
def test_server_is_built_with_the_key_of_its_first_share(cloud):
    server = create(cloud, cloud.add_network(), KEY)
    (setup,) = given(cloud, 'setup_server')
    assert setup['kwargs']['metadata']['encryption_key_ref'] == KEY
    (share,) = (one['share'] for one in given(cloud, 'create_share'))
    assert share['encryption_key_ref'] == KEY
    assert share['share_server']['encryption_key_ref'] == KEY
    shown = cloud.api.get(f'/share-servers/{server}')['share_server']
    assert shown['encryption_key_ref'] == KEY


def test_shares_with_one_key_share_a_server(cloud):
    network = cloud.add_network()
    first = create(cloud, network, KEY)
    second = create(cloud, network, OTHER)
    third = create(cloud, network)
    assert len({first, second, third}) == set_up(cloud) == 3
    assert create(cloud, network, KEY) == first
    assert create(cloud, network, OTHER) == second
    assert create(cloud, network) == third
    assert set_up(cloud) == 3


def test_driver_chooses_among_servers_with_the_key(cloud):
    network = cloud.add_network()
    server = create(cloud, network, KEY)
    create(cloud, network)
    create(cloud, network, KEY)
    (choice,) = given(cloud, 'choose_share_server_compatible_with_share')
    assert choice['encryption_key_ref'] == KEY
    assert [one['id'] for one in choice['share_servers']] == [server]


def test_driver_without_the_parameter_is_not_given_it(cloud):
    network = cloud.add_network()
    for _ in range(2):
        create(cloud, network)
    (choice,) = given(cloud, 'choose_share_server_compatible_with_share')
    assert 'encryption_key_ref' not in choice
    (setup,) = given(cloud, 'setup_server')
    assert 'encryption_key_ref' not in setup['kwargs']['metadata']


@pytest.mark.facts('add-share-and-share-server-encryption-key.1')
def test_servers_of_encrypted_shares_have_no_key(cloud):
    """The type has each share encrypted by its own key."""
    set_support(cloud, 'share')
    network = cloud.add_network()
    server = create(cloud, network, KEY)
    assert create(cloud, network, OTHER) == server
    shown = cloud.api.get(f'/share-servers/{server}')['share_server']
    assert shown['encryption_key_ref'] is None
    keys = [one['share']['encryption_key_ref'] for one in given(cloud, 'create_share')]
    assert keys == [KEY, OTHER]


def test_two_concurrent_first_shares_with_other_keys_build_two_servers(cloud):
    network = cloud.add_network()
    for key in (KEY, OTHER, KEY):
        cloud.api.create(share_network_id=network, encryption_key_ref=key)
    cloud.settle()
    keys = [server.encryption_key_ref for server in cloud.servers()]
    assert sorted(keys) == [KEY, OTHER]


def test_clone_has_the_key_of_its_source(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    network = cloud.add_network()
    parent = cloud.create_share_on_network(network, encryption_key_ref=KEY)
    snapshot = cloud_snapshots.create_available(cloud, parent)
    share = cloud.create_share_on_network(network, snapshot_id=snapshot)
    assert cloud.api.show(share)['encryption_key_ref'] == KEY
    assert cloud.server_of(share) == cloud.server_of(parent)
    answer = cloud.api.request(
        'POST',
        '/shares',
        {
            'share': {
                'share_proto': 'NFS',
                'size': 1,
                'snapshot_id': snapshot,
                'encryption_key_ref': OTHER,
            }
        },
        expect=400,
    )
    assert 'encryption_key_ref' in answer.json['badRequest']['message']


def test_replica_has_the_key_of_its_share(build_cloud):
    cloud = build_cloud(backend_conf=DRIVER, kind=ReplicatedCloud)
    set_support(cloud, 'share')
    share = cloud.create_share_on('alpha', encryption_key_ref=KEY)
    cloud.replicate(share, 'beta')
    (call,) = (
        arguments
        for called, arguments in cloud.driver('beta').recorded
        if called == 'create_replica'
    )
    assert call['new_replica']['encryption_key_ref'] == KEY
