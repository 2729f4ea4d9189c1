"""Which encryption keys the shares of a project use."""

from collections.abc import Collection
import typing

import sqlalchemy as sa

from manila_lite.db.queries.quotas.counts import UNCOUNTED
from manila_lite.db.queries.quotas.quotas import Owner
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, KEY, SHARE

_THIS = (
    KEY.c.project_id == sa.bindparam('of_project'),
    KEY.c.key_ref == sa.bindparam('of_key'),
)
_CHANGE = sa.update(KEY).where(*_THIS).values(uses=KEY.c.uses + sa.bindparam('change'))
_UNUSED = sa.select(KEY.c.project_id, KEY.c.user_id, KEY.c.share_type_id).where(
    *_THIS, KEY.c.uses <= 0
)
_FORGET = sa.delete(KEY).where(*_THIS)
_FIND = sa.select(KEY.c.uses).where(*_THIS)


def is_used(session: Session, project_id: str, key_ref: str) -> bool:
    """Whether a share of the project uses the key."""
    found = session.value(_FIND, of_project=project_id, of_key=key_ref)
    return found is not None


def add_uses(session: Session, owner: Owner, key_ref: str, count: int = 1) -> bool:
    """Count shares that use the key; return whether it is new.

    A concurrent transaction that uses or releases the key waits.
    """
    if session.run(_CHANGE, of_project=owner.project_id, of_key=key_ref, change=count):
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
    row = session.first(_UNUSED, **this)
    if row is None:
        return None
    session.run(_FORGET, **this)
    return Owner(row.project_id, row.user_id, row.share_type_id)


# The count by the shares themselves

_OF_SHARE = INSTANCE.join(SHARE, SHARE.c.id == INSTANCE.c.share_id)
_IS_COUNTED = (
    INSTANCE.c.encryption_key_ref.is_not(None),
    INSTANCE.c.status.not_in(UNCOUNTED),
)
_USED = (
    sa.select(
        SHARE.c.project_id,
        INSTANCE.c.encryption_key_ref.label('key_ref'),
        sa.func.count(SHARE.c.id.distinct()).label('uses'),
    )
    .select_from(_OF_SHARE)
    .where(*_IS_COUNTED)
    .group_by(SHARE.c.project_id, INSTANCE.c.encryption_key_ref)
)
# The sum is zero where both agree. A join of the two would compare each row
# of one with all of the other on MariaDB.
_BOTH = sa.union_all(
    _USED, sa.select(KEY.c.project_id, KEY.c.key_ref, -KEY.c.uses)
).subquery('both_counts')
_WRONG = (
    sa.select(_BOTH.c.project_id, _BOTH.c.key_ref)
    .group_by(_BOTH.c.project_id, _BOTH.c.key_ref)
    .having(sa.or_(sa.func.sum(_BOTH.c.uses) != 0, sa.func.max(_BOTH.c.uses) <= 0))
    .subquery('wrong')
)
_LIST_WRONG = sa.select(_WRONG).limit(sa.bindparam('most'))
_COUNT_WRONG = sa.select(sa.func.count()).select_from(_WRONG)
_LOCK = (
    sa.select(KEY.c.key_ref, KEY.c.user_id, KEY.c.share_type_id, KEY.c.uses)
    .where(
        KEY.c.project_id == sa.bindparam('of_project'),
        KEY.c.key_ref.in_(sa.bindparam('of_keys', expanding=True)),
    )
    .order_by(KEY.c.key_ref)
    .with_for_update()
)
_USERS = (
    sa.select(
        INSTANCE.c.encryption_key_ref.label('key_ref'),
        SHARE.c.user_id,
        sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
    )
    .select_from(_OF_SHARE)
    .where(
        SHARE.c.project_id == sa.bindparam('of_project'),
        INSTANCE.c.encryption_key_ref.in_(sa.bindparam('of_keys', expanding=True)),
        INSTANCE.c.status.not_in(UNCOUNTED),
    )
    .group_by(
        INSTANCE.c.encryption_key_ref, SHARE.c.created_at, SHARE.c.id, SHARE.c.user_id
    )
    .order_by(SHARE.c.created_at, SHARE.c.id)
)
_SET_USES = sa.update(KEY).where(*_THIS).values(uses=sa.bindparam('new_uses'))


def count_wrong(session: Session) -> int:
    """Return the number of keys whose uses differ from a count of shares."""
    return session.value(_COUNT_WRONG)


def list_wrong(session: Session, most: int) -> typing.Sequence[typing.Any]:
    """Return projects and references of some of these keys."""
    return session.rows(_LIST_WRONG, most=most)


def lock(
    session: Session, project_id: str, key_refs: Collection[str]
) -> typing.Sequence[typing.Any]:
    """Lock the rows of keys, those that exist, and return them."""
    return session.rows(_LOCK, of_project=project_id, of_keys=list(key_refs))


def list_users(
    session: Session, project_id: str, key_refs: Collection[str]
) -> typing.Sequence[typing.Any]:
    """Return a row for each share that uses a key, the oldest first."""
    return session.rows(_USERS, of_project=project_id, of_keys=list(key_refs))


def set_uses(session: Session, project_id: str, key_ref: str, uses: int) -> None:
    """Overwrite the count of a key that has been locked."""
    session.run(_SET_USES, of_project=project_id, of_key=key_ref, new_uses=uses)


def forget(session: Session, project_id: str, key_ref: str) -> None:
    """Delete the count of a key that no share uses."""
    session.run(_FORGET, of_project=project_id, of_key=key_ref)
