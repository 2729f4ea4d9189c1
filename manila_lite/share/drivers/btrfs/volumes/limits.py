"""The limits that the volumes of a pool should have.

    top/limits/{shares,snapshots}/<volume>    a link to the limit in bytes

The kernel forgets all limits when the quotas of a file system are disabled.
A link has no data: it is durable with the next commit of the pool, as is the
limit itself.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import time
from typing import NamedTuple

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Catalog, Kind

_NEW = '.new-'
_TICK = 1_000_000_000  # in ns: two changes may have the same time


class Volume(NamedTuple):
    """A volume by the name of its share or snapshot, and its limit, if any."""

    kind: Kind
    name: str
    volume: str
    limit: int | None


class Limits:
    """The recorded limits of one pool."""

    def __init__(self, top: pathlib.Path, catalog: Catalog):
        self._top = top
        self._catalog = catalog
        self._folder = top / 'limits'
        self._seen_at: list[int] = []
        self._seen: dict[int, Volume] = {}

    def find(self, kind: Kind, volume: str) -> int | None:
        """Return the limit of a volume in bytes, if it was recorded."""
        try:
            return int(os.readlink(self._folder / kind / volume))
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def putting(self, kind: Kind, volume: str, limit: int) -> Iterator[None]:
        """Record the limit that the block sets, unless the block fails."""
        if not limit:
            yield
            self.drop(kind, volume)
            return
        folder = self._folder / kind
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = folder / f'{_NEW}{volume}'
        new.unlink(missing_ok=True)  # of a process that was killed
        new.symlink_to(str(limit))
        try:
            yield
            new.replace(folder / volume)
        finally:
            new.unlink(missing_ok=True)

    def drop(self, kind: Kind, volume: str) -> None:
        """Forget the limit of a volume; a missing one is success."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / kind / volume).unlink()

    def differing(self) -> list[Volume]:
        """Return the managed volumes whose limit is not the recorded one.

        A limit that was not recorded, as by an earlier version, is included.
        """
        sizes = kernel.sizes(self._top)
        return [
            volume
            for subvolume, volume in self.managed().items()
            if subvolume in sizes and sizes[subvolume].limit != (volume.limit or 0)
        ]

    def managed(self) -> dict[int, Volume]:
        """Return the managed volumes by the ids of their subvolumes.

        They are read again only if a record has changed.
        """
        changed_at = [
            path.stat().st_mtime_ns
            for path in (self._top, *self._folders())
            if path.exists()
        ]
        if changed_at != self._seen_at:
            self._seen = dict(self._read())
            is_certain = time.time_ns() - max(changed_at) > _TICK
            self._seen_at = changed_at if is_certain else []
        return self._seen

    def _folders(self) -> list[pathlib.Path]:
        return [
            self._top / parent / kind
            for parent in ('records', self._folder.name)
            for kind in Kind
        ]

    def _read(self) -> Iterator[tuple[int, Volume]]:
        for kind in Kind:
            for name, record in self._catalog.records(kind):
                volume = record['volume']
                with contextlib.suppress(FileNotFoundError):
                    yield (
                        kernel.subvolume_id(self._top / kind / volume),
                        Volume(kind, name, volume, self.find(kind, volume)),
                    )
