"""Calls of a cluster end in time, whatever the other side does."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from manila_lite import exception
from manila_lite.share.drivers.cephfs.cluster import Cluster
from tests.support import ceph as ceph_support, sampling
from tests.support.ceph import PYTHON
from tests.support.processes import wait_until

GREETS = 'read line; echo \'{"number": 0, "code": 0}\''


@pytest.fixture
def silent(tmp_path):
    """Return a function that provides a cluster that runs a shell script."""

    def build(script, limit=0.3):
        program = tmp_path / 'python'
        program.write_text(f'#!/bin/sh\necho $$ > {tmp_path}/pid\n{script}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return Cluster(
            interpreter=str(program),
            conffile=str(tmp_path / 'ceph.conf'),
            client_id='nobody',
            keyring=None,
            limit=limit,
        )

    return build


@pytest.mark.parametrize('script', ['exec sleep 60', f'{GREETS}; exec sleep 60'])
def test_call_without_a_reply_ends_with_its_process(silent, script, tmp_path):
    """Nothing it was asked for is sent from then on."""
    cluster = silent(script)
    began = time.monotonic()
    with pytest.raises(exception.FileServerUnresponsive):
        cluster.mon('fs ls')
    assert time.monotonic() - began < 30
    assert not os.path.exists(f'/proc/{(tmp_path / "pid").read_text().strip()}')


@pytest.mark.parametrize('code', [-110, 110, -2])
def test_call_that_librados_gave_up_is_not_sent_later(silent, code, tmp_path):
    """It keeps what it was asked for, and sends it when it can."""
    reply = json.dumps({'number': 1, 'code': code, 'output': '', 'status': ''})
    cluster = silent(f"{GREETS}; read line; echo '{reply}'; exec sleep 60", limit=30)
    with pytest.raises(exception.DriverError):
        cluster.mgr('fs subvolume rm')
    is_alive = os.path.exists(f'/proc/{(tmp_path / "pid").read_text().strip()}')
    assert is_alive is (code == -2)
    cluster.close()


@pytest.mark.parametrize('script', ['exit 0', f'{GREETS}; exit 0'])
def test_process_that_ends_is_noticed_at_once(silent, script):
    began = time.monotonic()
    with pytest.raises(exception.FileServerUnresponsive):
        silent(script, limit=60).mon('fs ls')
    assert time.monotonic() - began < 30


def test_interpreter_that_does_not_exist_is_named(tmp_path):
    cluster = Cluster(
        interpreter=str(tmp_path / 'none'),
        conffile='ceph.conf',
        client_id='nobody',
        keyring=None,
        limit=1,
    )
    with pytest.raises(exception.BadConfiguration, match='cephfs_python .*none'):
        cluster.mon('fs ls')


def test_interpreter_without_rados_is_named(silent):
    cluster = silent(
        'read line; echo \'{"number": 0, "code": "no module", "status": "none"}\''
    )
    with pytest.raises(exception.BadConfiguration, match='python3-rados'):
        cluster.mon('fs ls')


def test_cluster_that_does_not_exist_is_given_up(tmp_path):
    """Its monitors are where nobody listens."""
    if ceph_support.missing():
        pytest.skip(ceph_support.missing())
    conf = tmp_path / 'ceph.conf'
    conf.write_text('[global]\nmon host = v2:127.0.0.1:9\n')
    keyring = tmp_path / 'keyring'
    keyring.write_text(
        '[client.nobody]\nkey = AQAdqAprWYxKGBAA3zqIdDpGCy2KQPCmvwex+Q==\n'
    )
    cluster = Cluster(
        interpreter=PYTHON,
        conffile=str(conf),
        client_id='nobody',
        keyring=str(keyring),
        limit=1,
    )
    began = time.monotonic()
    with pytest.raises(exception.FileServerUnresponsive):
        cluster.mon('fs ls')
    assert time.monotonic() - began < 30


@ceph_support.limited
def test_calls_of_several_threads_have_their_own_replies(ceph):
    found = {}

    def read(number):
        ceph.admin.write('threads', {}, {f'key{number}': str(number)})
        found[number] = ceph.admin.read('threads', [f'key{number}'])

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {number: {f'key{number}': str(number)} for number in range(8)}


@ceph_support.limited
def test_forked_process_calls_by_itself(ceph, tmp_path):
    ceph.admin.write('forked', {}, {'key': 'value'})
    found = tmp_path / 'found'
    pid = os.fork()
    if pid == 0:
        try:
            found.write_text(ceph.admin.read('forked', ['key'])['key'])
        finally:
            os._exit(0)
    wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0], 'it ends', 30)
    assert found.read_text() == 'value'
    assert ceph.admin.read('forked', ['key']) == {'key': 'value'}


@ceph_support.limited
def test_process_of_calls_ends_with_ours(ceph):
    """Also if ours is killed, and the other one is in a call."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            ceph.admin.mon('fs ls')
            task = f'/proc/self/task/{threading.get_native_id()}'
            os.write(write, pathlib.Path(task, 'children').read_bytes())
            signal.pause()
        finally:
            os._exit(1)
    worker = int(os.read(read, 100).split()[-1])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: not os.path.exists(f'/proc/{worker}/exe'), 'it ends', 30)


@ceph_support.limited
def test_keys_of_a_long_list_are_all_read(ceph):
    values = {f'a{number:05}': 'x' for number in range(6000)}
    for start in range(0, 6000, 2000):
        part = dict(list(values.items())[start : start + 2000])
        ceph.admin.write('long', {}, part)
    ceph.admin.write('long', {}, {'b': 'y'})
    assert ceph.admin.read_all('long', 'a') == values


@ceph_support.limited
@ceph_support.on_cluster
def test_cluster_of_a_run_ends_before_the_run_does(installed_ceph, tmp_path):
    """Its supervisor saw the end of the run and ended later: CI found it running."""
    (tmp_path / 'test_used.py').write_text('def test_used(started_ceph):\n    pass\n')
    run = subprocess.Popen(
        [
            *(sys.executable, '-m', 'pytest', '-n1', '-p', 'tests.support.ceph'),
            *('--rootdir', tmp_path, '--basetemp', tmp_path / 'temporary', tmp_path),
        ],
        stdout=subprocess.PIPE,
        cwd=sampling.ROOT,
        env={k: v for k, v in os.environ.items() if k != 'PYTEST_XDIST_WORKER'},
    )
    printed, _ = run.communicate(timeout=200)
    folder = os.fsencode(ceph_support.folder_of(run.pid))
    left = [
        path
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline')
        if folder in read_if_there(path)
    ]
    assert b'1 passed' in printed
    assert not left


def read_if_there(path: pathlib.Path) -> bytes:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return path.read_bytes()
    return b''


def test_one_that_wants_the_cluster_alone_is_not_overtaken(tmp_path):
    """Tests that let daemons fail have their turn, although others go on."""
    cluster = ceph_support.CephCluster(tmp_path)
    seen, may_end = [], threading.Event()

    def use(name, alone):
        with cluster.used(alone=alone):
            seen.append(f'{name} begins')
            assert may_end.wait(60)
            seen.append(f'{name} ends')

    def is_asking():
        with (tmp_path / 'turn').open() as turn:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    alone = threading.Thread(target=use, args=('alone', True))
    beside = threading.Thread(target=use, args=('beside', False))
    with cluster.used():
        alone.start()
        wait_until(is_asking, 'one wants it alone')
        beside.start()
        beside.join(0.5)
        assert seen == []
    wait_until(lambda: seen == ['alone begins'], 'it has the cluster alone')
    may_end.set()
    for thread in (alone, beside):
        thread.join(60)
    assert seen == ['alone begins', 'alone ends', 'beside begins', 'beside ends']


# Its monitor cannot listen; the next command says so when it has ended.
PROGRAMS = {
    'monmaptool': 'true',
    'ceph-authtool': 'true',
    'ceph-mon': 'case "$*" in *--mkfs*) exit;; esac; echo cannot bind; echo > {fifo}',
    'ceph-mgr': 'read line',
    'ceph': 'read line < {fifo}; echo timed out; exit 1',
}


def test_cluster_of_a_run_that_does_not_start_says_why_and_is_tried_again(
    tmp_path, monkeypatch
):
    """By the next worker, in the same folder: nothing of the first one is there."""
    folder, programs = tmp_path / 'cluster', tmp_path / 'programs'
    monkeypatch.setattr(ceph_support, 'folder_of', lambda pid: folder)
    monkeypatch.setenv('PATH', f'{programs}:{os.environ["PATH"]}')
    programs.mkdir()
    os.mkfifo(tmp_path / 'fifo')
    for name, script in PROGRAMS.items():
        (programs / name).write_text(
            f'#!/bin/sh\n{script}\n'.format(fifo=tmp_path / 'fifo')
        )
        (programs / name).chmod(0o700)
    for _ in range(2):
        with pytest.raises(AssertionError, match='(?s)timed out.*: cannot bind'):
            ceph_support.find_cluster()
        assert not folder.exists()
        assert folder.with_suffix('.lock').exists()
