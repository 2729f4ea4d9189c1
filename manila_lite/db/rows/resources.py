"""Rows of any resource."""

from typing import Protocol


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
