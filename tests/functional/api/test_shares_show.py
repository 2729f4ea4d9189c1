"""What the view of a share tells."""

import pytest

from tests.support.cloud import TYPE_ID


def test_any_administrator_sees_the_host(world):
    assert world.admin.show(world.share)['host'].startswith('node@')
    assert 'host' not in world.member.show(world.share)


def test_share_type_becomes_the_id_at_2_6(world):
    for version, expected in (('2.5', 'default'), ('2.6', TYPE_ID)):
        share = world.member.show(world.share, version=version)
        assert share['share_type'] == expected
        assert share['volume_type'] == 'default'


def test_has_replicas_with_two_or_more(world):
    assert world.member.show(world.replicated)['has_replicas'] is True
    assert world.member.show(world.share)['has_replicas'] is False


@pytest.mark.parametrize('statuses', [
    ('migrating', 'available'), ('server_migrating', 'available'),
    ('available', 'error'), ('available', 'creating'), ('error', 'deleting'),
    ('error', 'error_deleting'), ('error_deleting', 'creating')])
@pytest.mark.parametrize('swapped', [False, True])
def test_status_is_that_of_one_instance(world, statuses, swapped):
    """The first of the two statuses stands for the share."""
    instances = world.admin.get(f'/shares/{world.replicated}/instances')[
        'share_instances']
    for instance, status in zip(
            instances, reversed(statuses) if swapped else statuses,
            strict=True):
        world.admin.request(
            'POST', f'/share_instances/{instance["id"]}/action',
            {'reset_status': {'status': status}}, expect=202)
    assert world.member.show(world.replicated)['status'] == statuses[0]
    share, = (one for one in world.member.get('/shares/detail')['shares']
              if one['id'] == world.replicated)
    assert share['status'] == statuses[0]


def test_share_in_the_recycle_bin_is_shown(cloud, member):
    share = cloud.create_share()
    member.act(share, 'soft_delete')
    assert member.show(share)['is_soft_deleted'] is True


def test_times_are_utc_with_microseconds(world):
    created = world.member.show(world.share)['created_at']
    assert created.startswith('2027-01-15T0')
    assert len(created) == len('2027-01-15T08:00:00.000000')


def test_errors_name_version_and_request(world):
    answer = world.member.request('GET', '/shares/moon', version='2.42',
                                  expect=404)
    headers = answer.headers
    assert headers['X-OpenStack-Manila-API-Version'] == '2.42'
    assert headers['Vary'] == 'X-OpenStack-Manila-API-Version'
    assert headers['x-compute-request-id'].startswith('req-')
    assert headers['x-openstack-request-id'].startswith('req-')
