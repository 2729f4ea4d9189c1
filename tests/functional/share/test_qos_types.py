"""QoS types of shares: where they are placed and what drivers are given."""

import pytest

from tests.support.cloud import TYPE_ID
from tests.support.replicated import ReplicatedCloud

DRIVER = 'share_driver = tests.support.recording_driver.RecordingDriver'
SPECS = {'policy_type': 'adaptive', 'peak_iops': '5000'}


@pytest.fixture
def cloud(build_cloud):
    """A cloud whose default share type names the QoS type `gold`."""
    cloud = build_cloud(backend_conf=DRIVER)
    set_default(cloud, 'gold')
    return cloud


def set_default(cloud, name):
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'default_qos_type': name}},
        expect=200,
    )


def create_qos_type(cloud, name='gold', specs=SPECS):
    return cloud.api.request(
        'POST', '/qos-types', {'qos_type': {'name': name, 'specs': specs}}, expect=200
    ).json['qos_type']['id']


def given(cloud, method):
    """Return the shares that drivers were given by calls of a method."""
    return [
        arguments['share']
        for name in cloud.backend_names
        for called, arguments in cloud.driver(name).recorded
        if called == method
    ]


def manage(cloud, path):
    return cloud.api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'service_host': 'node@alpha#pool',
                'export_path': path,
            }
        },
        expect=200,
    ).json['share']['id']


def report_support(cloud, backend, supported):
    """Let a back end report whether it supports QoS types."""
    cloud.driver(backend).qos_type_support = supported
    for each in cloud.share.backends:
        each.report()
    cloud.clock.advance(10)
    cloud.beat()


@pytest.mark.facts('qos-types.2')
def test_driver_is_given_the_specs_of_the_type(cloud):
    qos_type = create_qos_type(cloud)
    cloud.create_share()
    (share,) = given(cloud, 'create_share')
    assert share['qos_type_id'] == qos_type
    assert share['qos_specs'] == SPECS


def test_driver_is_given_the_present_specs_later(cloud):
    qos_type = create_qos_type(cloud)
    share = cloud.create_share()
    cloud.api.request(
        'PUT',
        f'/qos-types/{qos_type}/specs/peak_iops',
        {'peak_iops': '7000'},
        expect=200,
    )
    cloud.api.act(share, 'extend', {'new_size': 2})
    cloud.settle()
    (extended,) = given(cloud, 'extend_share')
    assert extended['qos_specs'] == SPECS | {'peak_iops': '7000'}


def test_later_default_does_not_change_existing_shares(cloud):
    first = create_qos_type(cloud)
    share = cloud.create_share()
    second = create_qos_type(cloud, 'silver')
    set_default(cloud, 'silver')
    cloud.create_share()
    cloud.api.act(share, 'extend', {'new_size': 2})
    cloud.settle()
    created = [one['qos_type_id'] for one in given(cloud, 'create_share')]
    assert sorted(created) == sorted([first, second])
    assert given(cloud, 'extend_share')[0]['qos_type_id'] == first
    cloud.api.request('DELETE', f'/qos-types/{first}', expect=400)


def test_share_without_one_has_no_specs(build_cloud):
    cloud = build_cloud(backend_conf=DRIVER)
    create_qos_type(cloud)
    cloud.create_share()
    (share,) = given(cloud, 'create_share')
    assert (share['qos_type_id'], share['qos_specs']) == (None, {})


def test_share_type_that_names_no_existing_type_creates_no_shares(cloud):
    answer = cloud.api.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 1}}, expect=400
    )
    message = answer.json['badRequest']['message']
    assert 'default_qos_type of the share type is gold' in message
    assert cloud.api.get('/shares?all_tenants=1')['shares'] == []
    assert cloud.usage('shares') == (0, 0)
    create_qos_type(cloud)
    cloud.create_share()


def test_managed_share_has_the_type(cloud):
    qos_type = create_qos_type(cloud)
    path = cloud.driver().add_unmanaged_share('old', size=2)
    manage(cloud, path)
    cloud.settle()
    (share,) = given(cloud, 'manage_existing')
    assert share['qos_type_id'] == qos_type
    assert share['qos_specs'] == SPECS


def test_replica_has_the_type_of_its_share(build_cloud):
    cloud = build_cloud(backend_conf=DRIVER, kind=ReplicatedCloud)
    set_default(cloud, 'gold')
    first = create_qos_type(cloud)
    share = cloud.create_share_on('alpha')
    create_qos_type(cloud, 'silver')
    set_default(cloud, 'silver')
    report_support(cloud, 'beta', False)
    cloud.replicate(share)
    (replica,) = (
        arguments['new_replica']
        for called, arguments in cloud.driver('gamma').recorded
        if called == 'create_replica'
    )
    assert replica['qos_type_id'] == first
    assert replica['qos_specs'] == SPECS


def test_share_is_placed_where_types_are_supported(cloud):
    create_qos_type(cloud)
    for backend in ('alpha', 'beta'):
        report_support(cloud, backend, False)
        other = {'alpha': 'beta', 'beta': 'alpha'}[backend]
        share = cloud.create_share()
        assert cloud.api.show(share)['host'] == f'node@{other}#pool'
        report_support(cloud, backend, True)


def test_share_is_not_placed_where_no_back_end_supports_types(cloud):
    create_qos_type(cloud)
    for backend in cloud.backend_names:
        report_support(cloud, backend, False)
    share = cloud.api.create()['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    (message,) = cloud.api.get('/messages')['messages']
    assert message['detail_id'] == '008'


def test_deleted_share_no_longer_uses_its_type(cloud):
    qos_type = create_qos_type(cloud)
    share = cloud.create_share()
    path = f'/types/{TYPE_ID}/extra_specs/default_qos_type'
    cloud.api.request('DELETE', path, expect=202)
    cloud.api.request('DELETE', f'/qos-types/{qos_type}', expect=400)
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('DELETE', f'/qos-types/{qos_type}', expect=204)
