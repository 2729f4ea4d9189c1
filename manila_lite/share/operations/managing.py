"""Accept requests to manage and unmanage shares and snapshots."""

import dataclasses
import typing
from typing import Annotated

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.access import locks
from manila_lite.db.queries.replicas import replicas as replica_rows
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.services import pools, services
from manila_lite.db.queries.shares import (
    clone_sources,
    instances as share_instances,
    shares,
)
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import qos_types, types as share_types
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, fire_all, insert_row
from manila_lite.host import Host
from manila_lite.quota.shares import remove_and_credit
from manila_lite.rpc.contract import Client
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import BINARY, ManagingRpc
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.replication import guards as replica_guards
from manila_lite.share.operations.shares import share_request
from manila_lite.share.operations.shares.migration_guards import refuse_running
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.share.operations.snapshots import owner_user_id
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_server import ServerStatus
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


@dataclasses.dataclass(frozen=True)
class ManageShareRequest:
    """A request to manage a share that exists on a back end.

    `service_host` is host@backend#pool.
    """

    service_host: str
    export_path: str
    share_proto: str
    share_type: str | None = None
    name: str | None = None
    description: str | None = None
    is_public: bool = False
    share_server_id: str | None = None
    mount_point_name: str | None = None
    driver_options: dict[str, typing.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ManageSnapshotRequest:
    """A request to manage a snapshot that exists on a back end."""

    provider_location: str
    name: str | None = None
    description: str | None = None
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    driver_options: dict[str, typing.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Managing:
    """Manage and unmanage. Each method is one transaction."""

    db: Database
    scheduler: Client[PlacementRpc]
    managing: Client[ManagingRpc]
    down_time: Annotated[float, Option('service_down_time')]
    default_type: Annotated[str | None, Option('default_share_type')]
    mount_prefix: Annotated[str, Option('default_mount_point_prefix')]

    # Shares

    @transaction
    def manage_share(
        self, session: Session, ctx: RequestContext, request: ManageShareRequest
    ) -> str:
        """Accept a share that exists on a back end and return its id.

        It has no size and is not charged until the back end has reported its
        size. A share that could not be managed is managed again.
        """
        # As published, a protocol that is not enabled ends in manage_error.
        proto = request.share_proto.upper()
        share_type = self._type(session, ctx, request)
        qos_type_id = qos_types.lock_default(session, share_type)
        server = self._server(session, ctx, request, share_type)
        service = self._service(session, request.service_host)
        failed = self._failed_attempt(session, ctx, request, service, server)
        mount_point = self._mount_point(session, ctx, request, share_type, failed)
        capabilities = share_types.capability_columns(share_type)
        of_share = {
            'display_name': request.name,
            'display_description': request.description,
            'share_proto': proto,
            'is_public': request.is_public,
            **capabilities,
        }
        share_id = failed.share_id if failed else session.new_id()
        instance_id = failed.id if failed else session.new_id()
        of_instance = {
            'share_type_id': share_type.id,
            'qos_type_id': qos_type_id,
            'host': request.service_host,
            'availability_zone_id': service.availability_zone_id,
            'mount_point_name': mount_point,
            'share_network_id': server and server.share_network_id,
            **replica_rows.initial_columns(share_id, capabilities['replication_type']),
        }
        try:
            if failed:
                shares.update(session, share_id, of_share)
                fire(
                    session,
                    SHARE_INSTANCE,
                    instance_id,
                    'manage_again',
                    **{'replica_state': None, 'sole_active_of': None} | of_instance,
                )
            else:
                self._insert(session, ctx, share_id, of_share)
                _insert_instance(session, instance_id, share_id, of_instance)
        except db_exc.DBReferenceError:
            # The type was deleted after it was read.
            raise exception.ShareTypeNotFound(share_type_id=share_type.id) from None
        if not failed:
            if server is not None:
                share_servers.bind(session, instance_id, server.id, size=0)
            share_instances.insert_export_locations(
                session,
                instance_id,
                [{'path': request.export_path, 'is_admin_only': False, 'metadata': {}}],
            )
        self.scheduler.manage_share_instance(
            session, ctx, instance_id=instance_id, driver_options=request.driver_options
        )
        return share_id

    def _failed_attempt(
        self,
        session: Session,
        ctx: RequestContext,
        request: ManageShareRequest,
        service: rows.ServiceRow,
        server: typing.Any,
    ) -> rows.PathClaimRow | None:
        """Return the share of an attempt that failed, to be repeated.

        Raises ShareAlreadyManaged if the path is in use.
        """
        claims = share_instances.list_path_claims(
            session, service.host, request.export_path
        )
        if not claims:
            return None
        first = claims[0]
        if (
            len(claims) > 1
            or first.status != InstanceStatus.MANAGE_ERROR
            or first.project_id != ctx.project_id
            or first.share_server_id != (server and server.id)
        ):
            raise exception.ShareAlreadyManaged(
                path=request.export_path, host=service.host
            )
        return first

    def _insert(
        self,
        session: Session,
        ctx: RequestContext,
        share_id: str,
        columns: dict[str, typing.Any],
    ) -> None:
        shares.insert(
            session,
            {
                'id': share_id,
                'project_id': ctx.project_id,
                'user_id': ctx.user_id,
                'size': 0,
                'is_soft_deleted': False,
                'created_at': session.now,
                **columns,
            },
            {},
        )

    def _type(
        self, session: Session, ctx: RequestContext, request: ManageShareRequest
    ) -> TypeWithSpecs:
        name = request.share_type or self.default_type
        if not name:
            raise exception.DefaultShareTypeNotFound()
        found = share_types.find_usable(session, name, ctx.project_id, ctx.is_admin)
        if found is None:
            raise exception.ShareTypeNotFound(share_type_id=name)
        return found

    def _server(
        self,
        session: Session,
        ctx: RequestContext,
        request: ManageShareRequest,
        share_type: TypeWithSpecs,
    ) -> typing.Any:
        """Return the share server, active and locked, or None.

        A server must be named if, and only if, the type has DHSS true.
        """
        with_servers = share_type.flag('driver_handles_share_servers')
        if with_servers != bool(request.share_server_id):
            raise exception.InvalidInput(
                reason='share_server_id is required with a share type whose '
                'driver_handles_share_servers is true, and not accepted '
                'otherwise'
            )
        if not request.share_server_id:
            return None
        # An unknown host is 404 before the server is looked at. The service
        # is locked later: networks and servers are locked before services.
        services.get(session, Host.parse(request.service_host).service_host, BINARY)
        server = share_servers.get(session, request.share_server_id)
        if server.host != Host.parse(request.service_host).service_host:
            raise exception.InvalidInput(
                reason='share_server_id must be that of a server on '
                f'{request.service_host}'
            )
        checks.lock_active_shared(
            session,
            typing.cast(str, server.share_network_id),
            of_project=ctx.project_id,
        )
        status = share_servers.lock(session, server.id)
        if status != ServerStatus.ACTIVE:
            raise exception.InvalidStatus(
                resource='share server',
                id=server.id,
                status=status,
                event='manage share',
                allowed=ServerStatus.ACTIVE,
            )
        return server

    def _mount_point(
        self,
        session: Session,
        ctx: RequestContext,
        request: ManageShareRequest,
        share_type: TypeWithSpecs,
        failed: rows.PathClaimRow | None,
    ) -> str | None:
        request_part = ShareRequest(
            share_proto=request.share_proto,
            size=0,
            mount_point_name=request.mount_point_name,
        )
        share_request.check_mount_point_support(request_part, share_type)
        return share_request.free_mount_point_name(
            session,
            request_part,
            share_type,
            self.mount_prefix,
            typing.cast(str, ctx.project_id),
            except_id=failed.share_id if failed else '',
        )

    def _service(self, session: Session, host: str) -> typing.Any:
        """Lock and return the service of the pool.

        The lock serialises requests: of two for one path the second sees the
        first.
        """
        address = Host.parse(host)
        if not address.pool:
            raise exception.InvalidInput(
                reason='service_host must name a pool, as in host@backend#pool'
            )
        service = services.get(session, address.service_host, BINARY, lock=True)
        if not services.is_up(service, self.down_time):
            raise exception.ServiceIsDown(binary=BINARY, host=address.service_host)
        if not pools.pool_exists(session, host):
            raise exception.ServiceNotFound(binary=BINARY, host=host)
        return service

    @transaction
    def unmanage_share(
        self, session: Session, ctx: RequestContext, share: rows.ShareTarget
    ) -> None:
        """Request that a share is unmanaged; its data stays."""
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        instances = replica_guards.refuse_replicas(session, share)
        for row in instances:
            fire(
                session,
                SHARE_INSTANCE,
                row.instance_id,
                'abandon' if row.status == InstanceStatus.MANAGE_ERROR else 'unmanage',
            )
        self._refuse_dependents(session, share)
        for row in instances:
            self._unmanage_instance(session, ctx, row.instance_id)

    def _refuse_dependents(self, session: Session, share: rows.ShareTarget) -> None:
        """Refuse after the moves, which prevent new dependents."""
        locks.check_share_not_locked(session, share.id)
        if shares.has_snapshots(session, share.id):
            raise exception.ShareNotAllowed(
                reason=f'share {share.id} has snapshots, or is in a snapshot '
                'of its share group; unmanage or delete them first'
            )
        if share_backups.has_any(session, share.id):
            raise exception.ShareNotAllowed(
                reason=f'share {share.id} has backups; delete them first'
            )

    def _unmanage_instance(
        self, session: Session, ctx: RequestContext, instance_id: str
    ) -> None:
        instance = share_instances.get(session, instance_id)
        if instance.host is None:
            remove_and_credit(session, instance, 'unmanaged')
            return
        self.managing.on(instance.host).unmanage_share_instance(
            session, ctx, instance_id=instance_id
        )

    # Snapshots

    @transaction
    def manage_snapshot(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        request: ManageSnapshotRequest,
    ) -> str:
        """Accept a snapshot that exists on a back end and return its id.

        It counts as the newest, and is not charged until the back end has
        reported its size.
        """
        replica_guards.refuse_replicas(session, share)
        if not share.snapshot_support:
            raise exception.SnapshotsUnsupported(share_id=share.id)
        parent = self._parent(session, share)
        if clone_sources.is_location_in_use(
            session, share.id, request.provider_location
        ):
            raise exception.SnapshotAlreadyManaged(
                location=request.provider_location, share_id=share.id
            )
        snapshot_id, instance_id = session.new_id(), session.new_id()
        created_at = snapshots.next_created_at(session, parent)
        snapshots.insert(
            session,
            {
                'id': snapshot_id,
                'project_id': parent.project_id,
                'user_id': owner_user_id(ctx, parent),
                'share_id': share.id,
                'size': 0,
                'share_size': parent.size,
                'share_proto': parent.share_proto,
                'display_name': request.name,
                'display_description': request.description,
                'created_at': created_at,
            },
            request.metadata,
        )
        insert_row(
            session,
            SNAPSHOT_INSTANCE,
            'manage',
            id=instance_id,
            snapshot_id=snapshot_id,
            share_instance_id=parent.id,
            progress='0%',
            provider_location=request.provider_location,
            created_at=created_at,
        )
        self.managing.on(parent.host).manage_snapshot_instance(
            session,
            ctx,
            snapshot_instance_id=instance_id,
            driver_options=request.driver_options,
        )
        return snapshot_id

    def _parent(self, session: Session, share: rows.ShareTarget) -> typing.Any:
        """Lock and return the instance of the share, which must be available.

        The lock serialises requests and prevents other snapshots and the
        deletion of the share meanwhile.
        """
        status = snapshots.lock_share_instance(session, share.instance_id)
        if status != InstanceStatus.AVAILABLE:
            raise exception.InvalidStatus(
                resource='share instance',
                id=share.instance_id,
                status=status,
                event='manage snapshot',
                allowed=InstanceStatus.AVAILABLE,
            )
        parent = snapshots.get_parent(session, share.instance_id)
        if parent.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        refuse_running(share.id, parent.task_state)
        return parent

    @transaction
    def unmanage_snapshot(
        self, session: Session, ctx: RequestContext, snapshot: rows.SnapshotTarget
    ) -> None:
        """Request that a snapshot is unmanaged; it stays on the back end."""
        found = snapshots.list_instances(session, snapshot.id)
        if any(row.replica_state is not None for row in found):
            # After this no replica can be added, which would have its own.
            if len(replica_rows.lock_instances(session, snapshot.share_id)) > 1:
                raise exception.ShareHasReplicas(share_id=snapshot.share_id)
            found = snapshots.list_instances(session, snapshot.id)
        fire_all(
            session, SNAPSHOT_INSTANCE, [row.instance_id for row in found], 'unmanage'
        )
        clone_sources.check_not_being_cloned(session, snapshot.id)
        for row in found:
            self.managing.on(row.host).unmanage_snapshot_instance(
                session, ctx, snapshot_instance_id=row.instance_id
            )


def _insert_instance(
    session: Session, id: str, share_id: str, values: typing.Mapping[str, typing.Any]
) -> None:
    """Insert the instance of a share that is to be managed."""
    insert_row(
        session,
        SHARE_INSTANCE,
        'manage',
        id=id,
        share_id=share_id,
        access_rules_status=RulesStatus.ACTIVE,
        cast_rules_to_readonly=False,
        created_at=session.now,
        **values,
    )
