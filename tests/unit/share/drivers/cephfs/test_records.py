"""Records and fencing tokens change together, and only for the latest worker."""

import concurrent.futures
import itertools

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken, fenced
from manila_lite.share.drivers.cephfs.records import Records
from manila_lite.share.drivers.fencing import KEEP_SECONDS
from tests.support import ceph as ceph_support

pytestmark = ceph_support.limited

numbers = itertools.count()


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def records(ceph, clock, request):
    return Records(ceph.admin, f'{request.node.name}-{next(numbers)}', clock)


def put(records, key, value):
    return records.change(key, decide=lambda values: {key: value})[key]


def token(value, resource='share_instance:1'):
    return fenced(FencingToken(resource, value))


def test_value_is_read_by_others(ceph, clock, records):
    assert records.get('share:a') is None
    put(records, 'share:a', {'size': 1})
    assert Records(ceph.admin, records.name, clock).get('share:a') == {'size': 1}
    put(records, 'share:a', None)
    assert records.get('share:a') is None
    assert records.get_all('share:') == {}


def test_later_token_refuses_the_earlier_worker(records):
    with token(2):
        records.admit_call()
    with token(1):
        for late in (
            records.admit_call,
            records.check_call,
            lambda: put(records, 'share:a', {'size': 1}),
        ):
            with pytest.raises(exception.StaleFencingToken) as caught:
                late()
            assert caught.value.seen == 2
    assert records.get('share:a') is None
    with token(1, 'share_instance:2'):
        put(records, 'share:b', {'size': 1})


def test_worker_that_was_paused_between_read_and_write_changes_nothing(records):
    """The token is compared in the write itself."""

    def decide(values):
        with token(2):
            records.admit_call()
        return {'share:a': {'size': 1}}

    with token(1), pytest.raises(exception.StaleFencingToken):
        records.change('share:a', decide=decide)
    assert records.get('share:a') is None


def test_what_was_expected_and_is_otherwise_is_read_before_it_is_changed(records):
    """Another worker was there first, or has changed it since."""
    put(records, 'share:a', {'size': 1})

    def create(values):
        assert values['share:a'] in (None, {'size': 1})
        return {} if values['share:a'] else {'share:a': {'size': 9}}

    with token(1):
        found = records.change('share:a', decide=create, are_new=True)
        assert found['share:a'] == {'size': 1}
        records.change('share:b', decide=lambda v: {'share:b': 'mine'}, are_new=True)
    put(records, 'share:b', 'theirs')
    with token(1):
        seen = []
        records.update('share:b', lambda value: seen.append(value) or f'{value} now')
    assert seen[-1] == 'theirs'
    assert records.get('share:b') == 'theirs now'


def test_error_because_of_what_was_not_read_is_none(records):
    """What the work has written is gone: it is read before it is missed."""

    def require(values):
        if values['share:a'] is None:
            raise exception.ShareResourceNotFound(share_id='a')
        return {'share:a': values['share:a'] | {'size': 2}}

    put(records, 'share:a', {'size': 1})
    with token(1):
        put(records, 'share:a', None)
    put(records, 'share:a', {'size': 1})
    with token(1):
        assert records.change('share:a', decide=require)['share:a'] == {'size': 2}


def test_error_about_what_is_new_is_one(records):
    def refuse(values):
        raise exception.ShareBackendException(msg='refused')

    with token(1), pytest.raises(exception.ShareBackendException):
        records.change('share:a', decide=refuse, are_new=True)


def test_late_worker_changes_nothing_that_it_expects_as_it_was(records):
    with token(1):
        put(records, 'share:a', {'size': 1})
    with token(2):
        records.admit_call()
    with token(1), pytest.raises(exception.StaleFencingToken):
        put(records, 'share:a', {'size': 2})
    assert records.get('share:a') == {'size': 1}


def test_changes_of_several_workers_are_all_made(records):
    def add(_):
        records.change(
            'share:a',
            decide=lambda values: {
                'share:a': {'size': (values['share:a'] or {'size': 0})['size'] + 1}
            },
        )

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(20)))
    assert records.get('share:a') == {'size': 20}


def test_claim_ends_with_its_block(records):
    with records.claimed('owner:a') as is_claimed:
        assert is_claimed
        with records.claimed('owner:a') as is_claimed_twice:
            assert not is_claimed_twice
    put(records, 'owner:a', 'share')
    with records.claimed('owner:a') as is_claimed:
        assert not is_claimed
    assert records.get('owner:a') == 'share'


def test_tokens_are_forgotten_when_no_worker_can_have_them(records, clock):
    with token(2):
        records.admit_call()
    clock.now += KEEP_SECONDS - 86400
    with token(5, 'share_instance:2'):
        records.admit_call()
    clock.now += 86400 + 1
    records.forget_old_tokens()
    assert set(records.get_all('token:')) == {'share_instance:2'}
    with token(1):
        records.admit_call()
