"""Insert a row, or change the one that is there, in one statement."""

from collections.abc import Mapping, Sequence
import importlib
import typing

import sqlalchemy as sa


def build_upsert(
    dialect: str,
    table: sa.FromClause,
    values: Mapping[str, typing.Any],
    changes: Mapping[str, typing.Any],
    keys: Sequence[str],
) -> typing.Any:
    """Return an upsert: insert `values`, or make `changes` to the row.

    `keys` are the columns of the unique index that finds the row; MySQL
    looks in all unique indexes.
    """
    # Only the dialect in use: that of PostgreSQL takes 2 MiB and 40 ms.
    insert = importlib.import_module(f'sqlalchemy.dialects.{dialect}').insert(table)
    if dialect == 'mysql':
        return insert.values(values).on_duplicate_key_update(changes)
    return insert.values(values).on_conflict_do_update(
        index_elements=list(keys), set_=changes
    )
