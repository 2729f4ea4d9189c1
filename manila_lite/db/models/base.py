"""The column types and the declarative base of all models."""

import datetime
import typing

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql
from sqlalchemy.ext import compiler
from sqlalchemy.sql import expression
from sqlalchemy.sql.compiler import DDLCompiler

from manila_lite import masking

NAMING = {
    'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
    'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
    'fk': 'fk_%(table_name)s_%(column_0_name)s',
    'pk': 'pk_%(table_name)s',
}

# Names are case- and accent-sensitive, as on SQLite and PostgreSQL.
TABLE_OPTIONS = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
}

Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
"""A time in UTC to the microsecond, without a zone."""

NEVER = datetime.datetime(9999, 12, 31)
"""Stands for no time in columns whose first row is asked for by an index.

Unlike NULL, it comes after all others in every database.
"""

EpochSeconds: sa.Double[float] = sa.Double()
"""Seconds since 1970 by the clock of the database."""

Document = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
"""JSON, as text."""


class _MaskedText(sa.types.TypeDecorator):
    """Text that is masked when it is written."""

    impl = sa.Text
    cache_ok = True

    @property
    def python_type(self) -> type[str]:
        return str

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return value if value is None else masking.mask(value)


MaskedText = _MaskedText()
"""What drivers and libraries say, without the secrets in it."""

Id = sa.String(36)
Name = sa.String(255)
BigInteger = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
AutoIncrement = BigInteger


class _ServiceHost(expression.FunctionElement):
    """The part of a host before its pool: host@backend."""

    type = Name
    inherit_cache = True
    name = 'service_host'


@compiler.compiles(_ServiceHost, 'postgresql')
def _split(element: _ServiceHost, compiler: sa.Compiled, **kw: object) -> str:
    return f"split_part({compiler.process(element.clauses, **kw)}, '#', 1)"


@compiler.compiles(_ServiceHost, 'mysql')
@compiler.compiles(_ServiceHost, 'mariadb')
def _index(element: _ServiceHost, compiler: sa.Compiled, **kw: object) -> str:
    host = compiler.process(element.clauses, **kw)
    return f"substring_index({host}, '#', 1)"


@compiler.compiles(_ServiceHost, 'sqlite')
def _substr(element: _ServiceHost, compiler: sa.Compiled, **kw: object) -> str:
    host = compiler.process(element.clauses, **kw)
    return f"substr({host}, 1, instr({host} || '#', '#') - 1)"


class _Stored(sa.Computed):
    """A generated column that is stored; virtual on SQLite.

    SQLite can add only virtual ones to a table, and indexes them as well.
    """

    def __init__(self, sqltext: sa.ColumnElement[str]):
        super().__init__(sqltext, persisted=True)


@compiler.compiles(_Stored, 'sqlite')
def _virtual(element: _Stored, compiler: DDLCompiler, **kw: object) -> str:
    return compiler.visit_computed_column(sa.Computed(element.sqltext, persisted=False))


def service_host_column() -> orm.MappedColumn[str]:
    """Return a column that the database computes from the column `host`.

    It follows every change of the host, also by a process of an earlier
    release.
    """
    return orm.mapped_column(Name, _Stored(_ServiceHost(sa.column('host'))))


class Base(orm.DeclarativeBase):
    metadata = sa.MetaData(naming_convention=NAMING)
    # Every model is one table, never a join.
    __table__: typing.ClassVar[sa.Table]
    __table_args__: tuple = (TABLE_OPTIONS,)


class Record(Base):
    """A row with an id, the time of its creation and that of its last change.

    A new table has its columns in the order in which migrations added them, so
    a model with columns that came after these times lists all of its own.
    """

    __abstract__ = True

    id = orm.mapped_column(Id, primary_key=True, sort_order=-1)
    created_at = orm.mapped_column(Timestamp, nullable=False, sort_order=1)
    updated_at = orm.mapped_column(Timestamp, sort_order=2)


class Metadata(Base):
    """A key and its value; the model adds what they belong to."""

    __abstract__ = True

    key = orm.mapped_column(Name, primary_key=True, sort_order=1)
    value = orm.mapped_column(sa.String(1023), nullable=False, sort_order=2)


class Spec(Base):
    """An extra spec of a type; the model adds which type."""

    __abstract__ = True

    spec_key = orm.mapped_column(Name, primary_key=True, sort_order=1)
    spec_value = orm.mapped_column(Name, nullable=False, sort_order=2)


def part_of(
    table: str, *, primary_key: bool = False, nullable: bool = False
) -> orm.MappedColumn[str]:
    """Return a column with the id of a row with which this one is deleted."""
    return orm.mapped_column(
        sa.ForeignKey(f'{table}.id', ondelete='CASCADE'),
        primary_key=primary_key,
        nullable=nullable,
    )


def table_args(*kinds: sa.Index | sa.UniqueConstraint) -> tuple:
    """Return the table arguments of a model with indexes."""
    return (*kinds, TABLE_OPTIONS)


@sa.event.listens_for(sa.Table, 'before_create')
def _use_kinds_of_indexes(
    table: sa.Table, connection: sa.Connection, **_: object
) -> None:
    """Create indexes on PostgreSQL as their `info` says.

    As an argument of the index it would load the dialect in every process.
    """
    if connection.dialect.name == 'postgresql':
        for index in table.indexes:
            if 'postgresql_using' in index.info:
                using = index.info['postgresql_using']
                index.dialect_kwargs['postgresql_using'] = using
