"""Plain records: read and locked by id, listed by page, changed by column."""

from collections.abc import Mapping, Sequence
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.rows import Page
from manila_lite.db.session import Session

Row = typing.TypeVar('Row')


class Records(typing.Generic[Row]):
    """The rows of one table, as one statement shows them.

    The statement may join other tables; locks are on rows of this one only.
    `one` selects a single record if that differs from lists. `id_key` names the
    id in the error for a record that does not exist.
    """

    def __init__(
        self,
        table: sa.Table,
        not_found: type[exception.ManilaLiteError],
        id_key: str,
        statement: sa.Select | None = None,
        one: sa.Select | None = None,
    ):
        self.table, self.not_found, self.id_key = table, not_found, id_key
        self.statement = sa.select(table) if statement is None else statement
        single = self.statement if one is None else one
        self.selected_by_id = single.where(table.c.id == sa.bindparam('record_id'))

    @functools.cached_property
    def _locked(self) -> sa.Select:
        return self.selected_by_id.with_for_update(of=self.table)

    @functools.cached_property
    def _locked_shared(self) -> sa.Select:
        return self.selected_by_id.with_for_update(read=True, of=self.table)

    def find(self, session: Session, id: str) -> Row | None:
        """Return a record of any project, or None."""
        return session.first(self.selected_by_id, record_id=id)

    def get(self, session: Session, id: str) -> Row:
        """Return a record of any project; raise an error if there is none."""
        return self._found(self.find(session, id), id)

    def find_locked(self, session: Session, id: str) -> Row | None:
        """Lock a record that may be gone, and return it."""
        return session.first(self._locked, record_id=id)

    def lock(self, session: Session, id: str) -> Row:
        """Lock a record and return it; raise an error if there is none."""
        return self._found(self.find_locked(session, id), id)

    def lock_shared(self, session: Session, id: str) -> Row:
        """Like `lock`, but only against changes and locks of others."""
        return self._found(session.first(self._locked_shared, record_id=id), id)

    def list_page(
        self,
        session: Session,
        exact: Mapping[str, typing.Any],
        like: Mapping[str, str],
        page: Page,
        where: Sequence[sa.ColumnElement[bool]] = (),
    ) -> Sequence[Row]:
        """Return a page of records with these values, or parts, of columns."""
        return pages.list_rows(
            session, self.statement, self.table, page, exact, like, where
        )

    def update(
        self, session: Session, id: str, values: Mapping[str, typing.Any]
    ) -> None:
        """Change plain columns, never a status; raise an error without a record."""
        changed = session.run(
            sa.update(self.table)
            .where(self.table.c.id == id)
            .values(updated_at=session.now, **values)
        )
        if changed != 1:
            raise self._error(id)

    def _found(self, row: Row | None, id: str) -> Row:
        if row is None:
            raise self._error(id)
        return row

    def _error(self, id: str) -> exception.ManilaLiteError:
        named: dict[str, typing.Any] = {self.id_key: id}
        return self.not_found(**named)
