"""The column types and the declarative base of all models."""

import typing

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

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

Timestamp = sa.DateTime().with_variant(
    mysql.DATETIME(fsp=6), 'mysql', 'mariadb'
)
"""A time in UTC to the microsecond, without a zone."""

EpochSeconds: sa.Double[float] = sa.Double()
"""Seconds since 1970 by the clock of the database."""

Document = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
"""JSON, as text."""

Id = sa.String(36)
Name = sa.String(255)
AutoIncrement = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


class Base(orm.DeclarativeBase):
    metadata = sa.MetaData(naming_convention=NAMING)
    # Every model is one table, never a join.
    __table__: typing.ClassVar[sa.Table]


def table_args(*kinds: sa.Index | sa.UniqueConstraint) -> tuple:
    """Return the table arguments of a model: indexes and options."""
    return (*kinds, TABLE_OPTIONS)
