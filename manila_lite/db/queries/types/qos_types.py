"""QoS types: managed by administrators, chosen by share types."""

from collections.abc import Collection, Mapping
import dataclasses
import datetime

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.tables import SpecErrors, SpecTables
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.rows import Page
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, QOS_SPEC as SPEC, QOS_TYPE as TYPE

DEFAULT_OF_SHARE_TYPE = 'default_qos_type'
"""The extra spec with the id or name of the QoS type of new shares."""

SORT_KEYS = tuple(column.name for column in TYPE.c)

TABLES = SpecTables(
    TYPE,
    SPEC,
    type_key='qos_type_id',
    errors=SpecErrors(
        exists=exception.QosTypeExists,
        not_found=exception.QosTypeNotFound,
        spec_not_found=exception.QosTypeSpecNotFound,
    ),
)


@dataclasses.dataclass(frozen=True)
class QosTypeRecord:
    """A QoS type with its specs."""

    id: str
    name: str
    description: str | None
    specs: dict[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


@dataclasses.dataclass(frozen=True)
class QosTypeFilter:
    """Conditions on columns: equal to a text, or containing it."""

    exact: Mapping[str, str] = dataclasses.field(default_factory=dict)
    like: Mapping[str, str] = dataclasses.field(default_factory=dict)


_BY_ID = sa.select(TYPE).where(TYPE.c.id == sa.bindparam('wanted'))
# With columns that no index has: MariaDB would lock the index entry only,
# which does not exclude a lock of the row by `delete`.
_BY_ID_OR_NAME = (
    sa.select(TYPE).where(TABLES.is_called('wanted')).with_for_update(read=True)
)
_SPECS = (
    sa.select(SPEC)
    .where(SPEC.c.qos_type_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(SPEC.c.spec_key)
)
_DELETE = sa.delete(TYPE).where(TYPE.c.id == sa.bindparam('of_type'))
_SHARE_OF = (
    sa.select(INSTANCE.c.share_id)
    .where(INSTANCE.c.qos_type_id == sa.bindparam('of_type'))
    .limit(1)
)
_SHARE_TYPE_OF = (
    sa.select(share_types.TYPE.c.name)
    .join(share_types.SPEC)
    .where(
        share_types.SPEC.c.spec_key == DEFAULT_OF_SHARE_TYPE,
        share_types.SPEC.c.spec_value.in_(sa.bindparam('names', expanding=True)),
    )
    .order_by(share_types.TYPE.c.name)
    .limit(1)
)


def list_page(
    session: Session, criteria: QosTypeFilter, page: Page
) -> list[QosTypeRecord]:
    """Return a page of the types; its sort key is one of SORT_KEYS."""
    conditions = [
        *(TYPE.c[name] == text for name, text in criteria.exact.items()),
        *(
            TYPE.c[name].contains(text, autoescape=True)
            for name, text in criteria.like.items()
        ),
    ]
    pages.check_length(session, page, TYPE, conditions, count=False)
    rows = session.rows(
        pages.select_page(sa.select(TYPE).where(*conditions), page, TYPE)
    )
    specs = list_specs(session, [row.id for row in rows])
    return [_record(row, specs[row.id]) for row in rows]


def get(session: Session, id: str) -> QosTypeRecord:
    """Return a type with its specs; raises QosTypeNotFound."""
    row = session.first(_BY_ID, wanted=id)
    if row is None:
        raise exception.QosTypeNotFound(qos_type_id=id)
    return _record(row, list_specs(session, [id])[id])


def _record(row: sa.Row, specs: dict[str, str]) -> QosTypeRecord:
    return QosTypeRecord(
        row.id, row.name, row.description, specs, row.created_at, row.updated_at
    )


def list_specs(session: Session, ids: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the specs of several types, by type id."""
    found: dict[str, dict[str, str]] = {id: {} for id in ids}
    if found:
        for row in session.rows(_SPECS, ids=sorted(found)):
            found[row.qos_type_id][row.spec_key] = row.spec_value
    return found


def lock_default(session: Session, share_type: TypeWithSpecs | None) -> str | None:
    """Return the id of the QoS type of new shares of a share type.

    It is locked (shared): it is not deleted before the transaction ends.
    None if the share type names none; raises InvalidExtraSpec if it names
    one that does not exist.
    """
    wanted = share_type and share_type.extra_specs.get(DEFAULT_OF_SHARE_TYPE)
    if not wanted:
        return None
    found = {row.id for row in session.rows(_BY_ID_OR_NAME, wanted=wanted)}
    if not found:
        raise exception.InvalidExtraSpec(
            reason=f'{DEFAULT_OF_SHARE_TYPE} of the share type is {wanted}, '
            'and there is no such QoS type'
        )
    return wanted if wanted in found else found.pop()


def create(
    session: Session, *, name: str, description: str | None, specs: Mapping[str, str]
) -> str:
    """Insert a type; return its id."""
    return TABLES.insert(session, specs, name=name, description=description)


def delete(session: Session, id: str) -> None:
    """Delete a type that no share has and no share type names.

    Its row is locked first, as `lock_default` does for a new share. A share
    type may name it meanwhile: it may also name a type that never existed.
    """
    row = TABLES.lock(session, id)
    share_id = session.value(_SHARE_OF, of_type=id)
    if share_id is not None:
        raise exception.QosTypeInUse(qos_type_id=id, users=f'share {share_id}')
    share_type = session.value(_SHARE_TYPE_OF, names=[id, row.name])
    if share_type is not None:
        raise exception.QosTypeInUse(qos_type_id=id, users=f'share type {share_type}')
    session.run(_DELETE, of_type=id)
