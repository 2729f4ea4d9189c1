"""The storage that holds the content of backups."""

import abc
from collections.abc import Iterator
import contextlib
import os
import pathlib
import typing

from oslo_config import cfg

from manila_lite import exception
from manila_lite.data import copying, manifest
from manila_lite.data.gate import Copying, Gate
from manila_lite.data.progress import Position
from manila_lite.share.drivers import trees


class KeptCopy(typing.NamedTuple):
    """A complete copy: the token of the attempt, and what it holds."""

    token: int
    entries: int
    bytes: int
    digest: str


class BackupDriver(abc.ABC):
    """Keeps backups; the entry point of `backup_driver` names a class.

    It is built with the configuration. Shares are open directories. Every
    method may be killed at any point, and is then called again with a larger
    token; the late attempt may wake up at any time later. Changes go through
    a `Gate`. Raises StaleFencingToken when an attempt with a larger token
    than that of the caller was there.
    """

    @abc.abstractmethod
    def create(self, backup_id: str, share: int, how: Copying) -> KeptCopy:
        """Copy a share; the copy is complete and on disk on return.

        It becomes the backup when the result is recorded. All other copies
        of this backup may be removed.
        """

    @abc.abstractmethod
    def size_of(self, backup_id: str, kept: KeptCopy) -> int:
        """Return the bytes of a backup, by the measure of `on_progress`.

        Raises InvalidBackup without one.
        """

    @abc.abstractmethod
    def verify(self, backup_id: str, kept: KeptCopy, how: Copying) -> None:
        """Raise InvalidBackup unless all of the copy is what it was."""

    @abc.abstractmethod
    def restore(
        self,
        backup_id: str,
        kept: KeptCopy,
        share: int,
        how: Copying,
        position: Position,
    ) -> None:
        """Make a share equal to a backup, beginning at a position."""

    @abc.abstractmethod
    def delete(self, backup_id: str, how: Copying) -> None:
        """Remove a backup and all copies; a missing one is success."""


class FolderBackups(BackupDriver):
    """Keeps each copy as a directory `<backup>.<token>` in one folder.

    No name is used by two attempts, and none is moved. The record of the
    backup says which copy it is.
    """

    def __init__(self, conf: cfg.ConfigOpts):
        self._top = pathlib.Path(conf.backup_folder)

    def create(self, backup_id: str, share: int, how: Copying) -> KeptCopy:
        gate = Gate(how)
        gate.make_folder(self._top)
        # A late attempt may still write there; deleting finds the rest.
        with contextlib.suppress(exception.EarlierCopyRuns):
            self._remove_earlier(backup_id, how)
        copy = self._top / f'{backup_id}.{how.token}'
        gate.make_directory(copy)
        try:
            found = self._fill(copy, share, how)
            self._sync()
        except Exception:
            gate.discard(copy)
            raise
        return KeptCopy(how.token, *found)

    def _fill(self, copy: pathlib.Path, share: int, how: Copying) -> manifest.Manifest:
        with trees.opened_directory(copy) as target:
            copied = copying.copy_tree(share, target, how)
            found = manifest.read(target, how)
        if found[:2] != copied:
            raise exception.InvalidBackup(
                reason=f'{copy.name} has {found.entries} entries with '
                f'{found.bytes} bytes, and {copied.entries} with '
                f'{copied.bytes} bytes were copied'
            )
        return found

    def size_of(self, backup_id: str, kept: KeptCopy) -> int:
        with self._opened(backup_id, kept) as directory:
            return copying.size_of(directory)

    def verify(self, backup_id: str, kept: KeptCopy, how: Copying) -> None:
        with self._opened(backup_id, kept) as directory:
            found = manifest.read(directory, how)
        if found != kept[1:]:
            raise exception.InvalidBackup(
                reason=f'the content of {backup_id} is not what was backed '
                f'up: {found.entries} entries of {kept.entries}, '
                f'{found.bytes} bytes of {kept.bytes}, digest '
                f'{found.digest}, not {kept.digest}'
            )

    def restore(
        self,
        backup_id: str,
        kept: KeptCopy,
        share: int,
        how: Copying,
        position: Position,
    ) -> None:
        with self._opened(backup_id, kept) as source:
            copying.copy_tree(source, share, how, position=position)

    def delete(self, backup_id: str, how: Copying) -> None:
        self._remove_earlier(backup_id, how)

    @contextlib.contextmanager
    def _opened(self, backup_id: str, kept: KeptCopy) -> Iterator[int]:
        path = self._top / f'{backup_id}.{kept.token}'
        if not path.is_dir():
            raise exception.InvalidBackup(
                reason=f'this data service has no content of {backup_id}'
            )
        with trees.opened_directory(path) as directory:
            yield directory

    def _remove_earlier(self, backup_id: str, how: Copying) -> None:
        """Remove the copies of all earlier attempts, never of a later one."""
        found = {
            int(path.suffix[1:]): path
            for path in self._top.glob(f'{backup_id}.*')
            if path.suffix[1:].isdecimal()
        }
        latest = max(found, default=0)
        if latest >= how.token:
            raise exception.StaleFencingToken(
                resource=f'share_backup:{backup_id}', seen=latest
            )
        for path in found.values():
            Gate(how).remove_tree(path)
        if found:
            self._sync()

    def _sync(self) -> None:
        with trees.opened_directory(self._top) as folder:
            os.fsync(folder)
