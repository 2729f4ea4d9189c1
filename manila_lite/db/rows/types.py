"""Share types."""

from typing import Protocol


class TypeAccessRow(Protocol):
    """A project that may use a private type.

    The id of the type is there, too, as `TypeTables.type_key` names it.
    """

    project_id: str
