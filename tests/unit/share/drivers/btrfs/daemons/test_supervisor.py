"""Daemons of a back end, killed in every way."""

import contextlib
import itertools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest

from manila_lite.exception import BadConfiguration
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import probes, processes, supervisor
from manila_lite.share.drivers.btrfs.daemons.daemons import Daemons, Supervision
from manila_lite.share.drivers.btrfs.daemons.supervisor import Daemon
from tests.drivers.crashes import changes, interrupted_at, killed_at
from tests.support import storage
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.nfs_site import (
    READER,
    STRANGER,
    WRITER,
    eventually,
    require_five_seconds,
    stop,
)

pytestmark = storage.beside_daemons


def serves(nfs, path):
    """Return whether all clients see what they should, and no more."""
    try:
        with nfs.client(WRITER) as client:
            client.write(path, 'notes', b'hello')
        with nfs.client(READER) as client:
            assert client.read(path, 'notes') == b'hello'
            with pytest.raises(NfsError, match='ROFS'):
                client.write(path, 'notes', b'')
        with nfs.client(STRANGER) as client, pytest.raises(NfsError, match='NOENT'):
            client.look_up(path)
    except ConnectionError:
        return False
    return True


@pytest.fixture
def path(nfs):
    """Create an export; return its path."""
    path = f'/shares/{nfs.create((WRITER, "rw"), (READER, "ro"))}'
    # One that has been killed takes changes before clients can connect.
    eventually(lambda: serves(nfs, path))
    return path


@pytest.mark.parametrize('name', ['server', 'bus'])
def test_killed_daemon_is_back_in_five_seconds_with_all_rules(nfs, path, name):
    pids = {nfs.pid('server'), nfs.pid(name)}
    nfs.kill(name)
    seconds = eventually(
        lambda: (
            pids.isdisjoint({nfs.pid('server'), nfs.pid(name)}) and serves(nfs, path)
        )
    )
    require_five_seconds(seconds, lambda: _restart(nfs, path))
    nfs.publish(path.rpartition('/')[2])
    with nfs.client(WRITER) as client, pytest.raises(NfsError, match='NOENT'):
        client.look_up(path)


def _restart(nfs, path):
    nfs.daemons.stop()
    nfs.daemons.start()
    eventually(lambda: serves(nfs, path))


def test_daemons_may_open_as_many_files_as_is_allowed(nfs):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    nfs.daemons.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 4096), hard))
    try:
        nfs.daemons.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for name in ('bus', 'server'):
        assert processes.open_files(nfs.pid(name)).most >= hard


def test_server_that_is_starting_is_silent_until_clients_can_connect(nfs):
    """It answers on its bus before: as if it listened on another port."""
    assert nfs.other_daemons(storage.free_port()).silent_server(0.0) == 'NFS'
    assert nfs.daemons.silent_server() == ''


def test_changes_wait_for_a_killed_server(nfs):
    nfs.kill('server')
    path = f'/shares/{nfs.create((WRITER, "rw"), (READER, "ro"))}'
    eventually(lambda: serves(nfs, path))


def test_killed_supervisor_is_replaced_and_clients_do_not_notice(nfs, path):
    pids = nfs.pid('server'), nfs.pid('bus')
    with nfs.client(WRITER) as client:
        file = client.open(path, 'file', create=True)
        nfs.kill('supervisor')
        eventually(lambda: not _is_supervised(nfs))
        client.write_at(file, 0, b'hello')
        nfs.other_daemons(nfs.port).start()
        assert _is_supervised(nfs)
        client.write_at(file, 0, b'still')
    assert (nfs.pid('server'), nfs.pid('bus')) == pids
    test_killed_daemon_is_back_in_five_seconds_with_all_rules(nfs, path, 'server')


def _is_supervised(nfs):
    return processes.is_running(nfs.root / 'nfs' / 'supervisor.json')


def test_second_supervisor_ends_itself(nfs):
    (nfs.root / 'nfs' / 'supervisor.json').rename(nfs.root / 'aside')
    pid = nfs.pid('server')
    nfs.daemons.keep_supervised()
    (nfs.root / 'aside').rename(nfs.root / 'nfs' / 'supervisor.json')
    assert _is_supervised(nfs)
    assert nfs.pid('server') == pid


def test_volume_that_is_not_mounted_is_not_exported_by_a_new_server(nfs, path):
    """Clients would write to the disk of the system."""
    volume = path.rpartition('/')[2]
    other = f'/shares/{nfs.create((WRITER, "rw"), (READER, "ro"))}'
    mount = nfs.root / 'exports' / 'mounts' / f'shares.{volume}'
    kernel.unmount(mount)
    nfs.kill('server')
    eventually(lambda: serves(nfs, other))
    with nfs.client(WRITER) as client, pytest.raises(NfsError, match='NOENT'):
        client.look_up(path)
    nfs.exports.restore_mounts(nfs.pool.path)
    nfs.exports.reconcile()
    assert serves(nfs, path)


def test_supervisor_outlives_what_it_cannot_do(nfs, path):
    """While the share service is stopped, nothing would restart it."""
    pid = nfs.pid('supervisor')
    config, aside = nfs.root / 'nfs' / 'server.conf', nfs.root / 'aside'
    config.rename(aside)
    config.mkdir()
    nfs.kill('server')
    eventually(lambda: 'Is a directory' in _log_of(nfs))
    assert _is_supervised(nfs)
    config.rmdir()
    aside.rename(config)
    eventually(lambda: serves(nfs, path))
    assert nfs.pid('supervisor') == pid


def test_log_of_the_supervisor_does_not_grow_for_ever(nfs, path):
    log = nfs.root / 'nfs' / 'supervisor.log'
    os.truncate(log, 17 << 20)
    eventually((nfs.root / 'nfs' / 'supervisor.log.1').exists)
    nfs.kill('server')
    eventually(lambda: 'started server' in _log_of(nfs))
    assert log.stat().st_size < 1 << 20
    eventually(lambda: serves(nfs, path))


def _log_of(nfs):
    try:
        return (nfs.root / 'nfs' / 'supervisor.log').read_text()
    except FileNotFoundError:  # it is being replaced
        return ''


def test_trash_is_emptied(nfs, path):
    volume = path.rpartition('/')[2]
    nfs.exports.withdraw(Kind.SHARE, volume)
    nfs.pool.discard(Kind.SHARE, volume)
    eventually(lambda: not list((nfs.pool.top / Kind.SHARE).glob('.trash-*')))


def test_start_changes_nothing_unless_the_settings_have_changed(nfs, path):
    pids = nfs.pid('server'), nfs.pid('supervisor')
    nfs.other_daemons(nfs.port).start()
    assert (nfs.pid('server'), nfs.pid('supervisor')) == pids
    old, nfs.port = nfs.port, storage.free_port()
    nfs.other_daemons(nfs.port).start()
    assert serves(nfs, path)
    assert nfs.pid('server') != pids[0]
    nfs.port = old
    nfs.daemons.start()


def test_supervisor_of_another_release_is_replaced(nfs, path):
    """Clients do not notice."""
    daemons = nfs.pid('server'), nfs.pid('bus')
    pid = nfs.pid('supervisor')
    for name in ('spec', 'running'):
        file = nfs.root / 'nfs' / f'{name}.json'
        file.write_text(
            json.dumps(json.loads(file.read_text()) | {'release': 'earlier'})
        )
    nfs.other_daemons(nfs.port).start()
    assert nfs.pid('supervisor') != pid
    assert (nfs.pid('server'), nfs.pid('bus')) == daemons
    assert serves(nfs, path)


def test_start_with_new_settings_can_be_killed_at_every_step(nfs, path):
    """Clients are served before and after it is repeated."""
    port = itertools.cycle([storage.free_port(), nfs.port])
    step, is_killed = 0, True
    while is_killed:
        step += 1
        old, new = nfs.port, next(port)
        is_killed = killed_at(step, nfs.other_daemons(new).start, _changes_daemons)
        eventually(lambda ports=(old, new): _serves_at(nfs, path, *ports))
        nfs.other_daemons(new).start()
        assert _serves_at(nfs, path, new)
    assert step > 5


def _changes_daemons(event, args):
    return event == 'subprocess.Popen' or changes(event, args)


def _serves_at(nfs, path, *ports):
    for nfs.port in ports:
        with contextlib.suppress(ConnectionRefusedError):
            if serves(nfs, path):
                return True
    return False


def daemon_in(folder, config, *command, **values):
    """Return a daemon as a new supervisor finds it."""
    return Daemon(
        folder,
        'daemon',
        {'config': str(config), 'text': '', 'command': list(command)},
        **values,
    )


def test_daemon_that_cannot_be_started_does_not_delay_others(tmp_path):
    """Its record cannot be written, so that it is not found by that."""
    daemon = daemon_in(tmp_path / 'missing', tmp_path / 'config', 'true')
    begun = time.monotonic()
    assert not daemon.start({})
    assert time.monotonic() - begun < 10


def test_daemon_that_a_failed_call_has_started_is_not_started_again(tmp_path):
    command = (tmp_path, tmp_path / 'config', 'sleep', '600')
    failed, daemon = daemon_in(*command), daemon_in(*command)
    assert failed.start({})
    try:
        assert not daemon.has_ended()
    finally:
        daemon.kill()


def test_path_is_refused_if_the_bus_would_refuse_it():
    storage.require()
    with storage.folder() as folder:
        longest = 99 - len(str(folder / 'nfs' / 'bus.sock')) - 1
        for length in (longest, longest + 1):
            root = folder / ('x' * length)
            found = Daemons(root / 'nfs', root / 'exports', storage.free_port(), [])
            if length > longest:
                with pytest.raises(BadConfiguration, match='too long'):
                    found.start()
            else:
                found.start()
                assert found.server.numbers() == set()
                found.stop()


def test_settings_survive_a_power_failure(nfs, path, flushes):
    nfs.trash.append(nfs.pool.top)
    nfs.other_daemons(nfs.port).start()
    nfs.trash.pop()
    folder = nfs.root / 'nfs'
    assert flushes.include(folder / 'spec.json', folder)


def test_clients_do_not_notice_a_new_pool(nfs, path):
    pid = nfs.pid('server')
    nfs.trash.append(nfs.pool.top)
    nfs.other_daemons(nfs.port).start()
    assert nfs.pid('server') == pid
    nfs.trash.pop()


_STARTING = """
import fcntl, os, pathlib, sys
from manila_lite.share.drivers.btrfs.daemons import processes
folder = pathlib.Path(sys.argv[1])
fcntl.flock(os.open(folder / 'supervisor.lock', os.O_CREAT), fcntl.LOCK_EX)
print('locked', flush=True)
sys.stdin.readline()
processes.write(folder / 'server.json', processes.this_process())
os.execvp('sleep', ['sleep', '60'])
"""


def test_daemon_that_is_being_started_is_stopped(tmp_path):
    """The supervisor was killed after the fork, before there was a record."""
    starting = subprocess.Popen(
        [sys.executable, '-c', _STARTING, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with starting:
        assert starting.stdout.readline() == b'locked\n'
        interrupted_at(
            1,
            Daemons(tmp_path, tmp_path / 'exports', 0, []).stop,
            lambda: os.write(starting.stdin.fileno(), b'\n'),
            lambda event, args: event == 'fcntl.flock',
        )
        starting.stdin.close()
        assert starting.wait(60) == -signal.SIGTERM


def test_stopped_daemons_are_gone(nfs):
    names = ('supervisor', 'server', 'bus')
    pids = [nfs.pid(name) for name in names]
    nfs.daemons.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            _require_running(pid)
    nfs.daemons.start()


def _require_running(pid):
    os.kill(pid, signal.SIG_DFL)
    with open(f'/proc/{pid}/stat') as file:
        if file.read().rpartition(')')[2].split()[0] == 'Z':
            raise ProcessLookupError


# What does not answer


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Started:
    """A daemon, and the port that it is asked at, which this test has."""

    def __init__(self, folder, listening, *command):
        self.clock, self.listening = Clock(), listening
        self._arguments = (folder, folder / 'config', *command)
        self._questions = [probes.nfs(listening.getsockname()[1])]
        self.daemon = self.found()
        assert self.daemon.start({})

    def found(self):
        """Return the daemon as the next supervisor finds it."""
        return daemon_in(*self._arguments, questions=self._questions, clock=self.clock)

    def seconds_until_silent(self, longest):
        began = self.clock.now
        while not self.daemon.is_silent():
            if self.clock.now - began > longest:
                return None
            ticks = processes.find_processor_time(self.daemon._record)
            self.daemon.ask()
            self.clock.now += 1
            if self.is_busy:
                eventually(
                    lambda ticks=ticks: (
                        ticks != processes.find_processor_time(self.daemon._record)
                    )
                )
        return self.clock.now - began

    is_busy = False


@pytest.fixture
def started(tmp_path):
    storage.require()  # daemons become root
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(
            contextlib.closing(socket.create_server(('127.0.0.1', 0)))
        )

        def start(*command):
            started = Started(tmp_path, listening, *command)
            stack.callback(started.daemon.kill)
            return started

        yield start


def test_daemon_that_works_has_a_minute_to_start(started):
    """An NFS server with many exports; others wait for five seconds."""
    busy = started('sh', '-c', 'while :; do :; done')
    busy.is_busy = True
    assert busy.seconds_until_silent(30) is None
    assert busy.seconds_until_silent(60) is not None


def test_daemon_that_hangs_while_it_starts_is_silent(started):
    assert started('sleep', '600').seconds_until_silent(8) is not None


def test_next_supervisor_knows_that_a_daemon_has_started(started):
    busy = started('sh', '-c', 'while :; do :; done')
    busy.is_busy = True
    busy.daemon.ask()
    with busy.listening.accept()[0] as connection:
        xid = connection.recv(100)[4:8]
        connection.sendall(bytes(4) + xid + b'\0\0\0\1' + bytes(16))
        busy.clock.now += 1
        busy.daemon.ask()
    busy.daemon = busy.found()
    assert busy.seconds_until_silent(8) is not None


# Who replaces the supervisor


def test_supervisor_that_was_stopped_on_purpose_is_not_replaced(nfs, monkeypatch):
    other = nfs.other_daemons(nfs.port)
    other.start()
    nfs.daemons.stop()
    with monkeypatch.context() as patch:
        patch.setattr(sys, 'executable', '/missing')
        other.watch()
    # It was just being replaced.
    folder = str(nfs.root / 'nfs')
    subprocess.run(
        [
            *(sys.executable, '-m', supervisor.__name__, folder),
            *(supervisor.REPLACE, '1'),
        ],
        check=True,
    )
    assert not _is_supervised(nfs)
    nfs.daemons.start()


def test_process_with_earlier_settings_does_not_replace_it(nfs):
    """Such as that of a service which is being upgraded."""
    earlier, later = (nfs.other_daemons(nfs.port) for _ in range(2))
    earlier.start()
    nfs.trash.append(nfs.pool.top)
    try:
        later = nfs.other_daemons(nfs.port)
        later.start()
        nfs.kill('supervisor')
        eventually(lambda: not _is_supervised(nfs))
        earlier.watch()
        assert not _is_supervised(nfs)
        later.watch()
        assert _is_supervised(nfs)
    finally:
        nfs.trash.pop()
        nfs.daemons.start()


def test_next_supervisor_knows_the_time_without_a_check(nfs):
    """What hangs together with a supervisor is replaced as soon as others."""
    clock = Clock()
    watching = Supervision(nfs.root / 'nfs', clock=clock)
    watching.apply(json.loads((nfs.root / 'nfs' / 'spec.json').read_text()))
    pid = nfs.pid('server')
    stop(nfs.pid('supervisor'), pid)
    watching.watch()
    for _ in range(3):
        clock.now += 3
        watching.watch()
    eventually(lambda: nfs.pid('server') != pid)
    found = re.findall('server has not answered for ([0-9]+)', _log_of(nfs))
    assert int(found[-1]) >= 9
    assert nfs.daemons.silent_server() == ''


def test_supervisor_is_replaced_after_several_looks_only(nfs):
    """The service was not running itself, on a machine that was suspended."""
    clock = Clock()
    watching = Supervision(nfs.root / 'nfs', clock=clock)
    watching.apply(json.loads((nfs.root / 'nfs' / 'spec.json').read_text()))
    pids = nfs.pid('supervisor'), nfs.pid('server'), nfs.pid('bus')
    stop(pids[0])
    watching.watch()
    for _ in range(2):
        clock.now += 1000
        watching.watch()
        assert _is_supervised(nfs)
        assert nfs.pid('supervisor') == pids[0]
    clock.now += 1
    watching.watch()
    assert _is_supervised(nfs)
    assert nfs.pid('supervisor') != pids[0]
    assert (nfs.pid('server'), nfs.pid('bus')) == pids[1:]
