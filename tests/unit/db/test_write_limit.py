"""Which changes may be in transactions, and which are refused."""

import contextlib
import threading

import pytest

from manila_lite import exception
from manila_lite.db import write_limit
from tests.support.processes import wait_until

TIMEOUT = 60.0


class Changes:
    """Changes of an API, each in a thread until `end`."""

    def __init__(self, patience=TIMEOUT):
        self.limit = write_limit.WriteLimit(patience)
        self.running = []
        self.refused = []
        self.threads = []

    def begin(self, project='project', resource=None):
        thread = threading.Thread(target=self._change, args=[project, resource])
        self.threads.append(thread)
        thread.start()

    def _change(self, project, resource):
        ended = threading.Event()
        try:
            with self.limit.change(project, resource):
                self.running.append((project, resource, ended))
                assert ended.wait(TIMEOUT)
        except exception.ServiceUnavailable as error:
            self.refused.append(type(error))

    def end(self):
        """End the oldest one."""
        self.running.pop(0)[2].set()

    def wait(self, running, refused=0):
        wait_until(
            lambda: (len(self.running), len(self.refused)) == (running, refused),
            'they run or are refused',
        )

    def stop(self):
        while any(thread.is_alive() for thread in self.threads):
            with contextlib.suppress(IndexError):
                self.end()


@pytest.fixture
def build():
    with contextlib.ExitStack() as stack:

        def build(**given):
            changes = Changes(**given)
            stack.callback(changes.stop)
            return changes

        yield build


def test_changes_of_a_resource_wait_for_each_other_in_order(build):
    changes = build()
    for _ in range(write_limit.OF_RESOURCE):
        changes.begin(resource='a')
    changes.wait(running=write_limit.OF_RESOURCE)
    changes.begin(resource='a')
    changes.begin(resource='b')
    changes.wait(running=write_limit.OF_RESOURCE + 1)
    assert changes.running[-1][1] == 'b'
    changes.end()
    changes.wait(running=write_limit.OF_RESOURCE + 1)
    assert changes.running[-1][1] == 'a'
    assert not changes.refused


def test_burst_is_not_refused_while_it_makes_progress(build):
    changes = build()
    for _ in range(24):
        changes.begin(resource='a')
    for _ in range(24):
        wait_until(lambda: changes.running, 'one runs')
        changes.end()
    for thread in changes.threads:
        thread.join(TIMEOUT)
    assert not changes.refused


def test_waiters_are_refused_when_nothing_has_ended(build):
    changes = build(patience=0.2)
    for _ in range(24):
        changes.begin(resource='a')
    changes.wait(running=write_limit.OF_RESOURCE, refused=24 - write_limit.OF_RESOURCE)
    assert set(changes.refused) == {exception.ResourceBusy}


def test_further_ones_are_refused_at_once(build):
    changes = build(patience=0)
    for number in range(write_limit.OF_RESOURCE):
        changes.begin(resource='a')
        changes.wait(running=number + 1)
    with pytest.raises(exception.ResourceBusy):
        changes.limit.change('project', 'a').__enter__()


def test_refusal_shows_nothing_to_other_projects(build):
    changes = build(patience=0)
    for number in range(write_limit.OF_RESOURCE):
        changes.begin(resource='a')
        changes.wait(running=number + 1)
    with changes.limit.change('other', 'a'):
        pass


def test_one_project_leaves_room_for_others(build):
    changes = build(patience=0.2)
    for number in range(20):
        changes.begin(resource=str(number))
    changes.wait(running=write_limit.OF_PROJECT, refused=20 - write_limit.OF_PROJECT)
    assert set(changes.refused) == {exception.DatabaseBusy}
    with changes.limit.change('other', None):
        pass


def test_all_projects_leave_room_for_reads(build):
    changes = build(patience=0.2)
    for number in range(20):
        changes.begin(project=str(number))
    changes.wait(running=write_limit.IN_ALL, refused=20 - write_limit.IN_ALL)
    assert set(changes.refused) == {exception.DatabaseBusy}


def test_refused_changes_leave_no_trace(build):
    changes = build(patience=0.2)
    for _ in range(24):
        changes.begin(resource='a')
    changes.wait(running=write_limit.OF_RESOURCE, refused=24 - write_limit.OF_RESOURCE)
    for _ in range(write_limit.OF_RESOURCE):
        changes.end()
    for thread in changes.threads:
        thread.join(TIMEOUT)
    for _ in range(write_limit.OF_RESOURCE):
        changes.begin(resource='a')
    changes.wait(running=write_limit.OF_RESOURCE, refused=24 - write_limit.OF_RESOURCE)


def test_second_transaction_of_a_request_is_not_refused(build):
    changes = build(patience=0)
    begun = changes.limit.change('project', 'a')
    with begun:
        pass
    for number in range(write_limit.OF_RESOURCE):
        changes.begin(resource='a')
        changes.wait(running=number + 1)
    with begun:
        pass


def test_only_changes_of_requests_are_limited(new_database):
    db = new_database(url='sqlite://')
    refuses = write_limit.WriteLimit(0)
    with contextlib.ExitStack() as stack:
        for _ in range(write_limit.OF_RESOURCE):
            stack.enter_context(refuses.change('project', 'a'))
        with (
            write_limit.limit_writes(refuses.change('project', 'a')),
            pytest.raises(exception.ResourceBusy),
        ):
            db.write(lambda session: None)
        db.write(lambda session: None)
