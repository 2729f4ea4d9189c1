"""Copy, measure and move untrusted directory trees.

Users may change a tree while it is read; it may be of any depth and hold any
kind of file. Directories are opened step by step from the top, and links are
never followed, so that nothing outside the tree is read.
"""

from collections.abc import Callable, Iterator
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import stat
import typing

_PIECE = 8 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
_BLOCK = 1 << 20
_ZEROS = bytes(_BLOCK)
_FUSE = 0x65735546  # f_type in struct statfs
_FICLONE = 0x40049409  # ioctl: make two files share their blocks
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Opening a file that was replaced by a pipe must not block.
SOURCE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class EntryReplaced(OSError):
    """The entry has been replaced by one of another kind."""


VANISHED_ERRORS = (FileNotFoundError, NotADirectoryError, EntryReplaced)

PathParts = tuple[str, ...]


def used_bytes(top: pathlib.Path) -> int:
    """Return the size of the files of a tree, counting each inode once."""
    blocks: dict[tuple[int, int], int] = {}
    with opened_directory(top) as root:
        for _, _, entries in walk(root):
            for entry in entries:
                with contextlib.suppress(*VANISHED_ERRORS):
                    status = entry.stat(follow_symlinks=False)
                    blocks[status.st_dev, status.st_ino] = status.st_blocks
    return 512 * sum(blocks.values())


def is_one_file_system(top: pathlib.Path, parts: tuple[str, ...]) -> bool:
    """Return whether a subdirectory is on the file system of the top.

    Raises OSError if it does not exist or if a link leads to it.
    """
    root = os.open(top, os.O_RDONLY | os.O_DIRECTORY)  # may be a link
    try:
        with opened_below(root, parts) as directory:
            return os.fstat(root).st_dev == os.fstat(directory).st_dev
    finally:
        os.close(root)


def move(path: pathlib.Path, new_path: pathlib.Path) -> None:
    """Rename, even a directory that its owner may not write to."""
    with opened_entry(path) as entry:
        mode = os.fstat(entry).st_mode
        needs_chmod = (
            stat.S_ISDIR(mode)
            and path.parent != new_path.parent
            and not os.access(path_of(entry), os.W_OK)
        )
        if needs_chmod:  # the entry `..` in it changes
            os.chmod(path_of(entry), stat.S_IMODE(mode) | stat.S_IWUSR)
        path.rename(new_path)
        if needs_chmod:
            os.chmod(path_of(entry), stat.S_IMODE(mode))


def move_content(source: pathlib.Path, target: pathlib.Path) -> None:
    """Move everything from one directory into another."""
    for name in os.listdir(source):
        move(source / name, target / name)


def copy_tree(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a tree with content, modes, owners, times and links.

    Blocks are shared if the file system can; holes stay holes. Entries that
    vanish meanwhile are left out. The copy is on disk on return.
    """
    target.mkdir(mode=stat.S_IRWXU)
    fill_tree(source, target)


def fill_tree(source: pathlib.Path, target: pathlib.Path) -> None:
    """Do the same into an empty directory that exists."""
    with opened_directory(source) as from_root, opened_directory(target) as to_root:
        _Copy(from_root, to_root).run()
        sync_file_system(to_root)  # far cheaper than once per file


def sync_file_system(file: int) -> None:
    """Write all of the file system of an open file to its disk, no other."""
    if _LIBC.syncfs(file) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def copy_attributes(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy mode, owner, times and xattrs from one directory to another."""
    with opened_directory(source) as origin, opened_directory(target) as copy:
        Attributes.of(origin).apply(copy)


class Attributes(typing.NamedTuple):
    """The attributes of an open file or directory, for its copy."""

    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int
    xattrs: dict[str, bytes]

    @classmethod
    def of(cls, origin: int, status: os.stat_result | None = None) -> 'Attributes':
        """Read them; `status` is the result of fstat, if it is known."""
        status = status or os.fstat(origin)
        xattrs: dict[str, bytes] = {}
        for name in xattr_names(origin):
            with contextlib.suppress(OSError):  # gone or not readable
                xattrs[name] = os.getxattr(origin, name)
        return cls(
            stat.S_IMODE(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_atime_ns,
            status.st_mtime_ns,
            xattrs,
        )

    def apply(self, copy: int, *, may_have_xattrs: bool = True) -> None:
        """Set all of them on an open copy, the times last.

        A new file has xattrs only if its directory has some.
        """
        with contextlib.suppress(PermissionError):  # needs privileges
            os.chown(copy, self.uid, self.gid)
        if may_have_xattrs:
            for name in xattr_names(copy) - self.xattrs.keys():
                with contextlib.suppress(OSError):
                    os.removexattr(copy, name)
        for name, value in self.xattrs.items():
            with contextlib.suppress(OSError):  # some need privileges
                os.setxattr(copy, name, value)
        os.fchmod(copy, self.mode)
        os.utime(copy, ns=(self.atime_ns, self.mtime_ns))


def xattr_names(file: int) -> set[str]:
    with contextlib.suppress(OSError):  # unsupported on some file systems
        return set(os.listxattr(file))
    return set()


class _Copy:
    """A copy in progress."""

    def __init__(self, from_root: int, to_root: int):
        self._from_root = from_root
        self._to_root = to_root
        self._linked: dict[tuple[int, int], tuple[PathParts, str]] = {}

    def run(self) -> None:
        directories = []
        for parts, directory, entries in walk(self._from_root):
            directories.append((parts, Attributes.of(directory)))
            with opened_below(self._to_root, parts) as into:
                for entry in entries:
                    with contextlib.suppress(*VANISHED_ERRORS):
                        self._entry(entry, parts, directory, into)
        # Only now: filling a directory changes its times, and its mode
        # may forbid writing.
        for parts, attributes in directories:
            with opened_below(self._to_root, parts) as copy:
                attributes.apply(copy)

    def _entry(
        self, entry: os.DirEntry[str], parts: PathParts, directory: int, into: int
    ) -> None:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.mkdir(entry.name, stat.S_IRWXU, dir_fd=into)
        elif status.st_nlink > 1 and self._link(entry.name, status, into):
            return
        elif stat.S_ISREG(status.st_mode):
            self._file(entry.name, directory, into)
        else:
            copy_special(entry.name, status, directory, entry.name, into)
        if status.st_nlink > 1:
            self._linked.setdefault((status.st_dev, status.st_ino), (parts, entry.name))

    def _link(self, name: str, status: os.stat_result, into: int) -> bool:
        link = self._linked.get((status.st_dev, status.st_ino))
        if link is None:
            return False
        with opened_below(self._to_root, link[0]) as linked_directory:
            os.link(
                link[1],
                name,
                src_dir_fd=linked_directory,
                dst_dir_fd=into,
                follow_symlinks=False,
            )
        return True

    def _file(self, name: str, directory: int, into: int) -> None:
        with opened_file(name, directory) as origin:
            copy = os.open(
                name,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                stat.S_IRUSR | stat.S_IWUSR,
                dir_fd=into,
            )
            with open(copy, 'wb', buffering=0):
                copy_content(origin, copy)
                Attributes.of(origin).apply(copy)


def copy_special(
    name: str, status: os.stat_result, directory: int, new_name: str, into: int
) -> None:
    """Copy an entry that is neither a regular file nor a directory."""
    if stat.S_ISLNK(status.st_mode):
        os.symlink(read_link(name, directory), new_name, dir_fd=into)
    else:  # a pipe, a socket, a device
        os.mknod(new_name, status.st_mode, status.st_rdev, dir_fd=into)
        _set_mode(new_name, status.st_mode, into)
    with contextlib.suppress(PermissionError):
        os.chown(
            new_name, status.st_uid, status.st_gid, dir_fd=into, follow_symlinks=False
        )
    os.utime(
        new_name,
        ns=(status.st_atime_ns, status.st_mtime_ns),
        dir_fd=into,
        follow_symlinks=False,
    )


def _set_mode(name: str, mode: int, directory: int) -> None:
    """Set the mode of an entry that is of the same kind as the mode says."""
    with opened_entry(name, directory) as entry:
        if stat.S_IFMT(os.fstat(entry).st_mode) != stat.S_IFMT(mode):
            raise EntryReplaced
        os.chmod(path_of(entry), stat.S_IMODE(mode))


def read_link(name: str, directory: int) -> str:
    """Return a link's target; raises EntryReplaced if it is not a link."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise EntryReplaced from error
        raise


@contextlib.contextmanager
def opened_file(name: str, directory: int) -> Iterator[int]:
    """Open a regular file; raises EntryReplaced if it is not one."""
    file, _ = open_file(name, directory)
    try:
        yield file
    finally:
        os.close(file)


def open_file(name: str, directory: int) -> tuple[int, os.stat_result]:
    """Do the same without closing it; return its status as well."""
    try:
        file = os.open(name, SOURCE_FLAGS, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise EntryReplaced from error
        raise
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise EntryReplaced
    return file, status


def copy_content(
    origin: int, copy: int, on_piece: Callable[[int], object] = lambda length: None
) -> None:
    """Fill an open file, sharing blocks if possible and keeping holes.

    `on_piece` is called with the length of each piece that was copied, unless
    blocks are shared.
    """
    try:
        fcntl.ioctl(copy, _FICLONE, origin)
    except OSError:  # the file system cannot share blocks
        size = os.fstat(origin).st_size
        if _is_fuse(origin):
            _copy_without_zeros(origin, copy, size, on_piece)
        else:
            _copy_extents(origin, copy, size, on_piece)
        os.ftruncate(copy, size)


def _copy_extents(
    origin: int, copy: int, size: int, on_piece: Callable[[int], object]
) -> None:
    for start, end in data_extents(origin, size):
        os.lseek(copy, start, os.SEEK_SET)
        while start < end:
            copied = os.sendfile(copy, origin, start, min(end - start, _PIECE))
            if not copied:  # truncated meanwhile
                break
            start += copied
            on_piece(copied)


def _copy_without_zeros(
    origin: int, copy: int, size: int, on_piece: Callable[[int], object]
) -> None:
    """Leave a hole for each block of zeros; an empty file is all of one."""
    for start in range(0, size, _BLOCK):
        data = os.pread(origin, min(_BLOCK, size - start), start)
        if data != _ZEROS[: len(data)]:
            written = 0
            while written < len(data):
                written += os.pwrite(copy, data[written:], start + written)
        on_piece(len(data))


def _is_fuse(file: int) -> bool:
    """Return whether a program serves the file system: few know about holes.

    That of Ceph says that all of a file is data.
    """
    found = ctypes.create_string_buffer(256)
    if _LIBC.fstatfs(file, found) != 0:
        return False
    return ctypes.c_long.from_buffer(found).value == _FUSE


def data_extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each data extent of a file."""
    end = 0
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole follows
                return
            raise
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


def walk(root: int) -> Iterator[tuple[PathParts, int, list[os.DirEntry[str]]]]:
    """Yield path, descriptor and entries of every directory.

    The caller may take entries from the list, to leave them out.
    """
    pending: list[PathParts] = [()]
    while pending:
        parts = pending.pop()
        with (
            contextlib.suppress(*VANISHED_ERRORS),
            opened_below(root, parts) as directory,
        ):
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
            yield parts, directory, entries
            pending.extend(
                (*parts, entry.name)
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
            )


@contextlib.contextmanager
def opened_directory(path: pathlib.Path) -> Iterator[int]:
    directory = os.open(path, DIRECTORY_FLAGS)
    try:
        yield directory
    finally:
        os.close(directory)


@contextlib.contextmanager
def opened_below(root: int, parts: PathParts) -> Iterator[int]:
    """Open a subdirectory, step by step and without following links."""
    directory = os.dup(root)
    try:
        for part in parts:
            subdirectory = os.open(part, DIRECTORY_FLAGS, dir_fd=directory)
            os.close(directory)
            directory = subdirectory
        yield directory
    finally:
        os.close(directory)


@contextlib.contextmanager
def opened_entry(path: str | pathlib.Path, parent: int | None = None) -> Iterator[int]:
    """Open an entry of any kind and mode, not to read or write it."""
    entry = os.open(path, os.O_PATH | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield entry
    finally:
        os.close(entry)


def path_of(entry: int) -> str:
    """Return a path that leads to an open entry, wherever it is now."""
    return f'/proc/self/fd/{entry}'
