"""Hints for the query planner of SQLite, which has no statistics."""

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import expression


class filter_only(expression.FunctionElement):  # noqa: N801 reads as SQL
    """A column that selects among rows found by another condition.

    SQLite, which has no statistics here, would prefer any index of the
    column. The other databases choose by themselves.
    """

    type = sa.String()
    inherit_cache = True
    name = 'filter_only'


@compiler.compiles(filter_only)
def _plain(element: filter_only, compiler: sa.Compiled, **kw: object) -> str:
    return compiler.process(element.clauses, **kw)


@compiler.compiles(filter_only, 'sqlite')
def _without_index(element: filter_only, compiler: sa.Compiled, **kw: object) -> str:
    return f'+{compiler.process(element.clauses, **kw)}'
