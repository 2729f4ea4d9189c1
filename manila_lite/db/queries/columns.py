"""The columns that row types name, and the types of their values."""

from collections.abc import Iterable
import datetime
import functools

import sqlalchemy as sa

from manila_lite.db import models

_KINDS: tuple[tuple[type, type], ...] = (
    (sa.Boolean, bool),
    (sa.Integer, int),
    (sa.Float, float),
    (sa.DateTime, datetime.datetime),
    (sa.String, str),
)


def columns(
    row: type, *tables: sa.FromClause, **others: sa.ColumnElement
) -> list[sa.ColumnElement]:
    """Return the columns of a row type, each of the first table that has it.

    `others` are those of another name or table.
    """
    names = dict.fromkeys(
        name
        for part in reversed(row.__mro__)
        for name in vars(part).get('__annotations__', ())
    )
    return [
        others[name].label(name) if name in others else _first(name, tables)
        for name in names
    ]


def _first(name: str, tables: Iterable[sa.FromClause]) -> sa.ColumnElement:
    for table in tables:
        if name in table.c:
            return table.c[name]
    raise LookupError(f'no table has the column {name}')


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


def _kind(column: object) -> type | None:
    stored = getattr(column, 'impl', column)  # of a type of our own
    return next((kind for stores, kind in _KINDS if isinstance(stored, stores)), None)
