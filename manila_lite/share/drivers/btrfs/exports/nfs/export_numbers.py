"""Numbers of exports: 16 bits, so that they come from a table."""

from collections.abc import Callable
import json
import os
import pathlib
from typing import Any
import weakref

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.file_locks import Locks

_HIGHEST = 65535


class ExportNumbers:
    """A file with the number of each export.

    A number that becomes free is used again as late as possible: a client
    may still have a handle that contains it.
    """

    def __init__(self, file: pathlib.Path, locks: Locks):
        self._file = file
        self._locks = locks
        self._cached: _Table | None = None

    def allocate(self, name: str) -> int:
        """Return the number of an export, which remains the same."""
        number = self.find(name)
        return self._change(name, _add) if number is None else number

    def find(self, name: str) -> int | None:
        return self.all().get(name)

    def release(self, name: str) -> None:
        if self.find(name) is not None:
            self._change(name, lambda table, name: table['numbers'].pop(name))

    def all(self) -> dict[str, int]:
        """Return all numbers; the file is read again if it was replaced."""
        try:
            return self._current().numbers
        except FileNotFoundError:
            return {}

    def _current(self) -> '_Table':
        if self._cached is None or not self._cached.is_same_file(self._file):
            self._cached = _Table(self._file)
        return self._cached

    def _change(self, name: str, change: Callable[[dict[str, Any], str], int]) -> int:
        with self._locks.locked('numbers'):
            try:
                table = self._current().copy()
            except FileNotFoundError:
                table = {'last': 0, 'numbers': {}}
            number = change(table, name)
            records.write(self._file, table, durable=True)
            self._cached = _Table(self._file, table)
            return number


class _Table:
    """The numbers in a file, which nothing changes: it is replaced.

    As long as the file is open, no other has its inode.
    """

    def __init__(self, path: pathlib.Path, content: dict[str, Any] | None = None):
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        if content is None:
            with open(self._descriptor, 'rb', closefd=False) as file:
                content = json.load(file)
        self._last: int = content['last']
        self.numbers: dict[str, int] = content['numbers']

    def copy(self) -> dict[str, Any]:
        return {'last': self._last, 'numbers': dict(self.numbers)}

    def is_same_file(self, path: pathlib.Path) -> bool:
        return os.path.samestat(os.fstat(self._descriptor), path.stat())


def _add(table: dict[str, Any], name: str) -> int:
    numbers = table['numbers']
    used = set(numbers.values())
    if len(used) >= _HIGHEST:
        raise exception.ShareBackendException(msg='no export number is free')
    number = table['last'] % _HIGHEST + 1
    while number in used:
        number = number % _HIGHEST + 1
    numbers.setdefault(name, number)
    table['last'] = number
    return numbers[name]
