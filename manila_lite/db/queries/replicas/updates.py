"""Replicas that are due for an update, and corrections of their roles."""

from collections.abc import Collection
import datetime
import typing

import sqlalchemy as sa

from manila_lite.db.rows import ReplicaIdRow, SyncedReplica
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, JOURNAL, LOG, SNAPSHOT_INSTANCE, WORK
from manila_lite.states import snapshot_instance
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import PASSIVE, SHARE_REPLICA, ReplicaState

POLLED_STATUSES = SHARE_INSTANCE.at_rest - {InstanceStatus.AWAITING_TRANSFER}
"""The statuses in which no other work will report on a replica.

One that was active and failed to be resized or reverted stays in error when
it becomes passive.
"""

OTHER = INSTANCE.alias('other')


def _of_service(*conditions: sa.ColumnElement[bool]) -> sa.Select:
    """Return the first replicas that meet the conditions, by an index."""
    found = (
        sa.select(INSTANCE.c.id, INSTANCE.c.share_id)
        .where(
            INSTANCE.c.service_host == sa.bindparam('of_service'),
            INSTANCE.c.id > sa.bindparam('after'),
            *conditions,
        )
        .order_by(INSTANCE.c.id)
        .limit(sa.bindparam('page_size'))
        .subquery()
    )
    return sa.select(found.c.id, found.c.share_id)


# Hidden from planners: the index by status leads to all shares.
_IS_POLLED = sa.func.coalesce(INSTANCE.c.status, '').in_(sorted(POLLED_STATUSES))
_PAGE = (
    sa.union_all(
        _of_service(INSTANCE.c.replica_state.in_(sorted(PASSIVE)), _IS_POLLED),
        _of_service(
            INSTANCE.c.replica_state == ReplicaState.ACTIVE,
            _IS_POLLED,
            # The role of a sole replica is checked when the others are gone.
            sa.exists().where(
                OTHER.c.share_id == INSTANCE.c.share_id, OTHER.c.id != INSTANCE.c.id
            ),
        ),
    )
    .order_by('id')
    .limit(sa.bindparam('page_size'))
)
_GENERATIONS = sa.select(INSTANCE.c.id, INSTANCE.c.replica_generation).where(
    INSTANCE.c.id.in_(sa.bindparam('ids', expanding=True)),
    INSTANCE.c.status.in_(sorted(POLLED_STATUSES)),
)
_SHARE_ID = sa.select(INSTANCE.c.share_id).where(
    INSTANCE.c.id == sa.bindparam('replica_id'), INSTANCE.c.replica_state.is_not(None)
)
_IS_PENDING = sa.select(sa.exists().where(WORK.c.one_key == sa.bindparam('of_key')))
_UPDATE_COPYING = sa.update(SNAPSHOT_INSTANCE).where(
    SNAPSHOT_INSTANCE.c.id == sa.bindparam('instance_id'),
    SNAPSHOT_INSTANCE.c.status == snapshot_instance.SnapshotStatus.CREATING,
)
_LAST_MOVE = (
    sa.select(JOURNAL.c.event)
    .where(
        JOURNAL.c.resource == SHARE_INSTANCE.resource,
        JOURNAL.c.resource_id == sa.bindparam('replica_id'),
    )
    .order_by(JOURNAL.c.id.desc())
    .limit(1)
)


# Replies that are late, or about another role, change nothing.
_RECORD_SYNCED = (
    sa.update(INSTANCE)
    .where(
        INSTANCE.c.id == sa.bindparam('of_id'),
        INSTANCE.c.replica_generation == sa.bindparam('of_generation'),
        INSTANCE.c.replica_state != ReplicaState.ACTIVE,
        INSTANCE.c.synced_at != sa.bindparam('at'),
    )
    .values(synced_at=sa.bindparam('at'))
)


def list_page(
    session: Session, service_host: str, after: str, size: int
) -> typing.Sequence[ReplicaIdRow]:
    """Return id and share of up to `size` replicas, ordered by id.

    They are passive replicas, and active ones beside others. The page starts
    after the id `after`; the empty one precedes all.
    """
    return session.rows(_PAGE, of_service=service_host, after=after, page_size=size)


def get_generations(session: Session, ids: Collection[str]) -> dict[str, int]:
    """Return the generations of those replicas that are still polled."""
    return {
        row.id: row.replica_generation
        for row in session.rows(_GENERATIONS, ids=sorted(ids))
    }


def find_share_id(session: Session, replica_id: str) -> str | None:
    """Return the share of a replica, or None if the replica is gone."""
    return session.value(_SHARE_ID, replica_id=replica_id)


def has_failed_promotion(session: Session, replica_id: str) -> bool:
    """Whether a failed promotion was the last move of the replica.

    It may have been the promotion of another replica.
    """
    return session.value(_LAST_MOVE, replica_id=replica_id) in (
        'promote_failed',
        'replica_failed',
    )


def is_work_pending(session: Session, kind: str, key: object) -> bool:
    """Whether work of this kind and key is queued or running."""
    return bool(session.value(_IS_PENDING, of_key=f'{kind}:{key}'))


def record_synced(session: Session, replicas: Collection[SyncedReplica]) -> None:
    """Record when passive replicas had the content of their share."""
    session.run_many(
        _RECORD_SYNCED,
        [
            {
                'of_id': one.replica_id,
                'of_generation': one.replica_generation,
                # The clock of the back end may be ahead.
                'at': min(one.synced_at, session.now),
            }
            # In one order, so that two transactions do not deadlock.
            for one in sorted(replicas)
        ],
    )


def update_copying_snapshot(
    session: Session, snapshot_instance_id: str, **values: object
) -> None:
    """Update columns of a snapshot instance that is still being copied."""
    session.run(
        _UPDATE_COPYING.values(updated_at=session.now, **values),
        instance_id=snapshot_instance_id,
    )


_TIMES = (
    sa.select(LOG.c.made_at)
    .where(
        LOG.c.resource_id == sa.bindparam('replica_id'),
        LOG.c.resource == SHARE_REPLICA.resource,
        LOG.c.made_at >= sa.bindparam('since'),
        LOG.c.action.in_(sa.bindparam('actions', expanding=True)),
    )
    .order_by(LOG.c.id.desc())
)


def list_times(
    session: Session,
    replica_id: str,
    actions: typing.Collection[str],
    since: datetime.datetime,
) -> list[datetime.datetime]:
    """Return when the log had these actions on a replica, newest first."""
    return [
        row.made_at
        for row in session.rows(
            _TIMES, replica_id=replica_id, actions=sorted(actions), since=since
        )
    ]
