"""What recovery has to know about the resources of each state machine.

A `ResourceKind` says how their rows are selected and which work may hold
them. The machine itself has the statuses.
"""

import typing

import sqlalchemy as sa

from manila_lite.db.dialects import filter_only
from manila_lite.db.tables import (
    BACKUP,
    GROUP,
    GROUP_MEMBER,
    GROUP_SNAPSHOT,
    INSTANCE,
    MAPPING as RULE,
    NETWORK,
    SERVER,
    SERVER_MIGRATION as MIGRATION,
    SHARE,
    SHARE_MIGRATION,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_MAPPING as SNAPSHOT_RULE,
    TRANSFER,
    WORK,
)
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

Condition = sa.ColumnElement[bool]
_SOURCE = SERVER.alias('source')


class ResourceKind(typing.NamedTuple):
    """The resources of one state machine.

    `from_clause` joins the table with its owner and its host. `holders`
    are conditions on a row and a work row, true for the work that owes the
    next move. `subject_id` is the id that the rescue is submitted for,
    which may belong to another row. `waits` is a condition on rows that
    wait for another resource and are rescued with it.

    `stale` are rows at rest that need the same rescue, selected by
    `condition`. They are a kind of their own, since no database reads
    either condition of an OR by its own index for certain.
    """

    machine: Machine
    table: sa.Table
    from_clause: typing.Any
    holders: tuple[Condition, ...]
    subject_id: sa.ColumnElement[str]
    owner: sa.Table = SHARE
    waits: Condition | None = None
    host: sa.ColumnElement[str] = INSTANCE.c.host
    service_host: sa.ColumnElement[str] = filter_only(INSTANCE.c.service_host)
    condition: Condition | None = None
    shown_status: sa.ColumnElement[str] | None = None
    stale: 'ResourceKind | None' = None

    @property
    def status(self) -> sa.ColumnElement[str]:
        if self.shown_status is not None:
            return self.shown_status
        return self.table.c[self.machine.column]

    @property
    def is_in_flight(self) -> Condition:
        """The condition for rows that need a rescue if they have no work."""
        if self.condition is not None:
            return self.condition
        return self.status.in_(sorted(self.machine.in_flight))

    @property
    def parts(self) -> tuple['ResourceKind', ...]:
        """This kind, and the stale rows if there are such."""
        return (self,) if self.stale is None else (self, self.stale)


def _work_on(resource: str, id: sa.ColumnElement[str]) -> Condition:
    return sa.and_(WORK.c.resource == resource, WORK.c.resource_id == id)


_SNAPSHOTS_OF = (
    sa.select(SNAPSHOT_INSTANCE.c.id)
    .where(SNAPSHOT_INSTANCE.c.share_instance_id == INSTANCE.c.id)
    .correlate(INSTANCE)
)
_GROUP_SNAPSHOTS_OF = (
    sa.select(GROUP_MEMBER.c.share_group_snapshot_id)
    .where(GROUP_MEMBER.c.share_instance_id == INSTANCE.c.id)
    .correlate(INSTANCE)
)
_B = share_backup.BackupStatus
_BACKUPS_OF = (
    sa.select(BACKUP.c.id)
    .where(BACKUP.c.share_id == INSTANCE.c.share_id)
    .correlate(INSTANCE)
)
_RESTORES_TO = (
    sa.select(BACKUP.c.id)
    .where(BACKUP.c.restore_share_id == INSTANCE.c.share_id)
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
# So do the instances of a share that migrates.
_IS_INSTANCE_MIGRATED = sa.and_(
    INSTANCE.c.status.in_(
        [
            share_instance.InstanceStatus.MIGRATING,
            share_instance.InstanceStatus.MIGRATING_TO,
        ]
    ),
    # Makes the condition false, not NULL, without a task.
    sa.func.coalesce(SHARE.c.task_state, '').in_(sorted(share_task.RUNNING)),
    sa.exists().where(SHARE_MIGRATION.c.open_for == SHARE.c.id),
)
_IS_SNAPSHOT_MIGRATED = sa.and_(
    SNAPSHOT_INSTANCE.c.status.in_(sorted(snapshot_instance.MOVING)),
    sa.exists().where(
        SHARE_MIGRATION.c.open_for == SNAPSHOT.c.share_id,
        SHARE.c.id == SHARE_MIGRATION.c.open_for,
        SHARE.c.task_state.in_(sorted(share_task.RUNNING)),
    ),
)
_TASK_HOST = sa.func.coalesce(MIGRATION.c.destination_host, SERVER.c.host)
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
_MIGRATING_TO_SERVER = (
    sa.select(INSTANCE.c.share_id)
    .where(
        INSTANCE.c.share_server_id == SERVER.c.id,
        INSTANCE.c.status == share_instance.InstanceStatus.MIGRATING_TO,
    )
    .correlate(SERVER)
)
_GROUPS_ON_SERVER = (
    sa.select(GROUP.c.id)
    .where(GROUP.c.share_server_id == SERVER.c.id)
    .correlate(SERVER)
)
_NO_HOST = sa.type_coerce(sa.null(), sa.String())
_CHANGING_SERVERS_OF = (
    sa.select(SERVER.c.id)
    .where(
        SERVER.c.share_network_id == NETWORK.c.id,
        SERVER.c.status == share_server.ServerStatus.NETWORK_CHANGE,
    )
    .correlate(NETWORK)
)
_OFFERED = INSTANCE.alias('offered')
_INSTANCES_OF = (
    sa.select(_OFFERED.c.id)
    .where(_OFFERED.c.share_id == TRANSFER.c.resource_id)
    .correlate(TRANSFER)
)

_INSTANCE_RULE_SETS = ResourceKind(
    access_rule.SHARE_INSTANCE_ACCESS,
    INSTANCE,
    INSTANCE.join(SHARE),
    (_work_on('share_instance_access', INSTANCE.c.id),),
    INSTANCE.c.id,
    waits=_IS_SYNC_EXCLUDED,
)
_IS_SNAPSHOT_SYNC_EXCLUDED = SNAPSHOT_INSTANCE.c.status.in_(
    sorted(snapshot_instance.SYNC_EXCLUDED)
)
# Also found without rules: the back end may still have some.
_STALE_SNAPSHOT_RULE_SETS = ResourceKind(
    access_rule.SNAPSHOT_ACCESS_RULE,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_INSTANCE.join(INSTANCE).join(
        SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_INSTANCE.c.snapshot_id
    ),
    (_work_on('snapshot_instance', SNAPSHOT_INSTANCE.c.id),),
    SNAPSHOT_INSTANCE.c.id,
    SNAPSHOT,
    waits=_IS_SNAPSHOT_SYNC_EXCLUDED,
    condition=SNAPSHOT_INSTANCE.c.access_stale == sa.true(),
    shown_status=SNAPSHOT_INSTANCE.c.status,
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
                # So does the work that migrates a share to it.
                sa.and_(
                    SERVER.c.status == share_server.ServerStatus.CREATING,
                    WORK.c.resource == share_task.SHARE_TASK.resource,
                    WORK.c.resource_id.in_(_MIGRATING_TO_SERVER),
                ),
                # So does the work that creates the first share group.
                sa.and_(
                    SERVER.c.status == share_server.ServerStatus.CREATING,
                    WORK.c.resource == 'share_group',
                    WORK.c.resource_id.in_(_GROUPS_ON_SERVER),
                ),
                sa.and_(
                    SERVER.c.status == share_server.ServerStatus.SERVER_MIGRATING,
                    _work_on('share_server_task', SERVER.c.id),
                ),
            ),
            SERVER.c.id,
            NETWORK,
            host=SERVER.c.host,
            service_host=SERVER.c.host,
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
            host=_TASK_HOST,
            service_host=_TASK_HOST,
        ),
        ResourceKind(
            share_task.SHARE_TASK,
            SHARE,
            SHARE_MIGRATION.join(SHARE, SHARE.c.id == SHARE_MIGRATION.c.open_for),
            (_work_on('share_task', SHARE.c.id),),
            SHARE.c.id,
            # The back end of the source does all the work.
            host=SHARE_MIGRATION.c.source_host,
            service_host=SHARE_MIGRATION.c.source_host,
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
                sa.and_(
                    INSTANCE.c.status == _S.SNAPSHOTTING,
                    WORK.c.resource == 'share_group_snapshot',
                    WORK.c.resource_id.in_(_GROUP_SNAPSHOTS_OF),
                ),
                # Backing up and restoring a share is work on the backup.
                sa.and_(
                    INSTANCE.c.status == _S.BACKUP_CREATING,
                    WORK.c.resource == 'share_backup',
                    WORK.c.resource_id.in_(_BACKUPS_OF),
                ),
                sa.and_(
                    INSTANCE.c.status == _S.BACKUP_RESTORING,
                    WORK.c.resource == 'share_backup',
                    WORK.c.resource_id.in_(_RESTORES_TO),
                ),
                # Instances in ensuring are processed by work of the service.
                sa.and_(
                    INSTANCE.c.status == _S.ENSURING,
                    WORK.c.resource == 'service',
                    WORK.c.kind == 'ensuring.ensure_shares',
                    INSTANCE.c.service_host == WORK.c.queue,
                ),
            ),
            INSTANCE.c.id,
            service_host=INSTANCE.c.service_host,
            waits=sa.or_(
                sa.and_(
                    INSTANCE.c.status == _S.SNAPSHOTTING,
                    _SNAPSHOTS_OF.where(
                        SNAPSHOT_INSTANCE.c.status
                        == snapshot_instance.SnapshotStatus.CREATING
                    ).exists(),
                ),
                sa.and_(
                    INSTANCE.c.status == _S.SNAPSHOTTING,
                    _GROUP_SNAPSHOTS_OF.where(
                        GROUP_SNAPSHOT.c.id == GROUP_MEMBER.c.share_group_snapshot_id,
                        GROUP_SNAPSHOT.c.status
                        == share_group.GroupSnapshotStatus.CREATING,
                    ).exists(),
                ),
                sa.and_(
                    INSTANCE.c.status == _S.BACKUP_CREATING,
                    _BACKUPS_OF.where(BACKUP.c.status == _B.CREATING).exists(),
                ),
                sa.and_(
                    INSTANCE.c.status == _S.BACKUP_RESTORING,
                    _RESTORES_TO.where(BACKUP.c.status == _B.RESTORING).exists(),
                ),
                sa.and_(INSTANCE.c.status == _S.SERVER_MIGRATING, _SERVER_OF.exists()),
                _IS_INSTANCE_MIGRATED,
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
                    _work_on('share_instance', SNAPSHOT_INSTANCE.c.share_instance_id),
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
                _IS_SNAPSHOT_MIGRATED,
                # Snapshots on passive replicas follow with replica updates.
                sa.and_(
                    SNAPSHOT_INSTANCE.c.status.in_(
                        sorted(
                            {
                                snapshot_instance.SnapshotStatus.CREATING,
                                *snapshot_instance.BEING_DELETED,
                            }
                        )
                    ),
                    # Makes the condition false, not NULL, without replicas.
                    INSTANCE.c.replica_state.is_not(None),
                    INSTANCE.c.replica_state.in_(sorted(share_replica.PASSIVE)),
                    # Nothing is created on a replica that could not be placed.
                    sa.or_(
                        INSTANCE.c.host.is_not(None),
                        INSTANCE.c.status == _S.CREATING,
                        SNAPSHOT_INSTANCE.c.status.in_(
                            sorted(snapshot_instance.BEING_DELETED)
                        ),
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
        _INSTANCE_RULE_SETS._replace(
            stale=_INSTANCE_RULE_SETS._replace(
                condition=sa.and_(
                    INSTANCE.c.access_stale == sa.true(),
                    INSTANCE.c.access_rules_status.not_in(
                        sorted(access_rule.SHARE_INSTANCE_ACCESS.in_flight)
                    ),
                )
            )
        ),
        ResourceKind(
            access_rule.SNAPSHOT_ACCESS_RULE,
            SNAPSHOT_RULE,
            SNAPSHOT_RULE.join(SNAPSHOT_INSTANCE)
            .join(INSTANCE)
            .join(SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_INSTANCE.c.snapshot_id),
            (
                _work_on(
                    'snapshot_instance', SNAPSHOT_RULE.c.share_snapshot_instance_id
                ),
            ),
            SNAPSHOT_RULE.c.share_snapshot_instance_id,
            SNAPSHOT,
            waits=_IS_SNAPSHOT_SYNC_EXCLUDED,
            stale=_STALE_SNAPSHOT_RULE_SETS,
        ),
        ResourceKind(
            share_group.SHARE_GROUP,
            GROUP,
            GROUP,
            (_work_on('share_group', GROUP.c.id),),
            GROUP.c.id,
            GROUP,
            host=GROUP.c.host,
            service_host=GROUP.c.service_host,
        ),
        ResourceKind(
            share_group.SHARE_GROUP_SNAPSHOT,
            GROUP_SNAPSHOT,
            GROUP_SNAPSHOT.join(GROUP),
            (_work_on('share_group_snapshot', GROUP_SNAPSHOT.c.id),),
            GROUP_SNAPSHOT.c.id,
            GROUP_SNAPSHOT,
            host=GROUP.c.host,
            service_host=filter_only(GROUP.c.service_host),
        ),
        ResourceKind(
            share_backup.SHARE_BACKUP,
            BACKUP,
            # The back end of the share submits the work again, whichever
            # service does it.
            BACKUP.join(SHARE, SHARE.c.id == BACKUP.c.share_id).join(
                INSTANCE, INSTANCE.c.share_id == SHARE.c.id
            ),
            (_work_on('share_backup', BACKUP.c.id),),
            BACKUP.c.id,
            BACKUP,
        ),
        ResourceKind(
            share_transfer.SHARE_TRANSFER,
            TRANSFER,
            TRANSFER.join(SHARE).join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id),
            (
                sa.and_(
                    WORK.c.kind == 'share_transfers.accept_transfer',
                    WORK.c.resource == 'share_instance',
                    WORK.c.resource_id.in_(_INSTANCES_OF),
                ),
            ),
            TRANSFER.c.id,
        ),
        # A network may have servers on several back ends, and is at rest
        # again when the last of them is.
        ResourceKind(
            share_network.SHARE_NETWORK,
            NETWORK,
            NETWORK,
            (
                sa.and_(
                    WORK.c.resource == 'share_server',
                    WORK.c.resource_id.in_(_CHANGING_SERVERS_OF),
                ),
            ),
            NETWORK.c.id,
            NETWORK,
            host=_NO_HOST,
            service_host=_NO_HOST,
            waits=_CHANGING_SERVERS_OF.exists(),
        ),
    )
}
"""In the order of the design: resources that others depend on first."""
