"""Share servers that are moving between back ends, as each side records it.

    root/arriving/<server>.json      at the destination: where it comes from
    root/leaving/<server>.json       at the source: where it goes
    top/moving/<server>/<share>/…    copies on both sides, see `copies`

The server is that of the destination. Its record there is the first that is
written and the last that is removed: without it, what the source has is left
behind by a migration that was abandoned while the source was out of reach.
"""

from collections.abc import Iterable
import contextlib
import pathlib

from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs.moves import copies
from manila_lite.share.drivers.btrfs.moves.copies import Copies
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record, RecordFolder

_FOLDER = 'moving'
_ARRIVING, _LEAVING = 'arriving', 'leaving'


class Departures:
    """The records of one back end."""

    def __init__(self, root: pathlib.Path):
        self._root = root
        self.arriving = RecordFolder(root / _ARRIVING, durable=True)
        self._leaving = RecordFolder(root / _LEAVING, durable=True)

    def begin(
        self, server_id: str, source_server_id: str, destination: pathlib.Path
    ) -> None:
        """Record at the source that one of its servers is leaving."""
        self._leaving.put(
            server_id, {'server': source_server_id, 'root': str(destination)}
        )

    def end(self, server_id: str) -> None:
        self._leaving.drop(server_id)

    def abandoned(self) -> list[tuple[str, str]]:
        """Return servers whose destination no longer expects them, and its server."""
        return [
            (record['server'], server_id)
            for server_id, record in self._leaving.records()
            if not self._is_expected(server_id, record)
        ]

    def _is_expected(self, server_id: str, record: Record) -> bool:
        """Return whether a destination expects a server, or may do so."""
        root = pathlib.Path(record['root'])
        return (
            not (root / 'locks').is_dir()
            or Departures(root).arriving.find(server_id) is not None
        )

    def is_moving(self, server_id: str) -> bool:
        """Return whether this side of a migration is still needed."""
        return (
            self.arriving.find(server_id) is not None
            or self._leaving.find(server_id) is not None
        )


def copies_of(pool: Pool, server_id: str, share: str) -> Copies:
    """Return the copies of a share, and of its snapshots."""
    return Copies(pool.top, share, _folder_of(server_id))


def drop_copies(pools: Iterable[Pool], server_id: str) -> None:
    """Remove all copies of a server that moves."""
    folder = _folder_of(server_id)
    for pool in pools:
        for share in copies.owners(pool.top, folder):
            Copies(pool.top, share, folder).drop()
        with contextlib.suppress(FileNotFoundError):
            (pool.top / folder).rmdir()


def moving_in(pool: Pool) -> list[str]:
    """Return the servers that have copies in a pool."""
    return copies.owners(pool.top, _FOLDER)


def _folder_of(server_id: str) -> str:
    return f'{_FOLDER}/{records.checked_file_name(server_id)}'
