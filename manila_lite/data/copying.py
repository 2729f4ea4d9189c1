"""Make a directory equal to another one, byte for byte.

Both belong to users: they may be of any depth and hold any kind of file, and
the source may change. Directories are opened step by step from the top and
links are never followed, so nothing outside of either is read or written.

A copy may be killed at any point. The next one replaces what is there, or
keeps the files that an earlier attempt has completed.
"""

from collections.abc import Callable, Collection, Iterator
import contextlib
import os
import stat
import typing

from manila_lite.share.drivers import tree_removal
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.trees import Attributes
from manila_lite.share.drivers.trees import PathParts

_BLOCK = 512
_SMALL = 64 << 10
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NEW_MODE = stat.S_IRUSR | stat.S_IWUSR


class _Linked(typing.NamedTuple):
    """The copy of an inode that has several names in the source."""

    parts: PathParts
    name: str
    inode: int


class _Here(typing.NamedTuple):
    """A directory of the source, and its copy with what it held before."""

    parts: PathParts
    directory: int
    into: int
    existing: set[str]
    has_xattrs: bool


def size_of(source: int) -> int:
    """Return the size of an open directory's files, in bytes on disk.

    It is what `copy_tree` reports in sum; an inode counts once.
    """
    sizes: dict[tuple[int, int], int] = {}
    for _, _, entries in trees.walk(source):
        for entry in entries:
            with contextlib.suppress(*trees.VANISHED_ERRORS):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    sizes[status.st_dev, status.st_ino] = _size(status)
    return sum(sizes.values())


def copy_tree(
    source: int,
    target: int,
    *,
    on_progress: Callable[[int], object],
    check: Callable[[], object],
    ignored: Collection[str] = (),
    is_resumed: bool = False,
) -> None:
    """Make the content of one open directory equal to that of another.

    Content, modes, owners, times, xattrs, links, special files and holes are
    copied; what the source does not have is removed. Names in `ignored` are
    left alone at the top of both. The attributes of the directory itself are
    copied too. The copy is on disk on return.

    `on_progress` is called with the number of bytes done since the last
    call; `check` before each entry and after each piece of a file, and may
    raise to end the copy. With `is_resumed`, files that have the size and
    the modification time of the source are complete: give it only if the
    target was empty when the first attempt began.
    """
    _Copy(source, target, on_progress, check, is_resumed).run(set(ignored))
    os.sync()  # far cheaper than once per file


class TreeCopier:
    """The functions of this module, as methods that can run elsewhere."""

    size_of = staticmethod(size_of)
    copy_tree = staticmethod(copy_tree)


class _Copy:
    """A copy in progress."""

    def __init__(
        self,
        source: int,
        target: int,
        on_progress: Callable[[int], object],
        check: Callable[[], object],
        is_resumed: bool,
    ):
        self._source = source
        self._target = target
        self._on_progress = on_progress
        self._check = check
        self._is_resumed = is_resumed
        self._linked: dict[tuple[int, int], _Linked] = {}
        self._kept: dict[int, tuple[int, int]] = {}

    def run(self, ignored: set[str]) -> None:
        directories: list[tuple[PathParts, Attributes]] = []
        for parts, directory, entries in trees.walk(self._source):
            directories.append((parts, Attributes.of(directory)))
            hidden = set() if parts else ignored
            with self._opened_target(parts) as into:
                here = _Here(
                    parts,
                    directory,
                    into,
                    set(os.listdir(into)),
                    bool(trees.xattr_names(into)),
                )
                names = {entry.name for entry in entries}
                for name in here.existing - names - hidden:
                    self._check()
                    tree_removal.remove_entry(name, into)
                for entry in entries:
                    if entry.name not in hidden:
                        self._check()
                        with contextlib.suppress(*trees.VANISHED_ERRORS):
                            self._entry(entry, here)
            if hidden:
                entries[:] = [one for one in entries if one.name not in hidden]
        # Only now: filling a directory changes its times, and its mode
        # may forbid writing. Subdirectories are reached through it.
        for parts, attributes in reversed(directories):
            with trees.opened_below(self._target, parts) as copy:
                attributes.apply(copy)

    @contextlib.contextmanager
    def _opened_target(self, parts: PathParts) -> Iterator[int]:
        """Open a directory of the target that may forbid that."""
        with trees.opened_below(self._target, parts[:-1]) as parent:
            name = parts[-1] if parts else '.'
            with tree_removal.accessible_directory(name, parent) as found:
                yield found

    def _entry(self, entry: os.DirEntry[str], here: _Here) -> None:
        parts, directory, into, existing, _ = here
        name, status = entry.name, entry.stat(follow_symlinks=False)
        old = _find(name, into) if name in existing else None
        if stat.S_ISDIR(status.st_mode):
            if old is None or not stat.S_ISDIR(old.st_mode):
                self._remove(name, old, into)
                os.mkdir(name, stat.S_IRWXU, dir_fd=into)
            return
        inode = status.st_dev, status.st_ino
        linked = self._linked.get(inode) if status.st_nlink > 1 else None
        if linked is not None:
            if old is None or old.st_ino != linked.inode:
                self._remove(name, old, into)
                self._link(linked, name, into)
            return
        if not self._is_complete(status, old):
            self._remove(name, old, into)
            if stat.S_ISREG(status.st_mode):
                self._file(name, here, _size(status))
            else:
                trees.copy_special(name, status, directory, name, into)
        elif stat.S_ISREG(status.st_mode):
            self._on_progress(_size(status))
        if status.st_nlink > 1:
            copied = os.stat(name, dir_fd=into, follow_symlinks=False)
            self._linked[inode] = _Linked(parts, name, copied.st_ino)

    def _remove(
        self, name: str, old: os.stat_result | None, into: int
    ) -> None:
        if old is not None:
            tree_removal.remove_entry(name, into)

    def _is_complete(
        self, status: os.stat_result, old: os.stat_result | None
    ) -> bool:
        """Return whether an earlier attempt has copied a file.

        Its times are set last. Each inode of the copy is that of one file.
        """
        if (
            not self._is_resumed
            or old is None
            or not stat.S_ISREG(status.st_mode)
            or not stat.S_ISREG(old.st_mode)
            or (old.st_size, old.st_mtime_ns)
            != (status.st_size, status.st_mtime_ns)
        ):
            return False
        inode = status.st_dev, status.st_ino
        return self._kept.setdefault(old.st_ino, inode) == inode

    def _link(self, linked: _Linked, name: str, into: int) -> None:
        with trees.opened_below(self._target, linked.parts) as directory:
            os.link(
                linked.name,
                name,
                src_dir_fd=directory,
                dst_dir_fd=into,
                follow_symlinks=False,
            )

    def _file(self, name: str, here: _Here, size: int) -> None:
        done = 0

        def on_piece(length: int) -> None:
            nonlocal done
            length = min(length, size - done)  # it may have grown
            done += length
            self._on_progress(length)
            self._check()

        origin, status = trees.open_file(name, here.directory)
        try:
            copy = os.open(name, _NEW_FLAGS, _NEW_MODE, dir_fd=here.into)
            try:
                if size > _SMALL or not _copy_small(origin, copy, size):
                    trees.copy_content(origin, copy, on_piece)
                Attributes.of(origin, status).apply(
                    copy, may_have_xattrs=here.has_xattrs
                )
            finally:
                os.close(copy)
        finally:
            os.close(origin)
        self._on_progress(size - done)


def _copy_small(origin: int, copy: int, size: int) -> bool:
    """Copy a file without holes with the fewest system calls.

    Returns False if it has holes, or has grown: copy it in another way.
    """
    content = os.pread(origin, _SMALL + 1, 0)
    if len(content) > size:
        return False
    return os.pwrite(copy, content, 0) == len(content) if content else True


def _size(status: os.stat_result) -> int:
    return status.st_blocks * _BLOCK


def _find(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
