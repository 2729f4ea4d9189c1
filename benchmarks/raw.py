"""Reads the same rows as a request, with the bare database driver."""

from collections.abc import Callable, Iterator
import contextlib
import typing

import orjson
import sqlalchemy as sa

from benchmarks.application import Application


@contextlib.contextmanager
def reader(application: Application, path: str) -> Iterator[Callable[[], bytes]]:
    """Yield a function that reads the rows of a list and dumps them.

    It executes the statements of the request on a plain cursor of the
    database driver.
    """
    statements = _statements(application, path)
    engine = application.db.engine
    arguments, options = engine.dialect.create_connect_args(engine.url)
    connection = engine.dialect.loaded_dbapi.connect(*arguments, **options)
    cursor = connection.cursor()

    def read() -> bytes:
        rows = []
        for statement, parameters in statements:
            cursor.execute(statement, parameters)
            rows.append(cursor.fetchall())
        return orjson.dumps(rows)

    with contextlib.closing(connection):
        yield read


def _statements(application: Application, path: str) -> list[tuple[str, typing.Any]]:
    found = []

    def record_statement(connection, cursor, statement, parameters, context, many):
        # A time limit may precede it.
        _, found_select, rest = statement.partition('SELECT')
        if found_select:
            found.append((found_select + rest, parameters))

    sa.event.listen(sa.Engine, 'before_cursor_execute', record_statement)
    application.get(path)
    sa.event.remove(sa.Engine, 'before_cursor_execute', record_statement)
    return found
