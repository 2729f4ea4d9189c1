"""What is in flight, who works on it, and what recovery has decided.

One `Kind` for every state table says how its rows are found and which
work may hold them. The statuses are those of the table itself.
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
    """The resources of one state table.

    `of` joins the table with whose it is and where, by the column
    `host`. `holders` are conditions on a
    row and a work row: that of the work which owes its next move. `about`
    is the id of what its rescue is about, which need not be its own.
    `waits` is a condition on rows that wait for another resource, whose
    rescue is theirs; `doubts` one on rows at rest that are rescued too.
    """

    machine: Machine
    table: sa.Table
    from_clause: typing.Any
    holders: tuple[Condition, ...]
    subject_id: sa.ColumnElement[str]
    owner: sa.Table = SHARE
    waits: Condition | None = None
    doubts: Condition | None = None
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
# The rules of an instance come and go with it.
_IS_UNTOLD = INSTANCE.c.status.in_(sorted(access_rule.SYNC_EXCLUDED))

_SERVERS = SERVER.outerjoin(NETWORK)
_GOES_ON = sa.and_(
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
# What migrates waits for the task of its migration.
_IS_MIGRATED = sa.or_(
    sa.and_(
        SERVER.c.status == share_server.ServerStatus.SERVER_MIGRATING,
        sa.exists().where(MIGRATION.c.open_for == SERVER.c.id, _GOES_ON),
    ),
    sa.and_(
        SERVER.c.status == share_server.ServerStatus.SERVER_MIGRATING_TO,
        sa.exists().where(
            MIGRATION.c.destination_server_id == SERVER.c.id, _GOES_ON
        ),
    ),
)
# Shares move with their server, and snapshots too.
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
                # Who creates the first share makes the server for it.
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
            # The back end that a server goes to does all the work.
            host=sa.func.coalesce(MIGRATION.c.destination_host, SERVER.c.host),
        ),
        ResourceKind(
            share_instance.SHARE_INSTANCE,
            INSTANCE,
            INSTANCE.join(SHARE),
            (
                _work_on('share_instance', INSTANCE.c.id),
                # Who takes a snapshot works on the snapshot.
                sa.and_(
                    INSTANCE.c.status == _S.SNAPSHOTTING,
                    WORK.c.resource == 'snapshot_instance',
                    WORK.c.resource_id.in_(_SNAPSHOTS_OF),
                ),
                # What is ensured is owed by work of its service.
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
                # Who reverts a share works on the share.
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
                # What a replica follows with is seen when it is updated.
                sa.and_(
                    SNAPSHOT_INSTANCE.c.status.in_(
                        sorted(
                            {
                                snapshot_instance.SnapshotStatus.CREATING,
                                snapshot_instance.SnapshotStatus.DELETING,
                            }
                        )
                    ),
                    # Not unknown, of what is no replica, but no.
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
            waits=_IS_UNTOLD,
        ),
        ResourceKind(
            access_rule.SHARE_INSTANCE_ACCESS,
            INSTANCE,
            INSTANCE.join(SHARE),
            (_work_on('share_instance_access', INSTANCE.c.id),),
            INSTANCE.c.id,
            waits=_IS_UNTOLD,
            doubts=INSTANCE.c.access_stale == sa.true(),
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
"""In the order of the design: first what others depend on."""


def _rows(resource: str) -> sa.Select:
    """Its rows in flight, in no order."""
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
            if kind.doubts is None
            else sa.or_(
                kind.status.in_(sorted(kind.machine.in_flight)), kind.doubts
            )
        )
    )


def _moves(kind: ResourceKind) -> tuple[Condition, Condition]:
    """Conditions on the journal: what it says of a row."""
    return (
        JOURNAL.c.resource == kind.machine.resource,
        JOURNAL.c.resource_id == kind.table.c.id,
    )


@functools.cache
def _in_flight(resource: str) -> sa.Select:
    """The same in order, and since when, by the journal."""
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
def _stuck(resource: str, placed: bool, early: bool) -> sa.Select:
    """Those that no work is owed for, on one back end.

    Without an order, so that of thousands no more than some are read.
    """
    kind = KINDS[resource]
    found = _rows(resource).where(
        *(~sa.exists().where(holder) for holder in kind.holders),
        _is_on(kind) if placed else kind.host.is_(None),
    )
    if kind.waits is not None:
        found = found.where(~kind.waits)
    if early:
        found = found.where(
            ~sa.exists().where(
                *_moves(kind),
                JOURNAL.c.made_at
                >= sa.bindparam('before', type_=JOURNAL.c.made_at.type),
            )
        )
    return found.limit(sa.bindparam('most', type_=sa.Integer()))


def _is_on(kind: ResourceKind) -> Condition:
    """On this back end, whichever its pool."""
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
) -> typing.Sequence[sa.Row]:
    """So many of the rows in flight that no work is owed for.

    Of one back end (`host@backend`, its pools included), or with None of
    those that have no host yet; with `before`, only what has been as it
    is since before a moment.
    """
    statement = _stuck(resource, service_host is not None, before is not None)
    values: dict[str, object] = {'most': most}
    if service_host is not None:
        values |= _where(service_host)
    if before is not None:
        values['before'] = before
    return session.rows(statement, **values)


def get_resource(session: Session, resource: str, id: str) -> sa.Row:
    """Where a resource is, whose, and what its rescue is about.

    At rest or not; raises ResourceNotFound when there is none.
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
) -> typing.Sequence[sa.Row]:
    """So many rows in flight of a kind, after an id in order of ids."""
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
) -> dict[str, sa.Row]:
    """The work that owes the next move of these, by their ids.

    `heartbeat_age` and `health` are those of the service it waits for.
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
    """Write a decision down, in the transaction that carries it out."""
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
) -> typing.Sequence[sa.Row]:
    """Decisions, the newest first; `wanted` are values of columns.

    A host may be a back end, whose pools are meant then.
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
    """Forget what was decided before a moment; how much it was."""
    return session.run(sa.delete(LOG).where(LOG.c.made_at < older_than))


# Rescues that are owed

_OWED = sa.select(sa.func.count()).where(
    WORK.c.queue == sa.bindparam('of_queue'),
    WORK.c.state == 'queued',
    WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
)


def count_queued_rescues(
    session: Session, queue: str, kinds: typing.Collection[str]
) -> int:
    """How many rescues of a back end wait to be carried out."""
    return session.value(_OWED, of_queue=queue, kinds=sorted(kinds))
