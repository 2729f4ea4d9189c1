"""Accept requests about shares."""

import dataclasses
import datetime
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option, seconds, upper_names
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.access import locks
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import (
    affinity,
    instances as share_instances,
    shares,
    views as share_views,
)
from manila_lite.db.queries.shares.views import Exports
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import qos_types, types as share_types
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire
from manila_lite.quota import shares as share_quota
from manila_lite.quota.charges import Owner
from manila_lite.quota.encryption_keys import charge_key
from manila_lite.quota.limits import DefaultLimits
from manila_lite.rpc.contract import Client
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import (
    ProvisioningRpc,
    ReconciliationRpc,
    ReplicationRpc,
    SnapshotsRpc,
)
from manila_lite.share.operations import services
from manila_lite.share.operations.groups import share_groups
from manila_lite.share.operations.replication import guards as replica_guards, replicas
from manila_lite.share.operations.reset_events import reset_event
from manila_lite.share.operations.shares import placement, removal, share_request
from manila_lite.share.operations.shares.migration_guards import (
    refuse_migrating,
    refuse_running,
)
from manila_lite.share.operations.shares.share_request import NewShare, ShareRequest
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.work.admission import (
    AdmissionControl,
    admission_controlled,
    placement_controlled,
)


@dataclasses.dataclass(eq=False)
class Shares:
    """Operations on shares. Each method is one transaction."""

    db: Database
    limits: DefaultLimits
    scheduler: Client[PlacementRpc]
    provisioning: Client[ProvisioningRpc]
    snapshots: Client[SnapshotsRpc]
    replication: Client[ReplicationRpc]
    recovery: Client[ReconciliationRpc]
    admission: AdmissionControl
    default_type: Annotated[str | None, Option('default_share_type')]
    protocols: Annotated[frozenset[str], Option('enabled_share_protocols', upper_names)]
    retention: Annotated[
        datetime.timedelta, Option('soft_deleted_share_retention_time', seconds)
    ]
    schedules_clones: Annotated[
        bool, Option('use_scheduler_creating_share_from_snapshot')
    ]
    mount_prefix: Annotated[str, Option('default_mount_point_prefix')]
    deferred_deletion_enabled: Annotated[bool, Option('is_deferred_deletion_enabled')]
    down_time: Annotated[float, Option('service_down_time')]

    # Create

    @placement_controlled
    @transaction
    def create(
        self, session: Session, ctx: RequestContext, request: ShareRequest
    ) -> pages.Listing:
        """Accept a share and return it; placement and creation follow."""
        new = self._checked(session, ctx, request)
        inserted = self._insert(session, ctx, new)
        share_id = inserted.share['id']
        affinity.record(
            session,
            share_id,
            new.hints,
            of_project=None if ctx.is_admin else new.owner.project_id,
        )
        self._submit(session, ctx, new, inserted.instance['id'])
        # Late: other creates of the project wait from here to the commit.
        self._charge(session, new)
        if new.host is not None:
            # Quota is always changed before pools, to avoid deadlocks.
            pools.adjust_allocated(session, new.host, new.size)
        if new.hints:  # some are recorded in the metadata
            return share_views.get(session, share_id, exports=Exports.NONE)
        return share_views.of_new(
            inserted.share,
            inserted.instance | {'status': SHARE_INSTANCE.initial['create']},
            new.request.metadata,
            share_type_name=new.share_type.name if new.share_type else None,
            availability_zone=new.zone.name if new.zone else None,
        )

    def _checked(
        self, session: Session, ctx: RequestContext, request: ShareRequest
    ) -> NewShare:
        """Complete the request, lock what it refers to, or refuse it."""
        proto = request.share_proto.upper()
        share_request.check_protocol(proto, self.protocols)
        source = None
        if request.snapshot_id:
            source = share_request.lock_source_shared(session, ctx, request.snapshot_id)
            request = share_request.complete_request(
                request, source, proto, allow_other_zone=self.schedules_clones
            )
        group = share_groups.lock_group(session, ctx, request)
        # An unknown zone is 404 before the type requires a share network.
        zone = placement.get_zone(session, request.availability_zone)
        if zone is not None:
            request = dataclasses.replace(request, availability_zone=zone.name)
        request = share_groups.with_group(request, group)
        share_type = self._type(session, ctx, request, source)
        stays_with = None if self.schedules_clones else source
        share_groups.check(session, group, request, share_type, stays_with)
        return NewShare(
            request=request,
            proto=proto,
            owner=Owner(
                typing.cast(str, ctx.project_id),
                ctx.user_id,
                share_type.id if share_type else None,
            ),
            source=source,
            host=stays_with.host if stays_with else None,
            share_type=share_type,
            qos_type_id=qos_types.lock_default(session, share_type),
            zone=zone,
            zones=placement.list_zones(session, ctx, request, share_type),
            hints=placement.parse_hints(session, ctx, request.scheduler_hints),
        )

    def _charge(self, session: Session, new: NewShare) -> None:
        share_quota.charge(
            session,
            new.owner,
            new.size,
            limits=self.limits,
            shares=1,
            gigabytes=new.size,
            replicas=1 if new.capabilities['replication_type'] else 0,
        )
        key = new.request.encryption_key_ref
        charge_key(session, new.owner, key, limits=self.limits)

    def _insert(
        self, session: Session, ctx: RequestContext, new: NewShare
    ) -> placement.NewRows:
        """Insert the rows of the share and its instance, and return them."""
        request = new.request
        return placement.insert(
            session,
            ctx,
            {
                'size': request.size,
                'display_name': request.name,
                'display_description': request.description,
                'snapshot_id': request.snapshot_id,
                'share_group_id': request.share_group_id,
                'share_proto': new.proto,
                'is_public': request.is_public,
                **new.capabilities,
            },
            {
                'share_type_id': new.owner.share_type_id,
                'qos_type_id': new.qos_type_id,
                'host': new.host,
                'availability_zone_id': new.zone.id if new.zone else None,
                'share_network_id': request.share_network_id,
                'encryption_key_ref': request.encryption_key_ref,
                'mount_point_name': share_request.free_mount_point_name(
                    session,
                    request,
                    new.share_type,
                    self.mount_prefix,
                    new.owner.project_id,
                ),
            },
            request.metadata,
        )

    def _submit(
        self, session: Session, ctx: RequestContext, new: NewShare, instance_id: str
    ) -> None:
        """Have the share placed and created, or cloned where the snapshot is."""
        source = new.source
        if source is not None and new.host is not None:
            self.provisioning.on(new.host).create_share_from_snapshot(
                session, ctx, instance_id=instance_id, snapshot_id=source.id
            )
            return
        from_snapshot = (
            {'snapshot_id': source.id, 'source_host': source.host}
            if source is not None
            else {}
        )
        self.scheduler.create_share_instance(
            session,
            ctx,
            instance_id=instance_id,
            zones=new.zones,
            hints=new.hints,
            **from_snapshot,
        )

    def _type(
        self,
        session: Session,
        ctx: RequestContext,
        request: ShareRequest,
        source: rows.CloneSourceRow | None,
    ) -> TypeWithSpecs | None:
        name = request.share_type or self.default_type
        if not name:
            return None  # the scheduler fails it with a user message
        # A caller who may clone a snapshot may use the type of its share.
        found = share_types.find_usable(
            session, name, ctx.project_id, ctx.is_admin or source is not None
        )
        if found is None:
            raise exception.ShareTypeNotFound(share_type_id=name)
        if source is not None:
            share_request.check_same_type(source, found.id)
        share_request.check_type(request, found)
        return found

    # Change

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        values: dict[str, object],
    ) -> None:
        """Change the name, the description or the visibility."""
        self._refuse_soft_deleted(share)
        if values:
            shares.update(session, share.id, values)

    @placement_controlled
    @admission_controlled
    @transaction
    def extend(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        new_size: int,
        *,
        force: bool = False,
        allow_beyond_maximum: bool = False,
    ) -> None:
        """Request a larger share, through the scheduler unless forced.

        The scheduler checks for room in the pool of the active replica;
        other replicas are extended without a check.
        """
        self._refuse_soft_deleted(share)
        target = replica_guards.lock_for_resize(session, share, 'extend')
        fire(session, SHARE_INSTANCE, target.instance_id, 'extend')
        instance = share_instances.get(session, target.instance_id)
        refuse_running(share.id, instance.task_state)
        if not instance.size:
            raise exception.InvalidInput(reason='the size of the share is not known')
        growth = new_size - instance.size
        if growth <= 0:
            raise exception.InvalidInput(
                reason=f'new_size must exceed the size of {instance.size} '
                f'GiB, not be {new_size}'
            )
        share_request.check_size(
            new_size,
            share_types.get_extra_specs(session, instance.share_type_id),
            growing=True,
            allow_beyond_maximum=allow_beyond_maximum,
        )
        share_quota.charge(
            session,
            share_quota.owner_of(instance),
            new_size,
            limits=self.limits,
            reserve=True,
            gigabytes=growth,
            replicas=target.replica_count,
        )
        args = {'instance_id': instance.id, 'new_size': new_size, 'growth': growth}
        if not force:
            self.scheduler.extend_share_instance(session, ctx, **args)
            return
        pools.adjust_allocated(session, instance.host, growth)
        self.provisioning.on(instance.host).extend_share_instance(
            session, ctx, host=instance.host, **args
        )

    @admission_controlled
    @transaction
    def shrink(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        new_size: int,
    ) -> None:
        """Request a smaller share; quota is credited when it has shrunk."""
        self._refuse_soft_deleted(share)
        target = replica_guards.lock_for_resize(session, share, 'shrink')
        fire(session, SHARE_INSTANCE, target.instance_id, 'shrink')
        instance = share_instances.get(session, target.instance_id)
        refuse_running(share.id, instance.task_state)
        if new_size >= instance.size:
            raise exception.InvalidInput(
                reason='new_size must be below the size of '
                f'{instance.size} GiB, not be {new_size}'
            )
        share_request.check_size(
            new_size, share_types.get_extra_specs(session, instance.share_type_id)
        )
        self.provisioning.on(instance.host).shrink_share_instance(
            session, ctx, instance_id=instance.id, new_size=new_size
        )

    # Delete

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> None:
        """Request the deletion of a share with all its instances."""
        instances = replica_guards.refuse_replicas(session, share)
        events = []
        for instance in instances:
            event = self._deletion_event(session, instance)
            fire(session, SHARE_INSTANCE, instance.instance_id, event)
            events.append(event)
        leaving = removal.refuse_dependents(session, share, exception.ShareNotAllowed)
        for instance, event in zip(instances, events, strict=True):
            if leaving:
                removal.retry_snapshots(
                    session, ctx, self.snapshots, instance.instance_id
                )
            if event == services.EVENT:
                removal.remove_unserved(session, ctx, self.provisioning, instance)
            elif event == 'defer_delete':
                removal.remove_deferred(session, ctx, self.provisioning, instance)
            else:
                removal.remove_instance(
                    session,
                    ctx,
                    self.provisioning,
                    instance.instance_id,
                    project_id=share.project_id,
                )

    @transaction
    def force_delete(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> None:
        """Request deletion from any status; driver errors are ignored."""
        instances = replica_guards.refuse_replicas(session, share)
        for instance in instances:
            fire(session, SHARE_INSTANCE, instance.instance_id, 'force_delete')
        refuse_migrating(session, share.id)
        leaving = removal.refuse_dependents(session, share, exception.InvalidShare)
        for instance in instances:
            if leaving:
                removal.retry_snapshots(
                    session, ctx, self.snapshots, instance.instance_id
                )
            removal.remove_instance(
                session,
                ctx,
                self.provisioning,
                instance.instance_id,
                force=True,
                project_id=share.project_id,
            )

    @transaction
    def force_delete_instance(
        self, session: Session, ctx: RequestContext, instance_id: str
    ) -> None:
        """Request the deletion of one instance, whatever its status."""
        share_id = share_instances.get(session, instance_id).share_id
        if removal.remove_replica(
            session, ctx, self.replication, share_id, instance_id
        ):
            # This may be the instance with the data.
            locks.check_share_not_locked(session, share_id)
            return
        fire(session, SHARE_INSTANCE, instance_id, 'force_delete')
        refuse_migrating(session, share_id)
        locks.check_share_not_locked(session, share_id)
        if snapshots.has_snapshots(session, instance_id):
            raise exception.ShareNotAllowed(
                reason=f'share instance {instance_id} has snapshots; delete them first'
            )
        removal.remove_instance(
            session, ctx, self.provisioning, instance_id, force=True
        )

    def _deletion_event(self, session: Session, instance: rows.ShareTarget) -> str:
        event = removal.deletion_event(session, instance, self.down_time)
        if event == 'delete' and self.deferred_deletion_enabled and instance.host:
            return 'defer_delete'
        return event

    # The recycle bin

    @transaction
    def soft_delete(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> None:
        """Move a share to the recycle bin for the retention time."""
        self._refuse_soft_deleted(share)
        replica_guards.refuse_replicas(session, share)
        # Creating a snapshot moves the instance and so waits for this lock.
        locks.lock_share_rows(session, share.id)
        if not shares.soft_delete(session, share.id, session.now + self.retention):
            raise exception.ShareNotAllowed(
                reason=f'status of share {share.id} must be one of '
                f'available, error, not {share.status}'
            )
        refuse_migrating(session, share.id, exception.ShareNotAllowed)
        removal.refuse_dependents(session, share, exception.ShareNotAllowed)

    @transaction
    def restore(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> bool:
        """Take a share out of the recycle bin; False if it was not in it."""
        if not share.is_soft_deleted:
            return False
        if not shares.restore(session, share.id):
            raise exception.ShareNotAllowed(reason=f'share {share.id} is being deleted')
        return True

    # Administration

    @transaction
    def reset_status(
        self, session: Session, ctx: RequestContext, instance_id: str, status: str
    ) -> None:
        """Set a status by `reset_status`; raises InvalidInput."""
        event = reset_event(SHARE_INSTANCE, status)
        replicas.reset_status(session, ctx, self.recovery, instance_id, event)
        if status == InstanceStatus.AVAILABLE:
            # Setting it asserts that no removal is still running.
            share_instances.forget_removal(session, instance_id)

    def _refuse_soft_deleted(self, share: rows.ShareTarget) -> None:
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
