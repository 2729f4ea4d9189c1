"""Small JSON files that are always complete or absent."""

from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import re
from typing import Any
import uuid

from manila_lite import exception

Record = dict[str, Any]

_SUFFIX = '.json'
_SAFE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,199}')


def checked_file_name(name: str) -> str:
    """Return the name if it is safe to use as a file name."""
    if not _SAFE.fullmatch(name):
        raise exception.ShareBackendException(msg=f'{name!r} is not a valid file name')
    return name


def write(path: pathlib.Path, record: Record, durable: bool = False) -> None:
    """Write a record atomically; durable ones survive a power failure."""
    write_text(path, json.dumps(record), durable=durable)


def write_text(
    path: pathlib.Path,
    text: str,
    durable: bool = False,
    temp_dir: pathlib.Path | None = None,
) -> None:
    """Write a text file atomically, by way of a file in `temp_dir`."""
    new = _write_new(path, text, durable, temp_dir or path.parent)
    new.replace(path)
    if durable:
        sync_directory(path.parent)


def _write_new(
    path: pathlib.Path, text: str, durable: bool, folder: pathlib.Path
) -> pathlib.Path:
    new = folder / f'{path.name}.{uuid.uuid4().hex}'
    try:
        with new.open('w', encoding='utf-8', errors='surrogateescape') as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    return new


def remove(path: pathlib.Path) -> None:
    """Remove a file durably; a missing one is success."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        sync_directory(path.parent)


def sync_directory(path: pathlib.Path) -> None:
    """Flush the names in a directory so that they survive power loss."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(directory)


def find(path: pathlib.Path) -> Record | None:
    """Return the record at a path, or None."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None


class RecordFolder:
    """Records by name in one directory, which is created on demand.

    Durable ones survive a power failure.
    """

    def __init__(self, path: pathlib.Path, durable: bool = False):
        self._path = path
        self._durable = durable

    def put(self, name: str, record: Record) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        write(self._file(name), record, durable=self._durable)

    @contextlib.contextmanager
    def putting(self, name: str, record: Record) -> Iterator[None]:
        """Write a record that is found after the block, unless it fails.

        Its name is not flushed.
        """
        self._path.mkdir(parents=True, exist_ok=True)
        file = self._file(name)
        new = _write_new(file, json.dumps(record), self._durable, self._path)
        try:
            yield
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)

    def flush(self) -> None:
        """Let the names of all records survive a power failure."""
        sync_directory(self._path)

    def find(self, name: str) -> Record | None:
        return find(self._file(name))

    def drop(self, name: str) -> None:
        """Remove a record; a missing one is success."""
        self._file(name).unlink(missing_ok=True)

    def records(self) -> Iterator[tuple[str, Record]]:
        """Yield all names and records as of the moment each is read."""
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._path)):
                if not name.endswith(_SUFFIX):  # partly written
                    continue
                record = find(self._path / name)
                if record is not None:
                    yield name.removesuffix(_SUFFIX), record

    def _file(self, name: str) -> pathlib.Path:
        return self._path / (checked_file_name(name) + _SUFFIX)
