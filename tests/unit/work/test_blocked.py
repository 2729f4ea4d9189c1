"""Refused work is tried again when its resource is free, not for ever."""

import pytest

from manila_lite.work.blocked import BlockedWork


@pytest.fixture
def blocked():
    return BlockedWork()


def test_work_is_free_when_the_job_that_has_the_resource_ends(blocked):
    blocked.hold('job-1', 'wall:w')
    blocked.hold('job-2', 'wall:x')
    blocked.add('a', 'wall:w')
    blocked.add('b', 'wall:w')
    blocked.release('wall:x')
    assert blocked.take_free() == set()
    blocked.release('wall:w')
    assert blocked.take_free() == {'a'}
    assert blocked.take_free() == set()
    blocked.hold('a', 'wall:w')
    blocked.release('wall:w')
    assert blocked.take_free() == {'b'}


def test_work_is_free_at_once_if_the_job_has_ended_since(blocked):
    blocked.hold('job-3', 'wall:w')
    blocked.release('wall:w')
    blocked.add('a', 'wall:w')
    assert blocked.take_free() == {'a'}


def test_work_that_another_process_blocks_is_tried_again_once(blocked):
    free = []
    for _ in range(4):
        blocked.add('a', 'wall:w')
        free.append(blocked.take_free())
    assert free == [{'a'}, set(), {'a'}, set()]


def test_work_waits_for_all_jobs_with_its_key(blocked):
    """One was replaced and does not know yet."""
    blocked.hold('job-4', 'wall:w')
    blocked.hold('job-5', 'wall:w')
    blocked.release('wall:w')
    blocked.add('a', 'wall:w')
    assert blocked.take_free() == set()
    blocked.release('wall:w')
    assert blocked.take_free() == {'a'}


def test_work_that_has_run_is_tried_again_at_once_the_next_time(blocked):
    """The same work is queued again if it is requested while it runs."""
    blocked.add('a', 'wall:w')
    assert blocked.take_free() == {'a'}
    blocked.hold('a', 'wall:w')
    blocked.release('wall:w')
    blocked.add('a', 'wall:w')
    assert blocked.take_free() == {'a'}


@pytest.fixture
def two_wait(blocked):
    """`a` is free, and `b` waits behind it."""
    blocked.hold('job', 'wall:w')
    blocked.add('a', 'wall:w')
    blocked.add('b', 'wall:w')
    blocked.release('wall:w')
    assert blocked.take_free() == {'a'}


def test_what_waits_follows_work_that_was_not_there_any_more(blocked, two_wait):
    blocked.pass_on('a')
    assert blocked.take_free() == {'b'}
    blocked.pass_on('b')
    assert blocked.take_free() == set()


def test_work_that_is_refused_while_another_is_free_waits_behind_it(blocked, two_wait):
    blocked.add('c', 'wall:w')
    assert blocked.take_free() == set()
    blocked.pass_on('a')
    assert blocked.take_free() == {'b'}
    blocked.pass_on('b')
    assert blocked.take_free() == {'c'}


def test_work_of_which_a_sweep_made_a_job_is_not_freed_again(blocked, two_wait):
    blocked.hold('b', 'wall:w')
    blocked.release('wall:w')
    assert blocked.take_free() == set()


@pytest.mark.parametrize(
    'leave',
    [
        lambda blocked: blocked.leave_to_sweep('a'),
        lambda blocked: blocked.leave_all_to_sweep(),
        lambda blocked: [blocked.add('a', 'wall:w') for _ in range(2)],
    ],
    ids=['the database is away', 'the service is disabled', 'another process has it'],
)
def test_nothing_waits_for_what_is_left_to_the_sweep(blocked, two_wait, leave):
    leave(blocked)
    blocked.take_free()
    blocked.hold('b', 'wall:w')
    blocked.release('wall:w')
    assert blocked.take_free() == set()
    assert not blocked._waiting
    assert not blocked._turns
