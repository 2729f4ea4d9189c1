"""What clients may rely on: the values and the resources of their requests.

An answer says whether a request was carried out. Without one it may have been,
and may still be until the end of a round.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import itertools
import threading

PREFIX = 'request '
"""Begins the names of what clients create; a number follows."""

NOTHING_DONE = range(400, 500)


def is_done(code: int | None) -> bool:
    return code is not None and code < 300


class Values:
    """The values that properties of resources may have.

    Requests about one property are sent one after another. Of a property
    without any accepted request nothing is known.
    """

    def __init__(self) -> None:
        self._possible: dict[tuple[str, str], set] = {}
        self._late: dict[tuple[str, str], set] = collections.defaultdict(set)

    def note(
        self, id: str, name: str, value: object, code: int | None = 200
    ) -> None:
        """Note a requested value and its status code, None without one."""
        key = id, name
        if is_done(code):
            self._possible[key] = {value} | self._late[key]
        elif code not in NOTHING_DONE:
            self._late[key].add(value)
            if key in self._possible:
                self._possible[key].add(value)

    def possible(self, id: str, name: str) -> set:
        """Return the values that a property may have, none if unknown."""
        return set(self._possible.get((id, name), ()))

    def ids(self, name: str) -> list[str]:
        """Return the resources of which a property is known."""
        return [id for id, one in [*self._possible] if one == name]

    def problems(
        self,
        name: str,
        found: Mapping[str, object],
        is_explained: Callable[[str], object] = lambda id: False,
    ) -> list[str]:
        """Return the values that are not possible, and go on from these."""
        problems = []
        for id in self.ids(name):
            possible = self._possible.pop((id, name))
            self._late.pop((id, name), None)
            if id not in found:  # that is checked where it is listed
                continue
            if found[id] not in possible and not is_explained(id):
                problems.append(
                    f'{name} of {id} is {found[id]}, not {possible}'
                )
            self._possible[id, name] = {found[id]}
        return problems


class Creations:
    """Which requests have created resources, by the names they gave.

    None may create more than one, however often a client has repeated it.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._taking = threading.Lock()
        self._ids: dict[str, str | None] = {}
        """By names, of what may exist; None while unknown."""

    def new_name(self) -> str:
        with self._taking:
            name = f'{PREFIX}{next(self._numbers)}'
        self._ids[name] = None
        return name

    def refused(self, name: str) -> None:
        """Note that nothing was created, as the answer says."""
        del self._ids[name]

    def created(self, name: str, id: str) -> None:
        self._ids[name] = id

    def problems(
        self, kind: str, rows: Iterable[tuple[str, str | None]]
    ) -> list[str]:
        """Return what exists but should not, of ids with names."""
        problems = []
        for id, name in rows:
            if name is None or not name.startswith(PREFIX):
                continue
            if name not in self._ids:
                problems.append(
                    f'{kind} {id}, {name}, exists, and its request was '
                    'refused or to be repeated'
                )
                self._ids[name] = id
            elif self._ids[name] is None:  # it had no answer
                self._ids[name] = id
            elif self._ids[name] != id:
                problems.append(
                    f'{kind} {id}, {name}, exists beside {self._ids[name]}'
                )
        return problems
