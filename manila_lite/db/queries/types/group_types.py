"""Share group types: managed by administrators, listed by projects."""

from collections.abc import Mapping, Sequence
import dataclasses

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.types import tables, types as share_types
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    GROUP_SPEC as SPEC,
    GROUP_TYPE as TYPE,
    GROUP_TYPE_PROJECT as PROJECT,
    GROUP_TYPE_SHARE_TYPE as SHARE_TYPE,
)

TABLES = tables.TypeTables(
    TYPE,
    SPEC,
    PROJECT,
    type_key='share_group_type_id',
    errors=tables.TypeErrors(
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


_SHARE_TYPES = (
    sa.select(SHARE_TYPE)
    .where(SHARE_TYPE.c.share_group_type_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(SHARE_TYPE.c.share_type_id)
)
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


def _records(session: Session, rows: tables.Rows) -> list[ShareGroupTypeRecord]:
    members: dict[str, list[str]] = {row.id: [] for row, _ in rows}
    if members:
        for row in session.rows(_SHARE_TYPES, ids=sorted(members)):
            members[row.share_group_type_id].append(row.share_type_id)
    return [
        ShareGroupTypeRecord(row.id, row.name, row.is_public, specs, members[row.id])
        for row, specs in rows
    ]


RECORDS = tables.TypeRecords(
    TABLES, ('id', 'name', 'is_public'), _records, in_use=exception.ShareGroupTypeInUse
)
list_types, get = RECORDS.list_types, RECORDS.get
find, delete = RECORDS.find, RECORDS.delete


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
