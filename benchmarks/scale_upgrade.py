"""Requests beside the migration of a large database from the last release.

They are those of the release before: its columns, and what a request that is
accepted reads, changes and inserts in the tables that grow with use.
"""

from collections.abc import Iterator
import contextlib
import random
import threading
import time
import typing
import uuid

from alembic import command
from oslo_db import exception as db_exc
import sqlalchemy as sa

from benchmarks.verdict import Verdict
from manila_lite.db import schema
from manila_lite.db.session import Database, Session

LONGEST_WAIT = 1000
"""The milliseconds for which a request may wait."""

THREADS = 4
_READ = ('shares', 'share_instances')
_CHANGED = ('share_instances', 'share_groups', 'share_servers')
_INSERTED = ('transitions', 'messages', 'work', 'recovery_log')
_CHOICE = 1000


def measure_upgrade(verdict: Verdict, db: Database) -> None:
    """Take the schema back to that of the last release, and migrate it.

    On SQLite no process serves requests meanwhile.
    """
    if db.dialect == 'sqlite':
        return
    with db.engine.begin() as connection:
        command.downgrade(schema.configuration(connection), schema.LAST_RELEASED)
    migrating = Database(db.url)
    try:
        with _requests(db.url) as requests:
            began = time.perf_counter()
            schema.sync(migrating)
            taken = time.perf_counter() - began
    finally:
        migrating.dispose()
    verdict.record(
        f'{db.dialect}: longest of {len(requests.waits)} requests beside the migration',
        max(requests.waits),
        'ms',
        at_most=LONGEST_WAIT,
        migration_s=round(taken, 1),
    )


class Requests:
    """Requests one after another, and how many ms each has waited."""

    def __init__(self, url: str):
        self.waits: list[float] = []
        self._db = Database(url)
        self._tables = {
            name: sa.Table(name, sa.MetaData(), autoload_with=self._db.engine)
            for name in {*_READ, *_CHANGED, *_INSERTED}
        }
        self._ids = {name: self._some_ids(name) for name in self._tables}
        self._is_over = threading.Event()

    def _some_ids(self, name: str) -> list[typing.Any]:
        id = self._tables[name].c.id
        return [
            row.id
            for row in self._db.read(
                lambda session: session.rows(sa.select(id).limit(_CHOICE))
            )
        ]

    def send(self) -> None:
        """Make requests until there is to be an end."""
        while not self._is_over.is_set():
            began = time.perf_counter()
            self._request()
            self.waits.append((time.perf_counter() - began) * 1e3)

    def end(self) -> None:
        self._is_over.set()

    def close(self) -> None:
        self._db.dispose()

    def _request(self) -> None:
        while True:
            with contextlib.suppress(db_exc.DBDeadlock):
                self._db.write(self._accept)
                return

    def _accept(self, session: Session) -> None:
        for name in _READ:
            table, id = self._any_row(name)
            session.first(sa.select(table).where(table.c.id == id))
        for name in _CHANGED:
            table, id = self._any_row(name)
            session.run(
                sa.update(table)
                .where(table.c.id == id)
                .values(created_at=table.c.created_at)
            )
        for name in _INSERTED:
            self._insert_copy(session, name)

    def _any_row(self, name: str) -> tuple[sa.Table, typing.Any]:
        return self._tables[name], random.choice(self._ids[name])  # noqa: S311

    def _insert_copy(self, session: Session, name: str) -> None:
        """Insert a row as another one is, with an id of its own."""
        table, id = self._any_row(name)
        given = {
            'id': sa.literal(str(uuid.uuid4())),
            **{key: sa.null() for key in ('one_key', 'running_key')},
        }
        if isinstance(table.c.id.type, sa.Integer):
            del given['id']
        columns = [
            column
            for column in table.c
            if column.computed is None and (column is not table.c.id or 'id' in given)
        ]
        session.run(
            sa.insert(table).from_select(
                [column.name for column in columns],
                sa.select(*(given.get(each.name, each) for each in columns)).where(
                    table.c.id == id
                ),
            )
        )


@contextlib.contextmanager
def _requests(url: str) -> Iterator[Requests]:
    """Make requests in threads while the block runs."""
    requests = Requests(url)
    threads = [
        threading.Thread(target=requests.send, daemon=True) for _ in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield requests
    finally:
        requests.end()
        for thread in threads:
            thread.join()
        requests.close()
