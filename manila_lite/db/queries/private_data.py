"""The private data of drivers: keys and values of one entity."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from manila_lite.db.session import Session
from manila_lite.db.tables import PRIVATE_DATA as DATA

_OF_ENTITY = DATA.c.entity_uuid == sa.bindparam('of_entity')
_IS_KEY = DATA.c.key == sa.bindparam('of_key')
_GET = sa.select(DATA.c.key, DATA.c.value).where(_OF_ENTITY)
_UPDATE = (
    sa.update(DATA)
    .where(_OF_ENTITY, _IS_KEY)
    .values(value=sa.bindparam('new_value'), updated_at=sa.bindparam('now'))
)
_INSERT = sa.insert(DATA)
_DELETE = sa.delete(DATA).where(
    _OF_ENTITY, DATA.c.key.in_(sa.bindparam('keys', expanding=True))
)
_DELETE_OTHERS = sa.delete(DATA).where(
    _OF_ENTITY, DATA.c.key.not_in(sa.bindparam('keys', expanding=True))
)
_DELETE_ALL = sa.delete(DATA).where(
    DATA.c.entity_uuid.in_(sa.bindparam('ids', expanding=True))
)


def get(session: Session, entity_id: str) -> dict[str, str]:
    return {row.key: row.value for row in session.rows(_GET, of_entity=entity_id)}


def update(
    session: Session,
    entity_id: str,
    values: Mapping[str, str],
    *,
    delete_existing: bool = False,
) -> None:
    """Set these keys, and with `delete_existing` delete all others."""
    if delete_existing:
        session.run(_DELETE_OTHERS, of_entity=entity_id, keys=sorted(values))
    # One order, so that concurrent updates do not block each other.
    for key, value in sorted(values.items()):
        if not session.run(
            _UPDATE, of_entity=entity_id, of_key=key, new_value=value, now=session.now
        ):
            session.insert_unique(
                _INSERT,
                entity_uuid=entity_id,
                key=key,
                value=value,
                created_at=session.now,
            )


def delete(session: Session, entity_id: str, keys: Collection[str]) -> None:
    """Delete these keys; missing ones are ignored."""
    session.run(_DELETE, of_entity=entity_id, keys=sorted(keys))


def delete_all(session: Session, entity_ids: Collection[str]) -> None:
    """Delete everything that drivers have stored about these entities."""
    session.run(_DELETE_ALL, ids=sorted(entity_ids))
