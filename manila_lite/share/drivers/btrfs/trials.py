"""Try operations that a container may refuse: no file says whether it does.

Everything is removed again, most of it when a process ends.
"""

from collections.abc import Callable
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import NamedTuple
import uuid

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD

_SIZE = 128 << 20
_TIMEOUT = 60.0


class Trial(NamedTuple):
    """Something that is tried, the programs for it, and what may help."""

    name: str
    programs: tuple[str, ...]
    remedy: str
    act: Callable[[], None]

    def failure_reason(self) -> str | None:
        """Return why it does not work and what may help, or None."""
        for program in self.programs:
            if shutil.which(program) is None:
                return f'not tried without {program}'
        try:
            self.act()
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip() or f'exit code {error.returncode}'
        except subprocess.TimeoutExpired:
            reason = f'no answer in {_TIMEOUT:g} seconds'
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return None
        return f'{reason.splitlines()[-1]}; {self.remedy}'


def _mount_file() -> None:
    """Mount a small btrfs in a file, with quotas, as a pool is."""
    with tempfile.TemporaryDirectory(prefix='manila-lite-') as folder:
        image, target = (pathlib.Path(folder, name) for name in ('image', 'top'))
        image.touch()
        os.truncate(image, _SIZE)
        _run('mkfs.btrfs', '-q', str(image))
        target.mkdir()
        with kernel.loop_device(image) as device:
            kernel.mount(device, target)
        try:
            kernel.enable_quota(target)
        finally:
            kernel.unmount(target)


def _create_namespace() -> None:
    _run('unshare', '--net', 'true')


def _create_link() -> None:
    """Create a link to another namespace where servers have them."""
    name = f'mlt{uuid.uuid4().hex[:12]}'
    _run(*f'ip link add {name} type veth peer name {name[:-1]}x'.split())
    _run('ip', 'link', 'delete', name)


def _create_bridge() -> None:
    """Create a bridge in a namespace, with which it ends."""
    _run('unshare', '--net', 'ip', 'link', 'add', 'trial', 'type', 'bridge')


def _run(*command: str) -> None:
    subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env=os.environ | {'LC_ALL': 'C'},
    )


TRIALS = (
    Trial(
        'mount of a btrfs in a file',
        ('mkfs.btrfs',),
        'a container needs CAP_SYS_ADMIN and loop devices',
        _mount_file,
    ),
    Trial(
        'guard of NFS file handles in libfsalvfs.so',
        (),
        'build it, or install another version of nfs-ganesha',
        GUARD.load,
    ),
)

SERVER_TRIALS = (
    Trial(
        'new network namespace',
        ('unshare',),
        'a container needs CAP_SYS_ADMIN',
        _create_namespace,
    ),
    Trial(
        'new veth link',
        ('ip',),
        'a container needs CAP_NET_ADMIN, and a kernel with veth',
        _create_link,
    ),
    Trial(
        'new bridge',
        ('ip', 'unshare'),
        'a container needs CAP_SYS_ADMIN, and a kernel with bridges',
        _create_bridge,
    ),
)
"""What share servers need besides."""
