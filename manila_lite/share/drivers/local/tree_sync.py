"""Synchronise a copy of a directory tree with its original.

First everything that is missing is copied to a directory beside the copy,
and a list of changes is recorded; until then the copy is untouched. Then the
changes are applied, each by a rename or by setting attributes. If that is
interrupted, they are applied again from the first, and those already made
are recognised. The copy is thus always in its old state, in its new state or
on the way there without needing the original.

Users may change the original at any time, but nothing else changes the copy.
We remember which inodes of the original were copied and their ctime: a file
whose inode and ctime are the same is unchanged, whatever its users have set
its times to.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import stat
import typing

from manila_lite.share.drivers import capabilities, trees
from manila_lite.share.drivers.local.tree_changes import NEW, OLD, PUT, REMOVE, SET
from manila_lite.share.drivers.trees import Attributes, PathParts

# Inode and ctime of regular files, by directory and name.
KnownInodes = dict[str, dict[str, list[int]]]

_TICK_NS = 2 * 10**9
"""Two changes within this time may have the same ctime."""

_PIECE = 1 << 20


class Staged(typing.NamedTuple):
    """Changes to be applied, and the known inodes afterwards."""

    changes: list[list[typing.Any]]
    known: KnownInodes


def stage(
    original: pathlib.Path,
    copy: pathlib.Path,
    into: pathlib.Path,
    known: KnownInodes,
    flushed_ns: int,
) -> Staged:
    """Copy what the copy needs to match the original to a new directory.

    `known` are the known inodes after the last synchronisation with the same
    original. At `flushed_ns` all data written before was being flushed, so
    that later writes to mapped memory change the ctime.
    """
    (into / NEW).mkdir(parents=True)
    (into / OLD).mkdir()
    with (
        trees.opened_directory(original) as from_root,
        trees.opened_directory(copy) as to_root,
        trees.opened_directory(into / NEW) as new,
    ):
        staging = _Staging(from_root, to_root, new, known, flushed_ns - _TICK_NS)
        staging.run()
    return Staged(staging.changes, staging.known)


class _PendingDirectory(typing.NamedTuple):
    """A directory of the original that is still to be read.

    `new_parts` is the path of its copy among the new entries, if it is new.
    """

    parts: PathParts
    new_parts: PathParts | None


class _CopyDirectory(typing.NamedTuple):
    """The corresponding directory of the copy; empty if it is new."""

    directory: int | None
    entries: dict[str, os.stat_result]


class _LinkTarget(typing.NamedTuple):
    """The copy of a file that has several names in the original.

    `inode` is that of the existing copy, if there is one.
    """

    is_new: bool
    parts: PathParts
    name: str
    inode: int | None


class _Staging:
    def __init__(
        self,
        from_root: int,
        to_root: int,
        new: int,
        known: KnownInodes,
        trusted_before: int,
    ):
        self.changes: list[list[typing.Any]] = []
        self.known: KnownInodes = {}
        self._from_root, self._to_root, self._new = from_root, to_root, new
        self._known_before = known
        self._count = 0
        self._trusted_before = trusted_before
        self._attribute_changes: list[list[typing.Any]] = []
        self._link_targets: dict[tuple[int, int], _LinkTarget] = {}
        self._claimed_inodes: dict[int, tuple[int, int]] = {}
        self._can_chown = not capabilities.missing(['CAP_CHOWN'])

    def run(self) -> None:
        pending = [_PendingDirectory((), None)]
        new_directories: list[tuple[PathParts, Attributes]] = []
        while pending:
            here = pending.pop()
            try:
                with trees.opened_below(self._from_root, here.parts) as directory:
                    attributes = Attributes.of(directory)
                    pending += self._directory(here, directory, attributes)
            except trees.VANISHED_ERRORS:
                continue
            if here.new_parts is not None and len(here.new_parts) > 1:
                new_directories.append((here.new_parts, attributes))
        # Only now: filling a directory changes its times.
        for parts, attributes in new_directories:
            with trees.opened_below(self._new, parts) as directory:
                attributes.apply(directory)
        # Deepest first: a parent may become inaccessible.
        self.changes += reversed(self._attribute_changes)

    def _directory(
        self, here: _PendingDirectory, directory: int, wanted: Attributes
    ) -> list[_PendingDirectory]:
        with os.scandir(directory) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        if here.new_parts is not None:
            subdirectories, _ = self._entries(
                here, directory, entries, _CopyDirectory(None, {})
            )
            if len(here.new_parts) == 1:
                self._set(here.parts, None, wanted)
            return subdirectories
        with trees.opened_below(self._to_root, here.parts) as copy:
            with os.scandir(copy) as scan:
                existing = _CopyDirectory(
                    copy,
                    {entry.name: entry.stat(follow_symlinks=False) for entry in scan},
                )
            before = len(self.changes)
            subdirectories, is_whole = self._entries(here, directory, entries, existing)
            if is_whole:
                for name in sorted(
                    existing.entries.keys() - {entry.name for entry in entries}
                ):
                    self._change(REMOVE, here.parts, name, self._next_number())
            if len(self.changes) > before or not self._attributes_match(
                wanted, Attributes.of(copy)
            ):
                self._set(here.parts, None, wanted)
        return subdirectories

    def _entries(
        self,
        here: _PendingDirectory,
        directory: int,
        entries: list[os.DirEntry[str]],
        existing: _CopyDirectory,
    ) -> tuple[list[_PendingDirectory], bool]:
        """Return subdirectories, and whether nothing has moved meanwhile.

        An entry that has gone may have moved to a directory that was already
        read, so nothing is removed from the copy before the next run.
        """
        subdirectories: list[_PendingDirectory] = []
        is_whole = True
        for entry in entries:
            try:
                self._entry(here, directory, entry.name, existing, subdirectories)
            except trees.VANISHED_ERRORS:
                is_whole = False
        return subdirectories, is_whole

    def _entry(
        self,
        here: _PendingDirectory,
        directory: int,
        name: str,
        existing: _CopyDirectory,
        subdirectories: list[_PendingDirectory],
    ) -> None:
        status = os.lstat(name, dir_fd=directory)
        old = existing.entries.get(name)
        if stat.S_ISDIR(status.st_mode):
            new_parts = None
            if old is None or not stat.S_ISDIR(old.st_mode):
                new_parts = self._make_directory(here, name, old)
            subdirectories.append(_PendingDirectory((*here.parts, name), new_parts))
            return
        inode = status.st_dev, status.st_ino
        link_target = self._link_targets.get(inode) if status.st_nlink > 1 else None
        if link_target is None:
            link_target = self._file(here, directory, name, status, existing)
            if status.st_nlink > 1:
                self._link_targets[inode] = link_target
        elif old is None or old.st_ino != link_target.inode:
            self._link(here, name, old, link_target)
        if stat.S_ISREG(status.st_mode):
            self._remember(here.parts, name, status)

    # New entries

    def _make_directory(
        self, here: _PendingDirectory, name: str, old: os.stat_result | None
    ) -> PathParts:
        with self._new_entry(here, name, old, is_directory=True) as (into, to):
            os.mkdir(to, stat.S_IRWXU, dir_fd=into)
        return self._new_parts(here, to)

    def _new_parts(self, here: _PendingDirectory, name: str) -> PathParts:
        return (*(here.new_parts or ()), name)

    def _link(
        self,
        here: _PendingDirectory,
        name: str,
        old: os.stat_result | None,
        link_target: _LinkTarget,
    ) -> None:
        root = self._new if link_target.is_new else self._to_root
        with (
            self._new_entry(here, name, old) as (into, to),
            trees.opened_below(root, link_target.parts) as origin,
        ):
            os.link(
                link_target.name,
                to,
                src_dir_fd=origin,
                dst_dir_fd=into,
                follow_symlinks=False,
            )

    @contextlib.contextmanager
    def _new_entry(
        self,
        here: _PendingDirectory,
        name: str,
        old: os.stat_result | None,
        is_directory: bool = False,
    ) -> Iterator[tuple[int, str]]:
        """Provide the directory and the name for a new entry."""
        if here.new_parts is not None:
            with trees.opened_below(self._new, here.new_parts) as into:
                yield into, name
            return
        number = self._next_number()
        yield self._new, number
        if old is not None and (is_directory or stat.S_ISDIR(old.st_mode)):
            self._change(REMOVE, here.parts, name, self._next_number())
        self._change(PUT, here.parts, name, number)

    # Files, links and special files

    def _file(
        self,
        here: _PendingDirectory,
        directory: int,
        name: str,
        status: os.stat_result,
        existing: _CopyDirectory,
    ) -> _LinkTarget:
        old = existing.entries.get(name)
        if (
            old is not None
            and existing.directory is not None
            and self._may_keep(status, old)
            and self._is_unchanged(
                here.parts, directory, name, status, existing.directory, old
            )
        ):
            return _LinkTarget(False, here.parts, name, old.st_ino)
        with self._new_entry(here, name, old) as (into, to):
            if stat.S_ISREG(status.st_mode):
                _copy_file(directory, name, into, to)
            else:
                trees.copy_special(name, status, directory, to, into)
        *parts, last = self._new_parts(here, to)
        return _LinkTarget(True, tuple(parts), last, None)

    def _may_keep(self, status: os.stat_result, old: os.stat_result) -> bool:
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(old.st_mode):
            return False
        if old.st_nlink == 1:
            return True
        # Each inode of the copy corresponds to one of the original.
        inode = status.st_dev, status.st_ino
        return self._claimed_inodes.setdefault(old.st_ino, inode) == inode

    def _is_unchanged(
        self,
        parts: PathParts,
        directory: int,
        name: str,
        status: os.stat_result,
        copy: int,
        old: os.stat_result,
    ) -> bool:
        if not stat.S_ISREG(status.st_mode):
            return (
                self._attributes_match(
                    _status_attributes(status), _status_attributes(old)
                )
                and status.st_rdev == old.st_rdev
                and (
                    not stat.S_ISLNK(status.st_mode)
                    or trees.read_link(name, directory) == trees.read_link(name, copy)
                )
            )
        if (status.st_size, status.st_mtime_ns) != (old.st_size, old.st_mtime_ns):
            return False
        if self._known_before.get(_path_of(parts), {}).get(name) == _fingerprint(
            status
        ):
            return True
        with (
            trees.opened_file(name, directory) as origin,
            trees.opened_file(name, copy) as copied,
        ):
            if not _are_equal(origin, copied):
                return False
            wanted = Attributes.of(origin)
            if not self._attributes_match(wanted, Attributes.of(copied)):
                self._set(parts, name, wanted)
        return True

    def _attributes_match(self, one: Attributes, other: Attributes) -> bool:
        """Return whether the attributes that can be set are equal."""
        if self._can_chown and one[1:3] != other[1:3]:
            return False
        return (one.mode, one.mtime_ns, one.xattrs) == (
            other.mode,
            other.mtime_ns,
            other.xattrs,
        )

    # Recording changes

    def _next_number(self) -> str:
        self._count += 1
        return str(self._count)

    def _change(self, kind: str, parts: PathParts, name: str, number: str) -> None:
        self.changes.append([kind, parts, name, number])

    def _set(self, parts: PathParts, name: str | None, wanted: Attributes) -> None:
        *numbers, xattrs = wanted
        self._attribute_changes.append(
            [
                SET,
                parts,
                name,
                [*numbers, {each: value.hex() for each, value in xattrs.items()}],
            ]
        )

    def _remember(self, parts: PathParts, name: str, status: os.stat_result) -> None:
        if status.st_ctime_ns < self._trusted_before:
            self.known.setdefault(_path_of(parts), {})[name] = _fingerprint(status)


def _fingerprint(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_ctime_ns]


def _path_of(parts: PathParts) -> str:
    return '/'.join(parts)


def _status_attributes(status: os.stat_result) -> Attributes:
    return Attributes(
        stat.S_IMODE(status.st_mode),
        status.st_uid,
        status.st_gid,
        0,
        status.st_mtime_ns,
        {},
    )


def _copy_file(directory: int, name: str, into: int, to: str) -> None:
    with trees.opened_file(name, directory) as origin:
        attributes = Attributes.of(origin)
        copy = os.open(
            to,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL,
            stat.S_IRUSR | stat.S_IWUSR,
            dir_fd=into,
        )
        try:
            trees.copy_content(origin, copy)
            attributes.apply(copy)
        finally:
            os.close(copy)


def _are_equal(one: int, other: int) -> bool:
    """Return whether two files of one size are equal; skips holes."""
    size = os.fstat(one).st_size
    for file in (one, other):
        for start, end in trees.data_extents(file, size):
            while start < end:
                length = min(_PIECE, end - start)
                if os.pread(one, length, start) != os.pread(other, length, start):
                    return False
                start += length
    return True
