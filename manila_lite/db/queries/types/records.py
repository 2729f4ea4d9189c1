"""Share types as records: managed by administrators, listed by projects.

Changes of what belongs to a type lock its row first, so that the type is
neither deleted nor made public or private between the check and the
write.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import itertools

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.models import quotas
from manila_lite.db.queries.types.types import ACCESSIBLE
from manila_lite.db.queries.types.types import PROJECT
from manila_lite.db.queries.types.types import SPEC
from manila_lite.db.queries.types.types import TYPE
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.rows import TypeAccessRow
from manila_lite.db.session import Session

USAGE = quotas.QuotaUsage.__table__


@dataclasses.dataclass(frozen=True)
class ShareTypeRecord(TypeWithSpecs):
    """A share type with all its columns and extra specs."""

    description: str | None
    is_public: bool


_RECORDS = (
    sa.select(
        TYPE.c.id,
        TYPE.c.name,
        TYPE.c.description,
        TYPE.c.is_public,
        SPEC.c.spec_key,
        SPEC.c.spec_value,
    )
    .select_from(TYPE.outerjoin(SPEC))
    .order_by(TYPE.c.name, SPEC.c.spec_key)
)
_LIST_ACCESSIBLE = _RECORDS.where(ACCESSIBLE)
_LIST_PRIVATE = _RECORDS.where(TYPE.c.is_public.is_(False))
_BY_ID = _LIST_ACCESSIBLE.where(TYPE.c.id == sa.bindparam('wanted'))
_BY_ID_OR_NAME = _LIST_ACCESSIBLE.where(
    sa.or_(
        TYPE.c.id == sa.bindparam('wanted'),
        TYPE.c.name == sa.bindparam('wanted'),
    )
)
_HAS_ANY = sa.select(sa.exists().select_from(TYPE))
_LOCK = (
    sa.select(TYPE.c.is_public)
    .where(TYPE.c.id == sa.bindparam('of_type'))
    .with_for_update()
)
_DELETE = sa.delete(TYPE).where(TYPE.c.id == sa.bindparam('of_type'))
_DELETE_USAGES = sa.delete(USAGE).where(
    USAGE.c.scope == 'share_type', USAGE.c.scope_id == sa.bindparam('of_type')
)
_DELETE_SPECS = sa.delete(SPEC).where(
    SPEC.c.share_type_id == sa.bindparam('of_type'),
    SPEC.c.spec_key.in_(sa.bindparam('keys', expanding=True)),
)
_ACCESSES = (
    sa.select(PROJECT)
    .where(PROJECT.c.share_type_id == sa.bindparam('of_type'))
    .order_by(PROJECT.c.project_id)
)
_DELETE_ACCESS = sa.delete(PROJECT).where(
    PROJECT.c.share_type_id == sa.bindparam('of_type'),
    PROJECT.c.project_id == sa.bindparam('of_project'),
)


def _records(rows: Iterable[sa.Row]) -> list[ShareTypeRecord]:
    """Group rows by type; each row has one extra spec."""
    found = []
    for _, same in itertools.groupby(rows, lambda row: row.id):
        first, *others = same
        found.append(
            ShareTypeRecord(
                first.id,
                first.name,
                {
                    row.spec_key: row.spec_value
                    for row in (first, *others)
                    if row.spec_key is not None
                },
                first.description,
                first.is_public,
            )
        )
    return found


def _caller(ctx: RequestContext) -> dict[str, object]:
    return {'for_project': ctx.project_id, 'sees_all': ctx.is_admin}


# Types


def list_accessible(
    session: Session, ctx: RequestContext, *, all_projects: bool = False
) -> list[ShareTypeRecord]:
    """Return the types that the project may use, or those of all projects."""
    return _records(
        session.rows(
            _LIST_ACCESSIBLE, sees_all=all_projects, for_project=ctx.project_id
        )
    )


def list_private(session: Session) -> list[ShareTypeRecord]:
    """Return the types that only some projects may use."""
    return _records(session.rows(_LIST_PRIVATE))


def get(session: Session, ctx: RequestContext, id: str) -> ShareTypeRecord:
    """Return a type that the caller may see; raises ShareTypeNotFound."""
    found = _records(session.rows(_BY_ID, wanted=id, **_caller(ctx)))
    if not found:
        raise exception.ShareTypeNotFound(share_type_id=id)
    return found[0]


def find(
    session: Session, ctx: RequestContext, id_or_name: str
) -> ShareTypeRecord | None:
    """Return the type with this id, or else with this name, or None."""
    found = _records(
        session.rows(_BY_ID_OR_NAME, wanted=id_or_name, **_caller(ctx))
    )
    return min(found, key=lambda record: record.id != id_or_name, default=None)


def has_any(session: Session) -> bool:
    """Whether there is any type, public or private."""
    return bool(session.value(_HAS_ANY))


def create(
    session: Session,
    *,
    name: str,
    description: str | None,
    is_public: bool,
    extra_specs: Mapping[str, str],
) -> str:
    """Insert a type; return its id."""
    id = session.new_id()
    try:
        session.run(
            sa.insert(TYPE),
            id=id,
            name=name,
            description=description,
            is_public=is_public,
            created_at=session.now,
        )
    except db_exc.DBDuplicateEntry:
        raise exception.ShareTypeExists(name=name) from None
    _insert_extra_specs(session, id, extra_specs)
    return id


def update(session: Session, id: str, values: Mapping[str, object]) -> None:
    """Change name, description or is_public."""
    try:
        matched = session.run(
            sa.update(TYPE)
            .where(TYPE.c.id == id)
            .values(updated_at=session.now, **values)
        )
    except db_exc.DBDuplicateEntry:
        raise exception.ShareTypeExists(name=values['name']) from None
    if matched != 1:
        raise exception.ShareTypeNotFound(share_type_id=id)


def delete(session: Session, id: str) -> None:
    """Delete a type that no share uses, and all that belongs to it.

    A foreign key rejects it while a share instance refers to it.
    """
    session.run(_DELETE_USAGES, of_type=id)  # always locked before types
    try:
        matched = session.run(_DELETE, of_type=id)
    except db_exc.DBReferenceError:
        raise exception.ShareTypeInUse(share_type_id=id) from None
    if matched != 1:
        raise exception.ShareTypeNotFound(share_type_id=id)


def lock(session: Session, id: str) -> bool:
    """Lock a type; return whether it is public."""
    row = session.one(_LOCK, of_type=id)
    if row is None:
        raise exception.ShareTypeNotFound(share_type_id=id)
    return row.is_public


# Extra specs


def set_extra_specs(
    session: Session, id: str, specs: Mapping[str, str]
) -> None:
    """Set some extra specs of a locked type and leave the others."""
    session.run(_DELETE_SPECS, of_type=id, keys=list(specs))
    _insert_extra_specs(session, id, specs)


def _insert_extra_specs(
    session: Session, id: str, specs: Mapping[str, str]
) -> None:
    session.run_many(
        sa.insert(SPEC),
        [
            {'share_type_id': id, 'spec_key': key, 'spec_value': value}
            for key, value in specs.items()
        ],
    )


def delete_extra_spec(session: Session, id: str, key: str) -> None:
    """Delete one extra spec."""
    lock(session, id)
    if session.run(_DELETE_SPECS, of_type=id, keys=[key]) != 1:
        raise exception.ShareTypeExtraSpecNotFound(share_type_id=id, key=key)


# Access of projects to private types


def list_accesses(session: Session, id: str) -> Sequence[TypeAccessRow]:
    """Return the projects that may use a private type."""
    return session.rows(_ACCESSES, of_type=id)


def add_access(session: Session, id: str, project_id: str) -> None:
    """Allow a project to use a private type."""
    if lock(session, id):
        raise exception.PublicShareType(share_type_id=id)
    try:
        session.run(
            sa.insert(PROJECT), share_type_id=id, project_id=project_id
        )
    except db_exc.DBDuplicateEntry:
        raise exception.ShareTypeAccessExists(
            share_type_id=id, project_id=project_id
        ) from None


def remove_access(session: Session, id: str, project_id: str) -> None:
    """Withdraw the access of a project to a private type."""
    if lock(session, id):
        raise exception.PublicShareType(share_type_id=id)
    if session.run(_DELETE_ACCESS, of_type=id, of_project=project_id) != 1:
        raise exception.ShareTypeAccessNotFound(
            share_type_id=id, project_id=project_id
        )
