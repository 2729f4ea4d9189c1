"""Locks exclude each other, and work continues without the lock service."""

import contextlib
import logging
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

import pytest
import redis

from manila_lite import conf as options, coordination, exception
from tests.support import requirements
from tests.support.processes import free_port, wait_until

ROOT = pathlib.Path(__file__).parents[2]
REDIS = 'redis://127.0.0.1:6379'


def coordinator(url, lock_timeout=60.0, **kwargs):
    conf = options.new()
    conf.set_override('backend_url', url, 'coordination')
    conf.set_override('lock_timeout', lock_timeout, 'coordination')
    try:
        return coordination.Coordinator(conf, uuid.uuid4().hex, **kwargs)
    finally:  # overrides in a group are shared by all configurations
        conf.clear_override('backend_url', 'coordination')
        conf.clear_override('lock_timeout', 'coordination')


def redis_answers():
    try:
        return redis.Redis.from_url(REDIS).ping()
    except redis.ConnectionError:
        return False


@pytest.fixture(params=['file', 'redis'])
def url(request, tmp_path):
    if request.param == 'file':
        return f'file://{tmp_path}'
    if not redis_answers():
        requirements.missing(f'no Redis at {REDIS}')
    return f'{REDIS}?namespace={uuid.uuid4().hex}'


@pytest.fixture
def locks(url):
    locks = coordinator(url)
    yield locks
    locks.stop()


def test_lock_is_held_by_one_thread_at_a_time(locks):
    inside, most, done = [], [], []

    def work():
        for _ in range(5):
            with locks.lock('share-1'):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
        done.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 4
    assert not any(thread.is_alive() for thread in threads)
    assert set(most) == {1}


def test_threads_get_a_lock_in_order_of_arrival(locks):
    order, threads = [], []

    def work(number):
        with locks.lock('share-1'):
            order.append(number)

    with locks.lock('share-1'):
        for number in range(8):
            threads.append(threading.Thread(target=work, args=[number]))
            threads[-1].start()
            while locks._queues._waiting['share-1'] < number + 2:
                threads[-1].join(0.001)
    for thread in threads:
        thread.join(60)
    assert order == [*range(8)]
    assert not locks._queues._locks


def test_try_lock_yields_false_while_the_lock_is_held(url, locks):
    other = coordinator(url)
    with locks.lock('share-1'):
        with other.try_lock('share-1') as held:
            assert not held
        with other.try_lock('share-2') as held:
            assert held
    with other.try_lock('share-1') as held:
        assert held
    other.stop()


def test_lock_is_waited_for(url, locks):
    other, order = coordinator(url), []

    def follow():
        with other.lock('share-1'):
            order.append('second')

    follower = threading.Thread(target=follow)
    with locks.lock('share-1'):
        follower.start()
        with other.try_lock('share-1') as held:
            order.append(('first', held))
    follower.join(60)
    assert order == [('first', False), 'second']
    other.stop()


def test_lock_is_released_when_the_block_fails(locks):
    with pytest.raises(KeyError), locks.lock('share-1'):
        raise KeyError
    with locks.try_lock('share-1') as held:
        assert held


FIRST_IN_A_THREAD = """
import sys, threading
from tests.unit.test_coordination import coordinator
locks = coordinator(sys.argv[1])
def work():
    with locks.lock('share-1'):
        print('held')
thread = threading.Thread(target=work, daemon=True)
thread.start()
thread.join(10)
print('alive' if thread.is_alive() else 'joined')
"""


def test_thread_that_takes_the_first_lock_can_be_joined(tmp_path):
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', FIRST_IN_A_THREAD, f'file://{tmp_path}'],
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.split() == ['held', 'joined']


HOLDER = """
import sys
from tests.unit.test_coordination import coordinator
with coordinator(sys.argv[1]).lock('share-1'):
    print('held', flush=True)
    sys.stdin.read()
"""


def test_a_lock_excludes_other_processes_until_its_holder_dies(url, locks):
    holder = subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-c', HOLDER, url],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert holder.stdout.readline() == 'held\n'
        with locks.try_lock('share-1') as held:
            assert not held
    finally:
        holder.kill()
        holder.communicate()
    if url.startswith('file'):  # in Redis the lease has to expire first
        with locks.lock('share-1'), locks.try_lock('share-1') as held:
            assert not held


@contextlib.contextmanager
def paused_holder(url):
    """Another process holds the lock and does not run."""
    holder = subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-c', HOLDER, url],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert holder.stdout.readline() == 'held\n'
        holder.send_signal(signal.SIGSTOP)
        yield
    finally:
        holder.kill()
        holder.communicate()


def time_of(block):
    began = time.monotonic()
    with block:
        return time.monotonic() - began


def test_lock_of_a_paused_process_is_not_awaited_for_ever(url, caplog):
    locks = coordinator(url, lock_timeout=0.5)
    with paused_holder(url):
        assert 0.2 <= time_of(locks.lock('share-1')) < 5
        assert 'without the lock share-1' in caplog.text
        assert time_of(locks.lock('share-2')) < 0.5
    locks.stop()


def test_lock_of_another_thread_is_not_awaited_for_ever(url, caplog):
    locks = coordinator(url, lock_timeout=0.2)
    with locks.lock('share-1'):
        assert 0.2 <= time_of(locks.lock('share-1')) < 5
        assert 'without the lock share-1' in caplog.text
    with locks.try_lock('share-1') as held:
        assert held
    assert not locks._queues._locks
    locks.stop()


def test_lock_that_was_not_released_is_not_awaited_again_at_once(url):
    locks = coordinator(url, lock_timeout=2)
    with paused_holder(url):
        assert time_of(locks.lock('share-1')) >= 1.5
        assert time_of(locks.lock('share-1')) < 1.5
    locks.stop()


def test_waiting_threads_are_limited(url):
    locks = coordinator(url)
    limit, entered = locks.MAX_WAITING, threading.Semaphore(0)

    def work():
        with locks.lock('share-1'):
            entered.release()

    threads = [threading.Thread(target=work) for _ in range(limit + 5)]
    with locks.lock('share-1'):
        for thread in threads:
            thread.start()
        for _ in range(5):
            assert entered.acquire(timeout=30)
        assert not entered.acquire(timeout=0.2)
    for thread in threads:
        thread.join(30)
    locks.stop()


def test_threads_without_a_lock_are_limited_for_those_that_can_refuse(url, monkeypatch):
    monkeypatch.setattr(coordination.Coordinator, 'MAX_WAITING', 0)
    monkeypatch.setattr(coordination.Coordinator, 'MAX_OVERFLOW', 1)
    monkeypatch.setattr(coordination.Coordinator, 'OVERFLOW_WAIT', 0.1)
    locks = coordinator(url)
    with locks.lock('share-1', can_refuse=True):
        with (
            pytest.raises(exception.ResourceBusy),
            locks.lock('share-2', can_refuse=True),
        ):
            pass
        with locks.lock('share-3'), locks.try_lock('share-3') as held:
            assert not held
    with locks.lock('share-2', can_refuse=True):
        pass
    locks.stop()


ADDER = """
import pathlib
import sys
from tests.unit.test_coordination import coordinator
locks = coordinator(sys.argv[1])
counter = pathlib.Path(sys.argv[2])
for _ in range(60):
    with locks.lock('share-1'):
        value = int(counter.read_text())
        counter.write_text(str(value + 1))
"""


def test_file_locks_exclude_processes_and_leave_no_files(tmp_path):
    counter = tmp_path / 'counter'
    counter.write_text('0')
    folder = tmp_path / 'locks'
    adders = [
        subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-c', ADDER, f'file://{folder}', counter],
            cwd=ROOT,
        )
        for _ in range(3)
    ]
    assert [adder.wait(120) for adder in adders] == [0] * 3
    assert counter.read_text() == '180'
    assert list(folder.glob(f'{coordination.PREFIX}*')) == []


def test_abandoned_lock_files_are_removed_at_the_first_lock(tmp_path):
    url = f'file://{tmp_path}'
    with paused_holder(url):
        (held,) = tmp_path.glob(f'{coordination.PREFIX}*')
        abandoned = tmp_path / coordination.lock_name('share-2')
        abandoned.touch()
        locks = coordinator(url)
        with locks.lock('share-3'):
            pass
        assert held.exists()
        assert not abandoned.exists()
        with locks.try_lock('share-1') as is_held:
            assert not is_held
    locks.stop()


@pytest.fixture
def own_redis(tmp_path):
    """A Redis server that a test may pause; yields its URL and process."""
    if not shutil.which('redis-server'):
        requirements.missing('redis-server is not installed')
    port = free_port()
    with subprocess.Popen(
        ['redis-server', '--port', str(port), '--save', ''],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    ) as server:

        def listens():
            assert server.poll() is None, 'it has ended'
            with socket.socket() as client:
                return client.connect_ex(('127.0.0.1', port)) == 0

        try:
            wait_until(listens, 'Redis listens')
            yield f'redis://127.0.0.1:{port}', server
        finally:
            server.kill()


@pytest.mark.parametrize('is_connected', [False, True])
def test_lock_service_that_does_not_answer_is_not_awaited_for_ever(
    own_redis, is_connected, monkeypatch, caplog
):
    monkeypatch.setattr(coordination.Coordinator, 'ANSWER_TIMEOUT', 0.3)
    url, server = own_redis
    locks = coordinator(url, lock_timeout=0.2)
    if is_connected:
        with locks.lock('share-1'):
            pass
    server.send_signal(signal.SIGSTOP)
    assert time_of(locks.lock('share-1')) < 5
    assert 'without locks' in caplog.text
    assert time_of(locks.lock('share-2')) < 0.2, 'it did not retry so soon'
    began = time.monotonic()
    locks.stop()
    assert time.monotonic() - began < 5


def test_lock_that_is_acquired_too_late_is_released(own_redis, monkeypatch):
    monkeypatch.setattr(coordination.Coordinator, 'ANSWER_TIMEOUT', 0.3)
    url, server = own_redis
    locks, others = coordinator(url, lock_timeout=0.2), coordinator(url)
    with locks.lock('share-1'), others.lock('share-2'):
        pass
    server.send_signal(signal.SIGSTOP)
    with locks.lock('share-1'):
        server.send_signal(signal.SIGCONT)
        # It is acquired now, for the holder that went on without it.
    began = time.monotonic()
    with others.lock('share-1'):
        assert time.monotonic() - began < 10, 'sooner than its lease expires'
    locks.stop()
    others.stop()


@pytest.mark.parametrize(
    'name',
    [
        'a' * 500,
        'two words',
        '../escape',
        'groups',
        '.',
        'tmp',
        'schön',
        'host@one#pool',
    ],
)
def test_any_name_can_be_used(url, locks, name):
    with locks.lock(name), locks.try_lock(name) as held:
        assert not held


def test_similar_names_are_different_locks():
    names = ['a/b', 'a-b', 'a b', 'a\nb', 'a-b-', 'A-b']
    assert len({coordination.lock_name(name) for name in names}) == len(names)


def test_file_locks_use_no_resources_before_the_first(tmp_path):
    place = tmp_path / 'locks'
    threads = threading.active_count()
    locks = coordinator(f'file://{place}')
    assert not place.exists()
    with locks.lock('share-1'):
        assert place.exists()
        assert threading.active_count() == threads
    locks.stop()


def test_work_continues_without_the_lock_service(caplog):
    now = [0.0]
    locks = coordinator('redis://127.0.0.1:1', clock=lambda: now[0])
    worked = []
    with caplog.at_level(logging.WARNING, coordination.__name__):
        with locks.lock('share-1'):
            worked.append('lock')
        with locks.try_lock('share-1') as held:
            worked.append(held)
    assert worked == ['lock', True]
    assert len(caplog.records) == 1, 'the second did not retry so soon'
    now[0] += coordination.Coordinator.RETRY_AFTER
    with caplog.at_level(logging.WARNING, coordination.__name__), locks.lock('share-1'):
        worked.append('again')
    assert len(caplog.records) == 2
    locks.stop()


def test_work_continues_when_lock_files_cannot_be_created(tmp_path, caplog):
    blocker = tmp_path / 'a-file'
    blocker.write_text('')
    with coordinator(f'file://{blocker}/locks').try_lock('share-1') as held:
        assert held
    assert 'without locks' in caplog.text


@pytest.mark.parametrize('url', ['nosuch://127.0.0.1', 'no url'])
def test_an_invalid_url_is_reported_at_start(url):
    with pytest.raises(options.BadConfiguration, match='backend_url'):
        coordinator(url)


def test_the_null_coordinator_excludes_nothing():
    locks = coordination.NullCoordinator()
    with locks.lock('share-1'), locks.try_lock('share-1') as held:
        assert held
    locks.stop()
