"""Build one back end: its driver, endpoints, recovery and runner."""

from collections.abc import Callable
import logging
import typing

from manila_lite import exception
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.cmd.driver_thread import in_driver_thread, in_main_thread
from manila_lite.context import RequestContext
from manila_lite.db.queries.servers.server_load import ServerLimits
from manila_lite.db.queries.shares import shares
from manila_lite.host import ServiceHost
from manila_lite.network.base import ADMIN, USER, load_plugin as load_network
from manila_lite.rpc import contracts
from manila_lite.rpc.contract import Client, work_kinds
from manila_lite.rpc.data import BackupsRpc
from manila_lite.rpc.share import (
    TOPIC,
    AccessRpc,
    DriverBackupsRpc,
    ProvisioningRpc,
    ReconciliationRpc,
    ReplicatedSnapshotsRpc,
    SnapshotAccessRpc,
    SnapshotsRpc,
)
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.manager.backend import Backend, BackendEndpoints
from manila_lite.share.manager.disks import DatabaseDisks
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.guarded_driver import GuardedDriver
from manila_lite.share.manager.private_storage import DatabasePrivateStorage
from manila_lite.share.manager.recovery import rule_sets, share_groups, share_instances
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.share.manager.recovery.reconciliation import ReconciliationEndpoint
from manila_lite.share.manager.recovery.share_instances import ShareBackupRecovery
from manila_lite.share.manager.recovery.share_servers import (
    ServerTaskRecovery,
    ShareServerRecovery,
)
from manila_lite.share.manager.recovery.snapshot_instances import (
    SnapshotInstanceRecovery,
)
from manila_lite.share.manager.servers.setup import ServerNetworks, ServerSetup
from manila_lite.share.manager.shares.deferred_deletion import DeferredDeletion
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.work.runner import Runner

LOG = logging.getLogger(__name__)

RECOVERIES: tuple[type[ResourceRecovery], ...] = (
    ShareServerRecovery,
    ServerTaskRecovery,
    share_instances.ShareTaskRecovery,
    share_instances.ShareInstanceRecovery,
    SnapshotInstanceRecovery,
    rule_sets.RuleSetRecovery,
    rule_sets.SnapshotRuleSetRecovery,
    share_groups.ShareGroupRecovery,
    share_groups.ShareGroupSnapshotRecovery,
    ShareBackupRecovery,
    share_instances.ShareTransferRecovery,
)
"""The recovery of each kind of resource."""


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
        settings=process.settings(
            conf.work.workers_per_backend or driver.max_concurrent_operations
        ),
        rng=process.rng,
        release=process.release.number,
        # A client that is denied must not wait for slow creations.
        urgent=[*work_kinds(AccessRpc), *work_kinds(SnapshotAccessRpc)],
        probe=process.sweep_probe,
    )
    process.runners.append(runner)
    backend = Backend(
        db,
        driver,
        runner,
        endpoints,
        DeferredDeletion(
            db,
            process.client(ProvisioningRpc),
            process.client(SnapshotsRpc),
            process.client(ReplicatedSnapshotsRpc),
            host,
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
    registry = Registry(
        process,
        {
            ShareDriver: driver,
            NameTemplates: names,
            ServerSetup: setup,
            ServiceHost: host,
        },
        # Its limit is for the questions of one endpoint.
        unshared=[DriverProbe],
    )
    rescues = process.client(ReconciliationRpc).on(host)
    works = _work_clients(process, host)
    resources: list[ResourceRecovery] = [
        registry.get(kind, rescue_client=rescues, work_clients=works)
        for kind in RECOVERIES
    ]
    registry.get(
        ReconciliationEndpoint,
        resources={kind: one for one in resources for kind in one.kinds},
    )
    return registry.get(BackendEndpoints)


def _work_clients(process: Process, host: str) -> dict[str, Client]:
    """Return what submits lost work again, by the name of the contract."""
    works: dict[str, Client] = {
        contract.name: process.client(contract).on(host)
        for contract in contracts.ALL
        if contract.topic == TOPIC
    }
    # Any data service takes it.
    works[BackupsRpc.name] = process.client(BackupsRpc)
    # It goes to the back end that has the backup.
    works[DriverBackupsRpc.name] = process.client(DriverBackupsRpc)
    return works


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
