"""The table of mounts that an NFS server reads.

    exports/mtab         what the server finds at /etc/mtab: a link to
    exports/mtab.<id>    the table of this process, and of no other

It reads the table whenever it adds an export, and at its start once for each
of them. The kernel takes 7 ms to write the table of 1,000 exports, of which
only the line of the new one counts. Therefore a server has a mount namespace
of its own, with a table that has all exports when it starts, and later those
that were added last.

The supervisor, which imports this module, begins a table before it looks for
mounts; a volume is mounted before its line is added to the table of the
moment. Thus a line is missing from no table that matters.
"""

from collections.abc import Callable, Iterable
import contextlib
import errno
import functools
import logging
import os
import pathlib
import uuid

from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.file_locks import Locks

LOG = logging.getLogger(__name__)

RECENT = 128
"""How many lines remain: more than exports are ever added at a time."""

_MTAB = pathlib.Path('/etc/mtab')
_LOCK = 'mtab'
# It is the parent of all others: the server looks for one again and again.
_ROOT = 'none / none rw 0 0\n'


class MountTable:
    """The table of the server that runs, if it has one of its own."""

    def __init__(self, folder: pathlib.Path, locks: Locks):
        self._link = folder / 'mtab'
        self._locks = locks

    def add(self, path: pathlib.Path, is_complete: Callable[[], bool]) -> None:
        """Add a mount that is about to be exported.

        Now and then, when the server has added all exports, the other lines are
        removed.
        """
        with self._locks.locked(_LOCK), contextlib.suppress(FileNotFoundError):
            file = self._link.readlink()
            lines = file.read_text().splitlines(keepends=True)
            if _line(path) in lines:
                return
            if len(lines) % RECENT == 0 and is_complete():
                recent = [_ROOT, *lines[-RECENT // 2 :], _line(path)]
                records.write_text(file, ''.join(recent))
            else:
                _append(file, _line(path))


def begin(folder: pathlib.Path) -> Callable[[list[pathlib.Path]], None] | None:
    """Begin the table of a server that is to be started.

    Returns what its process has to call with all mounts to have the table.
    There is none if mounts to come would not appear in a namespace.
    """
    link = folder / 'mtab'
    if not kernel.are_mounts_shared(folder / 'mounts'):
        link.unlink(missing_ok=True)
        return None
    old = set(folder.glob('mtab.*'))
    file = folder / f'mtab.{uuid.uuid4().hex}'
    file.write_text(_ROOT)
    new = folder / 'mtab.link'
    new.unlink(missing_ok=True)
    new.symlink_to(file)
    new.replace(link)
    for each in old:
        each.unlink(missing_ok=True)
    return functools.partial(_enter, folder, file)


def _enter(
    folder: pathlib.Path, file: pathlib.Path, mounts: Iterable[pathlib.Path]
) -> None:
    """Give this process a table, in a mount namespace of its own.

    Pools are not mounted there, which would keep them busy.
    """
    try:
        _append(file, ''.join(map(_line, mounts)))
        kernel.leave_mount_namespace()
    except OSError as error:
        LOG.warning('exports are added slowly: %s', error)
        return
    kernel.make_mounts_follow()
    for target in kernel.pool_mounts(outside=folder):
        _unmount(target)
    try:
        kernel.mount_link(folder / 'mtab', _MTAB)
        if not os.path.samefile(_MTAB, file):
            kernel.unmount_link(_MTAB)
    except OSError as error:
        LOG.warning('exports are added slowly: %s', error)


def _unmount(target: pathlib.Path) -> None:
    """Remove a mount; one that is no longer there is success.

    Another back end may have ended it just now, and it ends together with the
    pool that it is mounted in.
    """
    try:
        kernel.unmount(target)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise


def _append(file: pathlib.Path, text: str) -> None:
    """Add lines at once: the server may be reading those before them."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    try:
        data = text.encode()
        if os.write(descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
    finally:
        os.close(descriptor)


def _line(path: pathlib.Path) -> str:
    """Return the line of a path, which has no characters to be quoted."""
    return f'none {path} btrfs rw 0 0\n'
