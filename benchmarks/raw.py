"""The same rows as a request reads, by the bare driver of the database."""

from collections.abc import Callable, Iterator
import contextlib
import typing

import orjson
import sqlalchemy as sa

from benchmarks.application import Application


@contextlib.contextmanager
def reader(
    application: Application, path: str
) -> Iterator[Callable[[], bytes]]:
    """What reads the rows of a list and dumps them, and does no more.

    It executes the very statements of the request, on a cursor of a
    connection as the driver gives it.
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


def _statements(
    application: Application, path: str
) -> list[tuple[str, typing.Any]]:
    found = []

    def note(connection, cursor, statement, parameters, context, many):
        if statement.startswith('SELECT'):
            found.append((statement, parameters))

    sa.event.listen(sa.Engine, 'before_cursor_execute', note)
    application.get(path)
    sa.event.remove(sa.Engine, 'before_cursor_execute', note)
    return found
