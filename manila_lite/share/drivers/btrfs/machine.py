"""What the driver needs of the machine, and how a pool is created on it."""

from collections.abc import Callable
import glob
import os
import pathlib
import shutil
import stat
import subprocess
from typing import NamedTuple

from manila_lite import exception
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD

_SMALLEST_POOL = 128 << 20
# Where a btrfs has its first super block, and what is where in it.
_SUPER_BLOCK = 64 << 10
_MAGIC, _LABEL = slice(64, 72), slice(299, 555)


class Requirement(NamedTuple):
    """Something that must be there, and what provides it."""

    name: str
    remedy: str
    is_met: Callable[[], bool]


def _program(name: str, package: str) -> Requirement:
    return Requirement(
        name, f'install the package {package}', lambda: shutil.which(name) is not None
    )


def _has_btrfs() -> bool:
    # A module is loaded when it is first used.
    module = f'/lib/modules/{os.uname().release}/kernel/fs/btrfs/btrfs.ko*'
    known = pathlib.Path('/proc/filesystems').read_text()
    return '\tbtrfs\n' in known or bool(glob.glob(module))


def _capability(needed: privileges.Capability) -> Requirement:
    return Requirement(
        needed.name,
        f'run it as root, or with this capability, to {needed.purpose}',
        lambda: not privileges.missing(needed),
    )


REQUIREMENTS = (
    *map(_capability, privileges.CAPABILITIES),
    Requirement('btrfs', 'use a kernel with btrfs', _has_btrfs),
    Requirement(
        '/dev/loop-control',
        'use a kernel with loop devices, or only devices as pools',
        lambda: os.path.exists('/dev/loop-control'),
    ),
    _program('mkfs.btrfs', 'btrfs-progs'),
    _program('dbus-daemon', 'dbus'),
    _program('ganesha.nfsd', 'nfs-ganesha'),
    Requirement(
        'ganesha/libfsalvfs.so',
        'install the package nfs-ganesha-vfs',
        lambda: GUARD.find_plugin() is not None,
    ),
    Requirement(
        'guard of NFS file handles', GUARD.remedy, lambda: GUARD.find() is not None
    ),
)

CIFS_REQUIREMENTS = (
    *map(_capability, privileges.CIFS_CAPABILITIES),
    _program('smbd', 'samba'),
    _program('smbpasswd', 'samba-common-bin'),
    Requirement(
        'libnss_wrapper.so',
        'install the package libnss-wrapper',
        lambda: any(
            glob.glob(f'/usr/{folder}/libnss_wrapper.so')
            for folder in ('lib', 'lib64', 'lib/*')
        ),
    ),
)
"""What CIFS shares need besides."""


SERVER_REQUIREMENTS = (
    *map(_capability, privileges.SERVER_CAPABILITIES),
    _program('ip', 'iproute2'),
    _program('nsenter', 'util-linux'),
    _program('unshare', 'util-linux'),
    Requirement(
        'network namespaces',
        'use a kernel with network namespaces',
        lambda: os.path.exists('/proc/self/ns/net'),
    ),
)
"""What share servers need besides."""


def create_image(path: pathlib.Path, size: int) -> None:
    """Create a file with an empty btrfs; it takes space when it is used.

    A file that exists is kept.
    """
    if path.exists():
        return
    if size < _SMALLEST_POOL:
        raise exception.InvalidInput(
            reason=f'a pool needs {_SMALLEST_POOL >> 20} MiB or more'
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f'.new-{path.name}')
    with new.open('wb') as file:
        os.chmod(file.fileno(), stat.S_IRUSR | stat.S_IWUSR)
        file.truncate(size)
    _make_file_system(new)
    new.rename(path)


def format_device(path: pathlib.Path, label: str) -> None:
    """Create a btrfs with a label on a device, which must be empty.

    One that has this label already is kept.
    """
    if not path.is_block_device():
        raise exception.InvalidInput(reason=f'{path} is not a block device')
    if _find_label(path) != label:
        _make_file_system(path, f'--label={label}')


def _find_label(device: pathlib.Path) -> str | None:
    """Return the label of the btrfs on a device; None if there is none."""
    with device.open('rb') as file:
        file.seek(_SUPER_BLOCK)
        block = file.read(_LABEL.stop)
    if block[_MAGIC] != b'_BHRfS_M':
        return None
    return os.fsdecode(block[_LABEL].partition(b'\0')[0])


def _make_file_system(path: pathlib.Path, *options: str) -> None:
    # It refuses a device that has any file system.
    done = subprocess.run(
        ['mkfs.btrfs', '-q', *options, '--', str(path)], capture_output=True, text=True
    )
    if done.returncode:
        errors = [
            line
            for line in done.stderr.splitlines()
            # It is not an option of ours.
            if line and 'use the -f option' not in line
        ]
        raise exception.InvalidInput(reason=f'mkfs.btrfs {path}: {"; ".join(errors)}')
