"""Numbers of exports: 16 bits, so that they come from a table."""

from collections.abc import Callable
import pathlib
from typing import Any

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

    def allot(self, name: str) -> int:
        """Return the number of an export, which remains the same."""
        number = self.find(name)
        return self._change(name, _add) if number is None else number

    def find(self, name: str) -> int | None:
        return self.all().get(name)

    def release(self, name: str) -> None:
        if self.find(name) is not None:
            self._change(name, lambda table, name: table['numbers'].pop(name))

    def all(self) -> dict[str, int]:
        return self._read()['numbers']

    def _read(self) -> dict[str, Any]:
        return records.find(self._file) or {'last': 0, 'numbers': {}}

    def _change(
        self, name: str, change: Callable[[dict[str, Any], str], int]
    ) -> int:
        with self._locks.locked('numbers'):
            table = self._read()
            number = change(table, name)
            records.write(self._file, table)
            return number


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
