"""Whether a file may be used as our SQLite database.

Connecting switches a database to WAL mode, and `db sync` writes to it. So a
file that is damaged or belongs to another program is refused before, by
reading it only.
"""

import contextlib
import pathlib
import sqlite3
import struct
import time

from manila_lite import exception

_MAGIC = b'SQLite format 3\0'
_HEADER_LENGTH = 100
_OUR_TABLES = {'alembic_version', 'work', 'share_instances'}
"""Tables that every schema of ours has, and together no other program."""

_ATTEMPTS = 5
_PAUSE = 0.05


class UnusableFile(exception.ManilaLiteError):
    """The file is damaged, or it is not a database of this service."""

    message = 'database {path}: {reason}; nothing was changed'


def check(path: str) -> None:
    """Raise UnusableFile unless the file is ours, empty or absent."""
    file = pathlib.Path(path)
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        return
    if not size:
        return
    with file.open('rb') as opened:
        header = opened.read(_HEADER_LENGTH)
    if len(header) < _HEADER_LENGTH or not header.startswith(_MAGIC):
        raise UnusableFile(path=path, reason='the file is not a database')
    has_wal = _has_wal(file)
    expected = _expected_size(header)
    # Pages that are still in the write-ahead log may be missing here.
    if size < expected and not has_wal:
        raise UnusableFile(
            path=path, reason=f'the file is damaged: it has {size} of {expected} bytes'
        )
    tables = _list_tables(file, has_wal)
    if tables and not tables >= _OUR_TABLES:
        raise UnusableFile(
            path=path,
            reason='it belongs to another program; its tables are '
            f'{_shortened(tables)}',
        )


def _has_wal(file: pathlib.Path) -> bool:
    try:
        return file.with_name(f'{file.name}-wal').stat().st_size > 0
    except FileNotFoundError:
        return False


def _expected_size(header: bytes) -> int:
    """Return the size of the file according to its header; 0 if unknown."""
    page_size, page_count, valid_for = struct.unpack('>16xH10xI60xI4x', header)
    (change_counter,) = struct.unpack('>24xI72x', header)
    if change_counter != valid_for:  # written by a very old SQLite
        return 0
    return (65536 if page_size == 1 else page_size) * page_count


def _list_tables(file: pathlib.Path, has_wal: bool) -> set[str]:
    """Return the names of the tables; nothing is created or changed.

    Without locks, a read may meet a page that another process is writing.
    What a crash has left unfinished is whole with the write-ahead log only.
    """
    ways = ['mode=ro&immutable=1', *(['mode=ro'] if has_wal else [])]
    for attempt in range(_ATTEMPTS):
        for way in ways:
            try:
                tables = _read_tables(file, way)
            except sqlite3.DatabaseError as error:
                reason = str(error)
            else:
                if tables or way == ways[-1]:
                    return tables
        time.sleep(_PAUSE * attempt)
    raise UnusableFile(path=file, reason=f'the file is damaged or in use: {reason}')


def _read_tables(file: pathlib.Path, how: str) -> set[str]:
    uri = f'{file.absolute().as_uri()}?{how}'
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite_%'"
        )
        return {name for (name,) in rows}


def _shortened(tables: set[str]) -> str:
    names = sorted(tables)
    return ', '.join(names[:3]) + (', ...' if len(names) > 3 else '')
