"""Lists of shares: order, pages and filters."""

import urllib.parse

import pytest

from manila_lite.api.v2.shares import shares
from tests.functional.api import differences
from tests.functional.api.conftest import member_of
from tests.support.cloud import TYPE_ID

UNKNOWN = '00000000-0000-4000-8000-000000000000'


def names(api, query='', path='/shares/detail', **options):
    return [share['name'] for share in listed(api, query, path, **options)]


def listed(api, query='', path='/shares/detail', **options):
    return api.get(f'{path}?{query}', **options)['shares']


def create(api, *names, **body):
    """Create shares with these names; return the id of the last one."""
    for name in names:
        share = api.create(name=name, **body)
    return share['id']


# Order and pages


def test_newest_come_first(member):
    create(member, 'a', 'b', 'c')
    assert names(member) == ['c', 'b', 'a']
    assert names(member, path='/shares') == ['c', 'b', 'a']


@pytest.mark.parametrize(
    'key',
    [
        'name',
        'display_name',
        'size',
        'host',
        'created_at',
        'status',
        'share_type_id',
        'share_network_id',
        'availability_zone_id',
    ],
)
@pytest.mark.parametrize('direction', ['asc', 'desc'])
def test_sort_keys_are_columns_of_shares_and_instances(cloud, member, key, direction):
    for number, name in enumerate('bca'):
        member.create(name=name, size=number + 1)
    cloud.settle()
    query = f'sort_key={key}&sort_dir={direction}'
    filtered = f"{query}&status=available&extra_specs={{'a':'b'}}"
    for api in (member, cloud.api):
        found = listed(api, query)
        assert len(found) == 3
        assert listed(api, filtered) == []
    field = {'display_name': 'name'}.get(key, key)
    if found[0].get(field) is not None:
        values = [share[field] for share in found]
        assert values == sorted(values, reverse=direction == 'desc')


@pytest.mark.facts('sort_key.2')
@pytest.mark.parametrize(
    'query',
    [
        'sort_key=moon',
        'sort_dir=up',
        'limit=-1',
        'limit=x',
        'limit=1.5',
        'limit=',
        'offset=-1',
        'offset=x',
        'limit=99999999999999999999',
    ],
)
def test_invalid_query_is_refused(member, query):
    for path in ('/shares', '/shares/detail'):
        member.get(f'{path}?{query}', expect=400)


def test_limit_and_offset(member):
    create(member, *'abcde')
    assert names(member, 'limit=2') == ['e', 'd']
    assert names(member, 'limit=2&offset=3') == ['b', 'a']
    assert names(member, 'offset=4') == ['a']
    assert names(member, 'offset=9') == []


def test_page_behind_a_marker(member):
    create(member, *'ab')
    marker = create(member, 'c')
    create(member, 'd')
    assert names(member, f'marker={marker}') == ['b', 'a']
    assert names(member, f'marker={marker}&limit=1') == ['b']
    assert names(member, f'marker={marker}&offset=3') == ['a']


@differences.proves('next links')
def test_link_to_the_next_page_follows_full_pages(member):
    create(member, *'abcd')
    for path in ('/shares', '/shares/detail'):
        page = member.get(f'{path}?limit=2&name~=')
        (link,) = page['shares_links']
        assert link['rel'] == 'next'
        url = urllib.parse.urlsplit(link['href'])
        assert url.path == f'/v2{path}'
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        assert query['marker'] == page['shares'][-1]['id']
        assert (query['limit'], query['name~']) == ('2', '')
        following = member.get(f'{path}?{url.query}')
        assert [one['name'] for one in following['shares']] == ['b', 'a']


@pytest.mark.parametrize('query', ['', 'limit=3', 'limit=2&offset=1'])
def test_no_link_follows_a_page_that_is_not_full(member, query):
    create(member, *'ab')
    assert 'shares_links' not in member.get(f'/shares?{query}')


@pytest.mark.facts('add-count-info-in-share.1', 'add-count-info-in-share.2')
def test_count_is_of_all_matches_before_paging(member):
    create(member, 'a', 'a', 'b')
    for path in ('/shares', '/shares/detail'):
        page = member.get(f'{path}?name=a&limit=1&with_count=true')
        assert (page['count'], len(page['shares'])) == (2, 1)
        assert 'count' not in member.get(f'{path}?with_count=false')


@pytest.mark.facts('add-count-info-in-share.1')
def test_summary_counts_from_2_42_and_detail_always(member):
    create(member, 'a')
    asked = 'with_count=true'
    assert 'count' not in member.get(f'/shares?{asked}', version='2.41')
    assert member.get(f'/shares?{asked}', version='2.42')['count'] == 1
    assert member.get(f'/shares/detail?{asked}', version='2.0')['count'] == 1


def test_links_keep_the_project_id_of_the_url(build_cloud):
    cloud = build_cloud()
    member = member_of(cloud, '7e' * 16)
    member.create()
    for start, prefix in (('', ''), (f'/{"7e" * 16}', f'/{"7e" * 16}')):
        page = member.get(f'{start}/shares?limit=1')
        (share,) = page['shares']
        assert [link['href'] for link in share['links']] == [
            f'http://localhost/v2{prefix}/shares/{share["id"]}',
            f'http://localhost{prefix}/shares/{share["id"]}',
        ]
        assert page['shares_links'][0]['href'].startswith(
            f'http://localhost/v2{prefix}/shares?'
        )


@pytest.mark.facts('LP2033604')
def test_count_is_of_shares_not_of_instances(sample):
    share = sample.replicated_share
    found = sample.admin.get(f'/shares/{share}/instances')['share_instances']
    assert len(found) == 2
    for path in ('/shares', '/shares/detail'):
        for query in ('', '&status=available', '&sort_key=host'):
            query = f'all_tenants=1&with_count=1{query}'
            page = sample.admin.get(f'{path}?{query}')
            ids = [one['id'] for one in page['shares']]
            assert ids.count(share) == 1
            assert page['count'] == len(ids)


# Projects


def test_only_own_shares_are_listed(member, stranger):
    create(member, 'mine')
    create(stranger, 'theirs')
    assert names(member) == ['mine']


@pytest.mark.facts('all_tenants_query')
def test_all_tenants_is_for_administrators(admin, member, stranger):
    create(member, 'mine')
    create(stranger, 'theirs')
    assert names(admin) == ['mine']
    assert names(admin, 'all_tenants=1') == ['theirs', 'mine']
    assert names(admin, 'all_tenants=0') == ['mine']
    assert names(member, 'all_tenants=1') == ['mine']
    assert names(admin, 'all_tenants=1&with_count=1', path='/shares')


def test_project_id_narrows_all_tenants(admin, member, stranger):
    create(member, 'mine')
    create(stranger, 'theirs')
    assert names(admin, 'all_tenants=1&project_id=another') == ['theirs']
    assert names(admin, 'project_id=another') == ['mine']
    assert names(member, 'all_tenants=1&project_id=another') == ['mine']


@pytest.mark.facts('is_public_members')
def test_is_public_adds_public_shares_of_others(admin, member, stranger):
    create(stranger, 'theirs')
    create(admin, 'mine')
    create(admin, 'public', is_public=True)
    assert names(stranger) == ['theirs']
    assert names(stranger, 'is_public=true') == ['public', 'theirs']
    assert names(stranger, 'is_public=false') == ['theirs']
    assert names(member, 'is_public=true') == ['public', 'mine']
    for value in ('true', 'false'):
        assert names(admin, f'all_tenants=1&is_public={value}') == [
            'public',
            'mine',
            'theirs',
        ]


def test_public_share_of_another_project_can_be_read_only(admin, stranger):
    share = create(admin, 'public', is_public=True)
    path = f'/shares/{share}'
    assert stranger.show(share)['name'] == 'public'
    stranger.request('DELETE', path, expect=403)
    stranger.request('PUT', path, {'share': {}}, expect=403)
    stranger.act(share, 'extend', {'new_size': 2}, expect=403)


@pytest.mark.facts('host_query', 'share_server_id_query')
@pytest.mark.parametrize('key', ['host', 'share_server_id'])
def test_tenants_may_not_filter_by_placement(admin, member, key):
    member.get(f'/shares?{key}=x', expect=403)
    assert listed(admin, f'{key}=x') == []


def test_host_filter_finds_pools(cloud, admin):
    share = cloud.create_share(name='a')
    host = admin.show(share)['host']
    assert names(admin, f'host={urllib.parse.quote(host)}') == ['a']


# Filters


@pytest.mark.facts('is_soft_deleted_query', 'recycle-bin.3')
def test_recycle_bin_is_listed_alone_from_2_69(cloud, member):
    member.act(cloud.create_share(name='gone'), 'soft_delete')
    create(member, 'here')
    assert names(member) == ['here']
    assert names(member, 'is_soft_deleted=true') == ['gone']
    assert names(member, 'is_soft_deleted=false') == ['here']
    assert names(member, 'is_soft_deleted=true', version='2.68') == ['here']


@pytest.mark.facts('LP1704971')
@pytest.mark.parametrize('key', ['name', 'display_name'])
def test_name_is_exact(member, key):
    create(member, 'ab', 'abc')
    assert names(member, f'{key}=ab') == ['ab']


def test_description_is_a_filter_from_2_36(member):
    create(member, 'a', description='old')
    create(member, 'b', description='older')
    assert names(member, 'description=old') == ['a']
    assert names(member, 'description=old', version='2.35') == ['b', 'a']


@pytest.mark.facts('LP1704971', 'add-like-filter')
@pytest.mark.parametrize('key', ['name~', 'description~'])
def test_inexact_filters_match_from_2_36(member, key):
    create(member, 'a', description='a')
    create(member, 'xay', description='xay')
    create(member, 'b', description='b')
    assert names(member, f'{key}=a') == ['xay', 'a']
    assert names(member, f'{key}=a', version='2.35') == ['b', 'xay', 'a']


@pytest.mark.facts('LP2089634')
@differences.proves('name~ and description~')
@pytest.mark.parametrize('text', ['a.c', '^a', '%', '_', '[a]', '|', '\\'])
def test_inexact_filters_are_no_patterns(member, text):
    create(member, 'abc')
    create(member, f'x{text}x')
    assert names(member, f'name~={urllib.parse.quote(text)}') == [f'x{text}x']


def test_status(cloud, member):
    cloud.create_share(name='old')
    create(member, 'new')
    assert names(member, 'status=available') == ['old']
    assert names(member, 'status=creating') == ['new']
    assert names(member, 'status=moon') == []


@pytest.mark.parametrize(
    'key, value', [('share_type_id', TYPE_ID), ('share_proto', 'NFS')]
)
def test_column_filters_are_exact(member, key, value):
    create(member, 'a')
    assert names(member, f'{key}={value}') == ['a']
    assert names(member, f'{key}={UNKNOWN}') == []


@pytest.mark.parametrize('key', ['snapshot_id', 'share_network_id', 'share_group_id'])
def test_source_filters_are_exact(member, key):
    create(member, 'a')
    assert names(member, f'{key}={UNKNOWN}') == []


@pytest.mark.facts('LP2089826')
def test_mount_point_name_is_a_filter_from_2_84(member, make_type):
    make_type(mount_point_name_support='True')
    create(member, 'a')
    create(member, 'b', share_type='special', mount_point_name='data')
    query = 'mount_point_name=project_data'
    assert names(member, query) == ['b']
    assert names(member, query, version='2.83') == ['b', 'a']


def test_all_metadata_must_match(member):
    create(member, 'a', metadata={'color': 'red', 'size': 'big'})
    create(member, 'b', metadata={'color': 'red'})
    assert names(member, "metadata={'color': 'red'}") == ['b', 'a']
    assert names(member, "metadata={'color': 'red', 'size': 'big'}") == ['a']
    assert names(member, "metadata={'color': 'blue'}") == []


@pytest.mark.facts('client-empty-metadata')
def test_shares_without_metadata_are_found(member):
    create(member, 'plain')
    create(member, 'red', metadata={'color': 'red'})
    assert names(member, 'metadata={}') == ['red', 'plain']
    (plain,) = listed(member, 'name=plain')
    assert plain['metadata'] == {}
    assert names(member, 'name=plain&metadata={}') == ['plain']


@differences.proves('metadata filter of shares')
@pytest.mark.parametrize(
    'text', ["{'a':", 'a', '[]', "{'a': b}", '1', '{[]: 1}', '(' * 900, '{' * 900]
)
def test_broken_metadata_are_refused(member, text):
    member.get(f'/shares?metadata={urllib.parse.quote(text)}', expect=400)


@pytest.mark.facts('add-export-location-filter')
def test_export_location_is_a_filter_from_2_35(cloud, admin, member):
    share = cloud.create_share(name='a')
    create(member, 'b')
    one = admin.get(f'/shares/{share}/export_locations')['export_locations'][0]
    for key in ('id', 'path'):
        query = f'export_location_{key}={urllib.parse.quote(one[key])}'
        assert names(member, query) == ['a']
        assert names(member, query, version='2.34') == ['b', 'a']


@pytest.mark.facts('LP2154752')
def test_zone_is_a_filter_from_2_97(cloud, member):
    cloud.create_share(name='placed')
    create(member, 'asked', availability_zone='nova')
    (zone,) = member.get('/availability-zones')['availability_zones']
    for value in (zone['name'], zone['id']):
        assert names(member, f'availability_zone={value}') == ['asked', 'placed']
    assert names(member, 'availability_zone=moon') == []
    assert names(member, 'availability_zone=moon', version='2.96') == [
        'asked',
        'placed',
    ]


@pytest.mark.facts('LP192912')
def test_shares_are_filtered_by_the_extra_specs_that_are_shown(
    admin, member, make_type
):
    make_type(color='red', mount_snapshot_support='True')
    create(member, 'a', share_type='special')
    create(member, 'b')
    shown = "extra_specs={'mount_snapshot_support': 'True'}"
    hidden = "extra_specs={'color': 'red', 'mount_snapshot_support': 'True'}"
    assert names(admin, shown) == names(admin, hidden) == ['a']
    assert names(member, shown) == ['a']
    assert names(member, hidden) == []


def test_key_of_encryption_is_for_administrators_from_2_90(admin, member, make_type):
    make_type(encryption_support='share')
    create(member, 'a', share_type='special', encryption_key_ref=UNKNOWN)
    create(member, 'b')
    query = f'encryption_key_ref={UNKNOWN}'
    assert names(admin, query) == ['a']
    assert names(admin, query, version='2.89') == ['b', 'a']
    assert names(member, query) == ['b', 'a']


def test_unknown_keys_are_ignored(admin, member):
    create(member, 'a')
    assert names(admin, 'moon=full') == names(member, 'moon=full') == ['a']


def test_filters_can_be_combined(member):
    create(member, 'ab', size=1)
    create(member, 'ac', size=1, metadata={'x': 'y'})
    assert names(
        member,
        "name~=a&metadata={'x':'y'}&status=creating&sort_key=name&limit=5&with_count=1",
    ) == ['ac']


@pytest.mark.parametrize('key', sorted(shares.SORT_KEYS))
def test_all_filters_can_be_combined_in_every_order(sample, key):
    values = [
        'name~',
        'description~',
        'name',
        'description',
        'status',
        'snapshot_id',
        'share_type_id',
        'share_network_id',
        'share_group_id',
        'share_proto',
        'mount_point_name',
        'availability_zone',
        'export_location_id',
        'export_location_path',
    ]
    query = '&'.join(
        [f'{name}=a' for name in values]
        + [
            "metadata={'a':'b'}",
            "extra_specs={'a':'b'}",
            'is_public=1',
            'is_soft_deleted=1',
            'with_count=1',
            'limit=2',
            'offset=1',
            f'sort_key={key}',
            'sort_dir=asc',
            'all_tenants=1',
        ]
    )
    for api in (sample.admin, sample.member):
        for path in ('/shares', '/shares/detail'):
            assert listed(api, query, path) == []
            assert listed(api, f'sort_key={key}&all_tenants=1', path)
