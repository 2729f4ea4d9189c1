"""Every failure records the published user message."""

import datetime
import re

import pytest
import sqlalchemy as sa

from manila_lite import exception, messages
from manila_lite.db.models import services
from tests.functional.api import differences
from tests.functional.api.conftest import member_of
from tests.support import databases, reference, rescues, share_groups
from tests.support.cloud import Cloud


def message(api):
    """Return the only message of the project."""
    (found,) = api.get('/messages')['messages']
    return found


def codes(api):
    found = message(api)
    return found['action_id'], found['detail_id']


def published_codes(action, detail):
    """Return the published codes of an action and a detail."""
    rows = {
        (row['kind'], row['name']): row['code']
        for row in reference.table('message-codes.csv')
    }
    return rows['action', action], rows['detail', detail]


def final_status(cloud, api, share):
    cloud.settle()
    return api.show(share)['status']


def test_message_names_share_project_and_request(cloud, member, fail_next_call):
    fail_next_call('create_share')
    answer = member.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 1}}, expect=200
    )
    share = answer.json['share']['id']
    assert final_status(cloud, member, share) == 'error'
    found = message(member)
    assert found['resource_type'] == 'SHARE'
    assert found['resource_id'] == share
    assert found['project_id'] == 'project'
    assert found['message_level'] == 'ERROR'
    assert found['request_id'] == answer.headers['x-compute-request-id']
    assert codes(member) == published_codes('CREATE', 'UNKNOWN_ERROR')


def test_error_text_of_the_driver_is_not_shown(cloud, member, fail_next_call):
    fail_next_call('create_share', exception.ShareBackendException(msg='hunter2'))
    member.create()
    cloud.settle()
    assert 'hunter2' not in member.request('GET', '/messages').text


FAILURES = [
    ('create_share', lambda api, share: api.create()['id']),
    ('create_snapshot', lambda api, share: take_snapshot(api, share)),
    ('delete_share', lambda api, share: api.delete(share)),
    ('extend_share', lambda api, share: api.act(share, 'extend', {'new_size': 3})),
    ('shrink_share', lambda api, share: api.act(share, 'shrink', {'new_size': 1})),
]


def take_snapshot(api, share):
    body = {'snapshot': {'share_id': share}}
    api.request('POST', '/snapshots', body, expect=202)


@pytest.mark.parametrize('method, request_it', FAILURES)
def test_administrators_read_the_words_of_the_driver(
    cloud, member, admin, fail_next_call, method, request_it
):
    share = member.create(size=2)['id']
    cloud.settle()
    fail_next_call(
        method,
        exception.ShareBackendException(msg='disk sdb is full, password=hunter2'),
    )
    request_it(member, share)
    cloud.settle()
    told = message(admin)['user_message']
    assert re.search(rf'{method} of back end \w+ failed after 0\.\d s: ', told)
    assert 'disk sdb is full' in told
    assert 'hunter2' not in told
    assert 'Next: ' in told
    assert told.startswith(message(member)['user_message'])
    for word in ('alpha', 'beta', 'sdb', method, 'Next'):
        assert word not in message(member)['user_message']


WORDS = exception.ShareBackendException(msg='disk sdb is full, password=hunter2')


def check_words(cloud, found, method, words='disk sdb is full'):
    """Check that the text for administrators has what the driver has said."""
    path = f'/messages/{found["id"]}'
    said = cloud.api.get(path)['message']['user_message']
    assert re.search(rf'{method} of back end \S+', said)
    assert words in said
    assert 'hunter2' not in said
    assert 'Next: ' in said
    public = messages.user_message(found['action_id'], found['detail_id'])
    assert said.startswith(public)
    assert member_of(cloud).get(path)['message']['user_message'] == public


@pytest.fixture
def reply(cloud, monkeypatch):
    """Return a function that sets what the drivers reply to a call."""

    def reply(method, value):
        for name in cloud.backend_names:
            monkeypatch.setattr(
                cloud.driver(name), method, lambda *args, **kwargs: value
            )

    return reply


def lose(cloud, share, status):
    """Let work on a share be lost that has put it into this status."""
    (row,) = cloud.api.get(f'/share_instances?share_id={share}')['share_instances']
    rescues.force_status(cloud.db, 'share_instance', row['id'], status)


@pytest.mark.parametrize('status', ['creating', 'extending', 'shrinking'])
@pytest.mark.parametrize('raises', [True, False])
def test_words_about_lost_work_are_those_of_the_driver(
    cloud, member, fail_next_call, reply, status, raises
):
    share = member.create()['id']
    cloud.settle()
    if raises:
        fail_next_call('get_share_status', WORDS)
    else:
        reply('get_share_status', {'status': 'error'})
    lose(cloud, share, status)
    cloud.settle()
    words = 'disk sdb is full' if raises else 'the back end reports status error'
    check_words(cloud, message(member), 'get_share_status', words)


def test_words_about_lost_groups_are_those_of_the_driver(cloud, member, fail_next_call):
    group = share_groups.create(cloud)
    fail_next_call('get_share_group_status', WORDS)
    rescues.force_status(cloud.db, 'share_group', group, 'creating')
    cloud.settle()
    check_words(cloud, message(cloud.api), 'get_share_group_status')


@pytest.mark.parametrize('raises', [True, False])
def test_words_about_groups_are_those_of_the_driver(
    cloud, member, fail_next_call, reply, raises
):
    type_id = share_groups.create_type(cloud.api)
    words = 'the share group is in error'
    if raises:
        fail_next_call('create_share_group', WORDS)
        words = 'disk sdb is full'
    else:
        reply('create_share_group', {'status': 'error'})
    share_groups.request(cloud.api, type_id)
    cloud.settle()
    check_words(cloud, message(cloud.api), 'create_share_group', words)


@pytest.mark.parametrize('raises', [True, False])
def test_words_about_group_snapshots_are_those_of_the_driver(
    cloud, member, fail_next_call, reply, raises
):
    group = share_groups.create(cloud)
    words = 'the snapshot is in error'
    if raises:
        fail_next_call('create_share_group_snapshot', WORDS)
        words = 'disk sdb is full'
    else:
        reply('create_share_group_snapshot', ({'status': 'error'}, None))
    share_groups.request_snapshot(cloud.api, group)
    cloud.settle()
    check_words(cloud, message(cloud.api), 'create_share_group_snapshot', words)


@pytest.mark.parametrize('method, request_it', FAILURES)
@pytest.mark.parametrize('error', [ConnectionRefusedError(111), TimeoutError()])
def test_back_end_that_does_not_answer_is_no_unexpected_error(
    cloud, member, admin, fail_next_call, method, request_it, error
):
    share = member.create(size=2)['id']
    cloud.settle()
    fail_next_call(method, error)
    request_it(member, share)
    cloud.settle()
    assert message(member)['detail_id'] == '028'
    assert 'cannot be reached' in message(member)['user_message']
    assert type(error).__name__ in message(admin)['user_message']


def test_messages_are_visible_to_their_project_only(
    cloud, member, stranger, fail_next_call
):
    fail_next_call('create_share')
    member.create()
    cloud.settle()
    path = f'/messages/{message(member)["id"]}'
    assert stranger.get('/messages')['messages'] == []
    stranger.request('GET', path, expect=404)
    stranger.request('DELETE', path, expect=404)
    member.request('DELETE', path, expect=204)
    assert member.get('/messages')['messages'] == []


def test_success_records_no_message(cloud, member):
    share = cloud.create_share()
    member.act(share, 'extend', {'new_size': 3})
    cloud.settle()
    member.act(share, 'shrink', {'new_size': 1})
    cloud.settle()
    member.delete(share)
    cloud.settle()
    assert member.get('/messages')['messages'] == []


# Placement


@pytest.mark.parametrize(
    'specs, detail',
    [
        ({'color': 'red'}, 'FILTER_CAPABILITIES'),
        ({'availability_zones': 'moon'}, 'FILTER_AVAILABILITY'),
        ({'replication_type': 'dr'}, 'FILTER_CAPABILITIES'),
        ({'share_backend_name': 'moon'}, 'FILTER_CAPABILITIES'),
    ],
)
def test_type_that_no_pool_offers(cloud, member, make_type, specs, detail):
    make_type(**specs)
    share = member.create(share_type='special')['id']
    assert final_status(cloud, member, share) == 'error'
    assert codes(member) == published_codes('ALLOCATE_HOST', detail)


def test_no_pool_has_room(build_cloud):
    cloud = build_cloud('[quota]\ngigabytes = -1', capacity=10)
    share = cloud.api.create(size=10_000)['id']
    assert final_status(cloud, cloud.api, share) == 'error'
    assert codes(cloud.api) == published_codes('ALLOCATE_HOST', 'FILTER_CAPACITY')


def test_the_only_back_end_of_the_type_is_away(cloud, member, make_type):
    """That others lack what the type requires is not the reason."""
    make_type(share_backend_name='alpha')
    cloud.api.request(
        'PUT',
        '/services/disable',
        {'host': 'node@alpha', 'binary': 'manila-share'},
        expect=200,
    )
    share = member.create(share_type='special')['id']
    for _ in range(20):
        cloud.settle()
        cloud.clock.advance(30)
        cloud.beat()
    assert member.show(share)['status'] == 'error'
    assert codes(member) == published_codes(
        'ALLOCATE_HOST', 'SHARE_BACKEND_NOT_READY_YET'
    )
    assert 'Try again later' in message(member)['user_message']
    assert (
        'node@alpha#pool: its service is disabled' in message(cloud.api)['user_message']
    )


def test_no_pool_at_all(tmp_path):
    cloud = Cloud(tmp_path, initialize=False)
    databases.create_tables(cloud.url)
    cloud.db.write(cloud._fill)
    share = cloud.api.create()['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    assert codes(cloud.api) == published_codes(
        'ALLOCATE_HOST', 'SHARE_BACKEND_NOT_READY_YET'
    )
    cloud.db.dispose()


def test_hint_that_no_pool_meets(cloud, member):
    share = cloud.api.create(scheduler_hints={'only_host': 'node@gamma#pool'})['id']
    assert final_status(cloud, member, share) == 'error'
    assert codes(member) == published_codes('ALLOCATE_HOST', 'NO_VALID_HOST')


@differences.proves('user_message of failed placements')
def test_only_administrators_read_why_each_pool_was_rejected(cloud, member, make_type):
    make_type(color='red')
    share = member.create(share_type='special')['id']
    assert final_status(cloud, member, share) == 'error'
    path = f'/messages/{message(member)["id"]}'
    for answer in (member.get(path)['message'], message(member)):
        assert answer['user_message'].endswith('Use another share type.')
        assert 'node' not in answer['user_message']
    for answer in (cloud.api.get(path)['message'], message(cloud.api)):
        text = answer['user_message']
        assert '2 pools considered, 0 accepted.' in text
        assert 'ServiceUp left 2.' in text
        assert 'CapabilitiesFilter left 0, rejected node@' in text
        for backend in ('alpha', 'beta'):
            assert f'node@{backend}#pool: it does not report color' in text


def test_explanation_cannot_be_searched_or_sorted_by(cloud, member, make_type):
    """A tenant would find out what it says, by halves."""
    make_type(color='red')
    member.create(share_type='special')
    cloud.settle()
    member.request('GET', '/messages?sort_key=explanation', expect=400)
    for query in ('', '?explanation=node', '?explanation=0'):
        assert len(member.get(f'/messages{query}')['messages']) == 1


def test_log_says_why_each_pool_was_rejected(cloud, member, make_type, caplog):
    make_type(color='red')
    share = member.create(share_type='special')['id']
    assert final_status(cloud, member, share) == 'error'
    (line,) = {
        record.getMessage()
        for record in caplog.records
        if record.getMessage().startswith('Placing ')
    }
    assert 'CapabilitiesFilter left 0, rejected node@' in line
    assert '\n' not in line


def test_no_room_to_extend(build_cloud):
    cloud = build_cloud('[quota]\ngigabytes = -1', capacity=10)
    share = cloud.create_share()
    cloud.api.act(share, 'extend', {'new_size': 10_000})
    cloud.settle()
    assert codes(cloud.api) == published_codes('EXTEND', 'FILTER_CAPACITY')
    assert (
        '1 pools considered, 0 accepted. ServiceUp left 1. CapacityFilter '
        'left 0, rejected node@' in message(cloud.api)['user_message']
    )


# Drivers


@pytest.mark.facts('fix-share-manager-shrinking')
@pytest.mark.parametrize(
    'method, error, action, args, status, names',
    [
        (
            'extend_share',
            None,
            'extend',
            {'new_size': 5},
            'extending_error',
            ('EXTEND', 'DRIVER_FAILED_EXTEND'),
        ),
        (
            'shrink_share',
            None,
            'shrink',
            {'new_size': 1},
            'shrinking_error',
            ('SHRINK', 'DRIVER_FAILED_SHRINK'),
        ),
        (
            'shrink_share',
            exception.ShareShrinkingPossibleDataLoss(share_id='it'),
            'shrink',
            {'new_size': 1},
            'available',
            ('SHRINK', 'DRIVER_REFUSED_SHRINK'),
        ),
        (
            'shrink_share',
            NotImplementedError(),
            'shrink',
            {'new_size': 1},
            'available',
            ('SHRINK', 'DRIVER_FAILED_SHRINK'),
        ),
    ],
)
@pytest.mark.facts('LP1802424')
def test_driver_fails_to_resize(
    cloud, member, fail_next_call, method, error, action, args, status, names
):
    share = cloud.create_share(size=2)
    fail_next_call(method, error)
    member.act(share, action, args)
    assert final_status(cloud, member, share) == status
    assert codes(member) == published_codes(*names)
    assert member.show(share)['size'] == 2
    assert cloud.usage('gigabytes') == (2, 0)


def test_driver_fails_to_delete(cloud, member, fail_next_call):
    share = cloud.create_share()
    fail_next_call('delete_share')
    member.delete(share)
    assert final_status(cloud, member, share) == 'error_deleting'
    assert codes(member) == published_codes('DELETE', 'UNKNOWN_ERROR')


def test_every_message_has_a_text(cloud, member, fail_next_call):
    fail_next_call('create_share')
    member.create()
    cloud.settle()
    action, _, detail = message(member)['user_message'].partition(': ')
    assert action == 'create'
    assert detail


@pytest.mark.facts('clean-expired-messages.2', 'user-messages.3')
def test_messages_expire(build_cloud):
    cloud = build_cloud('message_ttl = 600\ndefault_share_type =')
    member = member_of(cloud)
    member.create()
    cloud.settle()
    (found,) = member.get('/messages')['messages']
    created, expires = (
        datetime.datetime.fromisoformat(found[key])
        for key in ('created_at', 'expires_at')
    )
    assert expires - created == datetime.timedelta(seconds=600)
    cloud.clock.advance(601)
    assert member.get('/messages')['messages'] == []


@pytest.mark.facts('clean-expired-messages.1')
def test_expired_messages_are_deleted_at_an_interval(build_cloud):
    cloud = build_cloud(
        'message_ttl = 10\nmessage_reap_interval = 7000\ndefault_share_type ='
    )

    def pass_deletes():
        (purge,) = [one for one in cloud.scheduler.purges if one.name == 'old rows']
        purge.run_pass()
        return not cloud.db.read(
            lambda session: session.value(
                sa.select(sa.func.count()).select_from(services.Message.__table__)
            )
        )

    member = member_of(cloud)
    for waits, deletes in ((5, False), (7010, True), (6900, False), (120, True)):
        member.create()
        cloud.settle()
        cloud.clock.advance(waits)
        assert pass_deletes() is deletes, waits
