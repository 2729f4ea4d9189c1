"""Compiled statements, found by the identity of the statement.

SQLAlchemy finds them by a key that describes the whole statement. To hash it
takes a quarter of the time of a short statement, because tuples do not keep
their hash. Most of our statements are constants of modules, and their key is
always the same object.
"""

from collections.abc import Hashable, Iterator, MutableMapping
import typing

from sqlalchemy import util

SIZE = 500
KNOWN = 300
"""Statements that are found by identity; more than are constants and used."""


class StatementCache(MutableMapping):
    """What the execution option `compiled_cache` wants, for one engine.

    A key found by its identity is compared as well, which is quick if it is
    the same object. So a wrong guess only costs time.
    """

    def __init__(self, size: int = SIZE, known: int = KNOWN):
        self._compiled: util.LRUCache[Hashable, typing.Any] = util.LRUCache(size)
        self._size = known
        self._known: dict[Hashable, tuple[Hashable, typing.Any]] = {}
        self._seen: set[Hashable] = set()

    def get(self, key: typing.Any, default: typing.Any = None) -> typing.Any:
        identity = (id(key[1]), *key[2:])
        known = self._known.get(identity)
        if known is not None and known[0] == key:
            return known[1]
        compiled = self._compiled.get(key)
        if compiled is None:
            return default
        self._remember(identity, key, compiled)
        return compiled

    def _remember(
        self, identity: Hashable, key: Hashable, compiled: typing.Any
    ) -> None:
        """Remember a statement that is used again.

        One that was made for this execution does not come back.
        """
        if identity not in self._seen:
            _limit(self._seen, self._size)
            self._seen.add(identity)
            return
        _limit(self._known, self._size)
        self._known[identity] = (key, compiled)

    def __getitem__(self, key: typing.Any) -> typing.Any:
        return self._compiled[key]

    def __setitem__(self, key: typing.Any, compiled: typing.Any) -> None:
        self._compiled[key] = compiled

    def __delitem__(self, key: typing.Any) -> None:
        self.clear()

    def __iter__(self) -> Iterator:
        return iter(self._compiled)

    def __len__(self) -> int:
        return len(self._compiled)

    def clear(self) -> None:
        self._compiled.clear()
        self._known.clear()
        self._seen.clear()


def _limit(found: typing.Any, size: int) -> None:
    # All at once: which are in use shows soon.
    if len(found) >= size:
        found.clear()
