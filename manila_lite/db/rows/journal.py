"""Moves of the journal that are to be sent, and whom they belong to."""

from typing import Protocol

from manila_lite.db.rows.figures import MoveRow


class UnsentMoveRow(MoveRow, Protocol):
    """A move that has not been sent; the parent is that of a row now gone."""

    parent_id: str | None
    project_id: str | None
    reason: str | None


class MoveOwnerRow(Protocol):
    """The parent and the project of a row."""

    id: str
    parent_id: str | None
    project_id: str | None
