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
    assert blocked.take_free() == {'a', 'b'}
    assert blocked.take_free() == set()


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
