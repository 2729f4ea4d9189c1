"""What metrics show of the database, in a few statements.

They run at every scrape, so none may read all rows of a long table. Rows at
rest, nearly all of them, are not counted; of the others and of work, only a
limited number is read and counted.
"""

from collections.abc import Collection, Iterator, Sequence
import datetime
import itertools
import typing

import sqlalchemy as sa

from manila_lite.db import models, rows
from manila_lite.db.dialects import db_now
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.quotas.quotas import PROJECT
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, JOURNAL, POOL, SERVICE, USAGE, WORK
from manila_lite.states import (
    access_rule,
    share_backup,
    share_group,
    share_instance,
    share_network,
    share_replica,
    share_server,
    share_task,
    share_transfer,
    snapshot_instance,
)
from manila_lite.states.machine import Machine

MOST_WORK = 5000
"""Rows of work that are read for each state."""

MOST_ROWS = 1000
"""Rows in flight, and as many others, that are read for each machine."""


HEALTHY: dict[Machine, Collection[str]] = {
    access_rule.ACCESS_RULE: {access_rule.RuleState.ACTIVE},
    access_rule.SNAPSHOT_ACCESS_RULE: {access_rule.RuleState.ACTIVE},
    access_rule.SHARE_INSTANCE_ACCESS: {access_rule.RulesStatus.ACTIVE},
    share_backup.SHARE_BACKUP: {share_backup.BackupStatus.AVAILABLE},
    share_group.SHARE_GROUP: {share_group.GroupStatus.AVAILABLE},
    share_group.SHARE_GROUP_SNAPSHOT: {share_group.GroupSnapshotStatus.AVAILABLE},
    share_instance.SHARE_INSTANCE: {
        share_instance.InstanceStatus.AVAILABLE,
        share_instance.InstanceStatus.AWAITING_TRANSFER,
    },
    share_network.SHARE_NETWORK: {share_network.NetworkStatus.ACTIVE},
    share_replica.SHARE_REPLICA: share_replica.UP_TO_DATE,
    share_server.SHARE_SERVER: {
        share_server.ServerStatus.ACTIVE,
        share_server.ServerStatus.INACTIVE,
    },
    share_server.SHARE_SERVER_TASK: share_server.SHARE_SERVER_TASK.at_rest,
    share_task.SHARE_TASK: share_task.SHARE_TASK.at_rest,
    share_transfer.SHARE_TRANSFER: {share_transfer.TransferStatus.PENDING},
    snapshot_instance.SNAPSHOT_INSTANCE: {snapshot_instance.SnapshotStatus.AVAILABLE},
}
"""The state machines, each with the statuses that are not counted."""


class Figures(typing.NamedTuple):
    """The rows that metrics are made of, and the time of the transaction."""

    now: datetime.datetime
    statuses: Sequence[rows.StatusCountRow]
    work: Sequence[rows.WorkCountRow]
    services: Sequence[rows.ServicePoolRow]
    quotas: Sequence[rows.ProjectQuotaRow]


def _counted(machine: Machine) -> Iterator[sa.Select]:
    """Select what is in flight separately: many errors must not hide it."""
    counted = machine.statuses - frozenset(HEALTHY[machine])
    in_flight = counted.intersection(machine.in_flight)
    for statuses in (in_flight, counted - in_flight):
        if statuses:
            yield _found(machine, statuses)


def _found(machine: Machine, statuses: Collection[str]) -> sa.Select:
    """Find a limited number of rows by their statuses."""
    table = models.metadata.tables[machine.table]
    status = table.c[machine.column]
    found = (
        sa.select(status.label('status'), table.c.id)
        .where(status.in_(sorted(statuses)))
        .limit(sa.bindparam('most', type_=sa.Integer()))
        .subquery()
    )
    return sa.select(
        sa.literal(machine.resource).label('resource'), found.c.status, found.c.id
    )


def _statuses() -> sa.Select:
    """Count rows by status, with the time of the first of their last moves.

    The journal is in one place of the statement: planning it for each
    machine takes longer than reading it.
    """
    found = sa.union_all(
        *itertools.chain.from_iterable(map(_counted, HEALTHY))
    ).subquery()
    since = (
        sa.select(sa.func.max(JOURNAL.c.made_at))
        .where(
            JOURNAL.c.resource == found.c.resource, JOURNAL.c.resource_id == found.c.id
        )
        .scalar_subquery()
    )
    moved = sa.select(found.c.resource, found.c.status, since.label('since')).subquery()
    return sa.select(
        moved.c.resource,
        moved.c.status,
        sa.func.count().label('number'),
        sa.func.min(moved.c.since).label('since'),
    ).group_by(moved.c.resource, moved.c.status)


def _work(state: str) -> sa.Select:
    """Count work by kind and by the state that operators see.

    Queued work that must not start yet is delayed; running work whose lease
    has ended is abandoned.
    """
    shown = sa.case(
        (WORK.c.lease_until < db_now(), 'abandoned')
        if state == 'running'
        else (WORK.c.next_try_at > db_now(), 'delayed'),
        else_=state,
    )
    found = (
        sa.select(WORK.c.kind, shown.label('state'), WORK.c.created_at)
        .where(WORK.c.state == state)
        .limit(sa.bindparam('most', type_=sa.Integer()))
        .subquery()
    )
    return sa.select(
        found.c.kind,
        found.c.state,
        sa.func.count().label('number'),
        sa.func.min(found.c.created_at).label('since'),
    ).group_by(found.c.kind, found.c.state)


def _oldest_sync() -> sa.ColumnElement[datetime.datetime | None]:
    """Return the time of the oldest last sync on a back end, or NEVER."""
    return (
        sa.select(INSTANCE.c.synced_at)
        .where(INSTANCE.c.service_host == SERVICE.c.host)
        .order_by(INSTANCE.c.synced_at)
        .limit(1)
        .scalar_subquery()
    )


_STATUSES = _statuses()
_WORK = sa.union_all(_work('queued'), _work('running'))
_SERVICES = (
    sa.select(
        *columns(
            rows.ServicePoolRow,
            SERVICE,
            POOL,
            now=db_now(),
            pool=POOL.c.host,
            oldest_sync_at=_oldest_sync(),
        )
    )
    .select_from(
        SERVICE.outerjoin(
            POOL,
            sa.and_(
                POOL.c.service_host == SERVICE.c.host,
                SERVICE.c.binary == 'manila-share',
            ),
        )
    )
    .order_by(SERVICE.c.id, POOL.c.host)
)
_QUOTAS = sa.select(*columns(rows.ProjectQuotaRow, USAGE)).where(
    USAGE.c.project_id.in_(sa.bindparam('projects', expanding=True)),
    USAGE.c.scope == PROJECT,
    USAGE.c.scope_id == '',
)


def read(
    session: Session,
    projects: Collection[str],
    *,
    most_rows: int = MOST_ROWS,
    most_work: int = MOST_WORK,
) -> Figures:
    """Return what metrics show, with the quota use of these projects."""
    return Figures(
        session.now,
        session.rows(_STATUSES, most=most_rows),
        session.rows(_WORK, most=most_work),
        session.rows(_SERVICES),
        session.rows(_QUOTAS, projects=list(projects)) if projects else [],
    )
