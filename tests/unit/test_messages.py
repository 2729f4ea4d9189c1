"""Codes and texts of user messages."""

import datetime

import pytest

from manila_lite import exception, messages
from manila_lite.api import paging
from manila_lite.db.queries import messages as records
from manila_lite.db.queries.work import retention
from manila_lite.db.session import Database
from manila_lite.messages import Action, Detail
from tests.support import reference

DAY = 86400
MONDAY = datetime.datetime(2026, 8, 3, 12, 0, 0, 250000)


@pytest.mark.parametrize(
    'kind, codes', [('action', Action), ('detail', Detail)], ids=['action', 'detail']
)
def test_codes_are_the_published_ones(kind, codes):
    published = {
        row['name']: row['code']
        for row in reference.table('message-codes.csv')
        if row['kind'] == kind
    }
    known = {one.name: one.value for one in codes}
    if kind == 'detail':
        # Success has no published code, and clients expect a string.
        assert known.pop('DONE') not in published.values()
    assert known == published


def test_every_code_has_its_own_text():
    for codes in (Action, Detail):
        words = [one.words for one in codes]
        assert all(words)
        assert len(set(words)) == len(words)
    assert all(one.words.endswith('.') for one in Detail)


def test_a_message_is_action_and_detail():
    assert messages.user_message('008', '015') == (
        f'{Action.EXTEND.words}: {Detail.DRIVER_FAILED_EXTEND.words}'
    )


PLACEMENT_FAILURES = [Detail.NO_VALID_HOST] + [
    detail for detail in Detail if detail.name.startswith('FILTER_')
]


@pytest.mark.parametrize('detail', PLACEMENT_FAILURES)
def test_published_words_begin_every_failure_of_placement(detail):
    published = 'No storage could be allocated for this share request'
    assert messages.user_message('001', detail.value).startswith(
        f'{Action.ALLOCATE_HOST.words}: {published}'
    )


def test_a_reason_follows_the_published_words():
    words = messages.user_message('010', '020')
    assert messages.user_message('010', '020', 'ip 10.0.0.1') == (
        f'{words} (ip 10.0.0.1)'
    )


def test_only_reasons_about_what_the_user_gave_are_shown():
    path = exception.ManageInvalidShare(reason='/etc: not below /srv')
    assert '/etc: not below /srv' in messages.reason_in(path)
    for error in (
        exception.ShareBackendException(msg='password=secret'),
        RuntimeError('10.0.0.1 refused'),
    ):
        assert messages.reason_in(error) is None


def test_failed_call_of_a_driver_is_named_with_its_words():
    error = exception.ShareBackendException(msg='no space')
    assert messages.explanation_in(error) is None
    error.add_note('create_share of back end fast failed after 0.3 s')
    assert messages.explanation_in(error) == (
        'create_share of back end fast failed after 0.3 s: '
        'Share back end error: no space'
    )
    bug = KeyError('id')
    bug.add_note('call')
    assert messages.explanation_in(bug) == "call: KeyError: 'id'"


def test_connection_is_lost_only_if_a_driver_says_so():
    error = ConnectionResetError()
    assert messages.detail_in(error) is None
    error.add_note('call')
    assert messages.detail_in(error) is Detail.SHARE_BACKEND_NOT_READY_YET


FAILURES = [
    detail
    for detail in Detail
    if detail not in (Detail.DONE, Detail.UPDATE_METADATA_SUCCESS)
]


@pytest.mark.parametrize('detail', FAILURES)
def test_next_step_follows_the_explanation(detail):
    plain = messages.user_message('002', detail.value)
    explained = messages.user_message('002', detail.value, None, 'It broke.')
    assert explained.startswith(f'{plain} It broke. Next: ')
    assert explained.count('Next: ') == 1


def test_each_failure_has_its_own_next_step():
    steps = {
        messages.user_message('002', detail.value, None, 'It broke.').partition(
            'Next: '
        )[2]
        for detail in FAILURES
    }
    assert len(steps) == len(FAILURES)


def test_unknown_codes_read_as_unknown():
    assert messages.user_message('999', '999') == (
        f'unknown action: {Detail.UNKNOWN_ERROR.words}'
    )


@pytest.mark.parametrize('stored', ['000', None], ids=['now', 'before'])
def test_success_is_a_detail(stored):
    assert messages.user_message('006', stored) == (
        f'{Action.REVERT_TO_SNAPSHOT.words}: Done.'
    )
    assert messages.stored_detail(stored) == Detail.DONE.value


class Days:
    """A clock at noon of a day, counted from Monday."""

    day = 0

    def __call__(self):
        moment = MONDAY.replace(tzinfo=datetime.UTC)
        return moment.timestamp() + self.day * DAY


@pytest.fixture
def clock():
    return Days()


@pytest.fixture
def db(database_url, clock):
    database = Database(database_url, clock=clock)
    yield database
    database.dispose()


def record(db, **values):
    return db.write(
        messages.record,
        **{
            'project_id': 'blue',
            'request_id': 'req-1',
            'action': Action.CREATE,
            'resource': ('SHARE', 'share1'),
            'detail': Detail.NO_VALID_HOST,
            'ttl': 3 * DAY,
            **values,
        },
    )


def ids(db, limit=None, offset=0, sort_key='created_at', sort_dir='desc', **query):
    page = paging.Page(limit, offset, sort_key, sort_dir)
    return [row.id for row in db.read(records.list_messages, page, **query)]


@pytest.fixture
def week(db, clock):
    """One message a day from Monday to Wednesday, the last one of red."""
    made = [record(db)]
    clock.day = 1
    made.append(
        record(
            db,
            action=Action.EXTEND,
            resource=('SHARE', 'share2'),
            detail=Detail.DRIVER_FAILED_EXTEND,
            request_id='req-2',
        )
    )
    clock.day = 2
    made.append(record(db, project_id='red', resource=('SHARE_GROUP', 'share1')))
    return made


def test_a_record_stores_codes_resource_and_times(db):
    row = db.read(records.get_message, record(db, reason='too large'))
    assert row._asdict() == {
        'id': row.id,
        'project_id': 'blue',
        'message_level': 'ERROR',
        'request_id': 'req-1',
        'resource_type': 'SHARE',
        'resource_id': 'share1',
        'action_id': '002',
        'detail_id': '002',
        'created_at': MONDAY,
        'expires_at': MONDAY + datetime.timedelta(days=3),
        'kept_until': None,
        'reason': 'too large',
        'explanation': None,
    }


def test_lists_show_the_newest_first_by_project_or_all(db, week):
    assert ids(db) == week[::-1]
    assert ids(db, project_id='blue') == [week[1], week[0]]
    assert ids(db, project_id='green') == []


@pytest.mark.parametrize(
    'filters, days',
    [
        ({'request_id': 'req-2'}, [1]),
        ({'resource_type': 'SHARE'}, [1, 0]),
        ({'resource_id': 'share2'}, [1]),
        ({'action_id': '002'}, [2, 0]),
        ({'detail_id': '015'}, [1]),
        ({'message_level': 'ERROR'}, [2, 1, 0]),
        ({'message_level': 'INFO'}, []),
        ({'action_id': '002', 'resource_type': 'SHARE'}, [0]),
    ],
)
def test_lists_can_be_filtered(db, week, filters, days):
    assert ids(db, filters=filters) == [week[day] for day in days]
    assert set(filters) <= set(records.FILTERS)


def test_lists_can_be_bounded_in_time(db, week):
    tuesday = MONDAY + datetime.timedelta(days=1)
    instant = datetime.timedelta(microseconds=1)
    assert ids(db, created_since=tuesday) == [week[2], week[1]]
    assert ids(db, created_since=tuesday + instant) == [week[2]]
    assert ids(db, created_before=tuesday) == [week[1], week[0]]
    assert ids(db, created_before=tuesday - instant) == [week[0]]


def test_lists_can_be_paged_and_sorted(db, week):
    assert ids(db, limit=2) == [week[2], week[1]]
    assert ids(db, limit=2, offset=2) == [week[0]]
    assert ids(db, offset=1) == [week[1], week[0]]
    assert ids(db, sort_dir='asc') == week
    assert ids(db, sort_key='resource_id', sort_dir='desc')[0] == week[1]
    for key in records.SORT_KEYS:
        assert sorted(ids(db, sort_key=key)) == sorted(week)


def test_a_deleted_message_is_gone(db, week):
    db.write(records.delete_message, week[0])
    assert ids(db) == [week[2], week[1]]
    # Processes of the previous release go by this time.
    assert db.read(records.get_message, week[0]).expires_at <= db.utcnow()
    with pytest.raises(exception.MessageNotFound):
        db.write(records.delete_message, week[0])


def test_a_deleted_message_is_kept_for_its_resource_until_it_expires(db, week, clock):
    def about(project_id=None):
        share_id = db.read(records.get_message, week[2]).resource_id
        found = db.read(records.list_about, [share_id], project_id, most=9)
        return [row.id for row in found]

    def purge():
        return db.write(retention.delete_until, retention.MESSAGES, db.utcnow(), 9)

    assert about()[0] == week[2]
    assert about('another') == []
    db.write(records.delete_message, week[2])
    assert about()[0] == week[2]
    clock.day = 4
    assert purge() == 2
    assert about() == [week[2]]
    clock.day = 9
    assert about() == []
    assert purge() == 1


def test_expired_messages_are_purged(db, week, clock):
    def purge(batch=9):
        return db.write(retention.delete_until, retention.MESSAGES, db.utcnow(), batch)

    assert purge() == 0
    clock.day = 4
    assert ids(db) == [week[2]]
    assert [purge(1), purge(), purge()] == [1, 1, 0]
    assert ids(db) == [week[2]]
