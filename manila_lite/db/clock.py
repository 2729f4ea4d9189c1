"""The clock of the database as an SQL element, for guards."""

import typing

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import expression


class db_now(expression.FunctionElement):  # noqa: N801 reads as SQL
    """Seconds since 1970 by the clock of the database.

    On SQLite it calls back into the process, so that a simulation can
    control the time.
    """

    type = sa.Double()
    inherit_cache = True
    name = 'db_now'


@compiler.compiles(db_now, 'sqlite')
def _sqlite(element: db_now, compiler: object, **kw: object) -> str:
    return 'epoch_now()'


@compiler.compiles(db_now, 'mysql')
@compiler.compiles(db_now, 'mariadb')
def _mysql(element: db_now, compiler: object, **kw: object) -> str:
    return 'UNIX_TIMESTAMP(NOW(6))'


@compiler.compiles(db_now, 'postgresql')
def _postgresql(element: db_now, compiler: object, **kw: object) -> str:
    return 'EXTRACT(EPOCH FROM clock_timestamp())::double precision'


class larger_of(expression.FunctionElement):  # noqa: N801 reads as SQL
    """The larger of two numbers."""

    type = sa.BigInteger()
    inherit_cache = True
    name = 'greatest'


@compiler.compiles(larger_of)
def _greatest(element: larger_of, compiler: sa.Compiled, **kw: typing.Any) -> str:
    return f'GREATEST({compiler.process(element.clauses, **kw)})'


@compiler.compiles(larger_of, 'sqlite')
def _max(element: larger_of, compiler: sa.Compiled, **kw: typing.Any) -> str:
    return f'MAX({compiler.process(element.clauses, **kw)})'
