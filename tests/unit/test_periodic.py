"""Periodic tasks run independently of each other."""

import logging
import random
import threading

import pytest

from manila_lite.periodic import Periodic, Task

PATIENCE = 20.0
NEVER = 3600.0


class Counter:
    """A task that counts its runs, and can fail or hang."""

    def __init__(self, error=None):
        self.error = error
        self.count = 0
        self.may_finish = threading.Event()
        self.may_finish.set()
        self._changed = threading.Condition()

    def __call__(self):
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        self.may_finish.wait(PATIENCE)
        if self.error:
            raise self.error

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, PATIENCE)


@pytest.fixture
def start():
    """`start(task, ...)`: start the tasks; stop them after the test."""
    started = []

    def make(*tasks, **given):
        periodic = Periodic(list(tasks), **given)
        periodic.start()
        started.append(periodic)
        return periodic

    yield make
    for periodic in started:
        periodic.stop(PATIENCE)


def test_the_first_run_comes_at_once_and_others_follow(start):
    often, rarely = Counter(), Counter()
    start(Task('often', 0.1, often), Task('rarely', NEVER, rarely))
    rarely.wait_for(1)
    often.wait_for(3)
    assert rarely.count == 1


def test_a_task_that_fails_runs_again_and_is_logged(start, monkeypatch):
    logged = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logger = logging.getLogger('manila_lite.periodic')
    monkeypatch.setattr(logger, 'handlers', [handler])
    failing = Counter(RuntimeError('out of order'))
    start(Task('failing', 0.1, failing))
    failing.wait_for(3)
    assert logged[:2] == ['Periodic task failing failed'] * 2


def test_a_task_that_hangs_does_not_block_others(start):
    hanging, heartbeat = Counter(), Counter()
    hanging.may_finish.clear()
    start(Task('report', 0.1, hanging), Task('heartbeat', 0.1, heartbeat))
    hanging.wait_for(1)
    heartbeat.wait_for(heartbeat.count + 3)
    assert hanging.count == 1
    hanging.may_finish.set()


def test_the_first_runs_are_spread(start):
    class Late(random.Random):
        def uniform(self, low, high):
            assert (low, high) == (0, 60.0)
            return NEVER

    task = Counter()
    periodic = start(Task('late', 61.0, task), jitter=60.0, rng=Late())
    periodic.stop(PATIENCE)
    assert task.count == 0


def test_the_first_run_is_delayed_by_an_interval_at_most(start):
    class Late(random.Random):
        def uniform(self, low, high):
            assert (low, high) == (0, 0.1)
            return high

    task = Counter()
    start(Task('often', 0.1, task), jitter=60.0, rng=Late())
    task.wait_for(1)


def test_stopping_waits_for_a_running_task(start):
    task = Counter()
    task.may_finish.clear()
    periodic = start(Task('slow', 0.1, task))
    task.wait_for(1)
    periodic.stop(0.0)
    assert [thread for thread in threading.enumerate() if thread.name == 'slow']
    task.may_finish.set()
    periodic.stop(PATIENCE)
    assert not [thread for thread in threading.enumerate() if thread.name == 'slow']
    assert task.count == 1


def test_some_tasks_go_on_while_running_work_ends(start):
    heartbeat, task = Counter(), Counter()
    task.may_finish.clear()
    periodic = start(
        Task('heartbeat', 0.1, heartbeat, drains=True), Task('task', 0.1, task)
    )
    task.wait_for(1)
    periodic.drain()
    task.may_finish.set()
    heartbeat.wait_for(heartbeat.count + 2)
    assert task.count == 1
    periodic.stop(PATIENCE)
    assert not [
        thread for thread in threading.enumerate() if thread.name == 'heartbeat'
    ]


def test_tasks_that_were_never_started_can_be_stopped():
    Periodic([Task('idle', 0.1, Counter())]).stop()
