"""The database of `scale`: empty before, and again afterwards unless kept.

A database that holds anything else is refused and left as it is.
"""

from collections.abc import Callable, Iterator
import contextlib

import sqlalchemy as sa

from manila_lite.db import schema
from manila_lite.db.session import Database, Session

CREATED = sa.Table(
    'benchmark_tables',
    sa.MetaData(),
    sa.Column('name', sa.String(255), primary_key=True),
)
"""The tables that `scale` has created and filled, this one included."""


class ForeignTables(Exception):
    """The database has tables that `scale` has not created."""

    def __init__(self, names: set[str]):
        some = ', '.join(sorted(names)[:3])
        super().__init__(
            f'the database has tables that `scale` did not create ({some}); '
            'name an empty database, or one of an earlier run with --keep'
        )


@contextlib.contextmanager
def filled(db: Database, fill: Callable[[], object], *, keep: bool) -> Iterator[None]:
    """Create and fill the tables, unless an earlier run has kept them.

    They are dropped in the end if they are not to be kept, and whenever
    they could not be filled. Raises ForeignTables.
    """
    created = _names(db)
    is_kept = CREATED.name in created
    if foreign := created - (db.read(_recorded) if is_kept else set()):
        raise ForeignTables(foreign)
    with contextlib.ExitStack() as stack:
        if not (keep and is_kept):
            stack.callback(_drop, db, created)
        schema.sync(db)
        if not is_kept:
            CREATED.create(db.engine)
        created |= _names(db)
        if not is_kept:
            fill()
        db.write(_record, created)
        if keep:
            stack.pop_all()
        yield


def _names(db: Database) -> set[str]:
    return set(sa.inspect(db.engine).get_table_names())


def _recorded(session: Session) -> set[str]:
    return {row.name for row in session.rows(sa.select(CREATED.c.name))}


def _record(session: Session, names: set[str]) -> None:
    session.run(sa.delete(CREATED))
    session.run_many(sa.insert(CREATED), [{'name': name} for name in names])


def _drop(db: Database, names: set[str]) -> None:
    found = sa.MetaData()
    found.reflect(db.engine, only=sorted(names & _names(db)))
    found.drop_all(db.engine)
