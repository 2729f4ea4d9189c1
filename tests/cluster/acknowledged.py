"""What clients may rely on: the values and the resources of their requests.

An answer says whether a request was carried out. Without one it may have been,
and may still be until the end of a round.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import ipaddress
import itertools
import threading

NOTHING_DONE = range(400, 500)

_ADDRESSES = ipaddress.IPv4Address('10.0.0.0')


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

    def note(self, id: str, name: str, value: object, code: int | None = 200) -> None:
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
                problems.append(f'{name} of {id} is {found[id]}, not {possible}')
            self._possible[id, name] = {found[id]}
        return problems


class Creations:
    """Which requests have created resources, by the names they gave.

    None may create more than one, however often a client has repeated it. The
    name is what tells the resources apart: of an access rule the address, of
    a lock the reason.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._taking = threading.Lock()
        self._ids: dict[str, str | None] = {}
        """By names, of what may exist; None while unknown."""
        self._refused: set[str] = set()

    def new_name(self) -> str:
        return self._new(lambda number: f'request {number}')

    def new_address(self) -> str:
        """Return an IPv4 address that is the name of an access rule."""
        return self._new(lambda number: str(_ADDRESSES + number))

    def _new(self, name_of: Callable[[int], str]) -> str:
        with self._taking:
            name = name_of(next(self._numbers))
        self._ids[name] = None
        return name

    def refused(self, name: str) -> None:
        """Note that nothing was created, as the answer says."""
        del self._ids[name]
        self._refused.add(name)

    def created(self, name: str, id: str) -> None:
        self._ids[name] = id

    def problems(self, kind: str, rows: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return what exists but should not, of ids with names."""
        problems = []
        for id, name in rows:
            if name in self._refused:
                problems.append(
                    f'{kind} {id}, {name}, exists, and its request was '
                    'refused or to be repeated'
                )
                self._refused.discard(name)
                self._ids[name] = id
            elif name not in self._ids:
                continue
            elif self._ids[name] is None:  # it had no answer
                self._ids[name] = id
            elif self._ids[name] != id:
                problems.append(f'{kind} {id}, {name}, exists beside {self._ids[name]}')
        return problems


class CountedCreations:
    """How many resources without a name requests may have created.

    Each resource belongs to another one, its owner. `first` is how many of
    them the owner may have got without a request for them.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._known: dict[str, set[str]] = {}
        self._answered: dict[str, set[str]] = collections.defaultdict(set)
        self._extra: collections.Counter[str] = collections.Counter()

    def may_create(self, owner: str) -> None:
        """Note a request, before it is sent, that may create one more."""
        self._extra[owner] += 1

    def refused(self, owner: str) -> None:
        """Note that the last request has created nothing."""
        self._extra[owner] -= 1

    def created(self, owner: str, id: str) -> None:
        """Note what the last request has created."""
        self._extra[owner] -= 1
        self._answered[owner].add(id)

    def problems(self, kind: str, rows: Iterable[tuple[str, str]]) -> list[str]:
        """Return what is too many of ids with owners, and go on from these."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        for id, owner in rows:
            found[owner].add(id)
        problems = []
        for owner, ids in found.items():
            unknown = ids - self._answered[owner]
            possible = self._extra[owner]
            if owner in self._known:
                unknown -= self._known[owner]
            else:
                possible += self._first
            if len(unknown) > possible:
                problems.append(
                    f'{kind}s {sorted(unknown)} of {owner} exist, and '
                    f'requests can have created only {possible} of them'
                )
        self._known = dict(found)
        self._answered.clear()
        self._extra.clear()
        return problems
