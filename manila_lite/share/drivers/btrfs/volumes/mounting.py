"""Mount the file systems of pools: devices, files, or what is mounted."""

import contextlib
import os
import pathlib
import stat

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel


def mounted_pool(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Mount a device or an image; return the top of the file system.

    The source may also be a directory where the file system is mounted
    already. Raises BadConfiguration if there is no btrfs, and
    StorageUnavailable if it cannot be mounted. The last part of the target is
    the name of the pool.
    """
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise exception.BadConfiguration(
            reason=f'pool {target.name}: {source}: {error.strerror}'
        ) from error
    if stat.S_ISDIR(mode):
        top = source
    else:
        top = target
        if not is_mounted(target):
            _mount(source, target, loop=stat.S_ISREG(mode))
    if not (is_mounted(top) and kernel.is_subvolume(top)):
        raise exception.BadConfiguration(
            reason=f'pool {target.name}: {top} is not the top of a mounted btrfs'
        )
    return top


def is_mounted(path: pathlib.Path) -> bool:
    """Return whether a path is a mount point."""
    return os.path.ismount(path)


def _mount(source: pathlib.Path, target: pathlib.Path, loop: bool) -> None:
    target.mkdir(parents=True, exist_ok=True)
    try:
        with (
            kernel.loop_device(source) if loop else contextlib.nullcontext(source)
        ) as device:
            kernel.mount(device, target)
    except OSError as error:
        raise exception.StorageUnavailable(
            reason=f'pool {target.name}: {source} cannot be mounted: '
            f'{error.strerror}; the log of the kernel may say more'
        ) from error
