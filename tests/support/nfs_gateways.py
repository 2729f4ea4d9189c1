"""NFS gateways on the Ceph cluster of a run, each a process of its own."""

from collections.abc import Iterator, Mapping
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from manila_lite.share.drivers import ganesha
from manila_lite.share.drivers.cephfs.exports import EXPORT, gateway_name
from manila_lite.share.drivers.cephfs.gateway import GUARD
from tests.support import ceph_supervisor, requirements
from tests.support.ceph import CephCluster
from tests.support.nfs_client import NfsClient
from tests.support.processes import free_port, wait_until

ADDRESSES = '127.0.0.11', '127.0.0.12'
START_SECONDS = 60
GRACE_SECONDS = 30
PROGRAMS = 'ganesha.nfsd', 'ganesha-rados-grace', 'dbus-daemon'
_MAIN = 'from manila_lite.cmd.nfs_gateway import main; main()'


def missing() -> str | None:
    """Return why this machine cannot run a gateway, or None."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f'{program} is missing'
    return None if GUARD.find_plugin() else f'{GUARD.plugin} is missing'


class Gateway:
    """A gateway that only the test restarts."""

    def __init__(self, folder: pathlib.Path, config: pathlib.Path, address: str):
        self.address = address
        self.name = gateway_name(address)
        self.port = free_port()
        self.folder = folder / address
        self._config = config
        self._process: subprocess.Popen | None = None
        self.server = ganesha.Ganesha(self.folder / 'bus.sock')

    def start(self) -> None:
        with self.folder.with_suffix('.out').open('ab') as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, '-c', _MAIN),
                    *('--config-file', str(self._config), '--backend', 'ceph'),
                    *('--address', self.address, '--folder', str(self.folder)),
                    *('--port', str(self.port)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=ceph_supervisor.die_with_parent,
            )

    def wait(self) -> None:
        wait_until(self._is_up, f'gateway {self.address} serves', START_SECONDS)

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.output()
        return self.server.is_answering() and ganesha.is_listening(self.port)

    def output(self) -> str:
        return self.folder.with_suffix('.out').read_text()

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    @property
    def server_pid(self) -> int:
        return int((self.folder / 'ganesha.pid').read_text())

    def kill(self) -> None:
        """End it with all that it has started, as a power failure does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the gateway, while its NFS server goes on to serve."""
        assert self._process is not None
        with _paused(self._process.pid):
            yield

    def server_paused(self) -> contextlib.AbstractContextManager[None]:
        return _paused(self.server_pid)

    def client(self, address: str) -> NfsClient:
        return NfsClient('127.0.0.1', self.port, address)


@contextlib.contextmanager
def _paused(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Gateways:
    """Those of a back end with a group of its own."""

    def __init__(self, cluster: CephCluster, user, folder: pathlib.Path):
        self.cluster = cluster
        self.user = user
        self.options = cluster.options(cephfs_nfs_gateways=list(ADDRESSES))
        config = folder / 'gateway.conf'
        config.write_text(self._text(self.options))
        self.each = [Gateway(folder, config, address) for address in ADDRESSES]

    def _text(self, options: Mapping[str, object]) -> str:
        values = {
            **options,
            'share_driver': 'cephfs',
            'cephfs_nfs_gateways': ','.join(ADDRESSES),
            'cephfs_nfs_auth_id': self.user.name,
            'cephfs_nfs_keyring_path': self.user.keyring,
        }
        lines = [f'{name} = {value}' for name, value in values.items()]
        return '\n'.join(['[ceph]', *lines, ''])

    def start(self) -> None:
        """Let all of them run and answer."""
        for one in self.each:
            if one._process is None or one.has_ended:
                one.start()
        for one in self.each:
            one.wait()

    def kill(self) -> None:
        for one in self.each:
            one.kill()

    def number(self, driver, share) -> int | None:
        found = driver.backend.records.get(EXPORT + share.name)
        return found and found['number']


def caps(pool: str = 'data') -> dict[str, str]:
    """Return the capabilities of gateways, as the documents have them."""
    return {
        'mon': 'allow r',
        'osd': f'allow r pool={pool} namespace=manila_lite, '
        f'allow rw pool={pool} namespace=manila_lite_nfs',
    }


@pytest.fixture(scope='session')
def started_gateways(started_ceph):
    """Provide two gateways of a back end, as long as the run lasts."""
    if reason := missing():
        requirements.missing(reason)
    GUARD.build()
    folder = started_ceph.folder / f'gateways-{os.getpid()}'
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        with started_ceph.used():
            user = stack.enter_context(started_ceph.user(**caps()))
            gateways = Gateways(started_ceph, user, folder)
            stack.callback(gateways.kill)
            gateways.start()
        yield gateways


@pytest.fixture
def gateways(ceph, started_gateways):
    """Provide them, all of which serve; a test may end some."""
    started_gateways.start()
    return started_gateways


def in_time(act, seconds: float = GRACE_SECONDS):
    """Return a result, after the time in which clients reclaim what they had."""
    found = []

    def is_done() -> bool:
        try:
            found.append(act())
        except Exception as error:
            if 'GRACE' not in str(error):
                raise
            return False
        return True

    wait_until(is_done, 'clients may open files', seconds)
    return found[0]
