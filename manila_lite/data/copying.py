"""Make a directory equal to another, byte for byte.

Both belong to users: they may be of any depth and hold any kind of file, and
the source may change. Directories are opened step by step from the top and
links are never followed, so nothing outside of either is read or written.

A copy may be killed at any point. The next one replaces what is there, or
keeps the files that an earlier attempt has completed.
"""

from collections.abc import Iterator, Mapping
import contextlib
import os
import stat
import typing

from manila_lite import exception
from manila_lite.data.gate import CopiedFile, Copying, Gate, await_steps
from manila_lite.data.mounts import CephMounts
from manila_lite.data.progress import Position
from manila_lite.rpc.contract import Client
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.contract.connections import open_directory
from manila_lite.share.drivers.trees import Attributes, PathParts
from manila_lite.work.job import JobContext

_BLOCK = 512


class Copied(typing.NamedTuple):
    """The number of names in a copy, and the sizes of its files."""

    entries: int
    bytes: int


class _Linked(typing.NamedTuple):
    """The copy of an inode with several names in the source."""

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
    how: Copying,
    *,
    is_resumed: bool = False,
    position: Position | None = None,
) -> Copied:
    """Make the content of one open directory equal to that of another.

    Content, modes, owners, times, xattrs, links, special files and holes are
    copied; what the source does not have is removed. The attributes of the
    directory itself are copied too. The copy is on disk on return.

    With `is_resumed`, files that have the size and the modification time of
    the source are complete: give it only if the target was empty when the
    first attempt began. With `position`, which needs a source that does not
    change, nothing is done twice. Raises EarlierCopyRuns without any change.
    """
    copied = _Copy(source, target, how, is_resumed, position).run()
    trees.sync_file_system(target)  # far cheaper than once per file
    return copied


class TreeCopier:
    """Functions about copies, as methods that can run elsewhere."""

    await_steps = staticmethod(await_steps)
    size_of = staticmethod(size_of)
    copy_tree = staticmethod(copy_tree)


class _Copy:
    """A copy in progress."""

    def __init__(
        self,
        source: int,
        target: int,
        how: Copying,
        is_resumed: bool,
        position: Position | None,
    ):
        self._source, self._target, self._how = source, target, how
        self._gate = Gate(how, target)
        self._is_resumed = is_resumed
        self._position = position or Position()
        self._linked: dict[tuple[int, int], _Linked] = {}
        self._kept: dict[int, tuple[int, int]] = {}
        self._entries = self._bytes = 0

    def run(self) -> Copied:
        self._gate.take_over()
        directories: list[tuple[PathParts, Attributes]] = []
        for parts, directory, entries in trees.walk(self._source):
            directories.append((parts, Attributes.of(directory)))
            hidden = set() if parts else set(self._how.ignored)
            self._directory(parts, directory, entries, hidden)
            if hidden:
                entries[:] = [one for one in entries if one.name not in hidden]
        # Only now: filling a directory changes its times, and its mode
        # may forbid writing. Subdirectories are reached through it.
        for parts, attributes in reversed(directories):
            if not self._position.skip(1):
                with trees.opened_below(self._target, parts) as copy:
                    self._gate.apply(attributes, copy)
                self._position.end()
        return Copied(self._entries, self._bytes)

    def _directory(
        self,
        parts: PathParts,
        directory: int,
        entries: list[os.DirEntry[str]],
        hidden: set[str],
    ) -> None:
        """Copy the entries of a directory, without what is below them."""
        steps = 1 + len(entries)
        done = self._position.skip(steps)
        for entry in entries[: max(0, done - 1)]:
            self._pass_over(entry, parts)
        if done == steps:
            return  # users may have removed it since
        with self._opened_target(parts) as into:
            existing = set(os.listdir(into))
            has_xattrs = bool(trees.xattr_names(into))
            here = _Here(parts, directory, into, existing, has_xattrs)
            if not done:
                names = {entry.name for entry in entries}
                for name in existing - names - hidden:
                    self._gate.remove(name, into)
                self._position.end()
            for entry in entries[max(0, done - 1) :]:
                if entry.name not in hidden:
                    self._how.check()
                    with contextlib.suppress(*trees.VANISHED_ERRORS):
                        self._entry(entry, here)
                self._position.end()

    def _pass_over(self, entry: os.DirEntry[str], parts: PathParts) -> None:
        """Leave out what an earlier attempt has copied."""
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            self._how.on_progress(_size(status))
        if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
            return
        with (
            contextlib.suppress(*trees.VANISHED_ERRORS),
            trees.opened_below(self._target, parts) as into,
        ):
            copied = os.stat(entry.name, dir_fd=into, follow_symlinks=False)
            if _look_alike(status, copied):
                self._linked[status.st_dev, status.st_ino] = _Linked(
                    parts, entry.name, copied.st_ino
                )

    @contextlib.contextmanager
    def _opened_target(self, parts: PathParts) -> Iterator[int]:
        """Open a directory of the target that may forbid that."""
        with trees.opened_below(self._target, parts[:-1]) as parent:
            name = parts[-1] if parts else '.'
            with self._gate.opened_directory(name, parent) as found:
                yield found

    def _entry(self, entry: os.DirEntry[str], here: _Here) -> None:
        parts, directory, into, existing, _ = here
        name, status = entry.name, entry.stat(follow_symlinks=False)
        old = _find(name, into) if name in existing else None
        if stat.S_ISDIR(status.st_mode):
            if old is None or not stat.S_ISDIR(old.st_mode):
                self._remove(name, old, into)
                self._gate.make_directory(name, into)
            self._entries += 1
            return
        inode = status.st_dev, status.st_ino
        linked = self._linked.get(inode) if status.st_nlink > 1 else None
        if linked is not None:
            if old is None or old.st_ino != linked.inode:
                self._remove(name, old, into)
                self._link(linked, name, into)
        elif old is not None and self._is_complete(status, old):
            self._bytes += old.st_size
            self._how.on_progress(_size(status))
        else:
            self._remove(name, old, into)
            if stat.S_ISREG(status.st_mode):
                self._file(name, here, _size(status))
            else:
                self._gate.copy_special(name, status, directory, into)
        self._entries += 1
        if status.st_nlink > 1 and linked is None:
            copied = os.stat(name, dir_fd=into, follow_symlinks=False)
            self._linked[inode] = _Linked(parts, name, copied.st_ino)

    def _remove(self, name: str, old: os.stat_result | None, into: int) -> None:
        if old is not None:
            self._gate.remove(name, into)

    def _is_complete(self, status: os.stat_result, old: os.stat_result) -> bool:
        """Return whether an earlier attempt has copied a file.

        Its times are set last. Each inode of the copy is that of one file.
        """
        if (
            not self._is_resumed
            or not stat.S_ISREG(status.st_mode)
            or not _look_alike(status, old)
        ):
            return False
        inode = status.st_dev, status.st_ino
        return self._kept.setdefault(old.st_ino, inode) == inode

    def _link(self, linked: _Linked, name: str, into: int) -> None:
        with trees.opened_below(self._target, linked.parts) as directory:
            self._gate.link(linked.name, directory, name, into)

    def _file(self, name: str, here: _Here, size: int) -> None:
        done = 0

        def on_piece(length: int) -> None:
            nonlocal done
            length = min(length, size - done)  # it may have grown
            done += length
            self._how.on_progress(length)
            self._how.check()

        self._bytes += self._gate.copy_file(
            CopiedFile(name, here.directory, size),
            here.into,
            on_piece,
            may_have_xattrs=here.has_xattrs,
        )
        self._how.on_progress(size - done)


def _look_alike(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two files are of one kind, size and modification time."""
    return (stat.S_IFMT(one.st_mode), one.st_size, one.st_mtime_ns) == (
        stat.S_IFMT(other.st_mode),
        other.st_size,
        other.st_mtime_ns,
    )


def _size(status: os.stat_result) -> int:
    return status.st_blocks * _BLOCK


def _find(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


class ShareContents:
    """Opens the content of shares; `connections` is a contract client."""

    def __init__(self, connections: Client, mounts: CephMounts):
        self._connections = connections
        self._mounts = mounts

    @contextlib.contextmanager
    def opened(self, job: JobContext, instance_id: str, host: str) -> Iterator[int]:
        """Open the top directory of a share instance on a back end, for a job.

        What was written to a storage that is mounted is in it at the end of the
        block, and workers that had the claim before can write no more.

        Raises ContentUnreachable, or ServiceUnavailable while the share
        service of the back end or the storage does not answer.
        """
        client = self._connections.on(host)
        info = _connection(client, job, instance_id)
        if 'ceph' not in info:
            with _opened_here(info, instance_id, host) as directory:
                yield directory
            return
        try:
            with self._mounts.mounted(instance_id, info['ceph']) as directory:
                yield directory
        except BaseException:
            # If it stays, the next attempt ends it, or the end of the migration.
            with contextlib.suppress(exception.ManilaLiteError):
                _end_connection(client, job, instance_id)
            raise
        _end_connection(client, job, instance_id)


def _connection(
    client: Client, job: JobContext, instance_id: str
) -> dict[str, typing.Any]:
    ctx = job.request_context()
    names = {'instance_id': instance_id}
    try:
        return client.get_connection(ctx, **names, fence=job.claim.fence)
    except exception.StaleFencingToken as error:
        # If the claim holds, the clock of the database was set back.
        job.raise_fence(error.seen)
        return client.get_connection(ctx, **names, fence=job.claim.fence)


def _end_connection(client: Client, job: JobContext, instance_id: str) -> None:
    client.end_connection(
        job.request_context(), instance_id=instance_id, fence=job.claim.fence
    )


@contextlib.contextmanager
def _opened_here(
    info: Mapping[str, typing.Any], instance_id: str, host: str
) -> Iterator[int]:
    """Open a directory of this machine."""
    identity = info.get('directory')
    if identity is None:
        raise exception.ContentUnreachable(
            instance_id=instance_id,
            reason=f'{host} offers no way that this release knows',
        )
    directory = open_directory(identity)
    if directory is None:
        raise exception.ContentUnreachable(
            instance_id=instance_id,
            reason=f'it is in {identity["path"]} on the machine of '
            f'{host}, and this data service runs on another one, or '
            'with another root directory',
        )
    try:
        yield directory
    finally:
        os.close(directory)
