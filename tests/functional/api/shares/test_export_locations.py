"""Export locations of shares and their metadata."""

import pytest

from tests.functional.api import metadata_client
from tests.functional.api.conftest import member_of


@pytest.fixture
def share(cloud):
    return cloud.create_share()


def list_exports(api, share, **options):
    return api.get(f'/shares/{share}/export_locations', **options)['export_locations']


def paths(api, share, **options):
    return [one['path'] for one in list_exports(api, share, **options)]


def path_of(share, one, rest=''):
    return f'/shares/{share}/export_locations/{one["id"]}{rest}'


@pytest.fixture
def admin_only(admin, share):
    """Return the export location that only administrators see."""
    (found,) = (one for one in list_exports(admin, share) if one['is_admin_only'])
    return found


@pytest.fixture
def public_location(member, share):
    (found,) = list_exports(member, share)
    return found


def test_lists_have_no_timestamps_in_any_version(sample):
    for version in ('2.9', '2.13', '2.14'):
        for one in list_exports(sample.admin, sample.share, version=version):
            assert not {'created_at', 'updated_at'} & set(one)


@pytest.mark.facts('export_location_is_admin_only')
def test_some_locations_are_for_administrators(
    admin, member, share, admin_only, public_location
):
    assert {one['id'] for one in list_exports(admin, share)} == {
        admin_only['id'],
        public_location['id'],
    }
    assert not {'is_admin_only', 'share_instance_id'} & set(public_location)
    member.request('GET', path_of(share, admin_only), expect=403)
    admin.request('GET', path_of(share, admin_only), expect=200)


@pytest.mark.parametrize(
    'method, rest, body',
    [
        ('GET', '', None),
        ('GET', '/key', None),
        ('DELETE', '/key', None),
        ('POST', '', {'metadata': {'key': 'x'}}),
        ('PUT', '', {'metadata': {'key': 'x'}}),
        ('POST', '/key', {'metadata': {'key': 'x'}}),
    ],
)
def test_their_metadata_is_for_administrators_too(
    admin, member, share, admin_only, method, rest, body
):
    path = path_of(share, admin_only, '/metadata')
    admin.request('POST', path, {'metadata': {'key': 'x'}}, expect=200)
    member.request(method, path + rest, body, expect=403)
    admin.request(method, path + rest, body, expect=200)


@pytest.mark.facts('LP2120921')
def test_location_of_another_share_is_not_found(cloud, member, share, public_location):
    other = cloud.create_share()
    member.request('GET', path_of(other, public_location), expect=404)
    member.request('GET', path_of(other, public_location, '/metadata'), expect=404)


def test_share_without_a_back_end_has_none(member):
    assert list_exports(member, member.create()['id']) == []


@pytest.mark.facts('add-export-locations-api')
def test_views_below_2_9_have_the_paths(cloud, admin, share):
    expected = paths(admin, share)
    shown = admin.show(share, version='2.8')
    assert shown['export_locations'] == expected
    assert shown['export_location'] == expected[0]
    (instance,) = admin.get(f'/shares/{share}/instances', version='2.8')[
        'share_instances'
    ]
    assert instance['export_locations'] == expected
    assert instance['export_location'] == expected[0]


def test_paths_for_administrators_are_hidden_below_2_9_too(
    admin, member, share, admin_only, public_location
):
    for shown in (
        member.show(share, version='2.8'),
        member.get('/shares/detail', version='2.8')['shares'][0],
    ):
        assert shown['export_locations'] == [public_location['path']]
        assert shown['export_location'] == public_location['path']


def test_below_2_9_only_available_shares_have_paths(admin, share):
    admin.act(share, 'reset_status', {'status': 'error'})
    shown = admin.show(share, version='2.8')
    assert (shown['export_location'], shown['export_locations']) == (None, [])


def test_replicas_are_left_out_from_2_47(sample):
    share = sample.replicated_share
    old = paths(sample.member, share, version='2.46')
    new = paths(sample.member, share, version='2.47')
    assert set(old) - set(new) == {'10.0.0.2:/replica'}
    assert len(new) == 1
    shown = sample.member.show(share, version='2.8')
    assert shown['export_locations'] == new


# Metadata


def request_metadata(api, method, share, one, rest='', metadata=None, expect=200):
    return metadata_client.request_metadata(
        api, method, path_of(share, one), rest, metadata, expect
    )


@pytest.mark.facts('add_export_location_metadata.1')
def test_post_merges_put_replaces_delete_removes(member, share, public_location):
    request_metadata(member, 'POST', share, public_location, '', {'a': '1'})
    shown = request_metadata(member, 'POST', share, public_location, '', {'b': '2'})[
        'metadata'
    ]
    assert {'a': '1', 'b': '2'}.items() <= shown.items()
    shown = request_metadata(member, 'POST', share, public_location, '/b', {'b': '3'})
    assert shown['metadata']['b'] == '3'
    assert request_metadata(member, 'GET', share, public_location, '/b') == {
        'meta': {'b': '3'}
    }
    request_metadata(
        member, 'POST', share, public_location, '/b', {'c': '3'}, expect=400
    )
    shown = request_metadata(member, 'PUT', share, public_location, '', {'c': '4'})[
        'metadata'
    ]
    assert 'a' not in shown
    assert shown['c'] == '4'
    assert request_metadata(member, 'DELETE', share, public_location, '/c') is None
    request_metadata(member, 'GET', share, public_location, '/c', expect=404)
    request_metadata(member, 'DELETE', share, public_location, '/c', expect=404)


def test_metadata_is_part_of_the_view_from_2_87(member, share, public_location):
    request_metadata(member, 'POST', share, public_location, '', {'color': 'red'})
    (shown,) = list_exports(member, share)
    assert shown['metadata'] == {'color': 'red'}
    assert 'metadata' not in list_exports(member, share, version='2.86')[0]


@pytest.mark.parametrize('method', ['POST', 'PUT'])
@pytest.mark.parametrize('metadata', [*metadata_client.INVALID_ITEMS, [], None])
def test_sizes_of_keys_and_values_are_limited(
    member, share, public_location, method, metadata
):
    member.request(
        method,
        path_of(share, public_location, '/metadata'),
        {'metadata': metadata},
        expect=400,
    )


@pytest.mark.facts('add_export_location_metadata.2')
@pytest.mark.parametrize(
    'method, rest, metadata',
    [
        ('POST', '', {'preferred': 'false'}),
        ('POST', '/preferred', {'preferred': 'false'}),
        ('PUT', '', {'preferred': 'false'}),
    ],
)
def test_preferred_is_for_administrators(
    admin, member, share, public_location, method, rest, metadata
):
    before = list_exports(member, share)
    request_metadata(member, method, share, public_location, rest, metadata, expect=403)
    assert list_exports(member, share) == before
    assert before[0]['preferred'] is True
    request_metadata(admin, method, share, public_location, rest, metadata)
    assert list_exports(member, share)[0]['preferred'] is False


def test_put_by_a_tenant_keeps_the_preferred_location(member, share, public_location):
    request_metadata(member, 'PUT', share, public_location, '', {'color': 'red'})
    assert list_exports(member, share)[0]['preferred'] is True


@pytest.mark.facts('add_export_location_metadata.2')
def test_more_keys_may_be_reserved_for_administrators(build_cloud):
    cloud = build_cloud('admin_only_el_metadata = preferred,speed')
    member = member_of(cloud)
    share = cloud.create_share()
    (one,) = list_exports(member, share)
    request_metadata(member, 'POST', share, one, '', {'speed': '1'}, expect=403)
    request_metadata(cloud.api, 'POST', share, one, '', {'speed': '1'})
