"""Pages of lists: order, start and length."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import datetime
import functools
import operator
import typing

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

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

FEW = 1000
"""Matches of a criterion at most that are read before the list.

The list of all projects is read in the order of its index until the page is
full, and so to its end if few rows of other tables match.
"""

_NO_LIMIT = 2**31 - 1  # MariaDB and SQLite need a limit with an offset


class Listing(typing.NamedTuple):
    """Rows to show, and what views read in addition by name.

    Children of the rows, such as their metadata, are by the id of the row.
    """

    rows: Sequence[typing.Any]
    children: dict[str, typing.Any]
    total: int | None = None


def to_show(column: sa.Column) -> sa.ColumnElement:
    """Return the column, without conversion of timestamps.

    On SQLite they are stored as text, which is what responses need.
    """
    if isinstance(column.type, sa.DateTime):
        return sa.type_coerce(column, sa.types.NullType()).label(column.name)
    return column


def is_unique(rows: Sequence[sa.Row]) -> bool:
    """Return whether no two rows have the same id, their first column."""
    # Access by index is ten times faster than by name.
    return len({row[0] for row in rows}) == len(rows)


def choose_first(
    rows: Sequence[sa.Row], rank: Callable[[sa.Row], typing.Any]
) -> list[sa.Row]:
    """Return the row of the lowest rank for each id, in the order of ids."""
    chosen: dict[str, sa.Row] = {}
    for row in rows:
        other = chosen.get(row.id)
        if other is None or rank(row) < rank(other):
            chosen[row.id] = row
    return list(chosen.values())


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
    return limit_to_page(select_head(statement, page, table, key, limited=False), page)


def list_rows(
    session: Session,
    statement: sa.Select,
    table: sa.FromClause,
    page: Page,
    exact: Mapping[str, object],
    like: Mapping[str, str] | None = None,
    where: Sequence[sa.ColumnElement[bool]] = (),
) -> Sequence[typing.Any]:
    """Return the rows of a page with these values of columns.

    Values of `like` are contained in the columns. `where` has further
    conditions.
    """
    conditions = [*(table.c[name] == value for name, value in exact.items()), *where]
    if like and 'project_id' not in exact:
        check_search(session, table, conditions)
    conditions += [
        contains(session, table.c[name], text) for name, text in (like or {}).items()
    ]
    check_length(session, page, table, conditions, count=False)
    statement = statement.where(*conditions)
    return session.rows(select_page(statement, page, table))


def limit_to_page(statement: sa.Select, page: Page) -> sa.Select:
    """Return the rows of a page of an ordered statement."""
    offset = _skipped(page)
    if page.limit is not None or offset:
        statement = statement.limit(_NO_LIMIT if page.limit is None else page.limit)
    return statement.offset(offset) if offset else statement


def select_head(
    statement: sa.Select,
    page: Page,
    table: sa.FromClause,
    key: sa.ColumnElement | None = None,
    union: Sequence[sa.Select] = (),
    *,
    limited: bool = True,
) -> sa.Select:
    """Return the rows of this statement that can be on a page of a union.

    These are as many as precede the end of the page. The row with the id of
    the marker is in one of the statements of the `union`.
    """
    key = table.c[page.sort_key] if key is None else key
    statement = statement.where(
        *_follows(page, table, key, union or [statement])
    ).order_by(*order(page, table, key))
    if page.limit is None or not limited:
        return statement
    return statement.limit(_skipped(page) + page.limit)


def _skipped(page: Page) -> int:
    """Return how many rows a page skips in addition to its position."""
    return 0 if page.after or page.marker else page.offset


def _follows(
    page: Page,
    table: sa.FromClause,
    key: sa.ColumnElement,
    statements: Sequence[sa.Select],
) -> Collection[sa.ColumnElement[bool]]:
    """Return the condition that a row follows the position of a page.

    A marker counts within the list only, so that it reveals nothing about other
    resources: no row follows an id that is not in the list.
    """
    is_descending = page.sort_dir == 'desc'
    if page.after is not None:
        return is_behind(
            page.after, table.c.created_at, table.c.id, descending=is_descending
        )
    if page.marker is None:
        return ()

    # MariaDB enters an index at a value that it finds by a unique key only.
    last_key = (
        sa.select(key)
        .select_from(table)
        .where(table.c.id == page.marker)
        .correlate(None)
        .scalar_subquery()
    )
    is_listed = sa.or_(
        *(
            statement.with_only_columns(table.c.id)
            .where(table.c.id == page.marker)
            .order_by(None)
            .correlate(None)
            .exists()
            for statement in statements
        )
    )
    last_id = page.marker
    if page.sort_key == DEFAULT_SORT_KEY:
        return is_listed, *is_behind(
            (last_key, last_id), key, table.c.id, descending=is_descending
        )
    behind = operator.lt if is_descending else operator.gt
    rank, last_rank = _null_rank(key), _null_rank(last_key)
    return (
        is_listed,
        sa.or_(
            behind(rank, last_rank),
            sa.and_(
                rank == last_rank,
                sa.or_(
                    behind(key, last_key),
                    sa.and_(
                        sa.or_(key == last_key, last_key.is_(None)),
                        behind(table.c.id, last_id),
                    ),
                ),
            ),
        ),
    )


class _null_rank(GenericFunction):  # noqa: N801 - a function of SQL
    """The position of null among other values, as 0 and 1 in sort order."""

    type = sa.Integer()
    inherit_cache = True


@compiles(_null_rank)
def _nulls_first(element: _null_rank, compiler: SQLCompiler, **kwargs: object) -> str:
    (argument,) = element.clauses
    return compiler.process(sa.case((argument.is_(None), 0), else_=1), **kwargs)


@compiles(_null_rank, 'postgresql')
def _nulls_last(element: _null_rank, compiler: SQLCompiler, **kwargs: object) -> str:
    (argument,) = element.clauses
    return compiler.process(sa.case((argument.is_(None), 1), else_=0), **kwargs)


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
        sa.select(sa.func.count()).select_from(part).scalar_subquery() for part in parts
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


def check_search(
    session: Session, table: sa.FromClause, conditions: Collection[sa.ColumnElement]
) -> None:
    """Raise InvalidInput if a list is too long to be searched for a text.

    `conditions` are those of the list beside the text.
    """
    beyond = sa.select(sa.literal(1)).select_from(table).limit(1).offset(LONGEST)
    if session.value(beyond) and session.value(beyond.where(*conditions)):
        raise exception.InvalidInput(
            reason='a search for part of a text is not possible in a list of more '
            f'than {LONGEST} items; narrow the list with filters'
        )


def find_few(
    session: Session, candidates: Iterable[sa.Select]
) -> Collection[str] | None:
    """Return the ids of the first of these selections that is short.

    Each of them is of all that meet one criterion of a list, and enters an
    index. None if all are long: then a page fills up soon.
    """
    for candidate in candidates:
        found = {row[0] for row in session.rows(candidate.limit(FEW + 1))}
        if len(found) <= FEW:
            return found
    return None


def contains(
    session: Session, column: sa.ColumnElement, text: str
) -> sa.ColumnElement[bool]:
    """Return a case-sensitive substring match, unlike LIKE of SQLite."""
    position = sa.func.strpos if session.dialect == 'postgresql' else sa.func.instr
    return position(column, text) > 0
