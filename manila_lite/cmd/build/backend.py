"""Build one back end: its driver, endpoints, recovery and runner."""

from collections.abc import Callable
import logging
import typing

from oslo_config import cfg

from manila_lite import exception
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.cmd.driver_thread import in_driver_thread, in_main_thread
from manila_lite.context import RequestContext
from manila_lite.db.queries.servers.server_load import ServerLimits
from manila_lite.db.queries.shares import shares
from manila_lite.network.base import ADMIN, USER
from manila_lite.network.registry import load as load_network
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.data import BackupsRpc
from manila_lite.rpc.share import (
    AccessRpc,
    DriverBackupsRpc,
    EnsuringRpc,
    HostAssistedMigrationRpc,
    ProvisioningRpc,
    ReconciliationRpc,
    ReplicaRolesRpc,
    ReplicatedSnapshotsRpc,
    ReplicationRpc,
    ReplicaUpdatesRpc,
    ServerMigrationRpc,
    ShareGroupSnapshotsRpc,
    ShareGroupsRpc,
    ShareMetadataRpc,
    ShareMigrationRpc,
    ShareServersRpc,
    SnapshotAccessRpc,
    SnapshotsRpc,
)
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.manager.access.share_rules import AccessEndpoint
from manila_lite.share.manager.access.snapshot_rules import SnapshotAccessEndpoint
from manila_lite.share.manager.backend import Backend
from manila_lite.share.manager.disks import DatabaseDisks
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoints import BackendEndpoints
from manila_lite.share.manager.groups.copies import GroupCopies
from manila_lite.share.manager.groups.lifecycle import ShareGroupsEndpoint
from manila_lite.share.manager.groups.snapshots import ShareGroupSnapshotsEndpoint
from manila_lite.share.manager.guarded_driver import GuardedDriver
from manila_lite.share.manager.migrations.endpoint import ShareMigrationsEndpoint
from manila_lite.share.manager.migrations.host_assisted import (
    HostAssistedMigrationsEndpoint,
)
from manila_lite.share.manager.migrations.outcomes import ShareMigrationOutcomes
from manila_lite.share.manager.migrations.servers import MigrationServersEndpoint
from manila_lite.share.manager.private_storage import DatabasePrivateStorage
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.share.manager.recovery.reconciliation import ReconciliationEndpoint
from manila_lite.share.manager.recovery.rule_sets import (
    RuleSetRecovery,
    SnapshotRuleSetRecovery,
)
from manila_lite.share.manager.recovery.share_backups import ShareBackupRecovery
from manila_lite.share.manager.recovery.share_groups import (
    ShareGroupRecovery,
    ShareGroupSnapshotRecovery,
)
from manila_lite.share.manager.recovery.share_instances import ShareInstanceRecovery
from manila_lite.share.manager.recovery.share_servers import (
    ServerTaskRecovery,
    ShareServerRecovery,
)
from manila_lite.share.manager.recovery.share_tasks import ShareTaskRecovery
from manila_lite.share.manager.recovery.share_transfers import ShareTransferRecovery
from manila_lite.share.manager.recovery.snapshot_instances import (
    SnapshotInstanceRecovery,
)
from manila_lite.share.manager.replication.outcome_writer import OutcomeWriter
from manila_lite.share.manager.replication.probe import ReplicaProbe
from manila_lite.share.manager.replication.promotion import PromotionWriter
from manila_lite.share.manager.replication.replicas import ReplicasEndpoint
from manila_lite.share.manager.replication.roles import ReplicaRolesEndpoint, RoleWriter
from manila_lite.share.manager.replication.rule_resync import RuleResync
from manila_lite.share.manager.replication.snapshots import ReplicatedSnapshotsEndpoint
from manila_lite.share.manager.replication.updates import ReplicaUpdatesEndpoint
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.migration_phases import ServerMigrationPhases
from manila_lite.share.manager.servers.migrations import ServerMigrationsEndpoint
from manila_lite.share.manager.servers.network_updates import NetworkUpdatesEndpoint
from manila_lite.share.manager.servers.networks import ServerNetworks
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.share.manager.shares.backups import DriverBackupsEndpoint, Intervals
from manila_lite.share.manager.shares.connections import ConnectionsEndpoint
from manila_lite.share.manager.shares.deferred_deletion import DeferredDeletion
from manila_lite.share.manager.shares.ensuring import EnsuringEndpoint
from manila_lite.share.manager.shares.managing import ManagingEndpoint
from manila_lite.share.manager.shares.metadata import ShareMetadataEndpoint
from manila_lite.share.manager.shares.provisioning import ProvisioningEndpoint
from manila_lite.share.manager.shares.transfers import ShareTransfersEndpoint
from manila_lite.share.manager.snapshots import SnapshotsEndpoint
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.work.runner import Runner

LOG = logging.getLogger(__name__)


def build_backend(process: Process, name: str) -> Backend:
    """Build one back end; its driver is loaded but not started."""
    conf, db = process.conf, process.db
    host = f'{conf.host}@{name}'
    configuration = Configuration(conf, name)
    driver_class: Callable[..., ShareDriver] = registry.load(configuration.share_driver)
    driver = typing.cast(
        ShareDriver,
        GuardedDriver(
            in_driver_thread(
                driver_class(
                    configuration=configuration,
                    private_storage=in_main_thread(DatabasePrivateStorage(db)),
                )
            ),
            name,
        ),
    )
    driver.disks = in_main_thread(
        DatabaseDisks(
            db, host, process.id, conf.service_down_time, conf.share_name_template
        )
    )
    names = NameTemplates(conf.share_name_template, conf.share_snapshot_name_template)
    setup = server_setup(process, driver, configuration, names, host)
    endpoints = build_endpoints(process, driver, names, setup, host)
    reconciliation = endpoints.reconciliation
    runner = Runner(
        db,
        queues=[host],
        handlers=endpoints.handlers(),
        owner=f'manila-share@{host}:{process.id}',
        rescue=reconciliation.rescue,
        recheck=reconciliation.recheck,
        record=reconciliation.record_exhausted,
        settings=process.settings(conf.work.workers_per_backend),
        rng=process.rng,
        release=process.release.number,
        # A client that is denied must not wait for slow creations.
        urgent=[*work_kinds(AccessRpc), *work_kinds(SnapshotAccessRpc)],
    )
    backend = Backend(
        db,
        driver,
        runner,
        endpoints,
        DeferredDeletion(
            db, process.client(ProvisioningRpc), process.client(SnapshotsRpc), host
        ),
        host=host,
        zone=(
            configuration.safe_get('backend_availability_zone')
            or conf.storage_availability_zone
        ),
        incarnation=process.id,
        enabled=conf.enable_new_services,
        down_time=conf.service_down_time,
        hang_time=conf.work.driver_hang_time,
        release=process.release,
        expire=_expirer(process),
        warning=process.warning,
        servers=setup,
    )
    if conf.startup_reconciliation_enabled:
        backend.start_recovery_after(
            conf.startup_reconciliation_wait_seconds, reconciliation.request_pass
        )
    return backend


def build_endpoints(
    process: Process,
    driver: ShareDriver,
    names: NameTemplates,
    setup: ServerSetup,
    host: str,
) -> BackendEndpoints:
    """Build what carries out the work of one back end."""
    conf, db, client = process.conf, process.db, process.client
    servers = ShareServersEndpoint(
        db,
        driver,
        client(ShareServersRpc),
        host,
        setup,
        with_last_share=conf.delete_share_server_with_last_share,
    )
    provisioning = ProvisioningEndpoint(
        driver, names, conf.periodic_interval, driver_probe(conf), setup, servers
    )
    snapshots = SnapshotsEndpoint(driver, names, conf.message_ttl)
    access = AccessEndpoint(
        db,
        driver,
        client(AccessRpc),
        host,
        name_template=conf.share_name_template,
        message_ttl=conf.message_ttl,
        locks=process.locks,
    )
    rules = RuleResync(client(AccessRpc), client(SnapshotAccessRpc))
    promotion = PromotionWriter(rules, conf.message_ttl)
    roles = RoleWriter(db, client(ReplicaRolesRpc), promotion, conf.message_ttl)
    replication = ReplicasEndpoint(
        driver,
        names,
        setup,
        servers,
        rules,
        promotion,
        process.locks,
        client(ReplicaUpdatesRpc),
    )
    share_groups = ShareGroupsEndpoint(
        driver, setup, servers, GroupCopies(driver, setup, client(ProvisioningRpc))
    )
    group_snapshots = ShareGroupSnapshotsEndpoint(driver, names)
    outcomes = ShareMigrationOutcomes(
        client(AccessRpc), client(SnapshotAccessRpc), servers.release
    )
    migrations_of_servers = server_migrations(process, driver, setup, names)
    migrations_of_shares = share_migrations(process, driver, names, outcomes)
    return BackendEndpoints(
        provisioning=provisioning,
        snapshots=snapshots,
        replicated_snapshots=ReplicatedSnapshotsEndpoint(
            snapshots, client(ReplicatedSnapshotsRpc), host, process.locks
        ),
        access=access,
        snapshot_access=SnapshotAccessEndpoint(
            db,
            driver,
            client(SnapshotAccessRpc),
            host,
            names=names,
            message_ttl=conf.message_ttl,
        ),
        replication=replication,
        replica_updates=replica_updates(process, driver, host, names, access, roles),
        replica_roles=ReplicaRolesEndpoint(driver, names, roles, process.locks),
        managing=ManagingEndpoint(
            driver, names, process.limits(), servers, conf.enabled_share_protocols
        ),
        ensuring=EnsuringEndpoint(
            db,
            driver,
            client(EnsuringRpc),
            host,
            name_template=conf.share_name_template,
            update_status=conf.update_shares_status_on_ensure,
            message_ttl=conf.message_ttl,
            access=access,
        ),
        share_metadata=ShareMetadataEndpoint(
            db,
            driver,
            client(ShareMetadataRpc),
            name_template=conf.share_name_template,
            message_ttl=conf.message_ttl,
        ),
        share_transfers=ShareTransfersEndpoint(
            db,
            driver,
            host,
            name_template=conf.share_name_template,
            message_ttl=conf.message_ttl,
            limits=process.limits(),
        ),
        share_groups=share_groups,
        share_group_snapshots=group_snapshots,
        driver_backups=DriverBackupsEndpoint(
            driver,
            share_names=conf.share_name_template,
            backup_names=conf.share_backup_name_template,
            intervals=Intervals(
                conf.driver_backup_continue_update_interval,
                conf.driver_restore_continue_update_interval,
            ),
        ),
        share_servers=servers,
        network_updates=NetworkUpdatesEndpoint(setup, conf.message_ttl),
        server_migrations=migrations_of_servers,
        share_migrations=migrations_of_shares,
        migration_servers=MigrationServersEndpoint(
            driver,
            outcomes,
            client(ShareMigrationRpc),
            setup,
            names=names,
            message_ttl=conf.message_ttl,
        ),
        host_assisted_migrations=HostAssistedMigrationsEndpoint(
            driver,
            outcomes,
            client(ShareMigrationRpc),
            names=names,
            message_ttl=conf.message_ttl,
        ),
        connections=ConnectionsEndpoint(
            db, driver, name_template=conf.share_name_template
        ),
        reconciliation=_reconciliation(
            process,
            host,
            provisioning,
            snapshots,
            access,
            setup,
            replication,
            share_groups,
            group_snapshots,
            migrations_of_servers,
            migrations_of_shares,
        ),
    )


def server_migrations(
    process: Process, driver: ShareDriver, setup: ServerSetup, names: NameTemplates
) -> ServerMigrationsEndpoint:
    """Build what migrates share servers to a back end."""
    conf = process.conf
    return ServerMigrationsEndpoint(
        process.db,
        driver,
        ServerMigrationPhases(
            process.client(AccessRpc),
            process.client(SnapshotAccessRpc),
            process.client(ShareServersRpc),
            conf.message_ttl,
        ),
        setup,
        setup.service_host,
        names=names,
        interval=conf.server_migration_driver_continue_update_interval,
        probe=driver_probe(conf),
    )


def share_migrations(
    process: Process,
    driver: ShareDriver,
    names: NameTemplates,
    outcomes: ShareMigrationOutcomes,
) -> ShareMigrationsEndpoint:
    """Build what migrates shares from a back end to others."""
    conf = process.conf
    return ShareMigrationsEndpoint(
        process.db,
        driver,
        outcomes,
        process.client(ShareMigrationRpc),
        names=names,
        interval=conf.migration_driver_continue_update_interval,
        probe=driver_probe(conf),
        message_ttl=conf.message_ttl,
    )


def driver_probe(conf: cfg.ConfigOpts) -> DriverProbe:
    """Build what asks a driver within a time limit."""
    return DriverProbe(
        conf.recovery.question_timeout, conf.recovery.unanswered_questions
    )


def replica_updates(
    process: Process,
    driver: ShareDriver,
    host: str,
    names: NameTemplates,
    access: AccessEndpoint,
    roles: RoleWriter,
) -> ReplicaUpdatesEndpoint:
    """Build what polls the replicas on a back end."""
    conf = process.conf
    return ReplicaUpdatesEndpoint(
        process.db,
        driver,
        process.client(ReplicaUpdatesRpc),
        host,
        OutcomeWriter(process.db, access, conf.message_ttl),
        roles,
        names=names,
        locks=process.locks,
        probe=ReplicaProbe(driver_probe(conf)),
    )


def server_setup(
    process: Process,
    driver: ShareDriver,
    configuration: Configuration,
    names: NameTemplates,
    host: str,
) -> ServerSetup:
    """Build what finds and creates share servers of a back end."""
    networks = None
    if driver.driver_handles_share_servers:

        def network(group: str, label: str) -> typing.Any:
            return load_network(process.db, process.conf, group, label)

        for_admins = configuration.admin_network_config_group
        networks = ServerNetworks(
            network(
                configuration.network_config_group or configuration.config_group, USER
            ),
            for_admins and network(for_admins, ADMIN),
        )
    return ServerSetup(
        process.db,
        driver,
        host,
        names=names,
        networks=networks,
        limits=ServerLimits(
            driver.max_shares_per_share_server, driver.max_share_server_size
        ),
        backend_name=driver.backend_name,
        message_ttl=process.conf.message_ttl,
    )


def _reconciliation(
    process: Process,
    host: str,
    provisioning: ProvisioningEndpoint,
    snapshots: SnapshotsEndpoint,
    access: AccessEndpoint,
    setup: ServerSetup,
    replication: ReplicasEndpoint,
    share_groups: ShareGroupsEndpoint,
    group_snapshots: ShareGroupSnapshotsEndpoint,
    migrations_of_servers: ServerMigrationsEndpoint,
    migrations_of_shares: ShareMigrationsEndpoint,
) -> ReconciliationEndpoint:
    """Build the recovery of a back end for each kind of resource."""
    conf = process.conf
    rescues = process.client(ReconciliationRpc).on(host)
    works = {
        contract.name: process.client(contract).on(host)
        for contract in (
            ProvisioningRpc,
            SnapshotsRpc,
            AccessRpc,
            SnapshotAccessRpc,
            ShareServersRpc,
            ServerMigrationRpc,
            ReplicationRpc,
            ReplicaUpdatesRpc,
            ReplicatedSnapshotsRpc,
            ShareGroupsRpc,
            ShareGroupSnapshotsRpc,
            ShareMigrationRpc,
            HostAssistedMigrationRpc,
        )
    }
    # Any data service takes it.
    works[BackupsRpc.name] = process.client(BackupsRpc)
    # It goes to the back end that has the backup.
    works[DriverBackupsRpc.name] = process.client(DriverBackupsRpc)
    resources: list[ResourceRecovery] = [
        ShareServerRecovery(rescues, works, setup),
        ServerTaskRecovery(rescues, works, migrations_of_servers.phases),
        ShareTaskRecovery(rescues, works, migrations_of_shares),
        ShareInstanceRecovery(
            rescues, works, provisioning, conf.message_ttl, replication
        ),
        SnapshotInstanceRecovery(rescues, works, snapshots, conf.message_ttl),
        RuleSetRecovery(rescues, works, access),
        SnapshotRuleSetRecovery(rescues, works),
        ShareGroupRecovery(rescues, works, share_groups, conf.message_ttl),
        ShareGroupSnapshotRecovery(rescues, works, group_snapshots, conf.message_ttl),
        ShareBackupRecovery(rescues, works, conf.message_ttl),
        ShareTransferRecovery(rescues, works, conf.message_ttl),
    ]
    return ReconciliationEndpoint(
        process.db,
        {kind: one for one in resources for kind in one.kinds},
        process.client(ReconciliationRpc),
        host,
        process.locks,
        driver_probe(conf),
        conf.recovery.batch,
    )


def _expirer(process: Process) -> Callable[[Backend, str], None]:
    """Return what deletes an expired share on behalf of its project."""
    operations = Registry(process).get(Shares)

    def expire(backend: Backend, share_id: str) -> None:
        try:
            share = process.db.read(shares.get_target, share_id)
            operations.delete(
                RequestContext(project_id=share.project_id, user_id=share.user_id),
                share,
            )
        except exception.ServiceUnavailable:
            raise  # it says nothing about the share
        except exception.ManilaLiteError as error:
            # It may have snapshots, for example; others are deleted.
            LOG.info('Share %s in the recycle bin: %s', share_id, error)

    return expire
