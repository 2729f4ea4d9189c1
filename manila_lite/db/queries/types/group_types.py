"""Share group types: managed by administrators, listed by projects."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.models import types
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.tables import (
    TypeErrors,
    TypeTables,
    caller_params,
    group_by_type,
)
from manila_lite.db.session import Session

TYPE = types.ShareGroupType.__table__
SPEC = types.ShareGroupTypeSpec.__table__
PROJECT = types.ShareGroupTypeProject.__table__
SHARE_TYPE = types.ShareGroupTypeShareType.__table__

TABLES = TypeTables(
    TYPE,
    SPEC,
    PROJECT,
    type_key='share_group_type_id',
    errors=TypeErrors(
        exists=exception.ShareGroupTypeExists,
        not_found=exception.ShareGroupTypeNotFound,
        spec_not_found=exception.ShareGroupTypeSpecNotFound,
        is_public=exception.PublicShareGroupType,
        access_exists=exception.ShareGroupTypeAccessExists,
        access_not_found=exception.ShareGroupTypeAccessNotFound,
    ),
)


@dataclasses.dataclass(frozen=True)
class ShareGroupTypeRecord:
    """A share group type with its group specs.

    `share_types` has the ids of the share types that shares of such groups
    may have.
    """

    id: str
    name: str
    is_public: bool
    group_specs: dict[str, str]
    share_types: list[str]


_RECORDS = (
    sa.select(
        TYPE.c.id, TYPE.c.name, TYPE.c.is_public, SPEC.c.spec_key, SPEC.c.spec_value
    )
    .select_from(TYPE.outerjoin(SPEC))
    .order_by(TYPE.c.name, SPEC.c.spec_key)
)
_LIST_ACCESSIBLE = _RECORDS.where(TABLES.accessible)
_LIST_PRIVATE = _RECORDS.where(TYPE.c.is_public.is_(False))
_BY_ID = _LIST_ACCESSIBLE.where(TYPE.c.id == sa.bindparam('wanted'))
_BY_ID_OR_NAME = _LIST_ACCESSIBLE.where(TABLES.is_called('wanted'))
_SHARE_TYPES = (
    sa.select(SHARE_TYPE)
    .where(SHARE_TYPE.c.share_group_type_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(SHARE_TYPE.c.share_type_id)
)
_DELETE = sa.delete(TYPE).where(TYPE.c.id == sa.bindparam('of_type'))
_NAMED_SHARE_TYPES = (
    sa.select(share_types.TYPE.c.id, share_types.TYPE.c.name)
    .where(
        sa.or_(
            share_types.TYPE.c.id.in_(sa.bindparam('wanted', expanding=True)),
            share_types.TYPE.c.name.in_(sa.bindparam('wanted', expanding=True)),
        )
    )
    .with_for_update(read=True)
)


def _records(session: Session, rows: Iterable[sa.Row]) -> list[ShareGroupTypeRecord]:
    found = list(group_by_type(rows))
    members: dict[str, list[str]] = {row.id: [] for row, _ in found}
    if members:
        for row in session.rows(_SHARE_TYPES, ids=sorted(members)):
            members[row.share_group_type_id].append(row.share_type_id)
    return [
        ShareGroupTypeRecord(row.id, row.name, row.is_public, specs, members[row.id])
        for row, specs in found
    ]


def list_accessible(
    session: Session, ctx: RequestContext, *, all_projects: bool = False
) -> list[ShareGroupTypeRecord]:
    """Return the types that the project may use, or those of all projects."""
    return _records(
        session,
        session.rows(
            _LIST_ACCESSIBLE, sees_all=all_projects, for_project=ctx.project_id
        ),
    )


def list_private(session: Session) -> list[ShareGroupTypeRecord]:
    """Return the types that only some projects may use."""
    return _records(session, session.rows(_LIST_PRIVATE))


def get(session: Session, ctx: RequestContext, id: str) -> ShareGroupTypeRecord:
    """Return a type that the caller may see.

    Raises ShareGroupTypeNotFound.
    """
    found = _records(session, session.rows(_BY_ID, wanted=id, **caller_params(ctx)))
    if not found:
        raise exception.ShareGroupTypeNotFound(share_group_type_id=id)
    return found[0]


def find(
    session: Session, ctx: RequestContext, id_or_name: str
) -> ShareGroupTypeRecord | None:
    """Return the type with this id, or else with this name, or None."""
    found = _records(
        session, session.rows(_BY_ID_OR_NAME, wanted=id_or_name, **caller_params(ctx))
    )
    return min(found, key=lambda record: record.id != id_or_name, default=None)


def create(
    session: Session,
    *,
    name: str,
    is_public: bool,
    group_specs: Mapping[str, str],
    share_types: Sequence[str],
) -> str:
    """Insert a type for shares of these share types; return its id.

    Raises ShareTypeNotFound for the first share type, by id or name, that
    does not exist.
    """
    members = _ids_of_share_types(session, share_types)
    id = TABLES.insert(session, group_specs, name=name, is_public=is_public)
    session.run_many(
        sa.insert(SHARE_TYPE),
        [{'share_group_type_id': id, 'share_type_id': member} for member in members],
    )
    return id


def _ids_of_share_types(session: Session, wanted: Sequence[str]) -> list[str]:
    """Return the ids of share types that are named by id or by name."""
    rows = session.rows(_NAMED_SHARE_TYPES, wanted=sorted(set(wanted)))
    by_name = {row.name: row.id for row in rows}
    known = by_name | {row.id: row.id for row in rows}
    for each in wanted:
        if each not in known:
            raise exception.ShareTypeNotFound(share_type_id=each)
    return sorted({known[each] for each in wanted})


def delete(session: Session, id: str) -> None:
    """Delete a type, its specs and the access of projects to it.

    A foreign key rejects it while a share group refers to it.
    """
    try:
        matched = session.run(_DELETE, of_type=id)
    except db_exc.DBReferenceError:
        raise exception.ShareGroupTypeInUse(share_group_type_id=id) from None
    if matched != 1:
        raise exception.ShareGroupTypeNotFound(share_group_type_id=id)
