"""Statements of a service, and what its account may do.

The services of a `Cloud` share one database, so each gets an object of its own
that says which service runs a transaction. A statement that the table of
`manila_lite.db.grants` does not allow fails the test.
"""

from collections.abc import Iterator
import contextvars
import functools
import typing

import sqlalchemy as sa
from sqlalchemy.sql import selectable, visitors

from manila_lite.db import grants, models
from manila_lite.db.session import Database

_VERBS = {word.lower(): letter for letter, word in grants.VERBS.items()}
_service: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    'service', default=None
)


class ServiceDatabase:
    """The database as one service uses it."""

    def __init__(self, db: Database, service: str):
        self._db = db
        self._service = service

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._db, name)

    def write(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return self._run(self._db.write, *args, **kwargs)

    def write_once(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return self._run(self._db.write_once, *args, **kwargs)

    def read(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return self._run(self._db.read, *args, **kwargs)

    def _run(
        self, method: typing.Any, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        token = _service.set(self._service)
        try:
            return method(*args, **kwargs)
        finally:
            _service.reset(token)


def needs(statement: sa.Executable) -> Iterator[tuple[str, str]]:
    """Yield each table that a statement uses, and the verb."""
    for part in visitors.iterate(typing.cast(typing.Any, statement)):
        if isinstance(part, sa.Table) and part.name in models.metadata.tables:
            yield part.name, 'select'
        elif isinstance(part, sa.Insert):
            yield part.table.name, 'insert'
            if part._post_values_clause is not None:
                yield part.table.name, 'update'
        elif isinstance(part, sa.Update):
            yield part.table.name, 'update'
            yield part.table.name, 'select'
        elif isinstance(part, sa.Delete):
            yield part.table.name, 'delete'
            yield part.table.name, 'select'
        elif isinstance(part, selectable.Select) and part._for_update_arg is not None:
            for table in part._for_update_arg.of or part.get_final_froms():
                for one in visitors.iterate(table):
                    if isinstance(one, sa.Table):
                        yield one.name, 'lock'


class Refused(BaseException):
    """A server would refuse this; no code of ours may handle it."""


def check(db: Database) -> None:
    """Refuse what services may not do that have a `ServiceDatabase`."""
    for engine in {db.engine, db._read_engine}:
        sa.event.listen(engine, 'before_execute', _check)


def _check(connection: sa.Connection, statement: typing.Any, *rest: object) -> None:
    service = _service.get()
    if service is None:
        return
    rights = _rights(service)
    for table, verb in needs_of(statement):
        allowed = rights.get(table, '')
        if verb == 'lock':
            if not {'U', grants.LOCK} & {*allowed}:
                raise Refused(f'{service} locks rows of {table}')
        elif _VERBS[verb] not in allowed:
            raise Refused(f'{service} has no right to {verb} on {table}')


_rights = functools.lru_cache(grants.rights)


@functools.lru_cache(maxsize=4000)
def needs_of(statement: typing.Any) -> frozenset[tuple[str, str]]:
    return frozenset(needs(statement))
