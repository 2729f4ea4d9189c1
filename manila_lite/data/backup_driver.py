"""Where the content of backups is kept."""

import abc
from collections.abc import Callable, Collection
import os
import pathlib
import typing

from manila_lite import exception
from manila_lite.data import copying
from manila_lite.share.drivers import tree_removal
from manila_lite.share.drivers import trees


class Copying(typing.NamedTuple):
    """How a copy reports what it does.

    `on_progress` is called with the number of bytes done since the last
    call, `check` often: it raises to end the copy. `token` is greater than
    those of all earlier attempts.
    """

    on_progress: Callable[[int], object]
    check: Callable[[], object]
    token: int
    ignored: Collection[str] = ()


class BackupDriver(abc.ABC):
    """Keeps backups; the entry point of `backup_driver` names a class.

    It is built with the configuration. Shares are open directories. Every
    method may be killed at any point, and is then called again.
    """

    @abc.abstractmethod
    def create(self, backup_id: str, share: int, copying: Copying) -> None:
        """Keep a copy of a share; it is complete and on disk on return."""

    @abc.abstractmethod
    def size_of(self, backup_id: str) -> int:
        """Return the bytes of a backup, by the measure of `on_progress`.

        Raises InvalidBackup without one.
        """

    @abc.abstractmethod
    def restore(self, backup_id: str, share: int, copying: Copying) -> None:
        """Make a share equal to a backup; raises InvalidBackup without."""

    @abc.abstractmethod
    def delete(self, backup_id: str, token: int) -> None:
        """Remove a backup and its parts; a missing one is success."""


class FolderBackups(BackupDriver):
    """Keeps each backup as a directory in one folder.

    A copy in progress has a name of its own attempt. Another attempt removes
    it, so that a late worker writes to a directory that has no name.
    """

    def __init__(self, conf: typing.Any):
        self._top = pathlib.Path(conf.backup_folder)

    def create(self, backup_id: str, share: int, copying: Copying) -> None:
        self._remove_parts(backup_id)
        complete = self._top / backup_id
        if complete.exists():
            return  # the end of the earlier attempt was not recorded
        self._top.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._top / f'{backup_id}.{copying.token}.part'
        part.mkdir(mode=0o700)
        with trees.opened_directory(part) as target:
            _copy(share, target, copying)
            copying.check()
            part.rename(complete)
        self._sync()

    def size_of(self, backup_id: str) -> int:
        with self._opened(backup_id) as directory:
            return copying.size_of(directory)

    def restore(self, backup_id: str, share: int, copying: Copying) -> None:
        with self._opened(backup_id) as source:
            _copy(source, share, copying)

    def delete(self, backup_id: str, token: int) -> None:
        try:
            (self._top / backup_id).rename(
                self._top / f'{backup_id}.{token}.deleted'
            )
        except FileNotFoundError:
            pass  # an earlier attempt has come this far
        else:
            self._sync()
        self._remove_parts(backup_id)

    def _opened(self, backup_id: str) -> typing.Any:
        path = self._top / backup_id
        if not path.is_dir():
            raise exception.InvalidBackup(
                reason=f'this data service has no content of {backup_id}'
            )
        return trees.opened_directory(path)

    def _remove_parts(self, backup_id: str) -> None:
        for path in self._top.glob(f'{backup_id}.*'):
            tree_removal.remove_tree(path)

    def _sync(self) -> None:
        with trees.opened_directory(self._top) as folder:
            os.fsync(folder)


def _copy(source: int, target: int, how: Copying) -> None:
    copying.copy_tree(
        source,
        target,
        on_progress=how.on_progress,
        check=how.check,
        ignored=how.ignored,
    )
