"""Pages of long lists, on every database."""

import datetime
import re
import urllib.parse

import pytest
import sqlalchemy as sa

from manila_lite.api import routes, versions, wsgi
from manila_lite.api.filters import Filter
from manila_lite.api.v2 import literals
from manila_lite.db.models import (
    access,
    networks,
    services,
    share_groups,
    shares,
    snapshots,
    types,
)
from manila_lite.db.queries import pages
from tests.functional.api import differences
from tests.support import bulk_shares, cloud_snapshots, sampling
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID
from tests.support.rows import SHARE_FLAGS

pytestmark = sampling.dialects


NUMBER, PROJECTS, MOST = 40, 2, 3
MINE = 'project 1'


@pytest.fixture
def cloud(build_cloud, database_url):
    """A cloud with shares of two projects; some are as old as others."""
    cloud = build_cloud(f'osapi_max_limit = {MOST}', url=database_url)
    cloud.db.write(
        bulk_shares.insert_shares,
        NUMBER,
        type_id=TYPE_ID,
        projects=PROJECTS,
        public_every=5,
        per_second=4,
    )
    return cloud


@pytest.fixture
def admin(cloud):
    return ApiClient(cloud, project=MINE)


@pytest.fixture
def member(cloud):
    return ApiClient(cloud, project=MINE, roles='member,reader')


def page_of(api, path):
    """Return the ids of a page, and the path of the next one or None."""
    body = api.get(path)
    (items,) = (found for key, found in body.items() if not key.endswith('_links'))
    next_path = None
    for key, found in body.items():
        if key.endswith('_links'):
            (link,) = found
            parts = urllib.parse.urlsplit(link['href'])
            assert parts.path == f'/v2{path.partition("?")[0]}'
            next_path = f'{parts.path.removeprefix("/v2")}?{parts.query}'
    return [item['id'] for item in items], next_path


def follow(api, path):
    """Return the pages from this path to the end of the list."""
    found = []
    while path:
        ids, path = page_of(api, path)
        found.append(ids)
    return found


def numbers(ids):
    return [int(id) for id in ids]


MANY = 1000
EXPERIMENTAL = {versions.EXPERIMENTAL_HEADER: 'true'}
OTHERS = 8
SHARE = bulk_shares.share_id(1)
GROUP_TYPE = 'group type'
ROWS = {
    '/snapshots': (
        snapshots.Snapshot.__table__,
        {
            'project_id': MINE,
            'share_id': SHARE,
            'size': 1,
            'share_size': 1,
            'share_proto': 'NFS',
        },
    ),
    '/share-networks': (
        networks.ShareNetwork.__table__,
        {'project_id': MINE, 'user_id': 'user', 'status': 'active'},
    ),
    '/security-services': (
        networks.SecurityService.__table__,
        {'project_id': MINE, 'type': 'ldap'},
    ),
    '/messages': (
        services.Message.__table__,
        {'project_id': MINE, 'message_level': 'ERROR', 'action_id': '001'},
    ),
    '/resource-locks': (
        access.ResourceLock.__table__,
        {
            'project_id': MINE,
            'user_id': 'user',
            'share_id': SHARE,
            'resource_id': SHARE,
            'resource_type': 'share',
            'resource_action': 'delete',
            'lock_context': 'user',
        },
    ),
    '/share-groups': (
        share_groups.ShareGroup.__table__,
        {'project_id': MINE, 'status': 'available', 'share_group_type_id': GROUP_TYPE},
    ),
    '/share-transfers': (
        shares.Transfer.__table__,
        {
            'status': 'pending',
            'resource_type': 'share',
            'resource_id': bulk_shares.share_id,
            'source_project_id': MINE,
            'salt': 'salt',
            'crypt_hash': 'hash',
            'clear_access_rules': False,
        },
    ),
    '/share-replicas': (
        shares.ShareInstance.__table__,
        {
            'share_id': SHARE,
            'status': 'available',
            'replica_state': 'in_sync',
            'access_rules_status': 'active',
            'cast_rules_to_readonly': False,
        },
    ),
}
"""The table of each list and the values of its rows, some by number."""

WITHOUT_DETAIL = {'/messages/detail', '/resource-locks/detail'}

NEWEST_FIRST = list(reversed(range(NUMBER)))
OWN = [number for number in NEWEST_FIRST if number % PROJECTS == 1]
WITH_PUBLIC = [
    number for number in NEWEST_FIRST if number % PROJECTS == 1 or number % 5 == 0
]


@pytest.mark.parametrize(
    'path, expected',
    [
        ('/shares?limit=3', OWN),
        ('/shares/detail?limit=3', OWN),
        ('/shares/detail?limit=3&sort_dir=asc', OWN[::-1]),
        ('/shares?limit=3&sort_key=name&sort_dir=desc', None),
        ('/shares?limit=3&is_public=true', WITH_PUBLIC),
        ('/shares/detail?limit=3&is_public=true', WITH_PUBLIC),
        ('/shares?limit=3&is_public=true&sort_dir=asc', WITH_PUBLIC[::-1]),
        ('/shares?limit=7&is_public=true&sort_key=host', None),
        ('/shares/detail?all_tenants=1', NEWEST_FIRST),
        ('/share_instances', NEWEST_FIRST),
        ('/share_instances?limit=2&sort_dir=asc', NEWEST_FIRST),
    ],
)
def test_links_lead_through_the_whole_list(admin, path, expected):
    found = numbers(id for page in follow(admin, path) for id in page)
    assert len(set(found)) == len(found)
    if expected is None:
        expected = WITH_PUBLIC if 'is_public' in path else OWN
        found = sorted(found, reverse=True)
    assert found == expected


@differences.proves('lists on networks')
@pytest.mark.parametrize('path', sorted(ROWS))
@pytest.mark.parametrize('limit', [1, 3])
@pytest.mark.facts('LP2058427')
def test_every_paged_list_has_links_to_all_of_it(cloud, admin, path, limit):
    cloud.db.write(_insert, *ROWS[path])
    for variant in (path, f'{path}/detail'):
        if variant in WITHOUT_DETAIL:
            continue
        found = follow(admin, f'{variant}?limit={limit}')
        assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)
        assert [id for page in found for id in page] == [
            str(number) for number in reversed(range(OTHERS))
        ]


def by_marker(api, path, limit):
    """Return a list as clients read it that know only `limit` and `marker`."""
    found, marker = [], ''
    for _ in range(MANY):
        ids, _ = page_of(api, f'{path}&limit={limit}{marker}')
        if not ids:
            return found
        found += ids
        marker = f'&marker={ids[-1]}'
    raise AssertionError(f'{path} has no end')


@pytest.mark.parametrize('path', sorted(ROWS))
def test_markers_lead_through_every_list(cloud, admin, path):
    cloud.db.write(_insert, *ROWS[path])
    for limit in (1, 3):
        for query in ('?sort_dir=desc', '?sort_dir=asc'):
            listed = follow(admin, f'{path}{query}&limit={limit}')
            expected = [id for page in listed for id in page]
            assert by_marker(admin, path + query, limit) == expected
    assert len(expected) == OTHERS


@differences.proves('markers')
def test_new_marker_beside_an_old_link_counts(cloud, admin):
    """So does openstacksdk ask for what follows the last page."""
    for path in sorted(ROWS):
        cloud.db.write(_insert, *ROWS[path])
    for path in ('/shares', '/share_instances', *sorted(ROWS)):
        pages_of_list, link = [], f'{path}?limit=3'
        while link:
            ids, following = page_of(admin, link)
            pages_of_list.append(ids)
            last_link, link = link, following
        if not pages_of_list[-1]:
            continue  # the last page is full, and its link has led here
        assert len(pages_of_list) > 2
        new = f'marker={pages_of_list[-1][-1]}'
        again = re.sub('marker=[^&]*', new, last_link)
        assert again != last_link
        assert page_of(admin, again) == ([], None)
        earlier = f'marker={pages_of_list[0][1]}'
        again = re.sub('marker=[^&]*', earlier, last_link)
        assert page_of(admin, again)[0] == [pages_of_list[0][2], *pages_of_list[1][:2]]


def sort_keys_of(path):
    """Return the sort keys that the description of a list names."""
    return sorted(
        word
        for route in routes.ROUTES
        if (route.method, route.path) == ('GET', path)
        for known in wsgi.declaration(route.controller, route.handler).query
        if isinstance(known, Filter) and known.key == 'sort_key'
        for word in known.words
    )


@sampling.enumeration
@pytest.mark.parametrize('path', ['/shares', *sorted(ROWS)])
def test_markers_lead_through_lists_in_any_order(cloud, admin, path):
    """Among equal items and those without a value, too."""
    cloud.db.write(_insert, *ROWS.get(path, ROWS['/snapshots']))
    cloud.db.write(_make_some_equal)
    for key in sampling.sample(sort_keys_of(path), 2):
        for query in (
            'sort_dir=asc',
            'sort_dir=desc',
            *(['is_public=true', 'all_tenants=1'] if path == '/shares' else []),
        ):
            listed = f'{path}?sort_key={key}&{query}'
            found = follow(admin, f'{listed}&limit=9')
            expected = [id for page in found for id in page]
            assert by_marker(admin, listed, 3) == expected, listed


def _make_some_equal(session):
    """Give some shares and snapshots one name; others have none."""
    for table, ids in (
        (shares.Share.__table__, map(bulk_shares.share_id, (1, 3, 5, 9))),
        (snapshots.Snapshot.__table__, ['1', '4', '5']),
    ):
        session.run(
            sa.update(table).where(table.c.id.in_(ids)).values(display_name='a name')
        )
    table = shares.Share.__table__
    ids = map(bulk_shares.share_id, range(0, NUMBER, 7))
    session.run(sa.update(table).where(table.c.id.in_(ids)).values(display_name=None))


def test_marker_of_another_project_says_nothing(member):
    """What it does not see is like what does not exist."""
    foreign = next(n for n in NEWEST_FIRST if n not in WITH_PUBLIC)
    for path in ('/shares?limit=3', '/shares?limit=3&is_public=true'):
        for id in (bulk_shares.share_id(foreign), 'unknown'):
            for query in ('', '&sort_key=name', '&sort_key=host'):
                listed = f'{path}&marker={id}{query}'
                assert page_of(member, listed) == ([], None)


def _insert(session, table, values):
    """Insert rows of the project of the tests; three are equally old."""
    if table is share_groups.ShareGroup.__table__:
        session.run(
            sa.insert(types.ShareGroupType.__table__),
            id=GROUP_TYPE,
            name=GROUP_TYPE,
            is_public=True,
            created_at=session.now,
        )
    session.run_many(
        sa.insert(table),
        [
            {
                **{
                    name: value(number) if callable(value) else value
                    for name, value in values.items()
                },
                'id': str(number),
                'created_at': session.now + datetime.timedelta(seconds=number // 3),
                **_times(session, table),
            }
            for number in range(OTHERS)
        ],
    )


def _times(session, table):
    if 'expires_at' not in table.c:
        return {}
    return {'expires_at': session.now + datetime.timedelta(days=1)}


def paged_lists():
    """Return the paths of all lists that are read in pages."""
    return sorted(
        route.path.format(share_id=SHARE)
        for route in routes.ROUTES
        if route.method == 'GET'
        and route.handler != 'members'
        and any(
            isinstance(known, Filter) and known.key == 'limit'
            for known in wsgi.declaration(route.controller, route.handler).query
        )
    )


@differences.proves('wrong direction')
@pytest.mark.facts('sort_dir')
def test_every_paged_list_refuses_wrong_pages(admin):
    for path in paged_lists():
        for query in (
            'limit=x',
            'limit=-1',
            'offset=x',
            'offset=-1',
            'sort_dir=up',
            'sort_dir=',
        ):
            admin.get(f'{path}?{query}', expect=400, **EXPERIMENTAL)


def test_no_paged_list_has_items_behind_its_end(admin):
    for path in paged_lists():
        for offset in (MANY, 100_001, 2**31, 2**63 - 1, 10**30):
            query = f'offset={offset}'
            answer = admin.get(f'{path}?{query}', **EXPERIMENTAL)
            (items, *_) = answer.values()
            assert items == [], path


@pytest.mark.parametrize('query', ['', '&is_public=true', '&sort_dir=asc'])
def test_offsets_lead_through_the_same_list(member, query):
    path = f'/shares?limit=3{query}'
    for number, page in enumerate(follow(member, path)):
        assert page_of(member, f'{path}&offset={3 * number}')[0] == page


def test_next_page_is_not_shifted_by_new_and_deleted_shares(cloud, member):
    _, following = page_of(member, '/shares?limit=3')
    expected = page_of(member, following)[0]
    member.create()
    cloud.db.write(_delete, f'{OWN[0]:036}', f'{OWN[2]:036}')
    assert page_of(member, following)[0] == expected


def _delete(session, *ids):
    for table, column in ((shares.ShareInstance, 'share_id'), (shares.Share, 'id')):
        session.run(
            sa.delete(table.__table__).where(table.__table__.c[column].in_(ids))
        )


@differences.proves('length of share lists')
def test_list_of_all_projects_is_as_long_as_a_page(admin):
    for query in ('', '&limit=9', '&project_id=project+0'):
        ids, following = page_of(admin, f'/shares?all_tenants=1{query}')
        assert len(ids) == MOST
        assert following


@differences.proves('length of share lists')
def test_list_of_a_project_is_ten_times_as_long(cloud, member):
    assert numbers(page_of(member, '/shares')[0]) == OWN
    cloud.db.write(_rename_projects)
    ids, following = page_of(member, '/shares/detail?all_tenants=1')
    assert numbers(ids) == NEWEST_FIRST[: 10 * MOST]
    assert numbers(page_of(member, following)[0]) == NEWEST_FIRST[10 * MOST :]


def _rename_projects(session):
    session.run(sa.update(shares.Share.__table__).values(project_id=MINE))


def test_page_of_no_shares_can_be_asked_for(member):
    assert page_of(member, '/shares?limit=0') == ([], None)


@differences.proves('lists of instances')
def test_lists_of_instances_are_as_long_as_a_page(admin):
    ids, following = page_of(admin, '/share_instances')
    assert len(ids) == MOST
    assert following


@differences.proves('number of keys in filters')
def test_filter_of_too_many_keys_is_refused(admin):
    pairs = {str(number): '' for number in range(literals.MAX_KEYS + 1)}
    text = urllib.parse.quote(str(pairs))
    for path in (
        '/shares?metadata',
        '/shares?extra_specs',
        '/snapshots?metadata',
        '/types?extra_specs',
        '/scheduler-stats/pools?capabilities',
    ):
        key = path.partition('?')[2]
        fault = admin.get(f'{path}={text}', expect=400)['badRequest']
        assert f'{key} must have at most 20 keys' in fault['message']


@differences.proves('long lists')
def test_very_long_list_is_paged_but_neither_sorted_nor_counted(build_cloud):
    api = build_cloud().api
    api.cloud.db.write(_insert_bare_shares, pages.LONGEST + 1)
    for path in ('/shares', '/shares/detail'):
        listed = f'{path}?all_tenants=1&limit=2'
        assert len(page_of(api, listed)[0]) == 2
        for query, reason in (
            ('sort_key=name', 'sort_key must be created_at'),
            ('sort_key=host', 'sort_key must be created_at'),
            ('with_count=true', 'with_count is not possible'),
            ('name~=part', 'a search for part of a text is not possible'),
            ('offset=100001', 'offset must be at most 100000'),
        ):
            fault = api.get(f'{listed}&{query}', expect=400)['badRequest']
            assert reason in fault['message']
            narrow = f'{listed}&{query}&project_id=project'
            if 'offset' not in query:
                api.get(narrow)


@pytest.mark.parametrize('few', [0, 1, 1000])
@pytest.mark.parametrize(
    'query', ['status=available', 'status=error', 'host=node@beta']
)
def test_filter_finds_the_same_however_many_rows_match(
    build_cloud, monkeypatch, few, query
):
    """What few rows match is looked up first, and the list read otherwise."""
    monkeypatch.setattr(pages, 'FEW', few)
    cloud = build_cloud()
    made = [cloud.create_share() for _ in range(3)]
    snapshot_id = cloud_snapshots.create(cloud, made[0])
    cloud.settle()
    wanted = [] if query != 'status=available' else made[::-1]
    assert page_of(cloud.api, f'/shares?all_tenants=1&{query}')[0] == wanted
    found, _ = page_of(cloud.api, f'/snapshots?all_tenants=1&{query}')
    if query.startswith('status'):
        assert found == ([snapshot_id] if wanted else [])


def _insert_bare_shares(session, number):
    session.run_many(
        sa.insert(shares.Share.__table__),
        [
            {
                **SHARE_FLAGS,
                'id': str(number),
                'project_id': 'another',
                'size': 1,
                'share_proto': 'NFS',
                'created_at': session.now,
            }
            for number in range(number)
        ],
    )
