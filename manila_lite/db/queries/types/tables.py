"""What the kinds of types have in common.

All have specs; private share types and share group types also have the
projects that may use them. Changes of what belongs to a type lock its row
first, so that the type is neither deleted nor made public or private between
the check and the write.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import itertools
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.rows import TypeAccessRow
from manila_lite.db.session import Session

_Error = type[exception.ManilaLiteError]


@dataclasses.dataclass(frozen=True)
class SpecErrors:
    """The errors about one kind of types and their specs."""

    exists: _Error
    not_found: _Error
    spec_not_found: _Error


@dataclasses.dataclass(frozen=True)
class TypeErrors(SpecErrors):
    """The errors about types that may be private."""

    is_public: _Error
    access_exists: _Error
    access_not_found: _Error


class SpecTables:
    """The rows of one kind of types, with their specs.

    The table of specs refers to the type in the column `type_key`, which
    also names the id in errors.
    """

    errors: SpecErrors

    def __init__(
        self, type_: sa.Table, spec: sa.Table, *, type_key: str, errors: SpecErrors
    ):
        self.type = type_
        self.spec, self.type_key, self.errors = spec, type_key, errors
        of_type: sa.BindParameter[str] = sa.bindparam('of_type')
        self._lock = sa.select(type_).where(type_.c.id == of_type).with_for_update()
        self._delete_specs = sa.delete(spec).where(
            spec.c[type_key] == of_type,
            spec.c.spec_key.in_(sa.bindparam('keys', expanding=True)),
        )

    def is_called(self, name: str) -> sa.ColumnElement[bool]:
        """Return the condition that the parameter is the id or the name."""
        wanted: sa.BindParameter[str] = sa.bindparam(name)
        return sa.or_(self.type.c.id == wanted, self.type.c.name == wanted)

    def insert(
        self, session: Session, specs: Mapping[str, str], **values: object
    ) -> str:
        """Insert a type with these columns and specs; return its id."""
        id = session.new_id()
        try:
            session.run(sa.insert(self.type), id=id, created_at=session.now, **values)
        except db_exc.DBDuplicateEntry:
            raise self.errors.exists(name=values['name']) from None
        self.insert_specs(session, id, specs)
        return id

    def update(self, session: Session, id: str, values: Mapping[str, object]) -> None:
        """Change columns of a type."""
        try:
            matched = session.run(
                sa.update(self.type)
                .where(self.type.c.id == id)
                .values(updated_at=session.now, **values)
            )
        except db_exc.DBDuplicateEntry:
            raise self.errors.exists(name=values['name']) from None
        if matched != 1:
            raise self.error(self.errors.not_found, id)

    def lock(self, session: Session, id: str) -> sa.Row:
        """Lock a type; return its row."""
        row = session.first(self._lock, of_type=id)
        if row is None:
            raise self.error(self.errors.not_found, id)
        return row

    def error(
        self, error: _Error, id: str, **params: object
    ) -> exception.ManilaLiteError:
        """Return an error about a type."""
        named: dict[str, typing.Any] = {self.type_key: id, **params}
        return error(**named)

    # Specs

    def set_specs(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        """Set some specs of a locked type and leave the others."""
        session.run(self._delete_specs, of_type=id, keys=list(specs))
        self.insert_specs(session, id, specs)

    def insert_specs(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        """Insert specs that the type does not have yet."""
        session.run_many(
            sa.insert(self.spec),
            [
                {self.type_key: id, 'spec_key': key, 'spec_value': value}
                for key, value in specs.items()
            ],
        )

    def delete_spec(self, session: Session, id: str, key: str) -> None:
        """Delete one spec."""
        self.lock(session, id)
        if session.run(self._delete_specs, of_type=id, keys=[key]) != 1:
            raise self.error(self.errors.spec_not_found, id, key=key)


class TypeTables(SpecTables):
    """The rows of types that may be private, with specs and projects.

    The table of projects refers to the type like that of specs.
    """

    errors: TypeErrors

    def __init__(
        self,
        type_: sa.Table,
        spec: sa.Table,
        project: sa.Table,
        *,
        type_key: str,
        errors: TypeErrors,
    ):
        super().__init__(type_, spec, type_key=type_key, errors=errors)
        self.project = project
        of_type: sa.BindParameter[str] = sa.bindparam('of_type')
        self.accessible = sa.or_(
            type_.c.is_public,
            sa.bindparam('sees_all', type_=sa.Boolean()),
            sa.exists().where(
                project.c[type_key] == type_.c.id,
                project.c.project_id == sa.bindparam('for_project'),
            ),
        )
        self._accesses = (
            sa.select(project)
            .where(project.c[type_key] == of_type)
            .order_by(project.c.project_id)
        )
        self._delete_access = sa.delete(project).where(
            project.c[type_key] == of_type,
            project.c.project_id == sa.bindparam('of_project'),
        )

    def list_accesses(self, session: Session, id: str) -> Sequence[TypeAccessRow]:
        """Return the projects that may use a private type."""
        return session.rows(self._accesses, of_type=id)

    def add_access(self, session: Session, id: str, project_id: str) -> None:
        """Allow a project to use a private type."""
        self._lock_private(session, id)
        try:
            session.run(
                sa.insert(self.project), **{self.type_key: id, 'project_id': project_id}
            )
        except db_exc.DBDuplicateEntry:
            raise self.error(
                self.errors.access_exists, id, project_id=project_id
            ) from None

    def remove_access(self, session: Session, id: str, project_id: str) -> None:
        """Withdraw the access of a project to a private type."""
        self._lock_private(session, id)
        if session.run(self._delete_access, of_type=id, of_project=project_id) != 1:
            raise self.error(self.errors.access_not_found, id, project_id=project_id)

    def _lock_private(self, session: Session, id: str) -> None:
        if self.lock(session, id).is_public:
            raise self.error(self.errors.is_public, id)


Rows = list[tuple[sa.Row, dict[str, str]]]
"""The first row and the specs of each type."""
Record = typing.TypeVar('Record')


class TypeRecords(typing.Generic[Record]):
    """Types that may be private: managed by administrators, listed by projects.

    `make` makes records of rows with these columns. A foreign key keeps a type
    that is `in_use` from being deleted.
    """

    def __init__(
        self,
        tables: TypeTables,
        columns: Sequence[str],
        make: typing.Callable[[Session, Rows], list[Record]],
        *,
        in_use: _Error,
    ):
        type_, spec = tables.type, tables.spec
        self.tables, self._make, self._in_use = tables, make, in_use
        shown = (
            sa.select(
                *(type_.c[name] for name in columns), spec.c.spec_key, spec.c.spec_value
            )
            .select_from(type_.outerjoin(spec))
            .order_by(type_.c.name, spec.c.spec_key)
        )
        self._accessible = shown.where(tables.accessible)
        self._private = shown.where(type_.c.is_public.is_(False))
        self._by_id = self._accessible.where(type_.c.id == sa.bindparam('wanted'))
        self._by_id_or_name = self._accessible.where(tables.is_called('wanted'))
        self._delete = sa.delete(type_).where(type_.c.id == sa.bindparam('of_type'))

    def list_types(
        self, session: Session, ctx: RequestContext, *, is_public: bool | None = True
    ) -> list[Record]:
        """Return the types that the project may use.

        If `is_public` is false, return those that only some projects may use,
        and if it is None all types.
        """
        if is_public is False:
            return self._records(session, self._private)
        return self._records(
            session,
            self._accessible,
            sees_all=is_public is None,
            for_project=ctx.project_id,
        )

    def get(self, session: Session, ctx: RequestContext, id: str) -> Record:
        """Return a type that the caller may see, or raise that it is not found."""
        found = self._records(session, self._by_id, wanted=id, **_caller(ctx))
        if not found:
            raise self.tables.error(self.tables.errors.not_found, id)
        return found[0]

    def find(
        self, session: Session, ctx: RequestContext, id_or_name: str
    ) -> Record | None:
        """Return the type with this id, or else with this name, or None."""
        found = self._records(
            session, self._by_id_or_name, wanted=id_or_name, **_caller(ctx)
        )
        return min(
            found,
            key=lambda record: typing.cast(typing.Any, record).id != id_or_name,
            default=None,
        )

    def delete(self, session: Session, id: str) -> None:
        """Delete a type, its specs and the access of projects to it."""
        try:
            matched = session.run(self._delete, of_type=id)
        except db_exc.DBReferenceError:
            raise self.tables.error(self._in_use, id) from None
        if matched != 1:
            raise self.tables.error(self.tables.errors.not_found, id)

    def _records(
        self, session: Session, statement: sa.Select, **params: object
    ) -> list[Record]:
        rows = session.rows(statement, **params)
        return self._make(session, list(_group_by_type(rows)))


def _caller(ctx: RequestContext) -> dict[str, object]:
    """Return the parameters of `TypeTables.accessible` for a caller."""
    return {'for_project': ctx.project_id, 'sees_all': ctx.is_admin}


def _group_by_type(rows: Iterable[sa.Row]) -> Iterable[tuple[sa.Row, dict[str, str]]]:
    """Yield the first row and the specs of each type.

    `rows` have one spec each, or None as its key, and are ordered by type.
    """
    for _, same in itertools.groupby(rows, lambda row: row.id):
        first, *others = same
        yield (
            first,
            {
                row.spec_key: row.spec_value
                for row in (first, *others)
                if row.spec_key is not None
            },
        )
