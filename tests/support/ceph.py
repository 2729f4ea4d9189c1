"""A Ceph cluster of one node for the tests of a run, and its clients.

It is started by the first test that needs it, shared by all workers of the
run, and ended with the run. Nothing here waits without a limit: librados and
mounts block in the kernel or in C, where no timeout of pytest interrupts them,
so other processes call them, which can be killed.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing
import uuid

import pytest

from manila_lite import exception
from manila_lite.share.drivers.cephfs.cluster import Cluster
from tests.support import ceph_supervisor, requirements, sampling
from tests.support.processes import free_port, wait_until

PYTHON = '/usr/bin/python3'
FILESYSTEM, POOL = 'cephfs', 'data'
PREFIX = 'manila-ceph-'
PROGRAMS = ('ceph', 'ceph-mon', 'ceph-mgr', 'ceph-osd', 'ceph-mds', 'ceph-fuse')
START_SECONDS = 120
LOCK_SECONDS = 240
CALL_SECONDS = 30
LIMIT = 20
"""Seconds that a call of the driver may take in tests."""

limited = pytest.mark.timeout(300, method='thread')
"""Marks all tests of Ceph: the signal of the usual method may never arrive."""

on_cluster = sampling.suite('the cephfs driver on its cluster', 10)
"""Marks those that take most of the time."""


def missing() -> str | None:
    """Return why this machine cannot run a cluster, or None."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f'{program} is missing'
    if os.geteuid() != 0:
        return 'only root can start a Ceph cluster'
    found = subprocess.run([PYTHON, '-I', '-c', 'import rados'], capture_output=True)
    return None if found.returncode == 0 else 'python3-rados is missing'


class CephUser(typing.NamedTuple):
    name: str
    keyring: pathlib.Path


class CephCluster:
    """The cluster of this run."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.conf = folder / 'ceph.conf'
        self.admin = self.client('admin')

    def client(self, name: str, keyring: pathlib.Path | None = None) -> Cluster:
        """Return a connection as a Ceph user."""
        found = Cluster(
            interpreter=PYTHON,
            conffile=str(self.conf),
            client_id=name,
            keyring=keyring and str(keyring),
            limit=LIMIT,
        )
        found.pool = POOL
        return found

    def options(self, **values) -> dict:
        """Return the options of a back end with a group of its own."""
        return {
            'driver_handles_share_servers': False,
            'cephfs_conf_path': str(self.conf),
            'cephfs_auth_id': 'admin',
            'cephfs_volume_group': f'group-{uuid.uuid4().hex[:8]}',
            'cephfs_command_timeout': LIMIT,
            'cephfs_python': PYTHON,
            **values,
        }

    def require(self) -> None:
        """Fail a test at once if it would wait for a cluster in vain.

        One that has not answered once is not asked again in this run.
        """
        broken = self.folder / 'broken'
        if not _is_ready(self.folder) or broken.exists():
            pytest.fail('the Ceph cluster of this run has ended', pytrace=False)
        if not self.answers():
            broken.touch()
            pytest.fail('the Ceph cluster does not answer', pytrace=False)

    def answers(self) -> bool:
        """Tell whether monitor, manager and metadata server do."""
        with contextlib.suppress(exception.DriverError):
            self.admin.mgr(
                'fs subvolumegroup create', vol_name=FILESYSTEM, group_name='ready'
            )
            return True
        return False

    # Daemons

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        self._order(f'kill {name} {int(number)}')

    def start(self, name: str) -> None:
        self._order(f'start {name}')

    def _order(self, line: str) -> None:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(CALL_SECONDS)
            control.connect(str(self.folder / 'control'))
            control.send(line.encode())
            assert control.recv(100) == b'done'

    def mend(self) -> None:
        """Let all daemons run, and wait until they answer."""
        for name in ceph_supervisor.DAEMONS:
            self.start(name)
        with contextlib.suppress(AssertionError):
            return wait_until(self.answers, 'the cluster is back', 45)
        # A manager that was shut out by the metadata server stays so.
        for name in ('mds', 'mgr'):
            self.kill(name)
            self.start(name)
        wait_until(self.answers, 'the cluster is back', 90)

    # Users

    def keyring(self, user: str, key: str) -> pathlib.Path:
        """Write the keyring of a user."""
        path = self.folder / f'keyring.{user}.{uuid.uuid4().hex[:8]}'
        path.write_text(f'[client.{user}]\nkey = {key}\n')
        return path

    @contextlib.contextmanager
    def user(self, **caps: str) -> Iterator['CephUser']:
        """Provide a new user with these capabilities."""
        words = [word for cap in caps.items() for word in cap]
        name = f'user-{uuid.uuid4().hex[:8]}'
        entity = f'client.{name}'
        (found,) = self.admin.mon('auth get-or-create', entity=entity, caps=words)
        try:
            yield CephUser(name, self.keyring(name, found['key']))
        finally:
            with contextlib.suppress(json.JSONDecodeError):  # it says nothing
                self.admin.mon('auth rm', entity=entity)

    @contextlib.contextmanager
    def mounted(self, location: str, user: str, key: str) -> Iterator['FuseClient']:
        """Mount a share as its users do."""
        with contextlib.ExitStack() as stack:
            client = FuseClient(self, location, user, key)
            stack.callback(client.unmount)
            client.mount()
            yield client

    @contextlib.contextmanager
    def used(self, *, alone: bool = False) -> Iterator[None]:
        """Use it beside other workers, or alone to let daemons fail."""
        with (
            (self.folder / 'turn').open('w') as turn,
            (self.folder / 'used').open('w') as file,
        ):
            # Who waits has its turn before one that has just used it alone.
            _lock(turn.fileno(), fcntl.LOCK_EX, LOCK_SECONDS)
            how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
            _lock(file.fileno(), how, LOCK_SECONDS)
            fcntl.flock(turn, fcntl.LOCK_UN)
            yield


class FuseClient:
    """A mount by ceph-fuse; other processes use it, each for a limited time."""

    def __init__(self, cluster: CephCluster, location: str, user: str, key: str):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix='mount-', dir=cluster.folder))
        self._log = cluster.folder / 'log' / f'{self.path.name}.out'
        self._command = [
            *('ceph-fuse', '-f', '-c', str(cluster.conf), '--id', user),
            *('-k', str(cluster.keyring(user, key))),
            *('-r', '/' + location.partition(':/')[2]),
            *('--client_quota_df=true', '--client_mount_timeout=15'),
            str(self.path),
        ]
        self._process: subprocess.Popen | None = None

    def mount(self) -> None:
        with self._log.open('wb') as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=ceph_supervisor.die_with_parent,
            )
        wait_until(lambda: self._is_mounted() or self._has_ended(), 'it is mounted', 30)
        if not self._is_mounted():
            raise MountRefused(self._log.read_text())

    def _is_mounted(self) -> bool:
        return str(self.path) in ceph_supervisor.mounts()

    def _has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def end(self) -> None:
        """End the client; what waits for it gets an error.

        A process whose call the client has in hand cannot be killed before.
        """
        if self._process is not None:
            self._process.kill()
            self._process.wait(CALL_SECONDS)

    def unmount(self) -> None:
        """End the client and unmount it lazily, without a look at the mount."""
        self.end()
        ceph_supervisor.detach(self.path)
        self.path.rmdir()

    def run(self, script: str, data: bytes = b'') -> bytes:
        """Run a shell script in the mount; return its output."""
        process = subprocess.Popen(
            ['sh', '-ec', f'cd "$1"; {script}', 'sh', str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with self._ended(process):
            output, errors = process.communicate(data, CALL_SECONDS)
        if process.returncode:
            raise ClientError(errors.decode())
        return output

    @contextlib.contextmanager
    def _ended(self, process: subprocess.Popen) -> Iterator[None]:
        """Kill a process at the end of the block; end the client if need be."""
        try:
            yield
        finally:
            process.kill()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                self.end()
                process.wait(CALL_SECONDS)

    def write(self, name: str, data: bytes) -> None:
        self.run(f'cat > {name}; sync -f .', data)

    def read(self, name: str) -> bytes:
        return self.run(f'cat {name}')

    @contextlib.contextmanager
    def writing(self, name: str, *, sync: bool = True) -> Iterator['OpenFile']:
        """Keep a file open in another process; the client may keep what it writes."""
        process = subprocess.Popen(
            [sys.executable, '-I', '-c', _APPEND, f'{self.path}/{name}', str(sync)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with self._ended(process):
            yield OpenFile(process)

    def size(self) -> int:
        """Return the size of the file system in GiB, as df shows it."""
        output = self.run('df --output=size -B1G . | tail -1')
        return int(output)


_APPEND = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for line in sys.stdin:
    try:
        os.write(file, line.encode())
        if sys.argv[2] == 'True':
            os.fsync(file)
        print('done', flush=True)
    except OSError as error:
        print(error, flush=True)
"""


class OpenFile:
    """A file that another process has open."""

    def __init__(self, process: subprocess.Popen):
        self._process = process

    def write(self, data: bytes) -> bool:
        """Write a line, and return whether that succeeded."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(data + b'\n')
        self._process.stdin.flush()
        readable, _, _ = select.select([self._process.stdout], [], [], CALL_SECONDS)
        assert readable, 'the write does not end'
        return self._process.stdout.readline() == b'done\n'


class ClientError(AssertionError):
    """What a client says that was refused something."""


class MountRefused(ClientError):
    """A client was refused the mount."""


_supervisors: list[subprocess.Popen] = []


def _lock(file: int, how: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            assert time.monotonic() < deadline, 'others keep the lock'
            time.sleep(0.05)


def _run_of_tests() -> int:
    """Return the process of the whole run, of which we may be a worker."""
    return os.getppid() if 'PYTEST_XDIST_WORKER' in os.environ else os.getpid()


def folder_of(pid: int) -> pathlib.Path:
    """Return the folder of the cluster of the run with this process id."""
    memory = pathlib.Path('/dev/shm')
    parent = memory if os.access(memory, os.W_OK) else pathlib.Path('/tmp')
    return parent / f'{PREFIX}{pid}'


def _remove_leftovers() -> None:
    """Remove what a run has left whose supervisor was killed, too."""
    for path in folder_of(0).parent.glob(f'{PREFIX}*'):
        pid = path.name.removeprefix(PREFIX).partition('.')[0]
        if pid.isdigit() and not pathlib.Path('/proc', pid).exists():
            if path.is_dir():
                ceph_supervisor.remove(path)
            else:
                path.unlink(missing_ok=True)


def find_cluster() -> CephCluster:
    """Return the cluster of this run; start it if there is none."""
    pid = _run_of_tests()
    folder = folder_of(pid)
    with folder.with_suffix('.lock').open('w') as lock:
        # Longer than another worker may take to start it.
        _lock(lock.fileno(), fcntl.LOCK_EX, LOCK_SECONDS)
        if not _is_ready(folder):
            _remove_leftovers()
            ceph_supervisor.remove(folder)
            folder.mkdir()
            _start(folder, pid)
    return CephCluster(folder)


def _is_ready(folder: pathlib.Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        supervisor = json.loads((folder / 'ready').read_text())['supervisor']
        return pathlib.Path('/proc', str(supervisor)).exists()
    return False


@contextlib.contextmanager
def another_cluster(
    address: str = '127.0.0.1', namespace: str | None = None
) -> Iterator[CephCluster]:
    """Provide another cluster, which may be in a network namespace."""
    folder = folder_of(os.getpid()).with_suffix('.another')
    folder.mkdir()
    prefix = ('ip', 'netns', 'exec', namespace) if namespace else ()
    supervisor = _start(folder, os.getpid(), address, prefix)
    try:
        yield CephCluster(folder)
    finally:
        supervisor.terminate()
        supervisor.wait(60)


def _start(
    folder: pathlib.Path,
    pid: int,
    address: str = '127.0.0.1',
    prefix: tuple[str, ...] = (),
) -> subprocess.Popen:
    """Return the supervisor of a cluster that is ready; nothing is left otherwise."""
    with (folder / 'supervisor.out').open('w+b') as log:
        process = subprocess.Popen(
            [
                *(*prefix, sys.executable, ceph_supervisor.__file__, str(folder)),
                *(str(pid), address, str(free_port()), str(free_port())),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_until(
                lambda: _is_ready(folder) or process.poll() is not None,
                'the cluster is ready',
                START_SECONDS,
            )
            if not _is_ready(folder):
                log.seek(0)
                text = log.read().decode(errors='replace')
                raise AssertionError(f'there is no cluster: {text}')
        except BaseException:
            # The next worker starts another one in the same folder.
            process.terminate()
            process.wait(CALL_SECONDS)
            raise
    _supervisors.append(process)
    return process


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    """Let the cluster of the run end before the run does, not a moment later."""
    if 'PYTEST_XDIST_WORKER' not in os.environ:
        folder = folder_of(os.getpid())
        ceph_supervisor.stop(folder)
        folder.with_suffix('.lock').unlink(missing_ok=True)


@pytest.fixture(scope='session')
def installed_ceph():
    """Require that this machine can run a cluster."""
    reason = missing()
    if reason is not None:
        requirements.missing(reason)


@pytest.fixture(scope='session')
def started_ceph(installed_ceph):
    """Provide the cluster of this run."""
    return find_cluster()


@pytest.fixture(scope='session')
def ceph_root(started_ceph):
    """Provide a mount of the whole file system, as an administrator's."""
    found = started_ceph.admin.mon('auth get', entity='client.admin')
    with started_ceph.mounted(':/', 'admin', found[0]['key']) as client:
        yield client


@pytest.fixture
def ceph(started_ceph):
    """Provide it beside other tests that use it."""
    with started_ceph.used():
        started_ceph.require()
        yield started_ceph


@pytest.fixture
def ceph_alone(started_ceph):
    """Provide it to a test that lets daemons fail; all run again at its end."""
    with started_ceph.used(alone=True):
        started_ceph.require()
        try:
            yield started_ceph
        finally:
            started_ceph.mend()
