"""Shares: the rows that operations decide on, and their plain records."""

from collections.abc import Mapping
import datetime
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import transitions
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.queries.shares import displayed_instance
from manila_lite.db.session import Session
from manila_lite.states import access_rule
from manila_lite.states import share_instance as instance_states
from manila_lite.states.share_replica import PASSIVE

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT = snapshots.Snapshot.__table__
METADATA = MetadataTable(shares.ShareMetadata.__table__, 'share_id', SHARE)

_INSTANCES = (
    sa.select(
        SHARE.c.id,
        SHARE.c.project_id,
        SHARE.c.user_id,
        SHARE.c.is_public,
        SHARE.c.size,
        SHARE.c.replication_type,
        SHARE.c.is_soft_deleted,
        SHARE.c.task_state,
        SHARE.c.share_group_id,
        SHARE.c.snapshot_support,
        SHARE.c.revert_to_snapshot_support,
        INSTANCE.c.id.label('instance_id'),
        INSTANCE.c.status,
        INSTANCE.c.host,
        INSTANCE.c.share_type_id,
        INSTANCE.c.replica_state,
        INSTANCE.c.share_server_id,
    )
    .select_from(SHARE.outerjoin(INSTANCE))
    .where(SHARE.c.id == sa.bindparam('share_id'))
    .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
)
_IS_PASSIVE = INSTANCE.c.replica_state.in_(sorted(PASSIVE))
_TARGET = (
    _INSTANCES.with_only_columns(
        *(
            displayed_instance.select_column('status').label('status')
            if column is INSTANCE.c.status
            else column
            for column in _INSTANCES.selected_columns
        )
    )
    .order_by(None)
    .order_by(
        sa.case((_IS_PASSIVE, 1), else_=0),
        INSTANCE.c.created_at,
        INSTANCE.c.id,
    )
)
_RESIZE = (
    sa.update(SHARE)
    .where(SHARE.c.id == sa.bindparam('share_id'))
    .values(size=sa.bindparam('new_size'), updated_at=sa.bindparam('now'))
)
_LEFT = (
    sa.select(sa.func.count())
    .select_from(INSTANCE)
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
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
_A_SNAPSHOT = (
    sa.select(SNAPSHOT.c.id)
    .where(SNAPSHOT.c.share_id == sa.bindparam('of_share'))
    .limit(1)
)
_EXPIRED = (
    sa.select(SHARE.c.id)
    .where(
        SHARE.c.is_soft_deleted.is_(True),
        SHARE.c.scheduled_to_be_deleted_at <= sa.bindparam('now'),
    )
    .order_by(SHARE.c.scheduled_to_be_deleted_at)
    .limit(100)
)
_EXPIRED_NOWHERE = _EXPIRED.where(_DELETABLE.where(INSTANCE.c.host.is_(None)))
_EXPIRED_THERE = _EXPIRED.where(
    _DELETABLE.where(
        sa.or_(
            INSTANCE.c.host == sa.bindparam('of_host'),
            INSTANCE.c.host.like(
                sa.bindparam('of_pools', type_=sa.String()), escape='!'
            ),
        )
    )
)


def get_target(session: Session, share_id: str) -> sa.Row:
    """What an action needs to authorise and check, in one statement.

    It is about the instance that actions work on: of replicas the active
    one, of several such the oldest. Its status is the one the share is
    shown with.
    """
    row = session.one(_TARGET, share_id=share_id)
    if row is None:
        raise exception.ShareNotFound(share_id=share_id)
    return row


def list_instances(session: Session, share_id: str) -> typing.Sequence[sa.Row]:
    """The same row for every instance of the share, each with its status."""
    return [
        row
        for row in session.rows(_INSTANCES, share_id=share_id)
        if row.instance_id
    ]


def insert(
    session: Session, values: Mapping[str, object], metadata: Mapping[str, str]
) -> None:
    session.run(sa.insert(SHARE), **values)
    METADATA.insert(session, str(values['id']), metadata)


def update(
    session: Session, share_id: str, values: Mapping[str, object]
) -> None:
    """Change plain columns of a share; never a status."""
    if (
        session.run(
            sa.update(SHARE)
            .where(SHARE.c.id == share_id)
            .values(updated_at=session.now, **values)
        )
        != 1
    ):
        raise exception.ShareNotFound(share_id=share_id)


def resize(session: Session, share_id: str, size: int) -> None:
    session.run(_RESIZE, share_id=share_id, new_size=size, now=session.now)


def soft_delete(
    session: Session, share_id: str, until: datetime.datetime
) -> bool:
    """Into the recycle bin, if status and flag allow it now."""
    return (
        session.run(
            _SOFT_DELETE, share_id=share_id, until=until, now=session.now
        )
        == 1
    )


def restore(session: Session, share_id: str) -> bool:
    """Out of the recycle bin, if it is there and not being deleted."""
    return session.run(_RESTORE, share_id=share_id, now=session.now) == 1


def list_expired(session: Session, service_host: str | None) -> list[str]:
    """Shares of a back end whose time in the recycle bin is over.

    With None, of no back end. Only some at a time, and none of those that
    cannot be deleted as they are.
    """
    if service_host is None:
        return [
            row.id for row in session.rows(_EXPIRED_NOWHERE, now=session.now)
        ]
    escaped = (
        service_host.replace('!', '!!').replace('%', '!%').replace('_', '!_')
    )
    return [
        row.id
        for row in session.rows(
            _EXPIRED_THERE,
            now=session.now,
            of_host=service_host,
            of_pools=f'{escaped}#%',
        )
    ]


def remove_instance(
    session: Session, instance: sa.Row, event: str = 'deleted'
) -> bool:
    """Make the last move of an instance; True when the share went too.

    `instance` has id, share_id and replica_state. What hangs on the rows
    goes with them; so do rules that no other replica has.
    """
    rules = (
        [row.id for row in share_rules.list_for_instance(session, instance.id)]
        if instance.replica_state is not None
        else []
    )
    if rules:
        share_rules.lock_rules(session, rules)
    transitions.fire_matching(
        session,
        access_rule.ACCESS_RULE,
        'removed',
        {'share_instance_id': instance.id},
    )
    transitions.fire(
        session, instance_states.SHARE_INSTANCE, instance.id, event
    )
    if session.value(_LEFT, of_share=instance.share_id):
        if rules:
            share_rules.remove_unmapped(session, rules)
        return False
    return session.run(_REMOVE, share_id=instance.share_id) == 1


def has_snapshots(session: Session, share_id: str) -> bool:
    """Whether there is any snapshot of the share, in whatever status."""
    return session.value(_A_SNAPSHOT, of_share=share_id) is not None


def filter_visible(
    session: Session,
    share_ids: typing.Collection[str],
    project_id: str,
    sees_all: bool,
) -> set[str]:
    """Which of these shares exist for the project."""
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
