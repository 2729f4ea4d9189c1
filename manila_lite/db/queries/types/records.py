"""Share types as records: managed by administrators, listed by projects."""

from collections.abc import Mapping
import dataclasses

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import quotas
from manila_lite.db.queries.shares import migrations as share_migrations
from manila_lite.db.queries.types.tables import Rows, TypeRecords
from manila_lite.db.queries.types.types import TABLES, TYPE, TypeWithSpecs
from manila_lite.db.session import Session

USAGE = quotas.QuotaUsage.__table__


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
