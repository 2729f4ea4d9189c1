"""What values columns have, by name, for the description of the API."""

import datetime
import functools
import typing

import sqlalchemy as sa

from manila_lite.db import models

_KINDS: tuple[tuple[type, type], ...] = (
    (sa.Boolean, bool),
    (sa.Integer, int),
    (sa.Float, float),
    (sa.DateTime, datetime.datetime),
    (sa.String, str),
)


@functools.cache
def kinds_by_name() -> dict[str, set[type]]:
    """Return the Python types of the values of all columns with a name.

    `NoneType` is one of them if such a column is nullable in any table.
    """
    found: dict[str, set[type]] = {}
    for table in models.metadata.sorted_tables:
        for column in table.columns:
            kind = _kind(column.type)
            if kind is not None:
                kinds = found.setdefault(column.name, set())
                kinds.add(kind)
                if column.nullable:
                    kinds.add(type(None))
    return found


def _kind(column: typing.Any) -> type | None:
    stored = getattr(column, 'impl', column)  # of a type of our own
    return next((kind for stores, kind in _KINDS if isinstance(stored, stores)), None)
