"""Share types: as records of administrators, and as other resources need them."""

from collections.abc import Mapping
import dataclasses
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.shares import migrations as share_migrations
from manila_lite.db.queries.types.tables import (
    Rows,
    TypeErrors,
    TypeRecords,
    TypeTables,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import SPEC, TYPE, TYPE_PROJECT as PROJECT, USAGE

CAPABILITY_EXTRA_SPECS = (
    'snapshot_support',
    'create_share_from_snapshot_support',
    'revert_to_snapshot_support',
    'mount_snapshot_support',
    'snapshot_inherit_share_access_support',
)
"""Extra specs that are copied to a share when it gets its type."""

_TRUE = frozenset({'1', 't', 'true', 'on', 'y', 'yes'})

TABLES = TypeTables(
    TYPE,
    SPEC,
    PROJECT,
    type_key='share_type_id',
    errors=TypeErrors(
        exists=exception.ShareTypeExists,
        not_found=exception.ShareTypeNotFound,
        spec_not_found=exception.ShareTypeExtraSpecNotFound,
        is_public=exception.PublicShareType,
        access_exists=exception.ShareTypeAccessExists,
        access_not_found=exception.ShareTypeAccessNotFound,
    ),
)
_WITH_SPECS = sa.select(
    TYPE.c.id, TYPE.c.name, SPEC.c.spec_key, SPEC.c.spec_value
).select_from(TYPE.outerjoin(SPEC))
_BY_ID_OR_NAME = _WITH_SPECS.where(TABLES.is_called('wanted'), TABLES.accessible)
_SPECS = sa.select(SPEC.c.spec_key, SPEC.c.spec_value).where(
    SPEC.c.share_type_id == sa.bindparam('of_type')
)


@dataclasses.dataclass(frozen=True)
class TypeWithSpecs:
    """A share type and its extra specs."""

    id: str
    name: str
    extra_specs: dict[str, str]

    def flag(self, key: str) -> bool:
        """Whether a boolean extra spec is set and true."""
        return is_true(self.extra_specs.get(key))


def capability_columns(share_type: TypeWithSpecs | None) -> dict[str, typing.Any]:
    """Return the capabilities of the type as columns of the share."""
    if share_type is None:
        return dict.fromkeys(CAPABILITY_EXTRA_SPECS, False) | {'replication_type': None}
    return {key: share_type.flag(key) for key in CAPABILITY_EXTRA_SPECS} | {
        'replication_type': share_type.extra_specs.get('replication_type')
    }


def is_true(text: str | None) -> bool:
    """Whether the value of an extra spec is one of the usual true words."""
    return text is not None and text.lower().replace('<is>', '', 1).strip() in _TRUE


def find_usable(
    session: Session, id_or_name: str, project_id: str | None, sees_all: bool | None
) -> TypeWithSpecs | None:
    """Return a type the project may use, by id or else by name, or None."""
    rows = session.rows(
        _BY_ID_OR_NAME, wanted=id_or_name, for_project=project_id, sees_all=sees_all
    )
    chosen = [row for row in rows if row.id == id_or_name] or rows
    if not chosen:
        return None
    return TypeWithSpecs(
        chosen[0].id,
        chosen[0].name,
        {row.spec_key: row.spec_value for row in chosen if row.spec_key is not None},
    )


def find_by_id(session: Session, id: str) -> TypeWithSpecs | None:
    """Return the type with this id, public or not, or None."""
    found = find_usable(session, id, None, True)
    return found if found and found.id == id else None


def get_extra_specs(session: Session, share_type_id: str | None) -> dict[str, str]:
    """Return the extra specs of a type; empty without a type."""
    if share_type_id is None:
        return {}
    return {
        row.spec_key: row.spec_value
        for row in session.rows(_SPECS, of_type=share_type_id)
    }


def list_extra_specs(
    session: Session, ids: typing.Collection[str | None]
) -> dict[str, dict[str, str]]:
    """Return the extra specs of several types, by type id."""
    found: dict[str, dict[str, str]] = {id: {} for id in ids if id}
    for row in session.rows(
        sa.select(SPEC).where(SPEC.c.share_type_id.in_(sorted(found)))
    ):
        found[row.share_type_id][row.spec_key] = row.spec_value
    return found


@dataclasses.dataclass(frozen=True)
class ShareTypeRecord(TypeWithSpecs):
    """A share type with all its columns and extra specs."""

    description: str | None
    is_public: bool


def _records(session: Session, rows: Rows) -> list[ShareTypeRecord]:
    return [
        ShareTypeRecord(row.id, row.name, specs, row.description, row.is_public)
        for row, specs in rows
    ]


RECORDS = TypeRecords(
    TABLES,
    ('id', 'name', 'description', 'is_public'),
    _records,
    in_use=exception.ShareTypeInUse,
)
list_types, get, find = RECORDS.list_types, RECORDS.get, RECORDS.find

_HAS_ANY = sa.select(sa.exists().select_from(TYPE))
_DELETE_USAGES = sa.delete(USAGE).where(
    USAGE.c.scope == 'share_type', USAGE.c.scope_id == sa.bindparam('of_type')
)


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
    RECORDS.delete(session, id)
    if share_migrations.is_type_wanted(session, id):
        raise exception.ShareTypeInUse(share_type_id=id)
    # New shares lock the type before the usage, too.
    session.run(_DELETE_USAGES, of_type=id)
