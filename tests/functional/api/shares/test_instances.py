"""Share instances are listed, reset and deleted by administrators."""

import urllib.parse

import pytest


@pytest.fixture
def share(cloud):
    return cloud.create_share(size=2)


@pytest.fixture
def instance(admin, share):
    (found,) = instances_of(admin, share)
    return found


def instances_of(api, share):
    return api.get(f'/shares/{share}/instances')['share_instances']


def listed(api, **query):
    version = query.pop('version', None)
    found = api.get(
        '/share_instances?' + urllib.parse.urlencode(query), version=version
    )['share_instances']
    return [one['id'] for one in found]


def act(api, instance, action, args=None, expect=202):
    return api.request(
        'POST',
        f'/share_instances/{instance["id"]}/action',
        {action: args},
        expect=expect,
    )


def test_instance_shows_the_host_of_the_share(admin, share, instance):
    assert instance['share_id'] == share
    assert instance['host'] == admin.show(share)['host']
    assert admin.get(f'/share_instances/{instance["id"]}') == {
        'share_instance': instance
    }


def test_list_has_the_instances_of_all_projects(cloud, admin, stranger, instance):
    stranger.create()
    cloud.settle()
    assert len(listed(admin)) == 2
    assert instance['id'] in listed(admin)


@pytest.mark.parametrize('key', ['host', 'status', 'share_type_id'])
def test_column_filters_are_exact(admin, instance, key):
    assert listed(admin, **{key: instance[key]}) == [instance['id']]
    assert listed(admin, **{key: 'moon'}) == []


def test_share_server_filter_is_exact(admin, instance):
    assert listed(admin, share_server_id='moon') == []


@pytest.mark.facts('add-export-location-filter')
@pytest.mark.parametrize('key', ['id', 'path'])
def test_export_location_is_a_filter_from_2_35(cloud, admin, share, instance, key):
    other = cloud.create_share()
    one = admin.get(f'/shares/{share}/export_locations')['export_locations'][0]
    query = {f'export_location_{key}': one[key]}
    assert listed(admin, **query) == [instance['id']]
    assert set(listed(admin, version='2.34', **query)) == {
        instance['id'],
        instances_of(admin, other)[0]['id'],
    }


def test_recycle_bin_is_a_filter_from_2_69(cloud, admin, share, instance):
    other = instances_of(admin, cloud.create_share())[0]
    admin.act(share, 'soft_delete')
    assert listed(admin, is_soft_deleted='true') == [instance['id']]
    assert listed(admin, is_soft_deleted='false') == [other['id']]
    assert len(listed(admin, is_soft_deleted='true', version='2.68')) == 2
    assert len(listed(admin)) == 2


@pytest.mark.facts('fix-share-instance-list-with-limit')
def test_list_is_paged(cloud, admin, share, instance):
    cloud.create_share()
    newest, oldest = listed(admin)
    assert listed(admin, limit=1) == [newest]
    assert listed(admin, limit=1, offset=1) == [oldest]
    for path in ('/share_instances', f'/shares/{share}/instances'):
        page = admin.get(f'{path}?limit=1')
        assert f'{path}?' in page['share_instances_links'][0]['href']


@pytest.mark.parametrize(
    'path',
    [
        '/share_instances',
        '/share_instances/{id}',
        '/shares/{share}/instances',
        '/share_instances/{id}/export_locations',
    ],
)
def test_instances_are_for_administrators(member, share, instance, path):
    member.request('GET', path.format(share=share, id=instance['id']), expect=403)


def test_there_is_no_detailed_list(admin):
    admin.request('GET', '/share_instances/detail', expect=404)


def test_reset_status_sets_the_status_of_the_share(admin, share, instance):
    act(admin, instance, 'reset_status', {'status': 'error'})
    assert admin.show(share)['status'] == 'error'
    act(admin, instance, 'reset_status', {'status': 'moon'}, expect=400)


@pytest.mark.facts('force_delete')
def test_force_delete_removes_the_last_instance_and_its_share(
    cloud, admin, share, instance, fail_next_call
):
    act(admin, instance, 'reset_status', {'status': 'creating'})
    fail_next_call('delete_share')
    act(admin, instance, 'force_delete')
    cloud.settle()
    admin.request('GET', f'/shares/{share}', expect=404)
    assert cloud.usage('gigabytes') == (0, 0)


def test_force_delete_keeps_a_share_with_other_instances(sample):
    one, other = (
        found['id'] for found in instances_of(sample.admin, sample.replicated_share)
    )
    sample.admin.request(
        'POST', f'/share_instances/{one}/action', {'force_delete': None}, expect=202
    )
    sample.cloud.settle()
    assert [
        found['id'] for found in instances_of(sample.admin, sample.replicated_share)
    ] == [other]
