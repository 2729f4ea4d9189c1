"""Give a directory of CephFS the content of a snapshot, through libcephfs.

This is a process of its own for the same reasons as `rados_worker`, and uses
nothing but the standard library and libcephfs.so.2 as well.

The snapshot is one of this directory, or of one in another file system or cluster.
Files and directories are changed where they are: clients that have them open, or
that have mounted the directory, go on with them. What is known to be the same is not
read: the directory has the content of earlier snapshots, its bases, and a file that
is the same in them and in the snapshot has not changed.

The first line of the standard input has the settings; each further one asks for
a step of the work. The reply says whether it was the last. So a caller sees that
the work goes on, and may stop it between two steps.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
import contextlib
import ctypes
import errno
import json
import os
import queue
import re
import stat
import sys
import threading
import time
from typing import Any

_CHUNK = 4 << 20
_Size = ctypes.c_int64
_MAY_WAIT, _OF_A_FILE = 64 << 20, 256 << 10
"""Bytes that are written before they are flushed; an open file counts as many."""
_END_SECONDS = 10
_ATTEMPTS = 5
_CHANGED = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)
"""The errors of a pass during which clients have changed the directory."""

_BASIC, _VERSION, _NOFOLLOW = 0x7FF, 0x1000, 0x100
_SET_MODE, _SET_UID, _SET_GID, _SET_MTIME, _SET_ATIME = 1, 2, 4, 8, 16
_COPIED = 'mode', 'uid', 'gid'
_PRESENT = b''
"""The base of a directory that gets back what it had: its present content."""
_OWN = b'ceph.'
"""Attributes with this prefix are settings of Ceph, which users cannot change."""


def _fields(kind: object, *names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names]


class Stat(ctypes.Structure):
    """The struct ceph_statx of libcephfs.

    The version changes with the content, whatever the clocks of clients say.
    """

    _fields_ = (
        *_fields(ctypes.c_uint32, 'mask', 'block_size', 'nlink', 'uid', 'gid'),
        ('mode', ctypes.c_uint16),
        *_fields(ctypes.c_uint64, 'ino', 'size', 'blocks', 'dev', 'rdev'),
        # Each has seconds and nanoseconds.
        *_fields(ctypes.c_uint64 * 2, 'atime', 'ctime', 'mtime', 'btime'),
        ('version', ctypes.c_uint64),
    )

    def is_same(self, other: 'Stat') -> bool:
        """Return whether nothing has changed between the two."""
        names = ('ino', 'version', 'mode', 'uid', 'gid')
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and [*self.ctime, *self.mtime] == [*other.ctime, *other.mtime]
            and (stat.S_ISDIR(self.mode) or self.size == other.size)
        )

    def has_attributes_of(self, other: 'Stat') -> bool:
        """Return whether a copy of the other could look like this."""
        return (
            all(getattr(self, name) == getattr(other, name) for name in _COPIED)
            and [*self.mtime] == [*other.mtime]
            and (stat.S_ISDIR(self.mode) or self.size == other.size)
        )

    def is_kind_of(self, other: 'Stat') -> bool:
        return stat.S_IFMT(self.mode) == stat.S_IFMT(other.mode)


class Entry(ctypes.Structure):
    """The struct dirent of Linux."""

    _fields_ = (
        *_fields(ctypes.c_uint64, 'ino', 'offset'),
        ('length', ctypes.c_uint16),
        ('type', ctypes.c_uint8),
        ('name', ctypes.c_char * 256),
    )


class Mount:
    """A directory of a file system, as one of its clients sees it."""

    def __init__(self, settings: dict[str, Any]):
        self._library = ctypes.CDLL('libcephfs.so.2')
        handle = ctypes.c_void_p()
        user = settings['user'].encode()
        if code := self._library.ceph_create(ctypes.byref(handle), user):
            raise OSError(-code, 'ceph_create')
        self._handle = handle
        self._call('conf_read_file', settings['conffile'].encode())
        options = {
            'keyring': '',
            'key': settings['key'],
            'client_mount_timeout': str(settings['limit']),
            # The snapshot may be larger than the quota, and have any modes.
            'client_quota': 'false',
            'client_permissions': 'false',
            'client_acl_type': 'posix_acl',
            'log_to_stderr': 'false',
            'err_to_stderr': 'false',
            'log_file': '',
            'admin_socket': '',
        }
        for name, value in options.items():
            self._call('conf_set', name.encode(), value.encode())
        self._call('select_filesystem', settings['filesystem'].encode())
        self._call('mount', settings['root'].encode())

    def _call(self, name: str, *args: object) -> int:
        function = getattr(self._library, f'ceph_{name}')
        function.restype = ctypes.c_long if name in ('read', 'write') else ctypes.c_int
        code: int = function(self._handle, *args)
        if code < 0:
            path = args[0] if args and isinstance(args[0], bytes) else b''
            raise OSError(-code, os.strerror(-code), f'{name} {path!r}')
        return code

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self._call(name, *args)

    def list(self, path: bytes) -> Iterator[tuple[bytes, Stat]]:
        """Return what is in a directory, with its attributes.

        Each entry is asked for: what readdirplus says of a file may not include what
        a client has written and not sent yet. This costs no call of the cluster if
        there is none that may write to it.
        """
        directory = ctypes.c_void_p()
        self._call('opendir', path, ctypes.byref(directory))
        try:
            for name in self._names(directory):
                found = self.find(path.rstrip(b'/') + b'/' + name)
                if found is not None:
                    yield name, found
        finally:
            self._call('closedir', directory)

    def _names(self, directory: ctypes.c_void_p) -> Iterator[bytes]:
        entry, one = Entry(), Stat()
        into = ctypes.byref(entry), ctypes.byref(one), _BASIC | _VERSION, _NOFOLLOW
        while self._call('readdirplus_r', directory, *into, None):
            if entry.name not in (b'.', b'..'):
                yield entry.name

    def stat(self, path: bytes) -> Stat:
        found = Stat()
        self._call('statx', path, ctypes.byref(found), _BASIC | _VERSION, _NOFOLLOW)
        return found

    def find(self, path: bytes) -> Stat | None:
        with _ignoring_absence():
            return self.stat(path)
        return None

    def read(self, file: int, size: int, offset: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        found = self._call('read', file, buffer, _Size(size), _Size(offset))
        return buffer.raw[:found]

    def write(self, file: int, data: bytes, offset: int) -> None:
        while data:
            size = self._call('write', file, data, _Size(len(data)), _Size(offset))
            data, offset = data[size:], offset + size

    def readlink(self, path: bytes, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size + 1)
        read = self._call('readlink', path, buffer, _Size(size + 1))
        return buffer.raw[:read]

    def attributes(self, path: bytes) -> dict[bytes, bytes]:
        """Return the extended attributes."""
        names = self._sized('llistxattr', path).split(b'\0')
        return {
            name: self._sized('lgetxattr', path, name)
            for name in names
            if name and not name.startswith(_OWN)
        }

    def _sized(self, name: str, *args: bytes) -> bytes:
        size = self._call(name, *args, None, _Size(0))
        buffer = ctypes.create_string_buffer(size + 1)
        size = self._call(name, *args, buffer, _Size(size))
        return buffer.raw[:size]

    def set(self, path: bytes, wanted: Stat, mask: int) -> None:
        self._call('setattrx', path, ctypes.byref(wanted), mask, _NOFOLLOW)


class Copy:
    """One pass through a snapshot and the directory that is to become the same.

    Without `bases` all files are compared by their content.
    """

    def __init__(
        self, source: Mount, snapshot: bytes, target: Mount, bases: Sequence[bytes]
    ):
        self._source = source
        self._snapshot = snapshot
        self._target = target
        self._bases = bases
        # Of files with several names, by their inodes.
        self._copied: dict[int, tuple[bytes, int]] = {}
        self._used: set[int] = set()
        self._written = 0

    def steps(self) -> Iterator[None]:
        """Do the whole pass, in short steps."""
        waiting: list[tuple[bytes, bool]] = [(b'', False)]
        while waiting:
            path, is_done = waiting.pop()
            if is_done:
                self._end_directory(path)
                yield
                continue
            waiting.append((path, True))
            wanted: dict[bytes, Stat] = {}
            present: dict[bytes, Stat] = {}
            yield from self._list(self._source, self._snapshot + path, wanted)
            yield from self._list(self._target, path or b'/', present)
            known = yield from self._known(path, present)
            for name, one in present.items():
                if name not in wanted or not one.is_kind_of(wanted[name]):
                    yield from self._remove(path + b'/' + name, one)
            # Present names come first: a file with several names keeps its inode.
            for name, one in sorted(
                wanted.items(), key=lambda item: item[0] not in present
            ):
                own, now = path + b'/' + name, present.get(name)
                if now is not None and not now.is_kind_of(one):
                    now = None
                if not stat.S_ISDIR(one.mode):
                    is_known = _is_same_in_all(one, [base.get(name) for base in known])
                    yield from self._copy_file(own, one, now, is_known)
                else:
                    if now is None:
                        self._target.mkdir(own, 0o700)
                    waiting.append((own, False))
                yield

    def _known(
        self, path: bytes, present: dict[bytes, Stat]
    ) -> Generator[None, None, list[dict[bytes, Stat]]]:
        """Return what the bases have in a directory."""
        known = []
        for base in self._bases:
            found: dict[bytes, Stat] = {}
            if base != _PRESENT:
                with _ignoring_absence():
                    yield from self._list(self._source, base + path, found)
            known.append(present if base == _PRESENT else found)
        return known

    def _list(
        self, mount: Mount, path: bytes, into: dict[bytes, Stat]
    ) -> Iterator[None]:
        for name, one in mount.list(path):
            into[name] = one
            yield

    def _remove(self, path: bytes, one: Stat) -> Iterator[None]:
        waiting = [(path, stat.S_ISDIR(one.mode))]
        while waiting:
            last, is_directory = waiting.pop()
            found: dict[bytes, Stat] = {}
            if is_directory:
                yield from self._list(self._target, last, found)
            if found:
                waiting.append((last, is_directory))
                waiting += [
                    (last + b'/' + name, stat.S_ISDIR(other.mode))
                    for name, other in found.items()
                ]
            elif is_directory:
                self._target.rmdir(last)
            else:
                self._target.unlink(last)
            yield

    def _copy_file(
        self, path: bytes, wanted: Stat, now: Stat | None, is_known: bool
    ) -> Iterator[None]:
        known = self._copied.get(wanted.ino)
        if now is not None and (
            now.ino != known[1] if known is not None else now.ino in self._used
        ):
            self._target.unlink(path)  # it is that of another name
            now = None
        if known is not None:
            if now is None:
                self._target.link(known[0], path)
            return
        if now is None or not (is_known and now.has_attributes_of(wanted)):
            if stat.S_ISREG(wanted.mode):
                yield from self._rewrite(path, wanted, now)
            else:
                self._replace(path, wanted, now)
            self._set_attributes(path, wanted)
        if wanted.nlink > 1 or (now is not None and now.nlink > 1):
            ino = self._target.stat(path).ino
            self._used.add(ino)
            self._copied[wanted.ino] = path, ino

    def _rewrite(self, path: bytes, wanted: Stat, now: Stat | None) -> Iterator[None]:
        """Write the parts of a file that differ; holes stay holes."""
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if now is None else 0)
        source = self._source.open(self._snapshot + path, os.O_RDONLY, 0)
        try:
            file = self._target.open(path, flags, 0o600)
            try:
                for offset in range(0, wanted.size, _CHUNK):
                    size = min(_CHUNK, wanted.size - offset)
                    data = self._source.read(source, size, offset)
                    if len(data) != size:
                        raise OSError(errno.EIO, f'{path!r} has an end at {offset}')
                    old = self._target.read(file, size, offset)
                    if data != old.ljust(size, b'\0'):
                        self._target.write(file, data, offset)
                        self._wait_for_writes(size)
                    yield
                self._target.ftruncate(file, _Size(wanted.size))
                self._wait_for_writes(_OF_A_FILE)
            finally:
                self._target.close(file)
        finally:
            self._source.close(source)

    def _wait_for_writes(self, size: int) -> None:
        """Limit what waits to be written to what one step has time for."""
        self._written += size
        if self._written >= _MAY_WAIT:
            self._target.sync_fs()
            self._written = 0

    def _replace(self, path: bytes, wanted: Stat, now: Stat | None) -> None:
        """Create a symbolic link, or another kind of file without content."""
        if now is not None:
            self._target.unlink(path)
        if stat.S_ISLNK(wanted.mode):
            target = self._source.readlink(self._snapshot + path, wanted.size)
            self._target.symlink(target, path)
        else:
            self._target.mknod(path, wanted.mode, ctypes.c_uint64(wanted.rdev))

    def _end_directory(self, path: bytes) -> None:
        """Set the attributes of a directory; what is done in it changes them."""
        wanted = self._source.stat(self._snapshot + path)
        now = self._target.stat(path or b'/')
        bases = [
            now if base == _PRESENT else self._source.find(base + path)
            for base in self._bases
        ]
        if not (_is_same_in_all(wanted, bases) and now.has_attributes_of(wanted)):
            self._set_attributes(path, wanted)

    def _set_attributes(self, path: bytes, wanted: Stat) -> None:
        source, path = self._snapshot + path, path or b'/'
        found, now = self._source.attributes(source), self._target.attributes(path)
        for name in now.keys() - found.keys():
            self._target.lremovexattr(path, name)
        for name, value in found.items():
            if now.get(name) != value:
                size = _Size(len(value))
                self._target.lsetxattr(path, name, value, size, 0)
        self._target.set(path, wanted, _SET_UID | _SET_GID)
        mode = 0 if stat.S_ISLNK(wanted.mode) else _SET_MODE
        # After the owner, whose change removes some bits of the mode.
        self._target.set(path, wanted, mode | _SET_MTIME | _SET_ATIME)


def _is_same_in_all(wanted: Stat, bases: Sequence[Stat | None]) -> bool:
    return bool(bases) and all(base and base.is_same(wanted) for base in bases)


@contextlib.contextmanager
def _ignoring_absence() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise


def find_snapshot(mount: Mount, name: bytes) -> bytes:
    """Return the path of a snapshot of the directory, or of one above it."""
    inherited = re.compile(b'_' + re.escape(name) + rb'_\d+')
    names = (one for one, _ in mount.list(b'/.snap'))
    found = [one for one in names if one == name or inherited.fullmatch(one)]
    if len(found) != 1:
        raise OSError(errno.ENOENT, f'there are {len(found)} snapshots {name!r}')
    return b'/.snap/' + found[0]


def find_bases(mount: Mount, names: Iterable[str]) -> list[bytes]:
    """Return the paths of snapshots; none if one of them is gone."""
    with _ignoring_absence():
        return [find_snapshot(mount, name.encode()) for name in names]
    return []


def copy(settings: dict[str, Any], mounts: list[Mount]) -> Iterator[None]:
    """Repeat passes until clients have changed nothing during one."""
    target, source = mounts[0], mounts[-1]
    bases = [_PRESENT] if source is target else find_bases(source, settings['bases'])
    name = settings['snapshot'].encode()
    for attempt in range(_ATTEMPTS):
        try:
            yield from Copy(source, find_snapshot(source, name), target, bases).steps()
            break
        except OSError as error:
            if error.errno not in _CHANGED or attempt == _ATTEMPTS - 1:
                raise
    target.sync_fs()
    while mounts:
        mounts.pop().unmount()


def _read(lines: 'queue.SimpleQueue[bytes]') -> None:
    """End soon after the process that asks, even in the middle of a step."""
    for line in sys.stdin.buffer:
        lines.put(line)
    lines.put(b'')
    time.sleep(_END_SECONDS)
    os._exit(1)


def main() -> None:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    settings = json.loads(lines.get())
    reply: dict[str, Any] = {'number': 0}
    mounts: list[Mount] = []
    work = None
    while True:
        try:
            if work is None:
                for each in settings['mounts']:
                    mounts.append(Mount(each | {'limit': settings['limit']}))
                work = copy(settings, mounts)
            else:
                deadline = time.monotonic() + settings['step']
                reply['is_done'] = all(time.monotonic() < deadline for _ in work)
            reply['code'] = 0
        except OSError as error:
            reply |= {'code': -(error.errno or errno.EIO), 'status': str(error)}
        print(json.dumps(reply), flush=True)
        if not (line := lines.get()):
            break
        reply = {'number': json.loads(line)['number']}
    for mount in mounts:
        # Clients would wait long for files that a vanished client holds.
        with contextlib.suppress(OSError):
            mount.unmount()


if __name__ == '__main__':
    main()
