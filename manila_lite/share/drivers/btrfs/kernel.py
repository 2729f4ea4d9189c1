"""What the driver asks of the kernel: all of its system calls.

    mounts, loop devices, namespaces    CAP_SYS_ADMIN
    set_limit, enable_quota  CAP_SYS_ADMIN
    sizes, has_removed, nested_subvolumes, subvolumes_with_nested,
    read_only_subvolumes     CAP_SYS_ADMIN (search in a tree)
    destroy, destroy_nested  CAP_SYS_ADMIN
    the rest                 write access to the directory

What else needs capabilities is listed in `privileges`. Nothing here follows a
path from users: all paths are in directories that only root can enter.
"""

from collections.abc import Iterable, Iterator
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import socket
import struct
import sys
from typing import BinaryIO, NamedTuple
import uuid

_READ, _WRITE = 2, 1


def _code(direction: int, number: int, size: int) -> int:
    """Return the number of an ioctl of btrfs, as linux/btrfs.h has it."""
    return direction << 30 | size << 16 | 0x94 << 8 | number


_SNAPSHOT_DESTROY = _code(_WRITE, 15, 4096)
_SUBVOLUME_CREATE = _code(_WRITE, 14, 4096)
_TREE_SEARCH_V2 = _code(_READ | _WRITE, 17, 112)
_INODE_LOOKUP = _code(_READ | _WRITE, 18, 4096)
_WAIT_SYNC = _code(_WRITE, 22, 8)
_SNAPSHOT_CREATE_V2 = _code(_WRITE, 23, 4096)
_START_SYNC = _code(_READ, 24, 8)
_GET_FLAGS = _code(_READ, 25, 8)
_SET_FLAGS = _code(_WRITE, 26, 8)
_FS_INFO = _code(_READ, 31, 1024)
_GET_SUBVOLUME_INFO = _code(_READ, 60, 504)
_SNAPSHOT_DESTROY_V2 = _code(_WRITE, 63, 4096)
_QUOTA_CONTROL = _code(_READ | _WRITE, 40, 16)
_QGROUP_LIMIT = _code(_READ, 43, 48)
_QUOTA_RESCAN = _code(_WRITE, 44, 64)
_QUOTA_RESCAN_WAIT = _code(0, 46, 0)

SUBVOLUME_INODE = 256
"""The inode number of the root of every subvolume."""

_ROOT_TREE, _QUOTA_TREE = 1, 8
_ORPHAN, _ROOT_ITEM, _ROOT_REF = 48, 132, 156
_QGROUP_STATUS, _QGROUP_INFO, _QGROUP_LIMITS = 240, 242, 244
_STATUS_RESCAN, _STATUS_INCONSISTENT = 2, 4
_LIMIT_REFERENCED = 1
_READ_ONLY, _BY_ID = 2, 16
_ROOT_FLAGS, _ROOT_READ_ONLY = 208, 1
_NO_LIMIT = (1 << 64) - 1
_ORPHANS = (1 << 64) - 5
_LAST_SUBVOLUME = (1 << 64) - 256
_SEARCH_SIZE = 1 << 16

_LOOP_GET_FREE, _LOOP_CONFIGURE = 0x4C82, 0x4C0A
_LOOP_AUTOCLEAR = 4

_MS_NOSUID, _MS_NODEV, _MS_NOATIME, _MS_BIND = 2, 4, 1024, 4096
_MS_REC, _MS_SLAVE, _MS_SHARED = 1 << 14, 1 << 19, 1 << 20
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_CLONE_NEWNS, _CLONE_NEWNET = 1 << 17, 1 << 30
_OPEN_TREE, _MOVE_MOUNT = 428, 429  # the same on all machines
_OPEN_TREE_CLONE, _MOVE_MOUNT_EMPTY_PATH = 1, 4
_AT_SYMLINK_NOFOLLOW = 0x100
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100

_libc = ctypes.CDLL(None, use_errno=True)


class Size(NamedTuple):
    """Bytes that a subvolume refers to, and how many it may; 0: no limit."""

    used: int
    limit: int


# Subvolumes


def create_subvolume(path: pathlib.Path) -> None:
    """Create an empty subvolume; raises FileExistsError."""
    _call(path.parent, _SUBVOLUME_CREATE, _name_at(8, path.name))


def create_snapshot(source: pathlib.Path, path: pathlib.Path, read_only: bool) -> None:
    """Create a snapshot of a subvolume; raises FileExistsError."""
    request = _name_at(56, path.name)
    with _opened(source) as origin:
        struct.pack_into('<qQQ', request, 0, origin, 0, _READ_ONLY if read_only else 0)
        _call(path.parent, _SNAPSHOT_CREATE_V2, request)


def destroy(path: pathlib.Path) -> None:
    """Remove a subvolume; the kernel frees its space in the background."""
    _call(path.parent, _SNAPSHOT_DESTROY, _name_at(8, path.name))


def has_removed(top: pathlib.Path) -> bool:
    """Return whether the space of removed subvolumes is still to be freed."""
    return any(
        True
        for _ in _search(
            top, _ROOT_TREE, (_ORPHANS, _ORPHAN, 0), (_ORPHANS, _ORPHAN, _NO_LIMIT)
        )
    )


def nested_subvolumes(top: pathlib.Path, subvolume: int) -> list[int]:
    """Return the ids of the subvolumes that are directly in one."""
    found = _search(
        top, _ROOT_TREE, (subvolume, _ROOT_REF, 0), (subvolume, _ROOT_REF, _NO_LIMIT)
    )
    return [nested for (_, kind, nested), _ in found if kind == _ROOT_REF]


def subvolumes_with_nested(top: pathlib.Path) -> set[int]:
    """Return the ids of the subvolumes that have others in them."""
    found = _search(
        top,
        _ROOT_TREE,
        (SUBVOLUME_INODE, _ROOT_REF, 0),
        (_LAST_SUBVOLUME, _ROOT_REF, _NO_LIMIT),
    )
    return {subvolume for (subvolume, kind, _), _ in found if kind == _ROOT_REF}


def destroy_nested(path: pathlib.Path) -> None:
    """Remove all subvolumes in one.

    They go by their ids: their paths are made of names of users.
    """
    with _opened(path.parent) as directory:
        _destroy_nested(path.parent, directory, subvolume_id(path))


def _destroy_nested(top: pathlib.Path, directory: int, subvolume: int) -> None:
    for nested in nested_subvolumes(top, subvolume):
        _destroy_nested(top, directory, nested)
        request = bytearray(4096)
        struct.pack_into('<Q', request, 16, _BY_ID)
        struct.pack_into('<Q', request, 56, nested)
        _ioctl(directory, top, _SNAPSHOT_DESTROY_V2, request)


def is_subvolume(path: pathlib.Path) -> bool:
    """Return whether a path is the root of a subvolume."""
    try:
        return (
            path.lstat().st_ino == SUBVOLUME_INODE
            and not path.is_symlink()
            and path.is_dir()
        )
    except FileNotFoundError:
        return False


def file_system_id(path: pathlib.Path) -> str:
    """Return the UUID of the file system."""
    found = _call(path, _FS_INFO, bytearray(1024))
    return str(uuid.UUID(bytes=bytes(found[16:32])))


def is_read_only(path: pathlib.Path) -> bool:
    flags = _call(path, _GET_FLAGS, bytearray(8))
    return bool(struct.unpack('<Q', flags)[0] & _READ_ONLY)


def set_read_only(path: pathlib.Path, read_only: bool) -> None:
    flags = struct.pack('<Q', _READ_ONLY if read_only else 0)
    _call(path, _SET_FLAGS, bytearray(flags))


def read_only_subvolumes(top: pathlib.Path) -> set[int]:
    """Return the ids of the subvolumes that cannot be written."""
    found = _search(
        top,
        _ROOT_TREE,
        (SUBVOLUME_INODE, _ROOT_ITEM, 0),
        (_LAST_SUBVOLUME, _ROOT_ITEM, _NO_LIMIT),
    )
    return {
        subvolume
        for (subvolume, kind, _), data in found
        if kind == _ROOT_ITEM
        and struct.unpack_from('<Q', data, _ROOT_FLAGS)[0] & _ROOT_READ_ONLY
    }


def content_id(path: pathlib.Path) -> bytes:
    """Return what a read-only subvolume has in common with its copies.

    It is the UUID of the one that was sent first.
    """
    found = _call(path, _GET_SUBVOLUME_INFO, bytearray(504))
    own, received = bytes(found[296:312]), bytes(found[328:344])
    return received if any(received) else own


def subvolume_id(path: pathlib.Path) -> int:
    """Return the id that a subvolume has within its file system."""
    request = bytearray(4096)
    struct.pack_into('<QQ', request, 0, 0, SUBVOLUME_INODE)
    return struct.unpack_from('<Q', _call(path, _INODE_LOOKUP, request))[0]


def exchange(one: pathlib.Path, other: pathlib.Path) -> None:
    """Exchange two directory entries in one step."""
    sys.audit('manila_lite.exchange', str(one), str(other))
    _check(
        _libc.renameat2(
            _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE
        ),
        one,
    )


def commit(top: pathlib.Path) -> None:
    """Make all names and limits durable; data of users need not be."""
    with _opened(top) as directory:
        request = bytearray(8)
        _ioctl(directory, top, _START_SYNC, request)
        _ioctl(directory, top, _WAIT_SYNC, request)


def flush(top: pathlib.Path) -> None:
    """Write all data to disk, after which `sizes` counts all of it."""
    with _opened(top) as directory:
        _check(_libc.syncfs(directory), top)
    commit(top)


# Sizes


def has_quota(top: pathlib.Path) -> bool:
    """Return whether the file system counts what subvolumes refer to."""
    try:
        return any(True for _ in _search_quota_tree(top, 0, 0, _QGROUP_STATUS))
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
        return False


def enable_quota(top: pathlib.Path) -> None:
    """Let the file system count what subvolumes refer to.

    What there is already is counted in the background.
    """
    _call(top, _QUOTA_CONTROL, bytearray(struct.pack('<QQ', 1, 0)))


def wait_for_sizes(top: pathlib.Path) -> None:
    """Wait until what there is has been counted."""
    with _opened(top) as directory:
        _ioctl(directory, top, _QUOTA_RESCAN_WAIT, bytearray(8))


def set_limit(top: pathlib.Path, subvolume: int, limit: int) -> None:
    """Limit what a subvolume refers to; 0 removes the limit.

    It is called for the top of the file system: by way of a subvolume that
    is full, the request itself would exceed the limit.
    """
    request = struct.pack(
        '<QQQQQQ', subvolume, _LIMIT_REFERENCED, limit or _NO_LIMIT, 0, 0, 0
    )
    try:
        _call(top, _QGROUP_LIMIT, bytearray(request))
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            raise _quotas_off(top) from error
        raise


def _quotas_off(top: pathlib.Path) -> OSError:
    return OSError(
        errno.ENOTCONN,
        'the quotas of the file system are off, and its shares have no limits',
        str(top),
    )


def sizes(top: pathlib.Path, subvolume: int | None = None) -> dict[int, Size]:
    """Return the sizes of one subvolume, or of all, by id.

    What was written since the last commit is not counted.
    """
    used: dict[int, int] = {}
    limits: dict[int, int] = {}
    first, last = (0, _NO_LIMIT >> 16) if subvolume is None else (subvolume, subvolume)
    for kind, found, data in _search_quota_tree(top, first, last):
        if kind == _QGROUP_INFO:
            used[found] = struct.unpack_from('<Q', data, 8)[0]
        elif kind == _QGROUP_LIMITS:
            flags, limit = struct.unpack_from('<QQ', data)
            has_limit = flags & _LIMIT_REFERENCED and limit != _NO_LIMIT
            limits[found] = limit if has_limit else 0
    return {found: Size(count, limits.get(found, 0)) for found, count in used.items()}


def has_wrong_sizes(top: pathlib.Path) -> bool:
    """Return whether sizes have to be counted again, as of the last commit.

    The kernel gives up when it would take long, for instance when a large
    snapshot is removed. Then limits do not hold. While they are counted, the
    result is False.
    """
    for _, _, data in _search_quota_tree(top, 0, 0, _QGROUP_STATUS):
        flags = struct.unpack_from('<Q', data, 16)[0]
        return bool(flags & _STATUS_INCONSISTENT and not flags & _STATUS_RESCAN)
    return False


def count_sizes(top: pathlib.Path) -> None:
    """Begin to count all sizes again; the kernel does so by itself."""
    try:
        _call(top, _QUOTA_RESCAN, bytearray(64))
    except OSError as error:
        if error.errno != errno.EINPROGRESS:
            raise


def _search_quota_tree(
    top: pathlib.Path, first: int, last: int, kind: int = _QGROUP_INFO
) -> Iterator[tuple[int, int, bytes]]:
    """Yield kind, subvolume and content of the items of a tree.

    The kinds are those from the given one on.
    """
    try:
        for (_, found, offset), data in _search(
            top, _QUOTA_TREE, (0, kind, first), (0, _QGROUP_LIMITS, last)
        ):
            if first <= offset <= last:
                yield found, offset, data
    except FileNotFoundError as error:  # there is no such tree
        if not top.is_dir():
            raise
        raise _quotas_off(top) from error


_Key = tuple[int, int, int]


def _search(
    top: pathlib.Path, tree: int, first: _Key, last: _Key
) -> Iterator[tuple[_Key, bytes]]:
    """Yield the items of a tree with their keys: object, kind and offset."""
    key = first
    with _opened(top) as directory:
        while True:
            request = bytearray(112 + _SEARCH_SIZE)
            struct.pack_into(
                '<QQQQQQQIIII',
                request,
                0,
                *(tree, key[0], last[0], key[2], last[2], 0, _NO_LIMIT),
                *(key[1], last[1], 1 << 16, 0),
            )
            struct.pack_into('<Q', request, 104, _SEARCH_SIZE)
            _ioctl(directory, top, _TREE_SEARCH_V2, request)
            count = struct.unpack_from('<I', request, 64)[0]
            if not count:
                return
            place = 112
            for _ in range(count):
                _, objectid, offset, kind, length = struct.unpack_from(
                    '<QQQII', request, place
                )
                place += 32
                data = bytes(request[place : place + length])
                place += length
                yield (objectid, kind, offset), data
                key = (objectid, kind, offset + 1)


# Mounts


def mount(device: pathlib.Path, target: pathlib.Path) -> None:
    """Mount a btrfs; nothing in it gives privileges on this machine."""
    sys.audit('manila_lite.mount', str(device), str(target))
    _check(
        _libc.mount(
            os.fsencode(device),
            os.fsencode(target),
            b'btrfs',
            _MS_NOSUID | _MS_NODEV | _MS_NOATIME,
            None,
        ),
        device,
    )


@contextlib.contextmanager
def loop_device(image: pathlib.Path) -> Iterator[pathlib.Path]:
    """Provide the block device of a file, which remains while it is mounted.

    There is never more than one: two file systems on the same blocks would
    destroy each other.
    """
    # The device keeps the file open that it is given, with any lock on it.
    with open(image, 'rb') as lock, open(image, 'r+b') as file:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path, device = _opened_loop_device(image) or _configured(file, image)
        try:
            yield path
        finally:
            os.close(device)


def _opened_loop_device(image: pathlib.Path) -> tuple[pathlib.Path, int] | None:
    path = _find_loop_device(image)
    if path is None:
        return None
    device = os.open(path, os.O_RDWR)
    if _find_loop_device(image) == path:
        return path, device
    os.close(device)  # it became free before it was opened
    return None


def _configured(file: BinaryIO, image: pathlib.Path) -> tuple[pathlib.Path, int]:
    while True:
        path = _free_loop_device()
        device = os.open(path, os.O_RDWR)
        try:
            fcntl.ioctl(device, _LOOP_CONFIGURE, _loop_config(file, image))
        except OSError as error:
            os.close(device)
            if error.errno != errno.EBUSY:  # another process was faster
                raise
        else:
            return path, device


def _find_loop_device(image: pathlib.Path) -> pathlib.Path | None:
    for entry in pathlib.Path('/sys/block').glob('loop*/loop/backing_file'):
        try:
            if os.path.samefile(entry.read_text().rstrip('\n'), image):
                return pathlib.Path('/dev', entry.parts[3])
        except OSError:  # it has just become free
            continue
    return None


def _free_loop_device() -> pathlib.Path:
    with open('/dev/loop-control', 'rb') as control:
        return pathlib.Path(f'/dev/loop{fcntl.ioctl(control, _LOOP_GET_FREE)}')


def _loop_config(file: BinaryIO, image: pathlib.Path) -> bytes:
    """Return a struct loop_config, see linux/loop.h."""
    name = os.fsencode(image)[:63]
    info = struct.pack(
        '<QQQQQIIII64s64s32sQQ',
        *(0, 0, 0, 0, 0, 0, 0, 0, _LOOP_AUTOCLEAR),
        *(name, b'', b'', 0, 0),
    )
    return struct.pack('<II', file.fileno(), 0) + info + bytes(64)


def bind_mount(source: pathlib.Path, target: pathlib.Path) -> None:
    """Make a directory visible at another place."""
    sys.audit('manila_lite.mount', str(source), str(target))
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None),
        target,
    )


def unmount(target: pathlib.Path) -> None:
    """Remove a mount; files that are open in it remain so."""
    sys.audit('manila_lite.unmount', str(target))
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), target)


def unmount_idle(target: pathlib.Path) -> bool:
    """Remove a mount; return False if a file is open in it."""
    sys.audit('manila_lite.unmount', str(target))
    try:
        _check(_libc.umount2(os.fsencode(target), 0), target)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def unmount_below(folder: pathlib.Path) -> None:
    """Remove all mounts in a folder, the last first."""
    folder = folder.resolve()  # as the kernel lists them
    mounts = pathlib.Path('/proc/self/mounts').read_text().splitlines()
    for line in reversed(mounts):
        target = pathlib.Path(line.split(' ')[1])
        if target.is_relative_to(folder):
            unmount(target)


class _Mount(NamedTuple):
    device: str
    target: pathlib.Path
    options: list[str]
    tags: list[str]
    type: str


def _mounts() -> Iterator[_Mount]:
    with open('/proc/self/mountinfo', errors='surrogateescape') as file:
        for line in file.read().splitlines():
            head, _, tail = line.partition(' - ')
            _, _, device, _, target, options, *tags = head.split(' ')
            yield _Mount(
                device,
                pathlib.Path(target),
                options.split(','),
                tags,
                tail.partition(' ')[0],
            )


def are_mounts_shared(folder: pathlib.Path) -> bool:
    """Return whether mounts in a folder appear in other namespaces."""
    folder = folder.resolve()
    tags: list[str] = []
    deepest = -1
    for found in _mounts():
        depth = len(found.target.parts)
        if depth >= deepest and folder.is_relative_to(found.target):
            deepest, tags = depth, found.tags
    return any(tag.startswith('shared:') for tag in tags)


def share_mounts(folder: pathlib.Path) -> None:
    """Let mounts in a folder appear in namespaces that are created later.

    It becomes a mount of itself. If there are mounts in it already, they
    would be hidden by that, and remain: then nothing is changed.
    """
    if are_mounts_shared(folder):
        return
    targets = [found.target for found in _mounts()]
    real = folder.resolve()
    if real not in targets:
        if any(target.is_relative_to(real) for target in targets):
            return
        bind_mount(folder, folder)
    _check(_libc.mount(None, os.fsencode(folder), None, _MS_SHARED, None), folder)


def mount_id(path: pathlib.Path) -> int:
    """Return the number of the mount that shows a path."""
    with _opened(path) as directory:
        info = pathlib.Path(f'/proc/self/fdinfo/{directory}').read_text()
    return int(info.partition('mnt_id:')[2].split()[0])


def is_mount_seen(folder: pathlib.Path, pid: int) -> bool:
    """Return whether a process sees what is mounted in a folder later.

    The folder is a mount of itself. The process has the same mount, or one
    of its own that follows it. Raises ProcessLookupError if it has ended.
    """
    own = _mount_line(folder, 'self')
    other = _mount_line(folder, str(pid))
    if own is None or other is None:
        return own is other
    return own[0] == other[0] or any(
        f'{kind}:{group}' in other
        for tag in own
        if tag.startswith('shared:')
        for group in [tag.removeprefix('shared:')]
        for kind in ('shared', 'master')
    )


def _mount_line(folder: pathlib.Path, process: str) -> list[str] | None:
    """Return the fields of the last mount at a folder, if there is one."""
    target = str(folder.resolve())
    found = None
    try:
        with open(f'/proc/{process}/mountinfo', errors='surrogateescape') as file:
            for line in file:
                fields = line.partition(' - ')[0].split(' ')
                if fields[4] == target:
                    found = fields
    except OSError as error:
        # EINVAL: it has ended, but its parent has not yet waited for it.
        if error.errno in (errno.ENOENT, errno.ESRCH, errno.EINVAL):
            raise ProcessLookupError(f'process {process} has ended') from error
        raise
    return found


def lost_mounts(
    folder: pathlib.Path, tops: Iterable[pathlib.Path]
) -> list[pathlib.Path]:
    """Return what is mounted in a folder and of none of the file systems.

    They are given by where they are mounted. Nothing is read from a disk.
    """
    mounts = {found.target: found for found in _mounts()}
    known = {
        mounts[real].device
        for real in (top.resolve() for top in tops)
        if real in mounts
    }
    real = folder.resolve()
    return [
        found.target
        for found in mounts.values()
        if found.type == 'btrfs'
        and found.target.is_relative_to(real)
        and found.device not in known
    ]


# Namespaces


def leave_mount_namespace() -> None:
    """Give this process a namespace of its own, with the same mounts."""
    _check(_libc.unshare(_CLONE_NEWNS), pathlib.Path('/proc/self/ns/mnt'))


def socket_in(namespace: pathlib.Path, family: socket.AddressFamily) -> socket.socket:
    """Return a socket for streams in a network namespace.

    Only this thread is there for a moment.
    """
    own = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
    try:
        other = os.open(namespace, os.O_RDONLY)
        try:
            _check(_libc.setns(other, _CLONE_NEWNET), namespace)
        finally:
            os.close(other)
        try:
            return socket.socket(family, socket.SOCK_STREAM)
        finally:
            _check(_libc.setns(own, _CLONE_NEWNET), namespace)
    finally:
        os.close(own)


def make_mounts_follow() -> None:
    """Let shared mounts come and go here as elsewhere, but not back."""
    root = pathlib.Path('/')
    _check(_libc.mount(None, os.fsencode(root), None, _MS_REC | _MS_SLAVE, None), root)


def pool_mounts(outside: pathlib.Path) -> list[pathlib.Path]:
    """Return what `mount` has mounted, except in and above a folder."""
    folder = outside.resolve()
    return [
        found.target
        for found in _mounts()
        if found.type == 'btrfs'
        and {'nosuid', 'nodev'}.issubset(found.options)
        and not found.target.is_relative_to(folder)
        and not folder.is_relative_to(found.target)
    ]


def mount_link(link: pathlib.Path, target: pathlib.Path) -> None:
    """Show a symbolic link in place of another file or link."""
    tree = _libc.syscall(
        _OPEN_TREE,
        _AT_FDCWD,
        os.fsencode(link),
        _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_SYMLINK_NOFOLLOW,
    )
    _check(min(tree, 0), link)
    try:
        _check(
            _libc.syscall(
                _MOVE_MOUNT,
                tree,
                b'',
                _AT_FDCWD,
                os.fsencode(target),
                _MOVE_MOUNT_EMPTY_PATH,
            ),
            target,
        )
    finally:
        os.close(tree)


def unmount_link(target: pathlib.Path) -> None:
    """Remove what `mount_link` has mounted."""
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH | _UMOUNT_NOFOLLOW), target)


def is_mount_of(source: pathlib.Path, target: pathlib.Path) -> bool:
    """Return whether the target shows this very subvolume.

    A mount that was made of a pool that was read-only remains so for ever.
    """
    try:
        return os.path.samestat(source.lstat(), target.lstat()) and (
            _has_read_only_mount(source) == _has_read_only_mount(target)
        )
    except FileNotFoundError:
        return False


def _has_read_only_mount(path: pathlib.Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _call(path: pathlib.Path, code: int, request: bytearray) -> bytearray:
    with _opened(path) as directory:
        _ioctl(directory, path, code, request)
    return request


def _ioctl(directory: int, path: pathlib.Path, code: int, request: bytearray) -> None:
    """Send a request to the file system of an open directory.

    Errors name its path, from which one sees which file system it is.
    """
    try:
        fcntl.ioctl(directory, code, request, True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[int]:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield directory
    finally:
        os.close(directory)


def _name_at(offset: int, name: str) -> bytearray:
    request = bytearray(4096)
    encoded = os.fsencode(name)
    request[offset : offset + len(encoded)] = encoded
    return request


def _check(result: int, path: pathlib.Path) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
