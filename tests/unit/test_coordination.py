"""Locks exclude each other, and work continues without the lock service."""

import logging
import os
import pathlib
import subprocess
import sys
import threading
import uuid
import warnings

import pytest
import redis

from manila_lite import conf as options
from manila_lite import coordination

ROOT = pathlib.Path(__file__).parents[2]
REDIS = 'redis://127.0.0.1:6379'


def coordinator(url, **kwargs):
    conf = options.new()
    conf.set_override('backend_url', url, 'coordination')
    try:
        return coordination.Coordinator(conf, uuid.uuid4().hex, **kwargs)
    finally:  # overrides in a group are shared by all configurations
        conf.clear_override('backend_url', 'coordination')


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
        if os.environ.get('CI'):
            pytest.fail(f'no Redis at {REDIS}')
        warnings.warn(f'no Redis at {REDIS}: not tested', stacklevel=1)
        pytest.skip(f'no Redis at {REDIS}')
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
        [
            sys.executable,
            '-W',
            'ignore',
            '-c',
            FIRST_IN_A_THREAD,
            f'file://{tmp_path}',
        ],
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
    with (
        caplog.at_level(logging.WARNING, coordination.__name__),
        locks.lock('share-1'),
    ):
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
