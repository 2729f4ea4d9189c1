"""The gate that every change of files by the data service passes.

A paused worker may have lost its work to another worker. So only the methods of
`Gate` change files, and each of them checks the claim directly before it does.
The worker may still be paused between that question and the change. What it
changes then is either its own, as the name has the token of its claim, or in
the content of a share: there a step is taken under a shared lock, and no
attempt begins while an earlier one is in the middle of a step.
"""

from collections.abc import Callable, Collection, Iterator
import contextlib
import errno
import fcntl
import os
import pathlib
import stat
import typing

from manila_lite import exception
from manila_lite.share.drivers import tree_removal, trees
from manila_lite.share.drivers.trees import Attributes

_SMALL = 64 << 10
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NEW_MODE = stat.S_IRUSR | stat.S_IWUSR


class Copying(typing.NamedTuple):
    """How a copy reports its progress, and learns whether it may continue.

    `on_progress` is called with the number of bytes done since the last
    call, `check` often, and `require_claim` before each change; both raise
    to end the copy. `token` is greater than those of all earlier attempts.
    Names in `ignored` are left alone at the top of a share. `on_step` is for
    simulations, and is called with the name of each step.
    """

    on_progress: Callable[[int], object]
    check: Callable[[], object]
    require_claim: Callable[[], object]
    token: int
    ignored: Collection[str] = ()
    on_step: Callable[[str], object] = lambda name: None


class CopiedFile(typing.NamedTuple):
    """A regular file to copy: its name, its directory, its size on disk."""

    name: str
    directory: int
    size: int


class Gate:
    """Changes files while the claim of the work holds.

    `shared` is an open directory that other attempts may change as well.
    """

    def __init__(self, how: Copying, shared: int | None = None):
        self._how = how
        self._shared = shared

    # Attempts

    def take_over(self) -> None:
        """Begin to change the shared directory, after all earlier attempts.

        Later steps of theirs will find that their claim is lost. Raises
        EarlierCopyRuns while one is in the middle of a step.
        """
        if self._shared is not None and not await_steps(self._shared):
            self._shared = None

    def _step(self, name: str) -> '_Step':
        return _Step(name, self._how, self._shared)

    # Directories of the data service

    def make_folder(self, path: pathlib.Path) -> None:
        """Make a directory with those above it; it may exist."""
        with self._step('make_folder'):
            path.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)

    def remove_tree(self, path: pathlib.Path) -> None:
        """Remove a directory of an earlier attempt; it may be missing.

        Raises EarlierCopyRuns if that attempt still writes to it.
        """
        with self._step('remove_tree'):
            try:
                tree_removal.remove_tree(path)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                raise exception.EarlierCopyRuns from error

    def discard(self, path: pathlib.Path) -> None:
        """Remove a directory of this attempt, with or without the claim."""
        with self._own(path):
            tree_removal.remove_tree(path)

    @contextlib.contextmanager
    def _own(self, path: pathlib.Path) -> Iterator[None]:
        """No other attempt uses a name that has the token of this one."""
        if path.suffix != f'.{self._how.token}':
            raise ValueError(f'{path} is not of attempt {self._how.token}')
        yield

    # Entries

    def make_directory(
        self, name: str | pathlib.Path, parent: int | None = None
    ) -> None:
        with self._step('make_directory'):
            os.mkdir(name, stat.S_IRWXU, dir_fd=parent)

    @contextlib.contextmanager
    def opened_directory(self, name: str, parent: int) -> Iterator[int]:
        """Open a directory whose mode may forbid that."""
        with contextlib.ExitStack() as stack:
            with self._step('open_directory'):
                found = stack.enter_context(
                    tree_removal.accessible_directory(name, parent)
                )
            yield found

    def remove(self, name: str, parent: int) -> None:
        with self._step('remove'):
            tree_removal.remove_entry(name, parent)

    def link(self, name: str, directory: int, new_name: str, into: int) -> None:
        with self._step('link'):
            os.link(
                name,
                new_name,
                src_dir_fd=directory,
                dst_dir_fd=into,
                follow_symlinks=False,
            )

    def copy_special(
        self, name: str, status: os.stat_result, directory: int, into: int
    ) -> None:
        """Copy what is neither a regular file nor a directory."""
        with self._step('copy_special'):
            trees.copy_special(name, status, directory, name, into)

    def copy_file(
        self,
        file: CopiedFile,
        into: int,
        on_piece: Callable[[int], object],
        *,
        may_have_xattrs: bool,
    ) -> int:
        """Copy a regular file; return the size of the copy."""
        origin, status = trees.open_file(file.name, file.directory)
        try:
            with self._step('copy_file'):
                copy = os.open(file.name, _NEW_FLAGS, _NEW_MODE, dir_fd=into)
                try:
                    self._how.on_step('half-way copy_file')
                    if file.size > _SMALL or not _copy_small(origin, copy, file.size):
                        trees.copy_content(origin, copy, on_piece)
                    Attributes.of(origin, status).apply(
                        copy, may_have_xattrs=may_have_xattrs
                    )
                    return os.fstat(copy).st_size
                finally:
                    os.close(copy)
        finally:
            os.close(origin)

    def apply(self, attributes: Attributes, directory: int) -> None:
        """Set the attributes of an open directory."""
        with self._step('apply'):
            attributes.apply(directory)


class _Step:
    """The context of one change; a generator would take longer per file."""

    __slots__ = ('_how', '_name', '_shared')

    def __init__(self, name: str, how: Copying, shared: int | None):
        self._name, self._how, self._shared = name, how, shared

    def __enter__(self) -> None:
        how = self._how
        how.check()
        how.on_step(f'at {self._name}')
        if self._shared is not None:
            fcntl.flock(self._shared, fcntl.LOCK_SH)
        try:
            how.require_claim()
            how.on_step(f'before {self._name}')
        except BaseException:
            self._unlock()
            raise

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._how.on_step(f'after {self._name}')
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._shared is not None:
            fcntl.flock(self._shared, fcntl.LOCK_UN)


def await_steps(directory: int) -> bool:
    """Raise EarlierCopyRuns while an attempt is in the middle of a step.

    Return whether the file system has locks that tell.
    """
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise exception.EarlierCopyRuns from error
    except OSError:  # no locks on this file system, or not of directories
        return False
    fcntl.flock(directory, fcntl.LOCK_UN)
    return True


def _copy_small(origin: int, copy: int, size: int) -> bool:
    """Copy a file without holes with the fewest system calls.

    Returns False if it has holes, or has grown: copy it in another way.
    """
    content = os.pread(origin, _SMALL + 1, 0)
    if len(content) > size:
        return False
    return os.pwrite(copy, content, 0) == len(content) if content else True
