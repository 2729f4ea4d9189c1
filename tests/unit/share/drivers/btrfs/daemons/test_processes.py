import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from manila_lite.share.drivers.btrfs.daemons import processes
from tests.support.processes import open_files, wait_until


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)
    yield process
    process.kill()
    process.wait()
    process.stdin.close()


@pytest.fixture
def record(child, tmp_path):
    """Record a running process."""
    path = tmp_path / 'record.json'
    own = processes.this_process()
    with open(f'/proc/{child.pid}/stat') as file:
        started = int(file.read().rpartition(')')[2].split()[19])
    processes.write(path, own._replace(pid=child.pid, started=started))
    return path


def test_recorded_process_is_found_until_it_ends(child, record):
    assert processes.is_running(record)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.is_running(record)
    child.wait()
    assert not processes.is_running(record)


def test_own_process_is_found(tmp_path):
    processes.write(tmp_path / 'record', processes.this_process())
    assert processes.is_running(tmp_path / 'record')


@pytest.mark.parametrize('field', ['started', 'boot'])
def test_another_process_with_the_same_pid_is_not_ended(child, record, field):
    values = json.loads(record.read_text())
    values[field] = 1 if field == 'started' else 'before'
    record.write_text(json.dumps(values))
    assert not processes.is_running(record)
    assert processes.end(record, signal.SIGKILL, 60)
    assert child.poll() is None


def test_ending_waits_for_the_process(child, record):
    assert processes.end(record, signal.SIGKILL, 60)
    assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize('text', ['', 'nonsense', '{}', '{"pid": 1}'])
def test_damaged_or_missing_record_is_no_process(tmp_path, text):
    (tmp_path / 'damaged').write_text(text)
    for path in (tmp_path / 'damaged', tmp_path / 'missing'):
        assert not processes.is_running(path)
        assert processes.find_pid(path) is None
        processes.end_orphans(path)
        assert processes.end_session(path, 60)


def test_thread_with_the_number_of_a_recorded_process_is_not_it(record):
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    values = json.loads(record.read_text())
    record.write_text(json.dumps(values | {'pid': thread.native_id}))
    try:
        assert not processes.is_running(record)
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize('code', [errno.EMFILE, errno.ENOMEM])
def test_process_that_cannot_be_looked_for_is_not_taken_for_ended(
    record, monkeypatch, code
):
    """A second daemon would be started beside it."""

    def fail(pid, flags=0):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, 'pidfd_open', fail)
    with pytest.raises(OSError, match=os.strerror(code)):
        processes.is_running(record)


@contextlib.contextmanager
def many_open_files():
    """Open more than `select` takes."""
    with contextlib.ExitStack() as opened:
        opened.enter_context(open_files(1100))
        while opened.enter_context(open(os.devnull)).fileno() < 1024:
            pass
        yield


def test_recorded_process_is_ended_by_one_with_many_files_open(record, child):
    """`select` takes no descriptor above 1023."""
    with many_open_files():
        processes.stop(record, 10)
    assert child.wait(10) == -signal.SIGTERM


def test_only_the_process_that_was_seen_is_ended(child, record):
    """Another one may have been started and recorded since."""
    seen = processes.find_activity(record).process
    processes.write(record, processes.this_process())
    earlier = seen._replace(started=1)
    assert processes.end_process(earlier, signal.SIGKILL, 60)
    assert child.poll() is None
    assert processes.end_process(seen, signal.SIGKILL, 60)
    assert child.wait() == -signal.SIGKILL


def test_activity_of_a_process_changes_until_it_is_stopped(tmp_path):
    record = tmp_path / 'record'
    assert processes.find_activity(record) is None
    with waking_process(record) as pid:
        before = processes.find_activity(record)
        wait_until(lambda: processes.find_activity(record) != before, 'it wakes')
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        before = processes.find_activity(record)
        assert not processes.wait([], 1.5)
        assert processes.find_activity(record) == before
    assert processes.find_activity(record) is None


@contextlib.contextmanager
def waking_process(record):
    """Record a process that waits as the supervisor does."""
    code = (
        'import pathlib, sys\n'
        'from manila_lite.share.drivers.btrfs.daemons import processes\n'
        'own = processes.this_process()\n'
        'processes.write(pathlib.Path(sys.argv[1]), own)\n'
        'print(flush=True)\n'
        'processes.wait([], 600)\n'
    )
    process = subprocess.Popen(
        [sys.executable, '-c', code, record], stdout=subprocess.PIPE
    )
    with process:
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()
