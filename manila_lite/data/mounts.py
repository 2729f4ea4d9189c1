"""Mount shares that are no directories of this machine, to copy them.

A share on CephFS is mounted by ceph-fuse, which ends with this process. What a
process leaves that was killed is removed before the next mount.
"""

from collections.abc import Iterator
import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import time

from manila_lite import exception
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.base import CephLocation

CLIENT = 'ceph-fuse'
MOUNT_SECONDS = 60.0
UNMOUNT_SECONDS = 30.0
"""Less than the time after which Ceph drops the changes of a client that it cannot
reach, and the client would end as if nothing had happened."""

_PREFIX = 'share-'
_INTERVAL = 0.05
_DETACH, _NOFOLLOW = 2, 8
_TIMED_OUT = 'timed out'
_SIZE = 'ceph.dir.rbytes'
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

# Without a cache (client_oc) what was written is in the storage, so that files
# which an attempt that was killed has completed are complete. The kernel checks
# permissions (fuse_default_permissions): the client knows no capabilities of
# processes that are not root.
_CONFIGURATION = """
[global]
mon_host = {monitors}
keyring = {keyring}
log_file =
log_to_stderr = true
err_to_stderr = true
admin_socket =
pid_file =
client_fs = {filesystem}
client_oc = false
client_permissions = false
fuse_default_permissions = true
client_acl_type = posix_acl
client_mount_timeout = {limit}
fuse_allow_other = false
"""


class CephMounts:
    """Mounts below a folder, which other data services may use as well."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder

    @contextlib.contextmanager
    def mounted(self, instance_id: str, location: CephLocation) -> Iterator[int]:
        """Mount a share, and open its top directory.

        What was written is in the storage at the end of the block. Raises
        ServiceUnavailable if the cluster does not answer or has cut us off.
        """
        with self._own_folder() as folder:
            mount = _Mount(folder, instance_id, location)
            try:
                mount.start()
                with trees.opened_directory(mount.path) as directory:
                    try:
                        yield directory
                    except OSError:  # also of an entry that seems to be missing
                        _require_connection(directory, instance_id)
                        raise
                    _require_connection(directory, instance_id)
                mount.end()
            finally:
                mount.kill()

    @contextlib.contextmanager
    def _own_folder(self) -> Iterator[pathlib.Path]:
        """Provide a new folder; its lock tells others that it is in use."""
        self._folder.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        with trees.opened_directory(self._folder) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # no process removes a new one
            self._remove_leftovers()
            path = pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._folder))
            own = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(own, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            _remove(path)
            os.close(own)

    def _remove_leftovers(self) -> None:
        for path in self._folder.glob(f'{_PREFIX}*'):
            with contextlib.suppress(OSError), trees.opened_directory(path) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)


class _Mount:
    """A mount by a process of its own."""

    def __init__(self, folder: pathlib.Path, instance_id: str, location: CephLocation):
        self.path = folder / 'share'
        self._instance_id = instance_id
        self._user = location['user']
        self._root = location['path']
        self._log = folder / 'log'
        self._conf = folder / 'ceph.conf'
        self._keyring = folder / 'keyring'
        self.path.mkdir()
        self._keyring.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
        self._keyring.write_text(f'[client.{self._user}]\nkey = {location["key"]}\n')
        self._conf.write_text(
            _CONFIGURATION.format(
                monitors=location['monitors'],
                filesystem=location['filesystem'],
                keyring=self._keyring,
                limit=int(MOUNT_SECONDS),
            )
        )
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        command = [CLIENT, '-f', '-c', str(self._conf), '--id', self._user]
        with self._log.open('wb') as log:
            try:
                self._process = subprocess.Popen(
                    [*command, '-r', self._root, str(self.path)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                )
            except FileNotFoundError as error:
                raise self._unreachable(
                    f'{CLIENT} is not installed on the machine of the data service'
                ) from error
        deadline = time.monotonic() + MOUNT_SECONDS
        while not self._is_mounted():
            has_ended = self._process.poll() is not None
            output = self._log.read_text(errors='replace') if has_ended else ''
            if time.monotonic() > deadline or _TIMED_OUT in output:
                raise exception.ServiceUnavailable(
                    f'the Ceph cluster of share instance {self._instance_id} '
                    'does not answer'
                )
            if has_ended:
                raise self._unreachable(f'{CLIENT} does not mount it: {output[-500:]}')
            time.sleep(_INTERVAL)
        self._keyring.unlink()  # it has read it

    def _unreachable(self, reason: str) -> exception.ContentUnreachable:
        return exception.ContentUnreachable(
            instance_id=self._instance_id, reason=reason
        )

    def _is_mounted(self) -> bool:
        mounts = pathlib.Path('/proc/self/mounts').read_bytes()
        path = os.fsencode(self.path).replace(b' ', rb'\040')
        return b' %s fuse.%s ' % (path, CLIENT.encode()) in mounts

    def end(self) -> None:
        """Unmount; return when the storage has all that was written."""
        assert self._process is not None
        _unmount(self.path)
        try:
            code = self._process.wait(UNMOUNT_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        if code != 0:
            raise exception.ServiceUnavailable(
                f'{CLIENT} did not complete share instance {self._instance_id}'
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _require_connection(directory: int, instance_id: str) -> None:
    """Ask the storage for something; raise ServiceUnavailable if it has cut us off."""
    try:
        os.getxattr(directory, _SIZE)
    except OSError as error:
        raise exception.ServiceUnavailable(
            f'Ceph has cut off the copy of share instance {instance_id}'
        ) from error


def _unmount(path: pathlib.Path) -> None:
    if _libc.umount2(os.fsencode(path), _DETACH | _NOFOLLOW) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))


def _remove(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        _unmount(folder / 'share')
    with contextlib.suppress(FileNotFoundError):
        (folder / 'share').rmdir()  # fails while it is mounted: never remove files
        shutil.rmtree(folder)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
