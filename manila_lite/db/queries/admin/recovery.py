"""Rows in flight, the work that holds them, and the log of recovery.

A `ResourceKind` for every state machine says how its rows are selected
and which work may hold them. The machine itself has the statuses.
"""

import datetime
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.clock import db_now
from manila_lite.db.models import access
from manila_lite.db.models import engine
from manila_lite.db.models import networks
from manila_lite.db.models import recovery
from manila_lite.db.models import server_migrations
from manila_lite.db.models import services
from manila_lite.db.models import share_servers
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.rows import HoldingWorkRow
from manila_lite.db.rows import InFlightRow
from manila_lite.db.rows import RecoveryLogRow
from manila_lite.db.rows import StuckRow
from manila_lite.db.rows import SubjectRow
from manila_lite.db.session import Session
from manila_lite.states import access_rule
from manila_lite.states import share_instance
from manila_lite.states import share_replica
from manila_lite.states import share_server
from manila_lite.states import snapshot_instance
from manila_lite.states.machine import Machine

WORK = engine.Work.__table__
JOURNAL = engine.Transition.__table__
LOG = recovery.RecoveryLogEntry.__table__
SERVICE = services.Service.__table__
SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT = snapshots.Snapshot.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__
NETWORK = networks.ShareNetwork.__table__
SERVER = share_servers.ShareServer.__table__
MIGRATION = server_migrations.ServerMigration.__table__
RULE = access.InstanceAccessRule.__table__
SNAPSHOT_RULE = snapshots.SnapshotInstanceAccessRule.__table__

Condition = sa.ColumnElement[bool]
_SOURCE = SERVER.alias('source')


class ResourceKind(typing.NamedTuple):
    """The resources of one state machine.

    `from_clause` joins the table with its owner and its host. `holders`
    are conditions on a row and a work row, true for the work that owes the
    next move. `subject_id` is the id that the rescue is submitted for,
    which may belong to another row. `waits` is a condition on rows that
    wait for another resource and are rescued with it; `also_in_flight` one
    on rows at rest that need a rescue too.
    """

    machine: Machine
    table: sa.Table
    from_clause: typing.Any
    holders: tuple[Condition, ...]
    subject_id: sa.ColumnElement[str]
    owner: sa.Table = SHARE
    waits: Condition | None = None
    also_in_flight: Condition | None = None
    host: sa.ColumnElement[str] = INSTANCE.c.host

    @property
    def status(self) -> sa.ColumnElement[str]:
        return self.table.c[self.machine.column]


def _work_on(resource: str, id: sa.ColumnElement[str]) -> Condition:
    return sa.and_(WORK.c.resource == resource, WORK.c.resource_id == id)


_SNAPSHOTS_OF = (
    sa.select(SNAPSHOT_INSTANCE.c.id)
    .where(SNAPSHOT_INSTANCE.c.share_instance_id == INSTANCE.c.id)
    .correlate(INSTANCE)
)
_S = share_instance.InstanceStatus
# The rules of such an instance are handled together with it.
_IS_SYNC_EXCLUDED = INSTANCE.c.status.in_(sorted(access_rule.SYNC_EXCLUDED))

_SERVERS = SERVER.outerjoin(NETWORK)
_IS_RUNNING = sa.and_(
    MIGRATION.c.open_for.is_not(None),
    sa.exists().where(
        _SOURCE.c.id == MIGRATION.c.open_for,
        _SOURCE.c.task_state.in_(
            sorted(
                {
                    *share_server.SHARE_SERVER_TASK.in_flight,
                    share_server.TaskState.PHASE1_DONE,
                }
            )
        ),
    ),
)
# A server that migrates waits for the task of its migration.
_IS_MIGRATED = sa.or_(
    sa.and_(
        SERVER.c.status == share_server.ServerStatus.SERVER_MIGRATING,
        sa.exists().where(MIGRATION.c.open_for == SERVER.c.id, _IS_RUNNING),
    ),
    sa.and_(
        SERVER.c.status == share_server.ServerStatus.SERVER_MIGRATING_TO,
        sa.exists().where(
            MIGRATION.c.destination_server_id == SERVER.c.id, _IS_RUNNING
        ),
    ),
)
# Shares and snapshots move with their server.
_SERVER_OF = (
    sa.select(SERVER.c.id)
    .where(
        SERVER.c.id == INSTANCE.c.share_server_id,
        SERVER.c.status == share_server.ServerStatus.SERVER_MIGRATING,
    )
    .correlate(INSTANCE)
)
_ON_SERVER = (
    sa.select(INSTANCE.c.id)
    .where(INSTANCE.c.share_server_id == SERVER.c.id)
    .correlate(SERVER)
)

KINDS = {
    kind.machine.resource: kind
    for kind in (
        ResourceKind(
            share_server.SHARE_SERVER,
            SERVER,
            _SERVERS,
            (
                _work_on('share_server', SERVER.c.id),
                # The work that creates the first share builds the server.
                sa.and_(
                    SERVER.c.status == share_server.ServerStatus.CREATING,
                    WORK.c.resource == 'share_instance',
                    WORK.c.resource_id.in_(_ON_SERVER),
                ),
                sa.and_(
                    SERVER.c.status
                    == share_server.ServerStatus.SERVER_MIGRATING,
                    _work_on('share_server_task', SERVER.c.id),
                ),
            ),
            SERVER.c.id,
            NETWORK,
            host=SERVER.c.host,
            waits=_IS_MIGRATED,
        ),
        ResourceKind(
            share_server.SHARE_SERVER_TASK,
            SERVER,
            _SERVERS.outerjoin(MIGRATION, MIGRATION.c.open_for == SERVER.c.id),
            (_work_on('share_server_task', SERVER.c.id),),
            SERVER.c.id,
            NETWORK,
            # The destination back end does all the work.
            host=sa.func.coalesce(MIGRATION.c.destination_host, SERVER.c.host),
        ),
        ResourceKind(
            share_instance.SHARE_INSTANCE,
            INSTANCE,
            INSTANCE.join(SHARE),
            (
                _work_on('share_instance', INSTANCE.c.id),
                # Taking a snapshot is work on the snapshot.
                sa.and_(
                    INSTANCE.c.status == _S.SNAPSHOTTING,
                    WORK.c.resource == 'snapshot_instance',
                    WORK.c.resource_id.in_(_SNAPSHOTS_OF),
                ),
                # Instances in ensuring are processed by work of the service.
                sa.and_(
                    INSTANCE.c.status == _S.ENSURING,
                    WORK.c.resource == 'service',
                    WORK.c.kind == 'ensuring.ensure_shares',
                    sa.func.substr(
                        INSTANCE.c.host, 1, sa.func.length(WORK.c.queue) + 1
                    )
                    == WORK.c.queue.concat('#'),
                ),
            ),
            INSTANCE.c.id,
            waits=sa.or_(
                sa.and_(
                    INSTANCE.c.status == _S.SNAPSHOTTING,
                    _SNAPSHOTS_OF.where(
                        SNAPSHOT_INSTANCE.c.status
                        == snapshot_instance.SnapshotStatus.CREATING
                    ).exists(),
                ),
                sa.and_(
                    INSTANCE.c.status == _S.SERVER_MIGRATING,
                    _SERVER_OF.exists(),
                ),
            ),
        ),
        ResourceKind(
            snapshot_instance.SNAPSHOT_INSTANCE,
            SNAPSHOT_INSTANCE,
            SNAPSHOT_INSTANCE.join(INSTANCE).join(
                SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_INSTANCE.c.snapshot_id
            ),
            (
                _work_on('snapshot_instance', SNAPSHOT_INSTANCE.c.id),
                # Reverting a share is work on the share.
                sa.and_(
                    SNAPSHOT_INSTANCE.c.status
                    == snapshot_instance.SnapshotStatus.RESTORING,
                    _work_on(
                        'share_instance', SNAPSHOT_INSTANCE.c.share_instance_id
                    ),
                ),
            ),
            SNAPSHOT_INSTANCE.c.id,
            SNAPSHOT,
            waits=sa.or_(
                sa.and_(
                    SNAPSHOT_INSTANCE.c.status
                    == snapshot_instance.SnapshotStatus.SERVER_MIGRATING,
                    _SERVER_OF.exists(),
                ),
                # Snapshots on passive replicas follow with replica updates.
                sa.and_(
                    SNAPSHOT_INSTANCE.c.status.in_(
                        sorted(
                            {
                                snapshot_instance.SnapshotStatus.CREATING,
                                snapshot_instance.SnapshotStatus.DELETING,
                            }
                        )
                    ),
                    # Makes the condition false, not NULL, without replicas.
                    INSTANCE.c.replica_state.is_not(None),
                    INSTANCE.c.replica_state.in_(
                        sorted(share_replica.PASSIVE)
                    ),
                ),
            ),
        ),
        ResourceKind(
            access_rule.ACCESS_RULE,
            RULE,
            RULE.join(INSTANCE).join(SHARE),
            (_work_on('share_instance_access', RULE.c.share_instance_id),),
            RULE.c.share_instance_id,
            waits=_IS_SYNC_EXCLUDED,
        ),
        ResourceKind(
            access_rule.SHARE_INSTANCE_ACCESS,
            INSTANCE,
            INSTANCE.join(SHARE),
            (_work_on('share_instance_access', INSTANCE.c.id),),
            INSTANCE.c.id,
            waits=_IS_SYNC_EXCLUDED,
            also_in_flight=INSTANCE.c.access_stale == sa.true(),
        ),
        ResourceKind(
            access_rule.SNAPSHOT_ACCESS_RULE,
            SNAPSHOT_RULE,
            SNAPSHOT_RULE.join(SNAPSHOT_INSTANCE)
            .join(INSTANCE)
            .join(SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_INSTANCE.c.snapshot_id),
            (
                _work_on(
                    'snapshot_instance',
                    SNAPSHOT_RULE.c.share_snapshot_instance_id,
                ),
            ),
            SNAPSHOT_RULE.c.share_snapshot_instance_id,
            SNAPSHOT,
            waits=SNAPSHOT_INSTANCE.c.status.in_(
                sorted(snapshot_instance.SYNC_EXCLUDED)
            ),
        ),
    )
}
"""In the order of the design: resources that others depend on first."""


def _rows(resource: str) -> sa.Select:
    """Return the selection of rows in flight, without an order."""
    kind = KINDS[resource]
    return (
        sa.select(
            sa.literal(resource).label('resource'),
            kind.table.c.id,
            kind.status.label('status'),
            kind.subject_id.label('subject_id'),
            kind.host.label('host'),
            kind.owner.c.project_id,
            kind.owner.c.user_id,
        )
        .select_from(kind.from_clause)
        .where(
            kind.status.in_(sorted(kind.machine.in_flight))
            if kind.also_in_flight is None
            else sa.or_(
                kind.status.in_(sorted(kind.machine.in_flight)),
                kind.also_in_flight,
            )
        )
    )


def _moves(kind: ResourceKind) -> tuple[Condition, Condition]:
    """Return the conditions for the journal entries of a row."""
    return (
        JOURNAL.c.resource == kind.machine.resource,
        JOURNAL.c.resource_id == kind.table.c.id,
    )


@functools.cache
def _in_flight(resource: str) -> sa.Select:
    """Return the ordered selection, with the time of the last move."""
    kind = KINDS[resource]
    since = (
        sa.select(sa.func.max(JOURNAL.c.made_at))
        .where(*_moves(kind))
        .scalar_subquery()
    )
    return (
        _rows(resource)
        .add_columns(
            since.label('since'),
            (sa.false() if kind.waits is None else kind.waits).label('waits'),
        )
        .order_by(kind.table.c.id)
    )


@functools.cache
def _stuck(resource: str, placed: bool, with_before: bool) -> sa.Select:
    """Return the selection of rows without work, on one back end.

    It has no order, so that of thousands only `most` rows are read.
    """
    kind = KINDS[resource]
    found = _rows(resource).where(
        *(~sa.exists().where(holder) for holder in kind.holders),
        _is_on(kind) if placed else kind.host.is_(None),
    )
    if kind.waits is not None:
        found = found.where(~kind.waits)
    if with_before:
        found = found.where(
            ~sa.exists().where(
                *_moves(kind),
                JOURNAL.c.made_at
                >= sa.bindparam('before', type_=JOURNAL.c.made_at.type),
            )
        )
    return found.limit(sa.bindparam('most', type_=sa.Integer()))


def _is_on(kind: ResourceKind) -> Condition:
    """Return the condition for rows on this back end, in any pool."""
    return sa.or_(
        kind.host == sa.bindparam('of_host'),
        sa.func.substr(kind.host, 1, sa.bindparam('length'))
        == sa.bindparam('prefix'),
    )


def _where(service_host: str) -> dict[str, object]:
    prefix = f'{service_host}#'
    return {'of_host': service_host, 'prefix': prefix, 'length': len(prefix)}


def list_stuck(
    session: Session,
    resource: str,
    service_host: str | None,
    *,
    most: int,
    before: datetime.datetime | None = None,
) -> typing.Sequence[StuckRow]:
    """Return up to `most` rows in flight for which no work is queued.

    They are those of one back end (`host@backend`, including its pools),
    or with None those that have no host yet; with `before`, only rows
    without a move since that time.
    """
    statement = _stuck(resource, service_host is not None, before is not None)
    values: dict[str, object] = {'most': most}
    if service_host is not None:
        values |= _where(service_host)
    if before is not None:
        values['before'] = before
    return session.rows(statement, **values)


def get_resource(session: Session, resource: str, id: str) -> SubjectRow:
    """Return host, owner and `subject_id` of a resource in any status.

    Raises ResourceNotFound.
    """
    kind = KINDS[resource]
    row = session.one(
        sa.select(
            kind.host.label('host'),
            kind.subject_id.label('subject_id'),
            kind.owner.c.project_id,
            kind.owner.c.user_id,
        )
        .select_from(kind.from_clause)
        .where(kind.table.c.id == id)
    )
    if row is None:
        raise exception.ResourceNotFound(
            resource=resource.replace('_', ' ').capitalize(), id=id
        )
    return row


def list_in_flight(
    session: Session,
    resource: str,
    *,
    host: str | None = None,
    most: int,
    after: str = '',
) -> typing.Sequence[InFlightRow]:
    """Return up to `most` rows in flight, ordered by id, after an id."""
    statement = (
        _in_flight(resource)
        .where(KINDS[resource].table.c.id > after)
        .limit(most)
    )
    if host is None:
        return session.rows(statement)
    return session.rows(
        statement.where(_is_on(KINDS[resource])), **_where(host)
    )


def list_holding_work(
    session: Session, resource: str, ids: typing.Collection[str]
) -> dict[str, HoldingWorkRow]:
    """Return the work that owes the next move of resources, by their ids.

    `heartbeat_age` and `health` are those of the service that has it.
    """
    kind = KINDS[resource]
    found = {}
    for holder in kind.holders:
        for row in session.rows(
            sa.select(
                kind.table.c.id.label('held_id'),
                WORK,
                (WORK.c.lease_until - db_now()).label('lease_left'),
                (db_now() - SERVICE.c.heartbeat_at).label('heartbeat_age'),
                SERVICE.c.health,
            )
            .select_from(
                kind.table.join(WORK, holder).outerjoin(
                    SERVICE, SERVICE.c.host == WORK.c.queue
                )
            )
            .where(kind.table.c.id.in_(ids))
            .order_by(WORK.c.created_at.desc())
        ):
            found[row.held_id] = row
    return found


# The log

_RECORD = sa.insert(LOG)


def record_decision(session: Session, **values: object) -> None:
    """Log a decision in the transaction that carries it out."""
    by = session.by
    session.run(
        _RECORD,
        **{
            'host': None,
            'evidence': None,
            'reason': None,
            'asked_by': None,
            'status_after': None,
            'made_at': session.now,
            'made_by': by and by.actor,
            'request_id': by and by.request_id,
            **values,
        },
    )


def list_log(
    session: Session,
    *,
    limit: int,
    offset: int = 0,
    host: str | None = None,
    **wanted: str | None,
) -> typing.Sequence[RecoveryLogRow]:
    """Return decisions, newest first; `wanted` are values of columns.

    If the host is a back end, its pools are included.
    """
    conditions = [
        LOG.c[name] == value
        for name, value in wanted.items()
        if value is not None
    ]
    if host is not None:
        conditions.append(
            sa.or_(
                LOG.c.host == host,
                LOG.c.host.startswith(f'{host}#', autoescape=True),
            )
        )
    return session.rows(
        sa.select(LOG)
        .where(*conditions)
        .order_by(LOG.c.id.desc())
        .limit(limit)
        .offset(offset)
    )


def prune_log(session: Session, older_than: datetime.datetime) -> int:
    """Delete decisions older than a time; return their number."""
    return session.run(sa.delete(LOG).where(LOG.c.made_at < older_than))


# Queued rescues

_COUNT_QUEUED = sa.select(sa.func.count()).where(
    WORK.c.queue == sa.bindparam('of_queue'),
    WORK.c.state == 'queued',
    WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
)


def count_queued_rescues(
    session: Session, queue: str, kinds: typing.Collection[str]
) -> int:
    """Return the number of rescues of a back end that are queued."""
    return session.value(_COUNT_QUEUED, of_queue=queue, kinds=sorted(kinds))
