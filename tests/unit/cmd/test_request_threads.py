"""The threads of a server: quick requests one by one, slow ones beside them."""

import collections
import threading

import pytest

from manila_lite.cmd.request_threads import RequestThreads
from tests.support.processes import wait_until

TIMEOUT = 60
NEVER = 3600.0
"""A patience that no test waits for."""

THREADS = 4


class Request:
    """A task that notes its thread, and goes on when it may."""

    def __init__(self, *, is_quick=True, is_held=False):
        self.is_quick = is_quick
        self.has_begun, self.has_ended = threading.Event(), threading.Event()
        self.is_cancelled = False
        self.thread = None
        self.may_end = threading.Event()
        if not is_held:
            self.may_end.set()

    def service(self):
        self.thread = threading.get_ident()
        self.has_begun.set()
        self.may_end.wait(TIMEOUT)
        self.has_ended.set()

    def cancel(self):
        self.is_cancelled = True


class Server:
    """Threads with connections on which tests send requests."""

    def __init__(self, patience):
        self._sent = collections.deque()
        self._changed = threading.Semaphore(0)
        self._is_open = True
        self.threads = RequestThreads(
            THREADS, self._poll, self._changed.release, patience
        )
        self._first = threading.Thread(target=self.threads.run, daemon=True)

    def _poll(self, timeout):
        # Nothing may depend on a wait that is over soon.
        self._changed.acquire(timeout=timeout and TIMEOUT)
        while self._sent:
            self.threads.add_task(self._sent.popleft())
        return self._is_open

    def reads_all(self):
        """Wait until all that was sent has been read."""
        wait_until(lambda: not self._sent, 'all is read', timeout=TIMEOUT)

    def start(self):
        self._first.start()

    def send(self, *requests):
        self._sent.extend(requests)
        self._changed.release()

    def end(self):
        self._is_open = False
        self._changed.release()
        self._first.join(TIMEOUT)
        assert not self._first.is_alive()


@pytest.fixture
def serve():
    """Return a function that starts a server, which ends after the test."""
    started = []

    def start(patience=NEVER):
        server = Server(patience)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.end()


def all_end(requests):
    return all(one.has_ended.wait(TIMEOUT) for one in requests)


def test_quick_requests_are_answered_by_one_thread(serve):
    server = serve()
    requests = [Request() for _ in range(100)]
    for first in range(0, 100, 10):
        server.send(*requests[first : first + 10])
    assert all_end(requests)
    assert len({one.thread for one in requests}) == 1


def test_request_that_waits_for_a_lock_delays_no_other(serve):
    server = serve()
    held, others = Request(is_quick=False, is_held=True), [Request() for _ in range(9)]
    server.send(held, *others)
    assert all_end(others)
    assert not held.has_ended.is_set()
    held.may_end.set()
    assert all_end([held])


def test_read_that_takes_long_delays_others_no_longer_than_the_patience(serve):
    server = serve(0.01)
    held = [Request(is_held=True) for _ in range(THREADS - 1)]
    server.send(*held)
    # One thread is left, which polls, but answers none.
    assert all(one.has_begun.wait(TIMEOUT) for one in held)
    assert len({one.thread for one in held}) == len(held)
    other = Request(is_held=True)
    for _ in range(2):
        server.send(other)
        server.reads_all()
    assert not other.has_begun.is_set()
    other.may_end.set()
    held[0].may_end.set()
    assert all_end([other])
    for one in held:
        one.may_end.set()
    assert all_end(held)


def test_watcher_is_woken_for_each_request_after_a_pause(serve):
    server = serve(0.0)
    for _ in range(50):
        held, other = Request(is_held=True), Request()
        server.send(held, other)
        assert all_end([other])
        held.may_end.set()
        assert all_end([held])


def test_more_changes_than_threads_are_all_answered(serve):
    server = serve(0.01)
    held = [Request(is_quick=False, is_held=True) for _ in range(3 * THREADS)]
    server.send(*held)
    for one in held:
        one.may_end.set()
    assert all_end(held)


def test_requests_are_answered_after_one_that_fails(serve):
    class Failing(Request):
        def service(self):
            raise SystemExit

    server = serve()
    requests = [Failing(), Request(), Failing(is_quick=False), Request()]
    server.send(*requests)
    assert all_end([requests[1], requests[3]])


def test_what_waits_is_dropped_and_what_runs_is_not(serve):
    server = serve(0.01)
    held = [Request(is_held=True) for _ in range(THREADS - 1)]
    server.send(*held)
    assert all(one.has_begun.wait(TIMEOUT) for one in held)
    waiting, late = Request(), Request()
    server.threads.add_task(waiting)
    server.threads.drop_waiting()
    server.threads.add_task(late)
    for one in held:
        one.may_end.set()
    assert all_end(held)
    assert waiting.is_cancelled
    assert late.is_cancelled
    assert not any(one.is_cancelled for one in held)


@pytest.mark.parametrize('leader', ['the first thread', 'another one'])
def test_server_ends_with_an_error_of_connections(leader):
    """Otherwise the process would go on without answering anyone."""
    has_raised, failed = threading.Event(), threading.Event()
    first = Request(is_held=True)

    def poll(timeout):
        if leader != 'the first thread' and not first.has_begun.is_set():
            threads.add_task(first)
            return True
        failed.set()
        raise OSError('no poll')

    def run():
        with pytest.raises(OSError, match='no poll'):
            threads.run()
        has_raised.set()

    threads = RequestThreads(THREADS, poll, lambda: None, 0.01)
    threading.Thread(target=run, daemon=True).start()
    assert failed.wait(TIMEOUT)
    first.may_end.set()
    assert has_raised.wait(TIMEOUT)
