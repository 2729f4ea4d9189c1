"""Shares: the rows that operations act on, and their plain records."""

from collections.abc import Mapping
import datetime
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.queries.records import Records
from manila_lite.db.queries.shares import instance_views
from manila_lite.db.rows import ExpiredShareRow, ShareTarget
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    BACKUP,
    GROUP_MEMBER,
    INSTANCE,
    SHARE,
    SHARE_METADATA,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
)
from manila_lite.states import share_instance as instance_states, snapshot_instance
from manila_lite.states.share_replica import PASSIVE

update = Records[typing.Any](SHARE, exception.ShareNotFound, 'share_id').update
METADATA = MetadataTable(SHARE_METADATA, 'share_id', SHARE)
AFFINITY_KEYS = {
    'same_host': '__affinity_same_host',
    'different_host': '__affinity_different_host',
}
"""Metadata that records the scheduler hints of shares, by hint."""

_INSTANCES = (
    sa.select(*columns(ShareTarget, SHARE, INSTANCE, instance_id=INSTANCE.c.id))
    .select_from(SHARE.outerjoin(INSTANCE))
    .where(SHARE.c.id == sa.bindparam('share_id'))
    .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
)
_IS_PASSIVE = INSTANCE.c.replica_state.in_(sorted(PASSIVE))
_TARGET = (
    _INSTANCES.with_only_columns(
        *(
            instance_views.select_column('status').label('status')
            if column is INSTANCE.c.status
            else column
            for column in _INSTANCES.selected_columns
        )
    )
    .order_by(None)
    .order_by(sa.case((_IS_PASSIVE, 1), else_=0), INSTANCE.c.created_at, INSTANCE.c.id)
)
_RESIZE = (
    sa.update(SHARE)
    .where(SHARE.c.id == sa.bindparam('share_id'))
    .values(size=sa.bindparam('new_size'), updated_at=sa.bindparam('now'))
)
_REMAINDER = sa.select(
    sa.exists().where(INSTANCE.c.share_id == sa.bindparam('of_share')),
    sa.exists().where(
        SHARE_METADATA.c.share_id == sa.bindparam('of_share'),
        SHARE_METADATA.c.key.in_(AFFINITY_KEYS.values()),
    ),
)
_REMOVE = sa.delete(SHARE).where(SHARE.c.id == sa.bindparam('share_id'))
_DELETABLE = sa.exists().where(
    INSTANCE.c.share_id == SHARE.c.id,
    INSTANCE.c.status.in_(sorted(instance_states.DELETABLE)),
)
_SOFT_DELETE = (
    sa.update(SHARE)
    .where(
        SHARE.c.id == sa.bindparam('share_id'),
        SHARE.c.is_soft_deleted.is_(False),
        _DELETABLE,
    )
    .values(
        is_soft_deleted=True,
        scheduled_to_be_deleted_at=sa.bindparam('until'),
        updated_at=sa.bindparam('now'),
    )
)
_RESTORE = (
    sa.update(SHARE)
    .where(
        SHARE.c.id == sa.bindparam('share_id'),
        SHARE.c.is_soft_deleted.is_(True),
        _DELETABLE,
    )
    .values(
        is_soft_deleted=False,
        scheduled_to_be_deleted_at=None,
        updated_at=sa.bindparam('now'),
    )
)
_HAS_SNAPSHOTS = sa.select(
    sa.or_(
        sa.exists().where(SNAPSHOT.c.share_id == sa.bindparam('of_share')),
        sa.exists().where(GROUP_MEMBER.c.share_id == sa.bindparam('of_share')),
    )
)
_HIDDEN = sorted(snapshot_instance.HIDDEN_FROM_TENANTS)
_IS_KEPT = SNAPSHOT_INSTANCE.c.status.not_in(_HIDDEN)
_IS_LEAVING = SNAPSHOT_INSTANCE.c.status.in_(_HIDDEN)
_OF_SHARE = (
    SNAPSHOT.c.share_id == sa.bindparam('of_share'),
    SNAPSHOT_INSTANCE.c.snapshot_id == SNAPSHOT.c.id,
)
_DEPENDENTS = sa.select(
    sa.or_(
        sa.exists().where(*_OF_SHARE, _IS_KEPT),
        sa.exists().where(GROUP_MEMBER.c.share_id == sa.bindparam('of_share')),
    ).label('has_kept_snapshots'),
    sa.exists().where(*_OF_SHARE, _IS_LEAVING).label('has_leaving_snapshots'),
    sa.exists()
    .where(BACKUP.c.share_id == sa.bindparam('of_share'))
    .label('has_backups'),
)
_OF_INSTANCE: sa.BindParameter[str] = sa.bindparam('of_instance')
_NEEDS_INSTANCE = sa.select(
    sa.or_(
        sa.exists().where(
            SNAPSHOT_INSTANCE.c.share_instance_id == _OF_INSTANCE, _IS_KEPT
        ),
        sa.exists().where(GROUP_MEMBER.c.share_instance_id == _OF_INSTANCE),
        sa.exists().where(
            BACKUP.c.share_id == INSTANCE.c.share_id, INSTANCE.c.id == _OF_INSTANCE
        ),
    ),
    sa.exists().where(
        SNAPSHOT_INSTANCE.c.share_instance_id == _OF_INSTANCE, _IS_LEAVING
    ),
)
_EXPIRED = (
    sa.select(SHARE.c.id, SHARE.c.scheduled_to_be_deleted_at)
    .where(
        # IS TRUE would not be looked up in an index by MariaDB.
        SHARE.c.is_soft_deleted == sa.true(),
        SHARE.c.scheduled_to_be_deleted_at <= sa.bindparam('now'),
        *pages.is_behind(
            (sa.bindparam('after'), sa.bindparam('after_id')),
            SHARE.c.scheduled_to_be_deleted_at,
            SHARE.c.id,
        ),
    )
    .order_by(SHARE.c.scheduled_to_be_deleted_at, SHARE.c.id)
    .limit(100)
)
_EXPIRED_UNPLACED = _EXPIRED.where(_DELETABLE.where(INSTANCE.c.host.is_(None)))
_EXPIRED_ON_HOST = _EXPIRED.where(
    _DELETABLE.where(INSTANCE.c.service_host == sa.bindparam('of_service'))
)


def get_target(session: Session, share_id: str) -> ShareTarget:
    """Return what an action needs to authorize and check a share.

    The row has the instance that actions work on: the active replica, the
    oldest one if several are active. Its status is the one that the share
    is shown with. Raises ShareNotFound.
    """
    row = session.first(_TARGET, share_id=share_id)
    if row is None:
        raise exception.ShareNotFound(share_id=share_id)
    return row


def list_instances(session: Session, share_id: str) -> typing.Sequence[ShareTarget]:
    """Return such a row for every instance, each with its own status."""
    return [
        row for row in session.rows(_INSTANCES, share_id=share_id) if row.instance_id
    ]


def insert(
    session: Session, values: Mapping[str, object], metadata: Mapping[str, str]
) -> None:
    session.run(sa.insert(SHARE), **values)
    METADATA.insert(session, str(values['id']), metadata)


def resize(session: Session, share_id: str, size: int) -> None:
    session.run(_RESIZE, share_id=share_id, new_size=size, now=session.now)


def soft_delete(session: Session, share_id: str, until: datetime.datetime) -> bool:
    """Move a share into the recycle bin, if its status allows it now."""
    return (
        session.run(_SOFT_DELETE, share_id=share_id, until=until, now=session.now) == 1
    )


def restore(session: Session, share_id: str) -> bool:
    """Restore a share from the recycle bin, unless it is being deleted."""
    return session.run(_RESTORE, share_id=share_id, now=session.now) == 1


def list_expired(
    session: Session,
    service_host: str | None,
    after: tuple[datetime.datetime, str] = pages.BEGINNING,
) -> typing.Sequence[ExpiredShareRow]:
    """Return shares of a back end whose time in the recycle bin is over.

    None means shares without a back end. Returns a limited number, behind
    the time and the id `after`, and none that cannot be deleted in their
    status.
    """
    values: dict[str, object] = {
        'now': session.now,
        'after': after[0],
        'after_id': after[1],
    }
    if service_host is None:
        return session.rows(_EXPIRED_UNPLACED, **values)
    return session.rows(_EXPIRED_ON_HOST, of_service=service_host, **values)


def read_remainder(session: Session, share_id: str) -> tuple[bool, bool]:
    """Return whether the share has any instance left, and hints recorded."""
    (row,) = session.rows(_REMAINDER, of_share=share_id)
    has_instances, has_hints = row
    return bool(has_instances), bool(has_hints)


def remove(session: Session, share_id: str) -> bool:
    """Delete a share without instances; return whether it existed."""
    return session.run(_REMOVE, share_id=share_id) == 1


def has_snapshots(session: Session, share_id: str) -> bool:
    """Whether the share has any snapshot, also as one of its group."""
    return bool(session.value(_HAS_SNAPSHOTS, of_share=share_id))


def has_kept_snapshots(session: Session, share_id: str) -> bool:
    """Like `has_snapshots`, without those in deferred deletion."""
    return find_dependents(session, share_id).has_kept_snapshots


class Dependents(typing.NamedTuple):
    """What depends on a share; leaving snapshots are in deferred deletion."""

    has_kept_snapshots: bool
    has_leaving_snapshots: bool
    has_backups: bool


def find_dependents(session: Session, share_id: str) -> Dependents:
    """Return what depends on a share."""
    (row,) = session.rows(_DEPENDENTS, of_share=share_id)
    return Dependents(*map(bool, row))


def is_needed(session: Session, share_instance_id: str) -> tuple[bool, bool]:
    """Whether an instance has snapshots to keep, or its share any backup.

    Also returns whether it has snapshots in deferred deletion.
    """
    needed, leaving = session.rows(_NEEDS_INSTANCE, of_instance=share_instance_id)[0]
    return bool(needed), bool(leaving)


def filter_visible(
    session: Session, share_ids: typing.Collection[str], project_id: str, sees_all: bool
) -> set[str]:
    """Return the ids of those shares that the project can see."""
    if not share_ids:
        return set()
    return {
        row.id
        for row in session.rows(
            sa.select(SHARE.c.id).where(
                SHARE.c.id.in_(sorted(share_ids)),
                sa.or_(
                    SHARE.c.project_id == project_id,
                    SHARE.c.is_public,
                    sa.literal(sees_all),
                ),
            )
        )
    }
