"""Directory trees of strangers: copied, measured and removed.

A tree may be changed by its users while it is read, be of any depth and
hold any kind of file. Directories are opened step by step from the top
and links are never followed, so that nothing outside is ever read.
"""

from collections.abc import Iterator
import contextlib
import errno
import fcntl
import os
import pathlib
import stat
import typing
import uuid

_FICLONE = 0x40049409  # ioctl: let two files share their blocks
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# A file that was replaced by a pipe must not stop the reader.
SOURCE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class EntryReplaced(OSError):
    """It was another kind of thing a moment ago."""


VANISHED_ERRORS = (FileNotFoundError, NotADirectoryError, EntryReplaced)

PathParts = tuple[str, ...]


def used_bytes(top: pathlib.Path) -> int:
    """What the files of a tree take up, each counted once."""
    blocks: dict[tuple[int, int], int] = {}
    with opened_directory(top) as root:
        for _, _, entries in _walk(root):
            for entry in entries:
                with contextlib.suppress(*VANISHED_ERRORS):
                    status = entry.stat(follow_symlinks=False)
                    blocks[status.st_dev, status.st_ino] = status.st_blocks
    return 512 * sum(blocks.values())


def is_one_file_system(top: pathlib.Path, steps: tuple[str, ...]) -> bool:
    """Whether the directory some steps below is on that of the top.

    Raises OSError when it is not there, or a link leads to it.
    """
    root = os.open(top, os.O_RDONLY | os.O_DIRECTORY)  # may be a link
    try:
        with opened_below(root, steps) as directory:
            return os.fstat(root).st_dev == os.fstat(directory).st_dev
    finally:
        os.close(root)


def remove_tree(top: pathlib.Path) -> None:
    """Remove a directory of any depth and with any modes; gone is fine.

    Directories are lifted to the top and emptied there. Out of their
    users' reach by then, they can no longer turn into links.
    """
    lifted = [top]
    for directory in lifted:  # grows on the way
        if directory.is_symlink():  # swapped in just before the lift
            directory.unlink()
            continue
        with contextlib.suppress(*VANISHED_ERRORS):
            _make_accessible(directory)
            for name in os.listdir(directory):
                _remove_or_lift(directory / name, top, lifted)
    for directory in reversed(lifted):
        with contextlib.suppress(FileNotFoundError):
            directory.rmdir()


def _remove_or_lift(
    path: pathlib.Path, top: pathlib.Path, lifted: list[pathlib.Path]
) -> None:
    with contextlib.suppress(FileNotFoundError):
        try:
            path.unlink()
        except IsADirectoryError:
            place = path if path.parent == top else top / uuid.uuid4().hex
            move(path, place)
            lifted.append(place)


def move(path: pathlib.Path, place: pathlib.Path) -> None:
    """Rename; also a directory that its owner may not write to."""
    mode = os.lstat(path).st_mode
    closed = (
        stat.S_ISDIR(mode)
        and path.parent != place.parent
        and not os.access(path, os.W_OK)
    )
    if closed:  # the entry `..` in it changes
        path.chmod(stat.S_IMODE(mode) | stat.S_IWUSR)
    path.rename(place)
    if closed:
        place.chmod(stat.S_IMODE(mode))


def move_content(source: pathlib.Path, target: pathlib.Path) -> None:
    """Move everything in one directory into another."""
    for name in os.listdir(source):
        move(source / name, target / name)


def _make_accessible(directory: pathlib.Path) -> None:
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        directory.chmod(stat.S_IRWXU)


def copy_tree(source: pathlib.Path, target: pathlib.Path) -> None:
    """Make the target a copy: content, modes, owners, times, links.

    Blocks are shared where the file system can, holes stay holes. What
    vanishes meanwhile is left out. The copy is on disk on return.
    """
    target.mkdir(mode=stat.S_IRWXU)
    with (
        opened_directory(source) as from_root,
        opened_directory(target) as to_root,
    ):
        _Copy(from_root, to_root).run()
    os.sync()  # far cheaper than once per file


def copy_attributes(source: pathlib.Path, target: pathlib.Path) -> None:
    """Give one directory the mode, owner, times and xattrs of another."""
    with opened_directory(source) as origin, opened_directory(target) as copy:
        Attributes.of(origin).apply(copy)


class Attributes(typing.NamedTuple):
    """Those of an open file or directory, to be given to its copy."""

    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int
    xattrs: dict[str, bytes]

    @classmethod
    def of(cls, origin: int) -> 'Attributes':
        status = os.fstat(origin)
        xattrs: dict[str, bytes] = {}
        for name in _xattr_names(origin):
            with contextlib.suppress(OSError):  # gone, or not ours to read
                xattrs[name] = os.getxattr(origin, name)
        return cls(
            stat.S_IMODE(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_atime_ns,
            status.st_mtime_ns,
            xattrs,
        )

    def apply(self, copy: int) -> None:
        with contextlib.suppress(PermissionError):  # ours to give or not
            os.chown(copy, self.uid, self.gid)
        for name in _xattr_names(copy) - self.xattrs.keys():
            with contextlib.suppress(OSError):
                os.removexattr(copy, name)
        for name, value in self.xattrs.items():
            with contextlib.suppress(OSError):  # some are root's business
                os.setxattr(copy, name, value)
        os.chmod(copy, self.mode)
        os.utime(copy, ns=(self.atime_ns, self.mtime_ns))


def _xattr_names(file: int) -> set[str]:
    with contextlib.suppress(OSError):  # none on some file systems
        return set(os.listxattr(file))
    return set()


class _Copy:
    """One copy being made."""

    def __init__(self, from_root: int, to_root: int):
        self._from_root = from_root
        self._to_root = to_root
        self._linked: dict[tuple[int, int], tuple[PathParts, str]] = {}

    def run(self) -> None:
        directories = []
        for steps, directory, entries in _walk(self._from_root):
            directories.append((steps, Attributes.of(directory)))
            with opened_below(self._to_root, steps) as into:
                for entry in entries:
                    with contextlib.suppress(*VANISHED_ERRORS):
                        self._entry(entry, steps, directory, into)
        # Only now: filling a directory changes its times, and it may be
        # one that may not be written to.
        for steps, attributes in directories:
            with opened_below(self._to_root, steps) as copy:
                attributes.apply(copy)

    def _entry(
        self,
        entry: os.DirEntry[str],
        steps: PathParts,
        directory: int,
        into: int,
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
            self._linked.setdefault(
                (status.st_dev, status.st_ino), (steps, entry.name)
            )

    def _link(self, name: str, status: os.stat_result, into: int) -> bool:
        first = self._linked.get((status.st_dev, status.st_ino))
        if first is None:
            return False
        with opened_below(self._to_root, first[0]) as there:
            os.link(
                first[1],
                name,
                src_dir_fd=there,
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
    """Copy what is neither a file nor a directory."""
    if stat.S_ISLNK(status.st_mode):
        os.symlink(read_link(name, directory), new_name, dir_fd=into)
    else:  # a pipe, a socket, a device
        os.mknod(new_name, status.st_mode, status.st_rdev, dir_fd=into)
        os.chmod(new_name, stat.S_IMODE(status.st_mode), dir_fd=into)
    with contextlib.suppress(PermissionError):
        os.chown(
            new_name,
            status.st_uid,
            status.st_gid,
            dir_fd=into,
            follow_symlinks=False,
        )
    os.utime(
        new_name,
        ns=(status.st_atime_ns, status.st_mtime_ns),
        dir_fd=into,
        follow_symlinks=False,
    )


def read_link(name: str, directory: int) -> str:
    """Where a link leads; raises Swapped when it is none any more."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise EntryReplaced from error
        raise


@contextlib.contextmanager
def opened_file(name: str, directory: int) -> Iterator[int]:
    """A regular file; raises Swapped when it is none any more."""
    try:
        file = os.open(name, SOURCE_FLAGS, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise EntryReplaced from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise EntryReplaced
        yield file
    finally:
        os.close(file)


def copy_content(origin: int, copy: int) -> None:
    """Fill an open file; blocks are shared if they can, holes are kept."""
    try:
        fcntl.ioctl(copy, _FICLONE, origin)
    except OSError:  # this file system does not share blocks
        size = os.fstat(origin).st_size
        for start, end in data_extents(origin, size):
            os.lseek(copy, start, os.SEEK_SET)
            while start < end:
                sent = os.sendfile(copy, origin, start, end - start)
                if not sent:  # cut off meanwhile
                    break
                start += sent
        os.ftruncate(copy, size)


def data_extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Where the file has content, holes left out."""
    end = 0
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return
            raise
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


def _walk(
    root: int,
) -> Iterator[tuple[PathParts, int, list[os.DirEntry[str]]]]:
    """Every directory: the way to it, itself open, what is in it."""
    ahead: list[PathParts] = [()]
    while ahead:
        steps = ahead.pop()
        with (
            contextlib.suppress(*VANISHED_ERRORS),
            opened_below(root, steps) as directory,
        ):
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
            yield steps, directory, entries
            ahead.extend(
                (*steps, entry.name)
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
def opened_below(root: int, steps: PathParts) -> Iterator[int]:
    """The directory some steps below, reached without any link."""
    directory = os.dup(root)
    try:
        for step in steps:
            below = os.open(step, DIRECTORY_FLAGS, dir_fd=directory)
            os.close(directory)
            directory = below
        yield directory
    finally:
        os.close(directory)
