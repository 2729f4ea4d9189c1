"""Records in a pool: which volume a share or snapshot is.

    top/records/{shares,snapshots}/<name>.json
    top/records/unmanaged-{shares,snapshots}/<volume>.json
    top/records/replicas/<name>.json          see `replicas`
    top/records/{leaving,arriving}/<name>.json    see `migration`

The record of a share has its `volume`, that of a snapshot also the volume of
its share in `of`. With share servers both name theirs in `server`. A record
is written once the volume is complete, and removed after it. They are in the
pool itself, so that the pool can be moved to another machine. A removal, and
the name of a record of a new volume, become durable with the next commit of
the pool.
"""

from collections.abc import Iterator
import contextlib
import enum
import pathlib

from manila_lite import exception
from manila_lite.share.drivers.records import Record, RecordFolder


class RecordsUnreadable(exception.FileSystemUnusable):
    """The records of a pool cannot be read, as when its disk fails."""


class Kind(enum.StrEnum):
    """What a volume is, and the directory it is in."""

    SHARE = 'shares'
    SNAPSHOT = 'snapshots'


class Catalog:
    """The records of one pool, by kind and name."""

    def __init__(self, path: pathlib.Path):
        self._managed = {kind: RecordFolder(path / kind, durable=True) for kind in Kind}
        self._unmanaged = {
            kind: RecordFolder(path / f'unmanaged-{kind}', durable=True)
            for kind in Kind
        }
        self.replicas = RecordFolder(path / 'replicas', durable=True)
        self.leaving = RecordFolder(path / 'leaving', durable=True)
        self.arriving = RecordFolder(path / 'arriving', durable=True)

    def find(self, kind: Kind, name: str) -> Record | None:
        return self._managed[kind].find(name)

    def put(self, kind: Kind, name: str, record: Record) -> None:
        """Write a record; its volume is no longer unmanaged."""
        self._managed[kind].put(name, record)
        self._unmanaged[kind].drop(record['volume'])

    @contextlib.contextmanager
    def putting(self, kind: Kind, name: str, record: Record) -> Iterator[None]:
        """Write the record of a volume that is created in the block.

        It is flushed before: a flush that follows a change of subvolumes
        commits the whole file system, as the caller does at the end.
        """
        with self._managed[kind].putting(name, record):
            yield
        self._unmanaged[kind].drop(record['volume'])

    def flush(self, kind: Kind) -> None:
        """Make the names of the records durable."""
        self._managed[kind].flush()

    def drop(self, kind: Kind, name: str) -> None:
        """Remove a record; a missing one is success."""
        self._managed[kind].drop(name)

    def records(self, kind: Kind) -> Iterator[tuple[str, Record]]:
        return self._managed[kind].records()

    def unmanage(self, kind: Kind, name: str) -> None:
        """Forget the name, but not what the volume is."""
        record = self.find(kind, name)
        if record is not None:
            self._unmanaged[kind].put(record['volume'], record)
            self.drop(kind, name)

    def find_unmanaged(self, kind: Kind, volume: str) -> Record | None:
        return self._unmanaged[kind].find(volume)

    def drop_unmanaged(self, kind: Kind, volume: str) -> None:
        self._unmanaged[kind].drop(volume)

    def owner(self, kind: Kind, volume: str) -> str | None:
        """Return the name of the share or snapshot that has a volume."""
        return next(
            (name for name, record in self.records(kind) if record['volume'] == volume),
            None,
        )


# Which share an exported snapshot is of stands in the file of its export, too: the
# records of the pool may be lost while it is still exported.


def origin_comment(of: str | None) -> str:
    """Return the line for the file of a snapshot of a volume, if it is one."""
    return f'# A snapshot of {of}.\n' if of else ''


def exported_snapshots_of(folder: pathlib.Path, of: str) -> Iterator[str]:
    """Yield the snapshots of a volume whose exports have a file in a folder.

    An earlier version has not written of which volume they are.
    """
    for file in folder.glob(f'{Kind.SNAPSHOT}.*.conf'):
        with contextlib.suppress(FileNotFoundError):  # its export has ended
            if origin_comment(of) in file.read_text():
                yield file.stem.partition('.')[2]
