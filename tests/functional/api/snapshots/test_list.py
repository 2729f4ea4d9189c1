"""Lists of snapshots: order, pages and filters."""

import urllib.parse

import pytest
import sqlalchemy as sa

from manila_lite.db.models import snapshots as snapshot_models
from manila_lite.db.queries.shares import shares
from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import (
    UNKNOWN,
    act_on_snapshot,
    create_available_snapshot,
)
from tests.support.api_client import ApiClient
from tests.support.cloud_images import prepared


@pytest.fixture
@prepared
def share(cloud, member):
    share_id = member.create(size=1)['id']
    cloud.settle()
    return share_id


@pytest.fixture
def make(cloud, member, share):
    """Return a function that creates snapshots and returns the last id."""

    def make(*names, **body):
        for name in names:
            created = create_available_snapshot(cloud, member, share, name=name, **body)
        return created

    return make


def names(api, query='', path='/snapshots/detail', **options):
    return [one['name'] for one in api.get(f'{path}?{query}', **options)['snapshots']]


# Order and pages


def test_newest_come_first(member, make):
    make('a', 'b', 'c')
    assert names(member) == ['c', 'b', 'a']
    assert names(member, path='/snapshots') == ['c', 'b', 'a']


@pytest.mark.parametrize(
    'key',
    [
        'id',
        'status',
        'size',
        'share_id',
        'user_id',
        'project_id',
        'progress',
        'name',
        'display_name',
        'created_at',
        'share_proto',
        'share_size',
        'description',
        'provider_location',
    ],
)
@pytest.mark.parametrize('direction', ['asc', 'desc'])
def test_sort_keys_are_columns_of_snapshots_and_instances(
    cloud, member, share, key, direction
):
    for number, name in enumerate('bca'):
        create_available_snapshot(cloud, member, share, name=name, description=name)
        member.act(share, 'extend', {'new_size': number + 2})
        cloud.settle()
    query = f'sort_key={key}&sort_dir={direction}'
    found = member.get(f'/snapshots/detail?{query}')['snapshots']
    assert len(found) == 3
    field = {'display_name': 'name'}.get(key, key)
    if field in found[0]:
        values = [one[field] for one in found]
        assert values == sorted(values, reverse=direction == 'desc')
    assert names(member, query, '/snapshots') == [one['name'] for one in found]


@pytest.mark.facts('snapshot_metadata_query')
@pytest.mark.parametrize(
    'query',
    [
        'sort_key=moon',
        'sort_dir=up',
        'limit=-1',
        'limit=x',
        'offset=-1',
        'offset=x',
        'limit=99999999999999999999',
        'size=x',
        'size=-1',
        'size=',
        'name=',
        'status=',
        'share_id=',
        'name~=',
        'description=',
        'metadata=',
        'metadata={',
        'with_count=maybe',
        'all_tenants=maybe',
    ],
)
def test_invalid_query_is_refused(member, query):
    for path in ('/snapshots', '/snapshots/detail'):
        member.get(f'{path}?{query}', expect=400)


def test_limit_and_offset(member, make):
    make(*'abcd')
    assert names(member, 'limit=2') == ['d', 'c']
    assert names(member, 'limit=2&offset=3') == ['a']
    assert names(member, 'offset=9') == []


def test_no_page_is_longer_than_the_option(build_cloud):
    cloud = build_cloud('osapi_max_limit = 2')
    share_id = cloud.create_share()
    for name in 'abc':
        create_available_snapshot(cloud, cloud.api, share_id, name=name)
    for query in ('', 'limit=0', 'limit=5'):
        assert names(cloud.api, query) == ['c', 'b']


def test_link_to_the_next_page_follows_full_pages(member, make):
    make(*'abcd')
    for path in ('/snapshots', '/snapshots/detail'):
        page = member.get(f'{path}?limit=2&sort_key=name&sort_dir=asc')
        (link,) = page['share_snapshots_links']
        assert link['rel'] == 'next'
        url = urllib.parse.urlsplit(link['href'])
        assert url.path == f'/v2{path}'
        query = dict(urllib.parse.parse_qsl(url.query))
        assert query['marker'] == page['snapshots'][-1]['id']
        assert names(member, url.query, path) == ['c', 'd']
    assert 'share_snapshots_links' not in member.get('/snapshots?limit=5')


@pytest.mark.facts('add-count-info-in-share-snapshot', 'count', 'with_count_query')
def test_count_is_of_all_matches_before_paging(member, make):
    make('a', 'a', 'b')
    for path in ('/snapshots', '/snapshots/detail'):
        page = member.get(f'{path}?name=a&limit=1&with_count=true')
        assert (page['count'], len(page['snapshots'])) == (2, 1)
        assert 'count' not in member.get(f'{path}?with_count=false')


@pytest.mark.facts('add-count-info-in-share-snapshot')
def test_summary_counts_from_2_79_and_detail_always(member, make):
    make('a')
    asked = 'with_count=true'
    assert 'count' not in member.get(f'/snapshots?{asked}', version='2.78')
    assert member.get(f'/snapshots?{asked}', version='2.79')['count'] == 1
    assert member.get(f'/snapshots/detail?{asked}', version='2.0')['count'] == 1


# Filters


def test_name_share_size_and_status_filter(cloud, member, share, make):
    make('small')
    member.act(share, 'extend', {'new_size': 3})
    cloud.settle()
    large = make('large')
    act_on_snapshot(cloud.api, large, 'reset_status', {'status': 'error'})
    for query, expected in {
        'name=small': ['small'],
        'display_name=small': ['small'],
        'size=3': ['large'],
        'size=2': [],
        'status=error': ['large'],
        'status=available': ['small'],
        f'share_id={UNKNOWN}': [],
        f'share_id={share}': ['large', 'small'],
        'moon=x': ['large', 'small'],
        'status=error&size=1': [],
    }.items():
        for path in ('/snapshots', '/snapshots/detail'):
            assert names(member, query, path) == expected, query


@pytest.mark.facts('add-like-filter')
def test_inexact_filters_and_description_match_from_2_36(member, make):
    make('alpha', description='one')
    make('beta', description='two')
    for query, expected in {
        'name~=lph': ['alpha'],
        'description~=w': ['beta'],
        'description=two': ['beta'],
        'name~=%25': [],
        'display_name~=eta': ['beta'],
    }.items():
        assert names(member, query, version='2.36') == expected
        assert names(member, query, version='2.35') == ['beta', 'alpha']


@pytest.mark.facts('bug-1881865')
def test_pages_and_counts_are_of_what_an_inexact_filter_finds(member, make):
    make('green', 'blue', 'evergreen', 'red', 'greenish')
    for path in ('/snapshots', '/snapshots/detail'):
        query = 'name~=green&limit=2&with_count=true'
        page = member.get(f'{path}?{query}')
        assert page['count'] == 3
        assert names(member, query, path) == ['greenish', 'evergreen']
        assert names(member, f'{query}&offset=2', path) == ['green']
        assert 'share_snapshots_links' in page


@pytest.mark.facts('LP2114260')
def test_list_survives_the_deletion_of_instances(cloud, member, make):
    snapshot = make('gone')
    make('here')
    table = snapshot_models.SnapshotInstance.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.delete(table).where(table.c.snapshot_id == snapshot)
        )
    )
    for path in ('/snapshots', '/snapshots/detail'):
        for query in ('', 'sort_key=status', 'name~=e&with_count=1'):
            assert 'here' in names(member, query, path)


@pytest.mark.facts('add_snapshot_metadata.1', 'snapshot_metadata_query')
def test_metadata_is_a_filter_from_2_73(member, make):
    make('red', metadata={'color': 'red', 'shape': 'round'})
    make('blue', metadata={'color': 'blue', 'shape': 'round'})
    query = "metadata={'color': 'red', 'shape': 'round'}"
    assert names(member, query, version='2.73') == ['red']
    assert names(member, query, version='2.72') == ['blue', 'red']
    assert names(member, "metadata={'moon': 'red'}") == []


def test_usage_is_a_filter_for_administrators(cloud, member, share, make):
    used = make('used')
    make('unused')
    mark_used(cloud, share, used)
    for usage, expected in {
        'used': ['used'],
        'unused': ['unused'],
        'any': ['unused', 'used'],
    }.items():
        query = f'usage={usage}'
        assert names(cloud.api, query) == expected
        assert names(member, query) == ['unused', 'used']
    cloud.api.get('/snapshots?usage=maybe', expect=400)


def mark_used(cloud, share, snapshot):
    """Record that a share was created from a snapshot."""
    cloud.db.write(shares.update, share, {'snapshot_id': snapshot})


# Projects


def test_projects_list_their_own_snapshots(cloud, make):
    make('mine')
    stranger = member_of(cloud, 'another')
    admin = ApiClient(cloud, project='elsewhere')
    for query in (
        '',
        'all_tenants=1',
        'all_tenants=1&project_id=project',
        'project_id=project',
    ):
        assert names(stranger, query) == []
    assert names(admin) == []
    assert names(admin, 'all_tenants=1') == ['mine']
    assert names(admin, 'all_tenants=1&project_id=project') == ['mine']
    assert names(admin, 'all_tenants=1&project_id=moon') == []
