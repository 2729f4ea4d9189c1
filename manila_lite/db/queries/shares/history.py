"""The rows of one share whose moves and work make up its history."""

from collections.abc import Collection, Sequence
import datetime

import sqlalchemy as sa

from manila_lite.db.models.base import NEVER
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.work import events, queues
from manila_lite.db.rows import DriverCallRow, RuleOfInstanceRow, WorkOfResourceRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    CALL,
    INSTANCE,
    MAPPING as RULE,
    SNAPSHOT_INSTANCE,
    WORK,
)
from manila_lite.states import (
    access_rule,
    share_instance,
    share_replica,
    share_task,
    snapshot_instance,
)

_OF_INSTANCES = (
    share_instance.SHARE_INSTANCE.resource,
    share_replica.SHARE_REPLICA.resource,
    access_rule.SHARE_INSTANCE_ACCESS.resource,
)
_HAS_SHARE = INSTANCE.c.share_id == sa.bindparam('share_id')
_MOST = sa.bindparam('most', type_=sa.Integer())
_INSTANCES = (
    sa.select(INSTANCE.c.id)
    .where(_HAS_SHARE)
    .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
)
_SYNC_TIMES = sa.select(INSTANCE.c.id, INSTANCE.c.synced_at).where(
    _HAS_SHARE, INSTANCE.c.synced_at < NEVER
)
_RULES = (
    sa.select(*columns(RuleOfInstanceRow, RULE))
    .select_from(RULE.join(INSTANCE))
    .where(_HAS_SHARE)
    .order_by(RULE.c.created_at.desc(), RULE.c.id)
    .limit(_MOST)
)
_SNAPSHOTS = (
    sa.select(SNAPSHOT_INSTANCE.c.id)
    .select_from(SNAPSHOT_INSTANCE.join(INSTANCE))
    .where(_HAS_SHARE)
    .order_by(SNAPSHOT_INSTANCE.c.created_at.desc())
    .limit(_MOST)
)
_WORK = (
    sa.select(
        WORK.c.id,
        WORK.c.kind,
        WORK.c.resource,
        WORK.c.resource_id,
        WORK.c.state,
        WORK.c.attempt,
        WORK.c.step,
        WORK.c.error,
        WORK.c.owner,
        WORK.c.request_id,
        WORK.c.created_at,
        *queues.SHOWN,
    )
    .select_from(WORK.outerjoin(queues.BLOCKER, queues.IS_BLOCKER))
    .where(
        WORK.c.resource.in_(sa.bindparam('resources', expanding=True)),
        WORK.c.resource_id.in_(sa.bindparam('ids', expanding=True)),
    )
    .order_by(WORK.c.created_at.desc())
    .limit(_MOST)
)


def list_rules(
    session: Session, share_id: str, *, most: int
) -> Sequence[RuleOfInstanceRow]:
    """Return the newest states of access rules by instance."""
    return session.rows(_RULES, share_id=share_id, most=most)


def list_parts(
    session: Session, share_id: str, rules: Collection[RuleOfInstanceRow], *, most: int
) -> dict[str, list[str]]:
    """Return the ids of what the share is made of, by state machine."""
    instances = [row.id for row in session.rows(_INSTANCES, share_id=share_id)]
    snapshot_ids = [
        row.id for row in session.rows(_SNAPSHOTS, share_id=share_id, most=most)
    ]
    return {
        **dict.fromkeys(_OF_INSTANCES, instances),
        share_task.SHARE_TASK.resource: [share_id],
        access_rule.ACCESS_RULE.resource: [row.id for row in rules],
        snapshot_instance.SNAPSHOT_INSTANCE.resource: snapshot_ids,
    }


def list_sync_times(session: Session, share_id: str) -> dict[str, datetime.datetime]:
    """Return when replicas had the content of the share, by their ids."""
    return {
        row.id: row.synced_at for row in session.rows(_SYNC_TIMES, share_id=share_id)
    }


def list_work(
    session: Session, parts: dict[str, list[str]], *, most: int
) -> Sequence[WorkOfResourceRow]:
    """Return the work that is owed for these parts, newest first."""
    ids = sorted({id for some in parts.values() for id in some})
    return session.rows(_WORK, resources=list(parts), ids=ids, most=most)


def list_driver_calls(
    session: Session, parts: dict[str, list[str]], *, most: int
) -> Sequence[DriverCallRow]:
    """Return the last calls of drivers for these parts, newest first."""
    return events.list_newest(session, CALL, 'started_at', parts, most=most)
