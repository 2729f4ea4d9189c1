"""Transactions that lose against others, by errors of the server itself."""

from collections.abc import Iterator
import contextlib
import sqlite3

import sqlalchemy as sa

from manila_lite.db.session import Session

_BEGIN = {
    'mysql': (
        'CREATE TRIGGER conflict BEFORE INSERT ON {table} FOR EACH ROW '
        "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213",
    ),
    'postgresql': (
        'CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql '
        "AS $$BEGIN RAISE EXCEPTION SQLSTATE '40001'; END$$",
        'CREATE TRIGGER conflict BEFORE INSERT ON {table} '
        'FOR EACH ROW EXECUTE FUNCTION conflict()',
    ),
}
_END = {
    'mysql': ('DROP TRIGGER conflict',),
    'postgresql': ('DROP FUNCTION conflict CASCADE',),
}


@contextlib.contextmanager
def lost_inserts(url: str, table: str) -> Iterator[None]:
    """Let every INSERT into the table fail as if it lost a conflict.

    On SQLite another writer does not commit, so that no write succeeds.
    """
    parsed = sa.make_url(url)
    kind = parsed.get_backend_name()
    if kind == 'sqlite':
        with contextlib.closing(
            sqlite3.connect(parsed.database, isolation_level=None)
        ) as writer:
            writer.execute('BEGIN IMMEDIATE')
            yield
        return
    engine = sa.create_engine(
        url, isolation_level='AUTOCOMMIT', poolclass=sa.pool.NullPool
    )
    _run(engine, _BEGIN[kind], table)
    try:
        yield
    finally:
        _run(engine, _END[kind], table)


@contextlib.contextmanager
def frozen_session(url: str, statement: str) -> Iterator[None]:
    """Lock rows in a session of an administrator, which has no limit.

    SQLite locks no rows.
    """
    engine = sa.create_engine(
        url, isolation_level='READ COMMITTED', poolclass=sa.pool.NullPool
    )
    with engine.connect() as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0
        yield
        connection.rollback()


def _run(engine: sa.Engine, statements: tuple[str, ...], table: str) -> None:
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement.format(table=table))


def lose(session: Session) -> None:
    """Fail as a statement does that loses a conflict."""
    session.run(
        sa.text(
            "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213"
            if session.dialect == 'mysql'
            else "DO $$BEGIN RAISE EXCEPTION SQLSTATE '40001'; END$$"
        )
    )
