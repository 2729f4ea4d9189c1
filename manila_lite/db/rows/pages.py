"""The page of a list that a request asks for."""

import datetime
from typing import NamedTuple, Protocol


class Position(NamedTuple):
    """The last row of a page, in the default order."""

    created_at: datetime.datetime
    id: str


class Page(Protocol):
    """The part of a list that a request asks for, and its order.

    A page begins behind `after` if it is set, which is the fast way into a
    long list in its default order, or behind the row with the id `marker`;
    otherwise `offset` rows are skipped.
    """

    @property
    def limit(self) -> int | None: ...

    @property
    def offset(self) -> int: ...

    @property
    def after(self) -> Position | None: ...

    @property
    def marker(self) -> str | None: ...

    @property
    def sort_key(self) -> str: ...

    @property
    def sort_dir(self) -> str: ...
