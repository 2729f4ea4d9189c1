"""Storage for what a driver has to remember about its resources."""

from collections.abc import Mapping
from typing import Protocol, overload


class PrivateStorage(Protocol):
    """Texts by id of a resource and key, shared by all back ends.

    Ids are UUIDs: those of shares, share instances, snapshots and share
    servers, whose data is deleted together with them, or others of the
    driver's own. Every call is a transaction of its own, and durable when
    it returns.
    """

    @overload
    def get(
        self, entity_id: str, key: str, default: str | None = None
    ) -> str | None: ...

    @overload
    def get(
        self, entity_id: str, key: list[str] | None = None, default: str | None = None
    ) -> dict[str, str]: ...

    def get(
        self,
        entity_id: str,
        key: str | list[str] | None = None,
        default: str | None = None,
    ) -> str | dict[str, str] | None:
        """Return the value of a key, or `default` if there is none.

        For several keys, or without `key`, return a dict of those that
        exist.
        """

    def update(
        self,
        entity_id: str,
        details: Mapping[str, object],
        delete_existing: bool = False,
    ) -> Mapping[str, object]:
        """Set keys to the texts of these values; return `details`.

        Other keys remain, unless `delete_existing` is true. Raises
        InvalidInput for an id that is no UUID, for keys and values that
        are too long, and for values that are no text, number or bool.
        """

    def delete(self, entity_id: str, key: str | list[str] | None = None) -> None:
        """Delete one key, several, or all; missing ones are ignored."""
