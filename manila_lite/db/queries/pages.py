"""Pages of lists: their order, where they begin, and how long they are."""

from collections.abc import Collection
import functools
import operator

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.rows import Page
from manila_lite.db.session import Session

DEFAULT_SORT_KEY = 'created_at'

LONGEST = 100_000
"""Longest list that is sorted by another key, or counted.

Both read all rows of a list to show a page. The default order is read from
an index, so that there a page costs the same in a list of any length.
"""

_NO_LIMIT = 2**31 - 1  # MariaDB and SQLite need a limit with an offset


def order(
    page: Page, table: sa.FromClause, key: sa.ColumnElement | None = None
) -> list[sa.ColumnElement]:
    """Return the order of a page: by its sort key, then by id.

    `key` is the value of a sort key that is not a column of the table.
    """
    direction = sa.desc if page.sort_dir == 'desc' else sa.asc
    if key is None:
        key = table.c[page.sort_key]
    return [direction(key), direction(table.c.id)]


def select_page(
    statement: sa.Select,
    page: Page,
    table: sa.FromClause,
    key: sa.ColumnElement | None = None,
) -> sa.Select:
    """Return the rows of a page of this statement."""
    statement = statement.where(*follows(page, table)).order_by(
        *order(page, table, key)
    )
    return cut(statement, page)


def cut(statement: sa.Select, page: Page) -> sa.Select:
    """Return the rows of a page of an ordered statement."""
    offset = 0 if page.after else page.offset
    if page.limit is not None or offset:
        statement = statement.limit(
            _NO_LIMIT if page.limit is None else page.limit
        )
    return statement.offset(offset) if offset else statement


def select_head(
    statement: sa.Select,
    page: Page,
    table: sa.FromClause,
    key: sa.ColumnElement | None = None,
) -> sa.Select:
    """Return the rows of this statement that can be on a page of a union.

    These are as many as precede the end of the page.
    """
    statement = statement.where(*follows(page, table)).order_by(
        *order(page, table, key)
    )
    if page.limit is None:
        return statement
    return statement.limit((0 if page.after else page.offset) + page.limit)


def follows(
    page: Page, table: sa.FromClause
) -> Collection[sa.ColumnElement[bool]]:
    """Return the condition that a row follows the position of a page.

    An index on `created_at` and `id` is entered at this position: the first
    part of the condition is redundant but a range of the index, which
    databases do not derive from the second one.
    """
    if page.after is None:
        return ()
    made, id = page.after
    created_at = table.c.created_at
    if page.sort_dir == 'desc':
        return (created_at <= made, sa.or_(created_at < made, table.c.id < id))
    return (created_at >= made, sa.or_(created_at > made, table.c.id > id))


def check_length(
    session: Session,
    page: Page,
    table: sa.FromClause,
    *lists: Collection[sa.ColumnElement[bool]],
    count: bool,
) -> int | None:
    """Return the length of a list if `count` is set, else None.

    The list has the rows of the table that meet all conditions of one of
    `lists`, which exclude each other. Raises InvalidInput for a list that
    is too long to be counted, or to be sorted as the page demands.
    """
    is_sorted = page.sort_key != DEFAULT_SORT_KEY
    if not (count or is_sorted):
        return None
    parts = (
        sa.select(sa.literal(1).label('one'))
        .select_from(table)
        .where(*conditions)
        .limit(LONGEST + 1)
        .subquery()
        for conditions in lists
    )
    lengths = [
        sa.select(sa.func.count()).select_from(part).scalar_subquery()
        for part in parts
    ]
    length = session.value(sa.select(functools.reduce(operator.add, lengths)))
    if length > LONGEST:
        rule = (
            f'sort_key must be {DEFAULT_SORT_KEY}'
            if is_sorted
            else 'with_count is not possible'
        )
        raise exception.InvalidInput(
            reason=f'{rule} for a list of more than {LONGEST} items; '
            'narrow the list with filters'
        )
    return length if count else None
