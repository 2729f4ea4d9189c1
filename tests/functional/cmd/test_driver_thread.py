"""Calls of drivers and what they call back, in both concurrency models."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]

# Each line that is printed begins with the name of a test.
PROGRAM = """
from manila_lite.cmd import CONCURRENCY
from manila_lite.cmd import driver_thread
from manila_lite.context import RequestContext
from manila_lite.context import logged_as
from oslo_context import context
import atexit
import contextvars
import threading
import time

native = threading
if CONCURRENCY == 'eventlet':
    from eventlet import patcher
    native = patcher.original('threading')
number = contextvars.ContextVar('number')


@atexit.register  # the first one registered runs last
def say_whether_the_thread_of_drivers_has_ended():
    print('ended', 'drivers' not in {t.name for t in native.enumerate()})


def request():
    found = context.get_current()
    return found and found.request_id


class Storage:
    def thread(self):
        return native.get_ident(), number.get(None)

    def request(self):
        return request()


class Driver:
    initialized = False

    def __init__(self, storage):
        self.storage = storage
        self.lock = threading.Lock()

    def thread(self):
        return native.get_ident(), number.get(None)

    def requests(self):
        return request(), self.storage.request()

    def storage_thread(self):
        return self.storage.thread()

    def work(self):
        with self.lock:
            time.sleep(0.01)
        return number.get()

    def fail(self, *, word):
        raise KeyError(word)


driver = driver_thread.in_driver_thread(
    Driver(driver_thread.in_main_thread(Storage())))
here = native.get_ident()
number.set(1)
print('apart', driver.thread()[0] != here)
print('back', driver.storage_thread()[0] == here)
print('context', driver.thread()[1], driver.storage_thread()[1])
with logged_as(RequestContext(request_id='req-1')):
    print('requests', *driver.requests())
try:
    driver.fail(word='why')
except KeyError as error:
    print('error', *error.args)
driver.initialized = True
print('attributes', driver.initialized, isinstance(driver, Driver))
seen = []


def call(value):
    number.set(value)
    seen.append((value, driver.work()))


threads = [threading.Thread(target=call, args=[n]) for n in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(30)
print('locks', sorted(seen) == [(n, n) for n in range(20)])
"""


@pytest.fixture(scope='module', params=['threading', 'eventlet'])
def printed(request):
    """The concurrency model and what the program prints, by name."""
    ended = subprocess.run(
        [sys.executable, '-c', PROGRAM],
        text=True,
        capture_output=True,
        env=os.environ | {'MANILA_LITE_CONCURRENCY': request.param},
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    lines = [line.partition(' ') for line in ended.stdout.splitlines()]
    return {'model': request.param} | {name: text for name, _, text in lines}


def test_drivers_have_their_own_thread_under_eventlet(printed):
    assert printed['apart'] == str(printed['model'] == 'eventlet')


def test_what_drivers_call_back_runs_in_the_main_thread(printed):
    assert printed['back'] == 'True'


def test_context_of_the_caller_is_passed_on(printed):
    assert printed['context'] == '1 1'


def test_what_drivers_log_has_the_request_id(printed):
    assert printed['requests'] == 'req-1 req-1'


def test_errors_are_raised_in_the_caller(printed):
    assert printed['error'] == 'why'


def test_driver_looks_like_itself(printed):
    assert printed['attributes'] == 'True True'


def test_locks_of_a_driver_work_between_its_calls(printed):
    assert printed['locks'] == 'True'


def test_thread_of_drivers_ends_before_the_interpreter(printed):
    assert printed['ended'] == 'True'
