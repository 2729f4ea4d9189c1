"""Numbers of exports: 16 bits, so that they come from a table."""

from collections.abc import Callable
import json
import os
import pathlib
from typing import Any
import weakref

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs.locks import Locks

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
            if self._cached is None or not self._cached.is_at(self._file):
                self._cached = _Table(self._file)
            return self._cached.numbers
        except FileNotFoundError:
            return {}

    def _change(
        self, name: str, change: Callable[[dict[str, Any], str], int]
    ) -> int:
        with self._locks.locked('numbers'):
            table = records.find(self._file) or {'last': 0, 'numbers': {}}
            number = change(table, name)
            records.write(self._file, table, durable=True)
            return number


class _Table:
    """The numbers in a file, which nothing changes: it is replaced.

    As long as the file is open, no other has its inode.
    """

    def __init__(self, path: pathlib.Path):
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        with open(self._descriptor, 'rb', closefd=False) as file:
            self.numbers: dict[str, int] = json.load(file)['numbers']

    def is_at(self, path: pathlib.Path) -> bool:
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
