"""Build the API: operations, controllers and the WSGI application."""

from collections.abc import Callable, Iterable, Mapping
import typing

from oslo_config import cfg

from manila_lite.api.app import App, build_app
from manila_lite.api.health import Check
from manila_lite.api.services import ApiServices
from manila_lite.cmd.build.health import DatabaseCheck, checks_of_others
from manila_lite.cmd.build.metrics import page_of_service
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.native_thread import run_in_native_thread
from manila_lite.db import read_limit
from manila_lite.policies.enforcer import Enforcer
from manila_lite.rpc.data import BackupsRpc
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import (
    AccessRpc,
    DriverBackupsRpc,
    EnsuringRpc,
    ManagingRpc,
    NetworkUpdatesRpc,
    ProvisioningRpc,
    ReconciliationRpc,
    ReplicatedSnapshotsRpc,
    ReplicationRpc,
    ReplicaUpdatesRpc,
    ServerMigrationRpc,
    ShareGroupSnapshotsRpc,
    ShareGroupsRpc,
    ShareMetadataRpc,
    ShareMigrationRpc,
    ShareServersRpc,
    ShareTransfersRpc,
    SnapshotAccessRpc,
    SnapshotsRpc,
)
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Capabilities, Pool
from manila_lite.share.operations.access.locks import Locks
from manila_lite.share.operations.access.share_rules import Access
from manila_lite.share.operations.access.snapshot_rules import SnapshotAccess
from manila_lite.share.operations.backups import ShareBackups
from manila_lite.share.operations.groups.copies import ShareGroupCopies
from manila_lite.share.operations.groups.share_groups import ShareGroups
from manila_lite.share.operations.groups.snapshots import ShareGroupSnapshots
from manila_lite.share.operations.managing import Managing
from manila_lite.share.operations.migrations.share_migrations import ShareMigrations
from manila_lite.share.operations.networks.changes import NetworkChanges
from manila_lite.share.operations.networks.share_networks import ShareNetworks
from manila_lite.share.operations.recovery import Recovery
from manila_lite.share.operations.replication.replicas import Replicas
from manila_lite.share.operations.servers.migrations import ServerMigrations
from manila_lite.share.operations.servers.share_servers import ShareServers
from manila_lite.share.operations.services import Services
from manila_lite.share.operations.shares.metadata import ShareMetadata
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.share.operations.snapshots import Snapshots
from manila_lite.share.operations.transfers import ShareTransfers


def build_api(
    process: Process,
    *,
    auth: Callable[[App], App] | None = None,
    checks: Mapping[str, Check] | None = None,
    enforcer: Enforcer | None = None,
) -> tuple[App, ApiServices]:
    """Build the WSGI application and the services behind it.

    `checks` are those of other services in this process.
    """
    conf = process.conf
    enforcer = enforcer or Enforcer(conf)
    found = ApiServices(
        conf=conf,
        db=process.db,
        enforcer=enforcer,
        shares=share_operations(process),
        share_metadata=ShareMetadata(
            process.db,
            process.client(ShareMetadataRpc),
            process.admission,
            conf.driver_updatable_metadata,
        ),
        access=access_operations(process),
        snapshots=snapshot_operations(process),
        snapshot_access=SnapshotAccess(
            process.db, process.client(SnapshotAccessRpc), process.admission
        ),
        locks=Locks(process.db),
        managing=Managing(
            conf, process.db, process.client(PlacementRpc), process.client(ManagingRpc)
        ),
        services=Services(
            process.db, process.client(EnsuringRpc), conf.service_down_time
        ),
        recovery=Recovery(process.db, process.client(ReconciliationRpc)),
        share_servers=ShareServers(
            process.db,
            process.client(ShareServersRpc),
            process.client(ServerMigrationRpc),
            conf.service_down_time,
        ),
        share_networks=ShareNetworks(
            process.db, process.limits(), process.client(ShareServersRpc)
        ),
        network_changes=NetworkChanges(
            process.db,
            process.client(NetworkUpdatesRpc),
            process.client(ShareServersRpc),
            conf.service_down_time,
        ),
        server_migrations=ServerMigrations(
            process.db,
            process.client(PlacementRpc),
            process.client(ServerMigrationRpc),
            conf.service_down_time,
        ),
        share_migrations=ShareMigrations(
            process.db,
            process.limits(),
            process.client(PlacementRpc),
            process.client(ShareMigrationRpc),
            conf.service_down_time,
        ),
        replicas=replica_operations(process),
        share_transfers=transfer_operations(process),
        share_backups=ShareBackups(
            process.db,
            process.limits(),
            process.client(BackupsRpc),
            process.client(DriverBackupsRpc),
            process.admission,
        ),
        share_groups=group_operations(process),
        share_group_copies=group_copy_operations(process),
        share_group_snapshots=ShareGroupSnapshots(
            process.db,
            process.limits(),
            process.client(ShareGroupSnapshotsRpc),
            process.admission,
        ),
        limits=process.limits(),
        admin_only_metadata=frozenset(conf.admin_only_metadata),
        admin_only_export_metadata=frozenset(conf.admin_only_el_metadata),
        pool_matches=pool_matches,
        describe=describe,
    )
    required: dict[str, Check] = {
        'database': DatabaseCheck(process.db),
        'process': lambda: 'is stopping' if process.stopping.is_set() else None,
        **(checks or {}),
    }
    # An API without them still accepts requests, and answers reads.
    others = {} if checks else checks_of_others(process)
    app = build_app(
        conf,
        found,
        enforcer,
        auth,
        run=run_in_native_thread,
        checks=required | others,
        required=[*required, *conf.healthcheck_required],
        metrics=(page_of_service(process) if conf.monitoring.api_metrics else None),
        ui=conf.ui.enabled,
    )
    return limit_reads(app, conf.read_time_limit), found


def limit_reads(app: App, seconds: float) -> App:
    """Limit the time that the reads of each request may take."""

    def limited(environ: dict, start_response: Callable) -> Iterable[bytes]:
        with read_limit.limit_reads(seconds):
            return app(environ, start_response)

    return limited


def access_operations(process: Process) -> Access:
    return Access(
        process.db, process.client(AccessRpc), process.admission, process.locks
    )


def share_operations(process: Process) -> Shares:
    return Shares(
        process.conf,
        process.db,
        process.limits(),
        process.client(PlacementRpc),
        process.client(ProvisioningRpc),
        process.client(SnapshotsRpc),
        process.client(ReplicationRpc),
        process.client(ReconciliationRpc),
        process.admission,
    )


def replica_operations(process: Process) -> Replicas:
    return Replicas(
        process.db,
        process.limits(),
        process.client(PlacementRpc),
        process.client(ReplicationRpc),
        process.client(ReplicaUpdatesRpc),
        process.client(AccessRpc),
        process.client(ReconciliationRpc),
        process.admission,
    )


def transfer_operations(process: Process) -> ShareTransfers:
    return ShareTransfers(
        process.conf,
        process.db,
        process.limits(),
        process.client(ShareTransfersRpc),
        process.client(AccessRpc),
        process.admission,
    )


def group_operations(process: Process) -> ShareGroups:
    return ShareGroups(
        process.conf,
        process.db,
        process.limits(),
        process.client(PlacementRpc),
        process.client(ShareGroupsRpc),
        process.admission,
    )


def group_copy_operations(process: Process) -> ShareGroupCopies:
    return ShareGroupCopies(
        process.db,
        process.limits(),
        process.client(ShareGroupsRpc),
        process.client(ProvisioningRpc),
        process.admission,
    )


def snapshot_operations(process: Process) -> Snapshots:
    return Snapshots(
        process.db,
        process.limits(),
        process.client(SnapshotsRpc),
        process.client(ReplicatedSnapshotsRpc),
        process.admission,
        process.conf.service_down_time,
        process.conf.is_deferred_deletion_enabled,
    )


def describe(conf: cfg.ConfigOpts, minor: int) -> bytes:
    """Return the description of a minor version of the API."""
    # Imported when it is first asked for, to keep idle services small.
    from manila_lite.api.description import document

    return document.encoded(conf, minor)


def pool_matches(
    capabilities: typing.Mapping[str, typing.Any], extra_specs: typing.Mapping[str, str]
) -> bool:
    """Whether a pool offers everything that extra specs demand."""
    pool = Pool(
        host='',
        capabilities=Capabilities(capabilities),
        zone=None,
        service_up=True,
        service_enabled=True,
        total_gb=None,
        free_gb=None,
        allocated_gb=0,
        pending_gb=0,
    )
    return not any(
        mismatch_reason(pool, key, wanted) for key, wanted in extra_specs.items()
    )
