"""User messages: visibility, filters, pages and expiry."""

import datetime

import pytest

from manila_lite import messages
from manila_lite.messages import Action, Detail
from tests.functional.api.plain_client import FOREIGN, MEMBER, MINE, READER
from tests.support import reference

SHARE = '351cc796-2d79-4a08-b878-a8ed933b6b68'
NO_MESSAGE = '4b319d29-d5b7-4b6e-8e7c-8d6e53f3c3d5'


@pytest.fixture
def record_message(api, clock):
    """Return a function that records a message, one second after the last."""

    def record_message(
        project=MINE,
        action=Action.ALLOCATE_HOST,
        detail=Detail.NO_VALID_HOST,
        request_id='req-1',
        resource_id=SHARE,
        ttl=3600,
    ):
        clock.now += 1
        return api.db.write(
            messages.record,
            project_id=project,
            request_id=request_id,
            action=action,
            resource=('SHARE', resource_id),
            detail=detail,
            ttl=ttl,
        )

    return record_message


def ids(api, query='', **options):
    return [
        item['id']
        for item in api.get('/messages' + query, **{'roles': MEMBER} | options)[
            'messages'
        ]
    ]


def test_message_shows_its_subject(api, record_message):
    message_id = record_message()
    shown = api.get(f'/messages/{message_id}', roles=READER)['message']
    text = shown.pop('user_message')
    assert text == messages.user_message('001', '002')
    assert shown == {
        'id': message_id,
        'project_id': MINE,
        'action_id': '001',
        'detail_id': '002',
        'message_level': 'ERROR',
        'created_at': '2023-11-14T22:13:21.000000',
        'expires_at': '2023-11-14T23:13:21.000000',
        'request_id': 'req-1',
        'resource_type': 'SHARE',
        'resource_id': SHARE,
        'links': [
            {'rel': 'self', 'href': f'http://localhost/v2/messages/{message_id}'},
            {'rel': 'bookmark', 'href': f'http://localhost/messages/{message_id}'},
        ],
    }
    assert api.get('/messages', roles=READER) == {
        'messages': [shown | {'user_message': text}]
    }


def test_links_keep_the_project_of_the_url(api, record_message):
    message_id = record_message()
    shown = api.get(f'/{MINE}/messages/{message_id}')['message']
    assert [link['href'] for link in shown['links']] == [
        f'http://localhost/v2/{MINE}/messages/{message_id}',
        f'http://localhost/{MINE}/messages/{message_id}',
    ]


def test_projects_see_their_own(api, record_message):
    mine, foreign = record_message(), record_message(project=FOREIGN)
    assert ids(api) == [mine]
    assert ids(api, '?all_tenants=1&project_id=' + FOREIGN) == [mine]
    for method in ('GET', 'DELETE'):
        api.refused(method, f'/messages/{foreign}', expect=404, roles=MEMBER)
    assert ids(api, project=FOREIGN) == [foreign]


def test_administrators_list_and_show_those_of_all_projects(api, record_message):
    mine, foreign = record_message(), record_message(project=FOREIGN)
    for project in (MINE, FOREIGN):
        found = ids(api, roles='admin', project=project)
        assert sorted(found) == sorted([mine, foreign])
    api.get(f'/messages/{foreign}')
    api('DELETE', f'/messages/{foreign}', expect=204)


def test_a_message_is_deleted_once(api, record_message):
    path = f'/messages/{record_message()}'
    api.refused('DELETE', path, expect=403, roles=READER)
    assert api('DELETE', path, expect=204, roles=MEMBER) is None
    api.refused('DELETE', path, expect=404, roles=MEMBER)
    api.refused('GET', path, expect=404)
    api.refused('GET', f'/messages/{NO_MESSAGE}', expect=404)


def test_expired_messages_are_hidden(api, record_message, clock):
    short, long = record_message(ttl=10), record_message()
    clock.now += 9
    api.get(f'/messages/{long}', roles=MEMBER)
    api.refused('GET', f'/messages/{short}', expect=404)
    api.refused('DELETE', f'/messages/{short}', expect=404)


@pytest.mark.parametrize(
    'query, found',
    [
        ('action_id=002', [1]),
        ('action_id=nothing', []),
        ('detail_id=002', [0]),
        ('request_id=req-2', [1]),
        ('resource_id=other', [2]),
        ('resource_type=SHARE', [2, 1, 0]),
        ('message_level=ERROR', [2, 1, 0]),
        ('message_level=INFO', []),
        ('unknown=1', [2, 1, 0]),
        ('action_id=001&detail_id=007', [2]),
    ],
)
@pytest.mark.facts('user-messages.2')
def test_messages_are_filtered_by_column(api, record_message, query, found):
    recorded = [
        record_message(),
        record_message(
            action=Action.CREATE, request_id='req-2', detail=Detail.UNKNOWN_ERROR
        ),
        record_message(resource_id='other', detail=Detail.FILTER_AVAILABILITY),
    ]
    assert ids(api, '?' + query) == [recorded[number] for number in found]


@pytest.mark.parametrize(
    'query, found',
    [
        ('created_since=2023-11-14T22:13:22', [2, 1]),
        ('created_before=2023-11-14T22:13:22', [1, 0]),
        (
            'created_since=2023-11-14T22:13:22Z'
            '&created_before=2023-11-14T22:13:22.000000',
            [1],
        ),
        ('created_since=2023-11-15T00:13:23%2B02:00', [2]),
        ('created_since=2023-11-15', []),
        ('created_before=2023-11-14', []),
    ],
)
@pytest.mark.facts('bp-support-query-user-message')
def test_messages_are_filtered_by_time(api, record_message, query, found):
    recorded = [record_message(), record_message(), record_message()]
    assert ids(api, '?' + query, minor=52) == [recorded[number] for number in found]
    assert ids(api, '?' + query, minor=51) == recorded[::-1]


@pytest.mark.parametrize('name', ['created_since', 'created_before'])
@pytest.mark.parametrize(
    'text', ['', 'now', '2023-13-01', '1', '0001-01-01T00:00:00%2B23:00']
)
def test_invalid_time_is_refused(api, name, text):
    assert f'{name} must be a time' in api.refused('GET', f'/messages?{name}={text}')


@pytest.mark.facts('user-messages.2')
def test_pages_follow_each_other(api, record_message):
    recorded = [record_message() for _ in range(5)]
    seen, url = [], '/messages?limit=2&sort_key=created_at&sort_dir=asc'
    while url:
        answer = api.get(url)
        seen += [item['id'] for item in answer['messages']]
        following = answer.get('messages_links')
        url = following and following[0]['href'].partition('/v2')[2]
    assert seen == recorded


@pytest.mark.parametrize(
    'query, order',
    [
        ('', 'desc'),
        ('sort_dir=asc', 'asc'),
        ('sort_key=request_id&sort_dir=desc', 'desc'),
        ('sort_key=expires_at', 'desc'),
        ('limit=0', 'desc'),
    ],
)
@pytest.mark.facts('user-messages.2')
def test_messages_are_sorted(api, record_message, query, order):
    recorded = [record_message(request_id=f'req-{number}') for number in range(3)]
    assert ids(api, '?' + query) == (recorded if order == 'asc' else recorded[::-1])


@pytest.mark.facts('sort_key_messages')
@pytest.mark.parametrize(
    'key',
    [
        'id',
        'project_id',
        'request_id',
        'resource_type',
        'action_id',
        'detail_id',
        'resource_id',
        'message_level',
        'expires_at',
        'created_at',
    ],
)
def test_messages_are_sorted_by_each_published_key(api, record_message, key):
    for number, (project, action, detail) in enumerate(
        (
            (MINE, Action.CREATE, Detail.UNKNOWN_ERROR),
            (FOREIGN, Action.ALLOCATE_HOST, Detail.NO_VALID_HOST),
            (MINE, Action.EXTEND, Detail.FILTER_AVAILABILITY),
        )
    ):
        record_message(
            project=project,
            action=action,
            detail=detail,
            request_id=f'req-{7 * number % 3}',
            resource_id=f'{5 * number % 3}',
            ttl=100 + 1000 * (number % 2),
        )
    for way, reverse in (('asc', False), ('desc', True)):
        listed = api.get(f'/messages?sort_key={key}&sort_dir={way}')
        values = [one[key] for one in listed['messages']]
        assert len(values) == 3
        assert values == sorted(values, reverse=reverse)
        assert len(set(values)) > 1 or key in ('resource_type', 'message_level')


@pytest.mark.parametrize(
    'query, parameter',
    [
        ('sort_key=user_message', 'sort_key'),
        ('limit=x', 'limit'),
        ('limit=-1', 'limit'),
        ('offset=x', 'offset'),
    ],
)
def test_bad_paging_is_refused(api, query, parameter):
    assert parameter in api.refused('GET', f'/messages?{query}')


def test_messages_show_the_published_fields(api, record_message):
    path = f'/messages/{record_message()}'
    fields = {
        row['field']
        for row in reference.table('response-fields.csv')
        if (row['resource'], row['view']) == ('message', 'item')
    }
    for minor in range(37, 100):
        shown = api.get(path, minor=minor)['message']
        assert set(shown) == fields, minor
        assert api.get('/messages', minor=minor)['messages'] == [shown]
    api.refused('GET', path, minor=36, expect=404)


def test_statement_count_of_lists_is_constant(api, record_message):
    for _ in range(3):
        record_message()
    with api.record_statements() as sent:
        api.get('/messages?limit=2')
    assert len(sent) == 1


def test_times_are_compared_to_the_microsecond(api, record_message, clock):
    clock.now += 0.25
    recorded = record_message()
    moment = datetime.datetime.fromtimestamp(clock.now, datetime.UTC).replace(
        tzinfo=None
    )
    later = moment + datetime.timedelta(microseconds=1)
    assert ids(api, f'?created_since={moment.isoformat()}') == [recorded]
    assert ids(api, f'?created_since={later.isoformat()}') == []
