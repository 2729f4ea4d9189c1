"""Accept requests to migrate shares to other back ends."""

import dataclasses
import datetime
import typing
from typing import Annotated

import orjson

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves import snapshots as migrated_snapshots
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.services import pools, services
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import qos_types, types as share_types
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Database, Session, read_transaction, transaction
from manila_lite.db.transitions import fire
from manila_lite.host import Host
from manila_lite.quota import shares as migration_quota
from manila_lite.quota.limits import DefaultLimits
from manila_lite.rpc.contract import Client
from manila_lite.rpc.data import BINARY as DATA_BINARY, DRIVER_ONLY
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import BINARY, ShareMigrationRpc
from manila_lite.share.operations.replication import guards as replica_guards
from manila_lite.share.operations.reset_events import check_phase
from manila_lite.share.operations.shares import migration_guards, share_request
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_task import (
    OF_COPY,
    OF_DRIVER,
    RUNNING,
    SHARE_TASK,
    WAITING,
    ShareTask,
)

_NOTHING_YET = frozenset(
    {ShareTask.STARTING, ShareTask.IN_PROGRESS, ShareTask.COPY_STARTING}
)
_IN_PROGRESS = frozenset({ShareTask.DRIVER_IN_PROGRESS, ShareTask.COPYING})


@dataclasses.dataclass(frozen=True)
class ShareMigrationOptions:
    """The destination of a migration and what it has to preserve.

    `dest_host` is host@backend#pool.
    """

    dest_host: str
    writable: bool
    nondisruptive: bool
    preserve_metadata: bool
    preserve_snapshots: bool
    force_host_assisted: bool = False
    new_share_network_id: str | None = None
    new_share_type_id: str | None = None


class ShareMigrationProgress(typing.NamedTuple):
    """The progress of a migration, a percentage; 0 if not known.

    `details` is what else the driver has reported, `heard_at` the time (UTC)
    of its last reply.
    """

    total: int
    details: dict[str, object]
    task_state: str
    heard_at: datetime.datetime | None


@dataclasses.dataclass(eq=False)
class ShareMigrations:
    """Operations on share migrations."""

    db: Database
    limits: DefaultLimits
    scheduler: Client[PlacementRpc]
    work: Client[ShareMigrationRpc]
    down_time: Annotated[float, Option('service_down_time')]

    # Start

    @transaction
    def start(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        options: ShareMigrationOptions,
    ) -> bool:
        """Accept a migration; False if the share is there already.

        Of concurrent requests only one is accepted.
        """
        target = replica_guards.get_only_instance(session, share)
        fire(session, SHARE_INSTANCE, target.instance_id, 'migrate')
        # Behind the guard: no rule, snapshot or replica can be added now.
        instance = share_instances.get(session, target.instance_id)
        _refuse_immovable(session, instance, options)
        _refuse_unsupported(options)
        new_type = _find_new_type(session, instance, options.new_share_type_id)
        network_id = migration_guards.choose_network(
            session, instance, new_type, options.new_share_network_id
        )
        if (
            options.dest_host == instance.host
            and new_type is None
            and network_id == instance.share_network_id
        ):
            fire(session, SHARE_INSTANCE, instance.id, 'migrate_returned')
            fire(session, SHARE_TASK, share.id, 'skip')
            return False
        zone = self._check_destination(session, options.dest_host)
        migration_guards.lock_networks(session, ctx, instance, network_id, zone=zone)
        if options.preserve_snapshots:
            migrated_snapshots.begin(session, share.id, instance.id)
        if options.force_host_assisted:
            self._require_data_service(session)
        fire(session, SHARE_TASK, share.id, 'start')
        if new_type is not None:
            migration_quota.charge_new_type(
                session, instance, new_type.id, limits=self.limits
            )
        migrations.insert(
            session,
            share.id,
            source_instance_id=instance.id,
            source_host=Host.parse(instance.host).service_host,
            destination_host=options.dest_host,
            writable=options.writable,
            nondisruptive=options.nondisruptive,
            preserve_metadata=options.preserve_metadata,
            preserve_snapshots=options.preserve_snapshots,
            host_assisted=options.force_host_assisted,
            new_share_type_id=new_type and new_type.id,
            destination_network_id=network_id,
        )
        self.scheduler.migrate_share_to_host(
            session,
            ctx,
            share_id=share.id,
            host=options.dest_host,
            needs_release_2=bool(
                new_type
                or network_id
                or instance.share_server_id
                or options.preserve_snapshots
            ),
        )
        return True

    def _check_destination(self, session: Session, text: str) -> str:
        """Return the availability zone of the destination."""
        host = Host.parse(text)
        if not (host.machine and host.backend and host.pool):
            raise exception.InvalidInput(reason='host must be host@backend#pool')
        zone = self._require_up(session, host.service_host)
        if not pools.pool_exists(session, text):
            raise exception.HostNotFound(
                reason=f'{host.service_host} has no pool {host.pool}'
            )
        return zone

    def _require_data_service(self, session: Session) -> None:
        if not services.is_any_up(session, DATA_BINARY, self.down_time):
            raise exception.InvalidInput(
                reason='force_host_assisted_migration: no data service is up'
            )

    def _require_up(self, session: Session, service_host: str) -> str:
        """Return the availability zone of a share service that is up."""
        try:
            service = services.get(session, service_host, BINARY)
        except exception.NotFound as error:
            raise exception.HostNotFound(
                reason=f'there is no share service {service_host}'
            ) from error
        if not services.is_up(service, self.down_time):
            raise exception.ServiceIsDown(binary=BINARY, host=service_host)
        return service.zone

    # Complete or cancel

    @transaction
    def complete(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> None:
        """Request the second phase."""
        migration = self._continue(session, share.id, 'complete')
        _check_instances(session, migration)
        migrations.update(session, share.id, phase=2)
        self.work.on(migration.source_host).complete_share_migration(
            session, ctx, share_id=share.id
        )

    @transaction
    def cancel(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> None:
        """Request that the migration is cancelled and rolled back."""
        migration = self._continue(session, share.id, 'cancel')
        self.work.on(migration.source_host).cancel_share_migration(
            session, ctx, share_id=share.id
        )

    def _continue(
        self, session: Session, share_id: str, event: str
    ) -> rows.ShareMigrationRow:
        """Fire the event and return the running migration."""
        # The guard comes first: of two requests the second sees its effect.
        fire(session, SHARE_TASK, share_id, event)
        return migrations.get_open(session, share_id)

    # Progress

    def progress(
        self, ctx: RequestContext, share: rows.ShareTarget
    ) -> ShareMigrationProgress:
        """Return the progress of the latest migration of a share.

        A driver that copies is asked; if it does not answer, the last known
        progress is returned.
        """
        task, migration = self._get(share.id)
        if migration is not None and (task.task_state == ShareTask.DRIVER_IN_PROGRESS):
            self._refresh(ctx, migration)
            task, migration = self._get(share.id)
        state = task.task_state
        if state is None:
            raise exception.InvalidShare(
                reason=f'share {share.id} has not been migrated'
            )
        total, details, heard_at = None, None, None
        if migration is not None:
            total, heard_at = migration.progress, migration.heard_at
            details = migration.progress_details
        if state in _NOTHING_YET:
            total = 0
        elif state not in _IN_PROGRESS:
            total = 100
        return ShareMigrationProgress(
            total or 0, orjson.loads(details or '{}'), state, heard_at
        )

    def _refresh(self, ctx: RequestContext, migration: rows.ShareMigrationRow) -> None:
        work = self.work.on(migration.source_host)
        try:
            work.hear_share_migration(ctx, share_id=migration.share_id)
        except exception.ServiceUnavailable:
            return  # the last known progress is returned

    @read_transaction
    def _get(
        self, session: Session, share_id: str
    ) -> tuple[rows.ShareTaskRow, rows.ShareMigrationRow | None]:
        task = migrations.find_task(session, share_id)
        if task is None:
            raise exception.ShareNotFound(share_id=share_id)
        return task, migrations.find_latest(session, share_id)

    # Administration

    @transaction
    def reset_task_state(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        task_state: str | None,
    ) -> None:
        """Set the task state; None removes it.

        A migration that nothing would continue is ended. None is refused
        while the share is being migrated: the official client sends it with
        every change of a share.
        """
        wanted = task_state or ShareTask.NONE
        if wanted not in SHARE_TASK.resets:
            raise exception.InvalidInput(
                reason=f'task_state {task_state!r} is not one of '
                f'{", ".join(sorted(SHARE_TASK.resets - {ShareTask.NONE}))}'
            )
        # The guard comes first: no migration begins or ends behind it.
        fire(session, SHARE_TASK, share.id, SHARE_TASK.reset_event(wanted))
        migration = migrations.find_open(session, share.id)
        _check_reset(share.id, wanted, migration)
        if migration is not None:
            self.work.on(migration.source_host).settle_share_migration(
                session, ctx, share_id=share.id
            )


def _check_instances(session: Session, migration: rows.ShareMigrationRow) -> None:
    """Refuse the second phase unless both instances still wait for it."""
    for id, wanted in (
        (migration.source_instance_id, InstanceStatus.MIGRATING),
        (migration.destination_instance_id, InstanceStatus.MIGRATING_TO),
    ):
        found = share_instances.find(session, id) if id else None
        if found is None or found.status != wanted:
            raise exception.InvalidShare(
                reason=f'share instance {id} is '
                f'{found.status if found else "gone"} instead of {wanted}; '
                'the migration can only be cancelled'
            )


def _check_reset(
    share_id: str, wanted: str, migration: rows.ShareMigrationRow | None
) -> None:
    """Refuse a state that nothing would leave, or that would lose data.

    A driver that is asked about a copy by the data service would take it for
    complete.
    """
    if migration is None:
        if wanted in RUNNING:
            raise exception.InvalidInput(
                reason=f'task_state {wanted!r} is only for shares that are '
                'being migrated'
            )
    elif wanted == ShareTask.NONE:
        raise exception.InvalidShare(
            reason=f'share {share_id} is being migrated; to end that, cancel '
            f'the migration, or set task_state to {ShareTask.ERROR}'
        )
    elif migration.phase == 1 and wanted == ShareTask.COMPLETING:
        raise exception.InvalidShare(
            reason=f'the migration of share {share_id} is in its first '
            'phase; use migration_complete when that has ended'
        )
    elif wanted in (OF_DRIVER if migration.host_assisted else OF_COPY):
        way = 'the data service' if migration.host_assisted else 'its driver'
        raise exception.InvalidShare(
            reason=f'share {share_id} is migrated by {way}, task_state '
            f'cannot be {wanted}'
        )
    else:
        check_phase(
            'share',
            share_id,
            migration,
            wanted,
            first=RUNNING - {ShareTask.COMPLETING},
            copied=WAITING,
        )


def _refuse_immovable(
    session: Session, instance: rows.InstanceRow, options: ShareMigrationOptions
) -> None:
    """Raise InvalidShare if the share cannot be migrated by itself."""
    has_snapshots = snapshots.has_snapshots(session, instance.id)
    if has_snapshots and options.force_host_assisted and not options.preserve_snapshots:
        # The published code of this refusal is 409.
        raise exception.ShareHasSnapshots(share_id=instance.share_id)
    reasons = {
        'is in the recycle bin': instance.is_soft_deleted,
        'is in a share group': instance.share_group_id,
        'has access rules that are changing or in error': (
            instance.access_rules_status != RulesStatus.ACTIVE
        ),
        'has snapshots, which only a migration with preserve_snapshots keeps; '
        'otherwise delete or unmanage them': (
            has_snapshots and not options.preserve_snapshots
        ),
        'can have replicas': instance.replica_state,
    }
    for reason, applies in reasons.items():
        if applies:
            raise exception.InvalidShare(reason=f'share {instance.share_id} {reason}')


def _refuse_unsupported(options: ShareMigrationOptions) -> None:
    """Raise InvalidInput for what no migration can do yet."""
    demanded = [name for name in DRIVER_ONLY if getattr(options, name)]
    if options.force_host_assisted and demanded:
        raise exception.InvalidInput(
            reason='force_host_assisted_migration: a copy by the data '
            f'service cannot be {", ".join(demanded)}'
        )


def _find_new_type(
    session: Session, instance: rows.InstanceRow, id: str | None
) -> TypeWithSpecs | None:
    """Return the type that the share is to get; None if it keeps its type.

    Raises InvalidInput if there is no such type, or if it is not for this
    share.
    """
    if id is None or id == instance.share_type_id:
        return None
    found = share_types.find_by_id(session, id)
    if found is None:
        raise exception.InvalidInput(
            reason=f'new_share_type_id: share type {id} could not be found'
        )
    reasons = {
        'is for shares with replicas': found.extra_specs.get('replication_type'),
        'does not support the snapshots of the share': (
            not found.flag('snapshot_support')
            and snapshots.has_snapshots(session, instance.id)
        ),
        'does not support the access rules of the snapshots': (
            not found.flag('mount_snapshot_support')
            and snapshot_rules.list_on_share_instance(session, instance.id)
        ),
        'does not support the encryption key of the share': (
            instance.encryption_key_ref
            and not found.extra_specs.get('encryption_support')
        ),
        'does not support the mount point name of the share': (
            instance.mount_point_name and not found.flag('mount_point_name_support')
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            raise exception.InvalidInput(
                reason=f'new_share_type_id: share type {found.name} {reason}'
            )
    share_request.check_size(instance.size, found.extra_specs, creating=True)
    qos_types.lock_default(session, found)  # raises if there is none
    return found
