"""What has changed in a tree since it was copied, brought to the copy.

First everything that is missing is copied to a place beside the copy, and
a list of changes says what becomes of it: until then the copy is as it
was. Then the changes are made, each by a rename or by setting attributes.
Whoever is killed meanwhile has them made again from the first: those that
were made already are recognised. So a copy is always as it was, or as it
is to be, or on the way there by its own means.

The original may be changed by its users at any time, the copy by nobody
else. Of the original it is remembered which inodes were copied, and when
they had changed: what is the same in both has not been touched, whatever
its users have set its times to.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import stat
import typing

from manila_lite.share.drivers import records
from manila_lite.share.drivers.local import trees
from manila_lite.share.drivers.local.trees import Attributes
from manila_lite.share.drivers.local.trees import PathParts

# Of regular files, by directory and name: inode and time of its change.
KnownInodes = dict[str, dict[str, list[int]]]

NEW, OLD, PLAN = 'new', 'old', 'plan.json'

_PUT, _REMOVE, _SET = 'put', 'remove', 'set'

_TICK_NS = 2 * 10**9
"""What changes twice within it may show the same time of change."""

_PIECE = 1 << 20


class Staged(typing.NamedTuple):
    """Changes that are yet to be made, and what is known after that."""

    changes: list[list[typing.Any]]
    known: KnownInodes


def stage(
    original: pathlib.Path,
    copy: pathlib.Path,
    into: pathlib.Path,
    known: KnownInodes,
    flushed_ns: int,
) -> Staged:
    """Copy into a new directory what the copy needs to be like the original.

    `known` is what was known after the last time with the same original.
    At `flushed_ns` all that was written had been on its way to disk: what
    is written to mapped memory since shows in the time of change.
    """
    (into / NEW).mkdir(parents=True)
    (into / OLD).mkdir()
    with (
        trees.opened_directory(original) as from_root,
        trees.opened_directory(copy) as to_root,
        trees.opened_directory(into / NEW) as new,
    ):
        staging = _Staging(
            from_root, to_root, new, known, flushed_ns - _TICK_NS
        )
        staging.run()
    return Staged(staging.changes, staging.known)


def apply(
    copy: pathlib.Path, staged: pathlib.Path, changes: list[list[typing.Any]]
) -> None:
    """Make the changes, all or those that are left."""
    with (
        trees.opened_directory(copy) as root,
        trees.opened_directory(staged / NEW) as new,
        trees.opened_directory(staged / OLD) as old,
    ):
        for kind, steps, name, what in changes:
            with trees.opened_below(root, tuple(steps)) as directory:
                if kind == _SET:
                    _set(directory, name, what)
                    continue
                _open_up(directory)
                if kind == _PUT:
                    _put(directory, name, what, new)
                else:
                    _remove(directory, name, what, old)


def _put(directory: int, name: str, number: str, new: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # there already
        os.rename(number, name, src_dir_fd=new, dst_dir_fd=directory)


def _remove(directory: int, name: str, number: str, old: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.lstat(number, dir_fd=old)
        return  # what is there now has come after it
    with contextlib.suppress(NotADirectoryError):  # its entry `..` changes
        below = os.open(name, trees.DIRECTORY_FLAGS, dir_fd=directory)
        try:
            _open_up(below)
        finally:
            os.close(below)
    try:
        os.rename(name, number, src_dir_fd=directory, dst_dir_fd=old)
    except FileNotFoundError:  # not to be looked for in what comes after
        os.mknod(number, stat.S_IFREG | stat.S_IRUSR, dir_fd=old)


def _set(directory: int, name: str | None, values: list[typing.Any]) -> None:
    mode, uid, gid, atime_ns, mtime_ns, xattrs = values
    wanted = Attributes(
        mode,
        uid,
        gid,
        atime_ns,
        mtime_ns,
        {each: bytes.fromhex(value) for each, value in xattrs.items()},
    )
    if name is None:
        wanted.apply(directory)
        return
    file = os.open(name, trees.SOURCE_FLAGS, dir_fd=directory)
    try:
        wanted.apply(file)
    finally:
        os.close(file)


def _open_up(directory: int) -> None:
    """Have its owner change what is in it; it gets its mode later on."""
    mode = stat.S_IMODE(os.fstat(directory).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(directory, mode | stat.S_IRWXU)


class _Ahead(typing.NamedTuple):
    """A directory of the original that is yet to be looked at.

    `made` is the way to its copy among the new things, if it is new.
    """

    steps: PathParts
    made: PathParts | None


class _There(typing.NamedTuple):
    """What the copy has in place of a directory; nothing, if it is new."""

    directory: int | None
    entries: dict[str, os.stat_result]


class _Anchor(typing.NamedTuple):
    """Where the copy has a file that has several names in the original.

    `kept` is its inode if it was there before.
    """

    made: bool
    steps: PathParts
    name: str
    kept: int | None


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
        self._from_root = from_root
        self._to_root = to_root
        self._new = new
        self._before = known
        self._count = 0
        self._trusted_before = trusted_before
        self._set_later: list[list[typing.Any]] = []
        self._anchors: dict[tuple[int, int], _Anchor] = {}
        self._claims: dict[int, tuple[int, int]] = {}
        self._owns_all = os.geteuid() == 0

    def run(self) -> None:
        ahead = [_Ahead((), None)]
        made: list[tuple[PathParts, Attributes]] = []
        while ahead:
            here = ahead.pop()
            try:
                with trees.opened_below(
                    self._from_root, here.steps
                ) as directory:
                    attributes = Attributes.of(directory)
                    ahead += self._directory(here, directory, attributes)
            except trees.VANISHED_ERRORS:
                continue
            if here.made is not None and len(here.made) > 1:
                made.append((here.made, attributes))
        for steps, attributes in made:  # filling them has changed theirs
            with trees.opened_below(self._new, steps) as directory:
                attributes.apply(directory)
        # The lowest first: a closed directory is passed before it is one.
        self.changes += reversed(self._set_later)

    def _directory(
        self, here: _Ahead, directory: int, wanted: Attributes
    ) -> list[_Ahead]:
        with os.scandir(directory) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        if here.made is not None:
            below, _ = self._entries(
                here, directory, entries, _There(None, {})
            )
            if len(here.made) == 1:
                self._set(here.steps, None, wanted)
            return below
        with trees.opened_below(self._to_root, here.steps) as copy:
            with os.scandir(copy) as scan:
                there = _There(
                    copy,
                    {
                        entry.name: entry.stat(follow_symlinks=False)
                        for entry in scan
                    },
                )
            before = len(self.changes)
            below, is_whole = self._entries(here, directory, entries, there)
            if is_whole:
                for name in sorted(
                    there.entries.keys() - {entry.name for entry in entries}
                ):
                    self._change(_REMOVE, here.steps, name, self._next())
            if len(self.changes) > before or not self._alike(
                wanted, Attributes.of(copy)
            ):
                self._set(here.steps, None, wanted)
        return below

    def _entries(
        self,
        here: _Ahead,
        directory: int,
        entries: list[os.DirEntry[str]],
        there: _There,
    ) -> tuple[list[_Ahead], bool]:
        """Directories that follow, and whether nothing has moved meanwhile.

        What has gone from here may be where we have been already: nothing
        is removed from the copy before the next look.
        """
        below: list[_Ahead] = []
        is_whole = True
        for entry in entries:
            try:
                self._entry(here, directory, entry.name, there, below)
            except trees.VANISHED_ERRORS:
                is_whole = False
        return below, is_whole

    def _entry(
        self,
        here: _Ahead,
        directory: int,
        name: str,
        there: _There,
        below: list[_Ahead],
    ) -> None:
        status = os.lstat(name, dir_fd=directory)
        old = there.entries.get(name)
        if stat.S_ISDIR(status.st_mode):
            made = None
            if old is None or not stat.S_ISDIR(old.st_mode):
                made = self._make_directory(here, name, old)
            below.append(_Ahead((*here.steps, name), made))
            return
        inode = status.st_dev, status.st_ino
        anchor = self._anchors.get(inode) if status.st_nlink > 1 else None
        if anchor is None:
            anchor = self._file(here, directory, name, status, there)
            if status.st_nlink > 1:
                self._anchors[inode] = anchor
        elif old is None or old.st_ino != anchor.kept:
            self._link(here, name, old, anchor)
        if stat.S_ISREG(status.st_mode):
            self._remember(here.steps, name, status)

    # What is new

    def _make_directory(
        self, here: _Ahead, name: str, old: os.stat_result | None
    ) -> PathParts:
        with self._place(here, name, old, is_directory=True) as (into, to):
            os.mkdir(to, stat.S_IRWXU, dir_fd=into)
        return self._made(here, to)

    def _made(self, here: _Ahead, name: str) -> PathParts:
        return (*(here.made or ()), name)

    def _link(
        self,
        here: _Ahead,
        name: str,
        old: os.stat_result | None,
        anchor: _Anchor,
    ) -> None:
        root = self._new if anchor.made else self._to_root
        with (
            self._place(here, name, old) as (into, to),
            trees.opened_below(root, anchor.steps) as origin,
        ):
            os.link(
                anchor.name,
                to,
                src_dir_fd=origin,
                dst_dir_fd=into,
                follow_symlinks=False,
            )

    @contextlib.contextmanager
    def _place(
        self,
        here: _Ahead,
        name: str,
        old: os.stat_result | None,
        is_directory: bool = False,
    ) -> Iterator[tuple[int, str]]:
        """Where something new is put for now, and under what name."""
        if here.made is not None:
            with trees.opened_below(self._new, here.made) as into:
                yield into, name
            return
        number = self._next()
        yield self._new, number
        if old is not None and (is_directory or stat.S_ISDIR(old.st_mode)):
            self._change(_REMOVE, here.steps, name, self._next())
        self._change(_PUT, here.steps, name, number)

    # Files, and what is neither file nor directory

    def _file(
        self,
        here: _Ahead,
        directory: int,
        name: str,
        status: os.stat_result,
        there: _There,
    ) -> _Anchor:
        old = there.entries.get(name)
        if (
            old is not None
            and there.directory is not None
            and self._may_stay(status, old)
            and self._stays(
                here.steps, directory, name, status, there.directory, old
            )
        ):
            return _Anchor(False, here.steps, name, old.st_ino)
        with self._place(here, name, old) as (into, to):
            if stat.S_ISREG(status.st_mode):
                _copy_file(directory, name, into, to)
            else:
                trees.copy_special(name, status, directory, to, into)
        *steps, last = self._made(here, to)
        return _Anchor(True, tuple(steps), last, None)

    def _may_stay(self, status: os.stat_result, old: os.stat_result) -> bool:
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(old.st_mode):
            return False
        if old.st_nlink == 1:
            return True
        # One inode of the copy stands for one of the original.
        inode = status.st_dev, status.st_ino
        return self._claims.setdefault(old.st_ino, inode) == inode

    def _stays(
        self,
        steps: PathParts,
        directory: int,
        name: str,
        status: os.stat_result,
        copy: int,
        old: os.stat_result,
    ) -> bool:
        if not stat.S_ISREG(status.st_mode):
            return (
                self._alike(_outside(status), _outside(old))
                and status.st_rdev == old.st_rdev
                and (
                    not stat.S_ISLNK(status.st_mode)
                    or trees.read_link(name, directory)
                    == trees.read_link(name, copy)
                )
            )
        if (status.st_size, status.st_mtime_ns) != (
            old.st_size,
            old.st_mtime_ns,
        ):
            return False
        if self._before.get(_way(steps), {}).get(name) == _mark(status):
            return True
        with (
            trees.opened_file(name, directory) as origin,
            trees.opened_file(name, copy) as copied,
        ):
            if not _are_equal(origin, copied):
                return False
            wanted = Attributes.of(origin)
            if not self._alike(wanted, Attributes.of(copied)):
                self._set(steps, name, wanted)
        return True

    def _alike(self, one: Attributes, other: Attributes) -> bool:
        """Whether there is a difference that could be mended."""
        if self._owns_all and one[1:3] != other[1:3]:
            return False
        return (one.mode, one.mtime_ns, one.xattrs) == (
            other.mode,
            other.mtime_ns,
            other.xattrs,
        )

    # What comes of it

    def _next(self) -> str:
        self._count += 1
        return str(self._count)

    def _change(
        self, kind: str, steps: PathParts, name: str, number: str
    ) -> None:
        self.changes.append([kind, steps, name, number])

    def _set(
        self, steps: PathParts, name: str | None, wanted: Attributes
    ) -> None:
        *numbers, xattrs = wanted
        self._set_later.append(
            [
                _SET,
                steps,
                name,
                [
                    *numbers,
                    {each: value.hex() for each, value in xattrs.items()},
                ],
            ]
        )

    def _remember(
        self, steps: PathParts, name: str, status: os.stat_result
    ) -> None:
        if status.st_ctime_ns < self._trusted_before:
            self.known.setdefault(_way(steps), {})[name] = _mark(status)


def _mark(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_ctime_ns]


def _way(steps: PathParts) -> str:
    return '/'.join(steps)


def _outside(status: os.stat_result) -> Attributes:
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
    """Whether two files of one size hold the same; holes are not read."""
    size = os.fstat(one).st_size
    for file in (one, other):
        for start, end in trees.data_extents(file, size):
            while start < end:
                length = min(_PIECE, end - start)
                if os.pread(one, length, start) != os.pread(
                    other, length, start
                ):
                    return False
                start += length
    return True


# On disk


def find_plan(staged: pathlib.Path) -> records.Record | None:
    """What is yet to be done with staged changes."""
    return records.find(staged / PLAN)


def write_plan(staged: pathlib.Path, plan: records.Record) -> None:
    records.write(staged / PLAN, plan, durable=True)
