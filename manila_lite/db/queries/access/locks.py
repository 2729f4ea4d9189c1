"""Resource locks: their records, and the rows that they depend on."""

from collections.abc import Collection, Sequence
import dataclasses
import datetime

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.records import Records
from manila_lite.db.rows import LockableRow, Page, ResourceLockRow, VisibilityLockRow
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, LOCK, MAPPING, RULE, SHARE
from manila_lite.states.locks import ResourceAction

FILTERS = (
    'id',
    'user_id',
    'project_id',
    'resource_id',
    'resource_type',
    'resource_action',
    'lock_context',
    'lock_reason',
)
"""The columns that a list can be filtered by, by equality."""

SORT_KEYS = (*FILTERS, 'created_at', 'updated_at')

MAX_NAMED = 3  # locks, in a refusal

RECORDS: Records[ResourceLockRow] = Records(
    LOCK, exception.ResourceLockNotFound, 'lock_id'
)

_OTHER = LOCK.alias()
_BY_ID = LOCK.c.id == sa.bindparam('lock_id')
_OWNER = (
    sa.select(SHARE.c.project_id)
    .select_from(LOCK.join(SHARE, SHARE.c.id == LOCK.c.share_id))
    .where(_BY_ID)
)
_INSERT = sa.insert(LOCK)
_DELETE = sa.delete(LOCK).where(_BY_ID)
_DELETE_SOME = sa.delete(LOCK).where(
    LOCK.c.id.in_(sa.bindparam('lock_ids', expanding=True))
)
_OF_RESOURCE = sa.select(LOCK).where(
    LOCK.c.resource_id == sa.bindparam('locked_id'),
    LOCK.c.resource_action == sa.bindparam('action'),
)
_HIDING = sa.select(LOCK.c.access_id, LOCK.c.user_id, LOCK.c.project_id).where(
    LOCK.c.share_id == sa.bindparam('of_share'),
    LOCK.c.resource_action == ResourceAction.SHOW,
)
# The row locks of these two keep requests that create a resource lock
# apart from requests that delete or deny: the latter first move the same
# rows, and then check for resource locks.
_LOCK_SHARE = (
    sa.select(
        *columns(
            LockableRow,
            SHARE,
            INSTANCE,
            share_id=SHARE.c.id,
            share_status=INSTANCE.c.status,
        )
    )
    .select_from(SHARE.join(INSTANCE))
    .where(SHARE.c.id == sa.bindparam('share_id'))
    .order_by(INSTANCE.c.id)
    .with_for_update()
)
_LOCK_RULE = (
    sa.select(
        *columns(
            LockableRow,
            SHARE,
            RULE,
            status=MAPPING.c.state,
            share_status=INSTANCE.c.status,
            id=RULE.c.id,
        )
    )
    .select_from(
        RULE.join(SHARE)
        .join(MAPPING, MAPPING.c.access_id == RULE.c.id)
        .join(INSTANCE, INSTANCE.c.id == MAPPING.c.share_instance_id)
    )
    .where(RULE.c.id == sa.bindparam('access_id'))
    .order_by(MAPPING.c.id)
    .with_for_update(of=[MAPPING, INSTANCE])
)


get, find, update = RECORDS.get, RECORDS.find, RECORDS.update


@dataclasses.dataclass
class ResourceLockFilter:
    """Criteria for resource locks; empty fields match everything.

    `exact` are values of columns in FILTERS. `visible_to` is a project: its
    locks are those that it has created, and those on its shares.
    """

    exact: dict[str, str] = dataclasses.field(default_factory=dict)
    visible_to: str | None = None
    reason_like: str | None = None
    created_since: datetime.datetime | None = None
    created_before: datetime.datetime | None = None


def find_share_owner(session: Session, lock_id: str) -> str | None:
    """Return the project whose share, or its rule, is locked."""
    return session.value(_OWNER, lock_id=lock_id)


def list_locks(
    session: Session, criteria: ResourceLockFilter, page: Page, count: bool = False
) -> tuple[Sequence[ResourceLockRow], int | None]:
    """Return a page of locks, and the total if `count` is set."""
    conditions = _conditions(criteria)
    total = pages.check_length(session, page, LOCK, conditions, count=count)
    statement = sa.select(LOCK).where(*conditions)
    return session.rows(pages.select_page(statement, page, LOCK)), total


def _conditions(criteria: ResourceLockFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        LOCK.c[name] == value for name, value in criteria.exact.items()
    ]
    if criteria.visible_to is not None:
        on_its_shares = (
            sa.select(_OTHER.c.id)
            .select_from(_OTHER.join(SHARE, SHARE.c.id == _OTHER.c.share_id))
            .where(
                SHARE.c.project_id == criteria.visible_to,
                _OTHER.c.project_id != criteria.visible_to,
            )
        )
        found.append(
            sa.or_(
                LOCK.c.project_id == criteria.visible_to, LOCK.c.id.in_(on_its_shares)
            )
        )
    if criteria.reason_like is not None:
        found.append(LOCK.c.lock_reason.contains(criteria.reason_like, autoescape=True))
    if criteria.created_since is not None:
        found.append(LOCK.c.created_at >= criteria.created_since)
    if criteria.created_before is not None:
        found.append(LOCK.c.created_at <= criteria.created_before)
    return found


def list_for_resource(
    session: Session, resource_id: str, action: str = ResourceAction.DELETE
) -> Sequence[ResourceLockRow]:
    """Return the locks that forbid an action on a resource."""
    return session.rows(_OF_RESOURCE, locked_id=resource_id, action=action)


def list_hiding_locks(
    session: Session, share_id: str
) -> dict[str, list[VisibilityLockRow]]:
    """Return the locks that hide access rules of a share, by rule id."""
    found: dict[str, list[VisibilityLockRow]] = {}
    for row in session.rows(_HIDING, of_share=share_id):
        found.setdefault(row.access_id, []).append(row)
    return found


def check_share_not_locked(session: Session, share_id: str) -> None:
    """Raise ShareLocked if a lock forbids removing the share.

    Call it after the move that removes the share and in the same
    transaction, so that no lock can be created in between.
    """
    found = list_for_resource(session, share_id)
    if found:
        ordered = sorted(found, key=lambda row: (row.created_at, row.id))
        raise exception.ShareLocked(
            share_id=share_id, locks='; '.join(map(_describe, ordered[:MAX_NAMED]))
        )


def _describe(row: ResourceLockRow) -> str:
    """Return the owner and the reason of a lock, as its project may know."""
    reason = f' ({row.lock_reason})' if row.lock_reason else ''
    return f'lock {row.id} of {row.lock_context} {row.user_id}{reason}'


def lock_share_rows(session: Session, share_id: str) -> Sequence[LockableRow]:
    """Lock a share and its instances; return a row for each instance.

    Returns no rows if the share does not exist.
    """
    return session.rows(_LOCK_SHARE, share_id=share_id)


def lock_rule_rows(session: Session, access_id: str) -> Sequence[LockableRow]:
    """Lock the mappings of an access rule; `status` is the state of each."""
    return session.rows(_LOCK_RULE, access_id=access_id)


def insert(session: Session, values: dict[str, object]) -> str:
    """Insert a lock; return its id."""
    lock_id = session.new_id()
    session.run(
        _INSERT,
        **{
            'access_id': None,
            'because_of': None,
            **values,
            'id': lock_id,
            'created_at': session.now,
        },
    )
    return lock_id


def delete(session: Session, lock_id: str) -> None:
    """Delete a lock and those that exist because of it."""
    if session.run(_DELETE, lock_id=lock_id) != 1:
        raise exception.ResourceLockNotFound(lock_id=lock_id)


def delete_many(session: Session, lock_ids: Collection[str]) -> None:
    """Delete several locks; those that are gone already are ignored."""
    session.run(_DELETE_SOME, lock_ids=sorted(lock_ids))
