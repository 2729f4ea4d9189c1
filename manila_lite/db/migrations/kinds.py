"""Column types and table options of the migrations.

Models may change, released migrations may not, so the migrations have
their own definitions.
"""

import typing

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

OPTIONS: dict[str, typing.Any] = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
}
ID = sa.String(36)
NAME = sa.String(255)
STAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
DOCUMENT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
COUNTER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
