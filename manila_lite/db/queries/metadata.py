"""Metadata: rows of keys and values that belong to another row."""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.session import Session


def has_pairs(
    parent: sa.Column,
    of_parent: sa.Column,
    key: sa.Column,
    value: sa.Column,
    pairs: Mapping[str, str],
    *,
    correlated: bool,
) -> sa.ColumnElement[bool]:
    """Return the condition that a parent has all of these pairs.

    `parent` is a column of the enclosing statement; `of_parent`, which
    refers to it, `key` and `value` are those of a table that has each key
    of a parent once. It is one subquery that counts pairs: with a subquery
    for each pair the planner of PostgreSQL takes more than a minute for
    150 of them.

    A `correlated` subquery is evaluated for each parent, which suits
    statements that are restricted to a project; otherwise it reads the
    pairs of all parents, once.
    """
    is_pair = (sa.and_(key == name, value == text) for name, text in pairs.items())
    having_all = (
        sa.select(of_parent)
        .where(sa.or_(*is_pair))
        .group_by(of_parent)
        .having(sa.func.count() == len(pairs))
    )
    if not correlated:
        return parent.in_(having_all)
    return having_all.where(of_parent == parent).correlate(parent.table).exists()


def by_parent(rows: Iterable[typing.Any]) -> dict[str, dict[str, str]]:
    """Return the metadata of each parent; rows have its id, a key and a value.

    A parent without metadata may have a row with a null key.
    """
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for parent_id, key, value in rows:
        if key is not None:
            found[parent_id][key] = value
    return found


class MetadataTable:
    """The metadata table of one kind of parent.

    `merge`, `replace` and `change` first lock the parent row, which
    serializes requests for the same parent; they raise NotFound if it is
    gone.
    """

    def __init__(self, table: sa.Table, parent_column: str, parent: sa.Table):
        self._table = table
        self._name = parent_column
        self._parent = table.c[parent_column]
        self._of = self._parent == sa.bindparam('parent_id')
        self._read = (
            sa.select(table.c.key, table.c.value).where(self._of).order_by(table.c.key)
        )
        self._lock = (
            sa.select(parent.c.id)
            .where(parent.c.id == sa.bindparam('parent_id'))
            .with_for_update()
        )
        self._insert = sa.insert(table)
        self._drop = sa.delete(table).where(
            self._of, table.c.key.in_(sa.bindparam('keys', expanding=True))
        )

    def get(self, session: Session, parent_id: str) -> dict[str, str]:
        return {
            row.key: row.value for row in session.rows(self._read, parent_id=parent_id)
        }

    def list_of_page(
        self, session: Session, ids: sa.Subquery
    ) -> dict[str, dict[str, str]]:
        """Return the metadata of each parent whose id is in a subquery."""
        # An outer join from the page: for an inner join SQLite 3.46 would scan
        # the whole table, because it has no index of the page.
        pairs = ids.outerjoin(self._table, self._parent == ids.c.id)
        columns = (ids.c.id, self._table.c.key, self._table.c.value)
        return by_parent(session.rows(sa.select(*columns).select_from(pairs)))

    def insert(
        self, session: Session, parent_id: str, values: Mapping[str, str]
    ) -> None:
        session.run_many(
            self._insert,
            [
                {self._name: parent_id, 'key': key, 'value': value}
                for key, value in values.items()
            ],
        )

    def remove(self, session: Session, parent_id: str, keys: Collection[str]) -> int:
        """Delete keys; return how many existed."""
        return session.run(self._drop, parent_id=parent_id, keys=sorted(keys))

    def merge(
        self, session: Session, parent_id: str, values: Mapping[str, str]
    ) -> dict[str, str]:
        """Set these keys and leave the others; return all metadata."""
        self._lock_parent(session, parent_id)
        self.remove(session, parent_id, values.keys())
        self.insert(session, parent_id, values)
        return self.get(session, parent_id)

    def replace(
        self,
        session: Session,
        parent_id: str,
        values: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> dict[str, str]:
        """Set these keys and delete all others except those of `keep`.

        Returns all metadata.
        """
        self._lock_parent(session, parent_id)
        found = self.get(session, parent_id)
        self.remove(session, parent_id, found.keys() - set(keep))
        self.insert(session, parent_id, values)
        return self.get(session, parent_id)

    def change(
        self, session: Session, parent_id: str, key: str, change: Callable[[str], str]
    ) -> None:
        """Set a key to a function of its value; empty means absent."""
        self._lock_parent(session, parent_id)
        old = self.get(session, parent_id).get(key, '')
        new = change(old)
        if new == old:
            return
        self.remove(session, parent_id, [key])
        if new:
            self.insert(session, parent_id, {key: new})

    def _lock_parent(self, session: Session, parent_id: str) -> None:
        if session.value(self._lock, parent_id=parent_id) is None:
            raise exception.NotFound()
