"""Which encryption keys the shares of a project use."""

import sqlalchemy as sa

from manila_lite.db.models import encryption_keys
from manila_lite.db.queries.admin.quotas import Owner
from manila_lite.db.session import Session

KEY = encryption_keys.EncryptionKey.__table__

_THIS = (
    KEY.c.project_id == sa.bindparam('of_project'),
    KEY.c.key_ref == sa.bindparam('of_key'),
)
_CHANGE = (
    sa.update(KEY)
    .where(*_THIS)
    .values(uses=KEY.c.uses + sa.bindparam('change'))
)
_UNUSED = sa.select(
    KEY.c.project_id, KEY.c.user_id, KEY.c.share_type_id
).where(*_THIS, KEY.c.uses <= 0)
_FORGET = sa.delete(KEY).where(*_THIS)
_FIND = sa.select(KEY.c.uses).where(*_THIS)


def is_used(session: Session, project_id: str, key_ref: str) -> bool:
    """Whether a share of the project uses the key."""
    found = session.value(_FIND, of_project=project_id, of_key=key_ref)
    return found is not None


def add_uses(
    session: Session, owner: Owner, key_ref: str, count: int = 1
) -> bool:
    """Count shares that use the key; return whether it is new.

    A concurrent transaction that uses or releases the key waits.
    """
    if session.run(
        _CHANGE, of_project=owner.project_id, of_key=key_ref, change=count
    ):
        return False
    session.insert_unique(
        sa.insert(KEY),
        project_id=owner.project_id,
        key_ref=key_ref,
        user_id=owner.user_id,
        share_type_id=owner.share_type_id,
        uses=count,
    )
    return True


def release(session: Session, project_id: str, key_ref: str) -> Owner | None:
    """Count one share less; return the owner of a key that is unused now."""
    this = {'of_project': project_id, 'of_key': key_ref}
    if not session.run(_CHANGE, **this, change=-1):
        return None
    row = session.one(_UNUSED, **this)
    if row is None:
        return None
    session.run(_FORGET, **this)
    return Owner(row.project_id, row.user_id, row.share_type_id)
