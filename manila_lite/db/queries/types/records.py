"""Share types as records: managed by administrators, listed by projects."""

from collections.abc import Iterable, Mapping
import dataclasses

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.models import quotas
from manila_lite.db.queries.shares import migrations as share_migrations
from manila_lite.db.queries.types.tables import caller_params, group_by_type
from manila_lite.db.queries.types.types import SPEC, TABLES, TYPE, TypeWithSpecs
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
_LIST_ACCESSIBLE = _RECORDS.where(TABLES.accessible)
_LIST_PRIVATE = _RECORDS.where(TYPE.c.is_public.is_(False))
_BY_ID = _LIST_ACCESSIBLE.where(TYPE.c.id == sa.bindparam('wanted'))
_BY_ID_OR_NAME = _LIST_ACCESSIBLE.where(TABLES.is_called('wanted'))
_HAS_ANY = sa.select(sa.exists().select_from(TYPE))
_DELETE = sa.delete(TYPE).where(TYPE.c.id == sa.bindparam('of_type'))
_DELETE_USAGES = sa.delete(USAGE).where(
    USAGE.c.scope == 'share_type', USAGE.c.scope_id == sa.bindparam('of_type')
)


def _records(rows: Iterable[sa.Row]) -> list[ShareTypeRecord]:
    return [
        ShareTypeRecord(row.id, row.name, specs, row.description, row.is_public)
        for row, specs in group_by_type(rows)
    ]


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
    found = _records(session.rows(_BY_ID, wanted=id, **caller_params(ctx)))
    if not found:
        raise exception.ShareTypeNotFound(share_type_id=id)
    return found[0]


def find(
    session: Session, ctx: RequestContext, id_or_name: str
) -> ShareTypeRecord | None:
    """Return the type with this id, or else with this name, or None."""
    found = _records(
        session.rows(_BY_ID_OR_NAME, wanted=id_or_name, **caller_params(ctx))
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
    return TABLES.insert(
        session, extra_specs, name=name, description=description, is_public=is_public
    )


def update(session: Session, id: str, values: Mapping[str, object]) -> None:
    """Change name, description or is_public."""
    TABLES.update(session, id, values)


def delete(session: Session, id: str) -> None:
    """Delete a type that no share uses, and all that belongs to it.

    A foreign key rejects it while a share instance refers to it; it is also
    rejected while a migration is to give it to a share.
    """
    session.run(_DELETE_USAGES, of_type=id)  # always locked before types
    try:
        matched = session.run(_DELETE, of_type=id)
    except db_exc.DBReferenceError:
        raise exception.ShareTypeInUse(share_type_id=id) from None
    if matched != 1:
        raise exception.ShareTypeNotFound(share_type_id=id)
    if share_migrations.is_type_wanted(session, id):
        raise exception.ShareTypeInUse(share_type_id=id)
