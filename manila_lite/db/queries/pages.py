"""Pages of lists: their order, where they begin, and how long they are."""

from collections.abc import Collection, Mapping, Sequence
import datetime
import functools
import operator
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.rows import Page
from manila_lite.db.session import Session

DEFAULT_SORT_KEY = 'created_at'

BEGINNING = (datetime.datetime(1970, 1, 1), '')
"""The position that precedes all rows in an order by time."""

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


def list_rows(
    session: Session,
    statement: sa.Select,
    table: sa.FromClause,
    page: Page,
    exact: Mapping[str, object],
    like: Mapping[str, str] | None = None,
) -> Sequence[typing.Any]:
    """Return the rows of a page with these values of columns.

    Values of `like` are contained in the columns.
    """
    conditions = [table.c[name] == value for name, value in exact.items()]
    conditions += [
        contains(session, table.c[name], text)
        for name, text in (like or {}).items()
    ]
    check_length(session, page, table, conditions, count=False)
    statement = statement.where(*conditions)
    return session.rows(select_page(statement, page, table))


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
    """Return the condition that a row follows the position of a page."""
    if page.after is None:
        return ()
    return is_behind(
        page.after,
        table.c.created_at,
        table.c.id,
        descending=page.sort_dir == 'desc',
    )


def is_behind(
    position: tuple[typing.Any, typing.Any],
    key: sa.ColumnElement,
    id: sa.ColumnElement,
    *,
    descending: bool = False,
) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """Return the condition that a row follows a position, which is a pair.

    Rows are in order of `key`, then `id`. An index on these is entered at the
    position: the first part of the condition is redundant but a range of the
    index, which databases do not derive from the second one.
    """
    last_key, last_id = position
    if descending:
        return key <= last_key, sa.or_(key < last_key, id < last_id)
    return key >= last_key, sa.or_(key > last_key, id > last_id)


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


def contains(
    session: Session, column: sa.ColumnElement, text: str
) -> sa.ColumnElement[bool]:
    """Return a case-sensitive substring match, unlike LIKE of SQLite."""
    position = (
        sa.func.strpos if session.dialect == 'postgresql' else sa.func.instr
    )
    return position(column, text) > 0
