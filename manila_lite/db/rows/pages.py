"""Pages of lists, and what rows of many kinds have in common."""

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


class OwnedRow(Protocol):
    """The owner of a resource, as authorization and messages need it."""

    project_id: str
    user_id: str | None


class IdRow(Protocol):
    """A row of which only the id matters."""

    id: str


class IdStatusRow(Protocol):
    """The id and the status of a resource."""

    id: str
    status: str


class TypeAccessRow(Protocol):
    """A project that may use a private type.

    The id of the type is there, too, as `TypeTables.type_key` names it.
    """

    project_id: str
