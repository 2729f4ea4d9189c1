"""Builds every object of a process and hands them to each other."""

from concurrent import futures
import dataclasses
import datetime
import logging
import random
import threading
import time
import typing
import uuid

from oslo_db import exception as db_exc

from manila_lite import conf as options
from manila_lite import exception
from manila_lite.api.app import build_app
from manila_lite.context import RequestContext
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries.admin import messages as message_rows
from manila_lite.db.queries.admin import recovery as recovery_rows
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.servers import migrations as server_migration_rows
from manila_lite.db.queries.servers.share_servers import ServerLimits
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Database
from manila_lite.network.base import ADMIN
from manila_lite.network.base import USER
from manila_lite.network.registry import load as load_network
from manila_lite.periodic import Periodic
from manila_lite.periodic import Task
from manila_lite.policies.enforcer import Enforcer
from manila_lite.quota import limits as quota_limits
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import TOPIC as SHARE_TOPIC
from manila_lite.rpc.share import AccessRpc
from manila_lite.rpc.share import EnsuringRpc
from manila_lite.rpc.share import ManagingRpc
from manila_lite.rpc.share import NetworkUpdatesRpc
from manila_lite.rpc.share import ProvisioningRpc
from manila_lite.rpc.share import ReconciliationRpc
from manila_lite.rpc.share import ReplicatedSnapshotsRpc
from manila_lite.rpc.share import ReplicationRpc
from manila_lite.rpc.share import ReplicaUpdatesRpc
from manila_lite.rpc.share import ServerMigrationRpc
from manila_lite.rpc.share import ShareServersRpc
from manila_lite.rpc.share import SnapshotAccessRpc
from manila_lite.rpc.share import SnapshotsRpc
from manila_lite.rpc.transport import HintListener
from manila_lite.scheduler import choose
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.manager import FiltersAndWeighers
from manila_lite.scheduler.manager import PlacementEndpoint
from manila_lite.scheduler.orphan_sweep import OrphanSweep
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.manager.access.share_rules import AccessEndpoint
from manila_lite.share.manager.access.snapshot_rules import (
    SnapshotAccessEndpoint,
)
from manila_lite.share.manager.backend import Backend
from manila_lite.share.manager.deferred_deletion import DeferredDeletion
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.ensuring import EnsuringEndpoint
from manila_lite.share.manager.managing import ManagingEndpoint
from manila_lite.share.manager.provisioning import ProvisioningEndpoint
from manila_lite.share.manager.recovery.reconciliation import (
    ReconciliationEndpoint,
)
from manila_lite.share.manager.recovery.rule_sets import RuleSetRecovery
from manila_lite.share.manager.recovery.rule_sets import (
    SnapshotRuleSetRecovery,
)
from manila_lite.share.manager.recovery.server_tasks import ServerTaskRecovery
from manila_lite.share.manager.recovery.share_instances import (
    ShareInstanceRecovery,
)
from manila_lite.share.manager.recovery.share_servers import (
    ShareServerRecovery,
)
from manila_lite.share.manager.recovery.snapshot_instances import (
    SnapshotInstanceRecovery,
)
from manila_lite.share.manager.replication.outcome_writer import OutcomeWriter
from manila_lite.share.manager.replication.probe import ReplicaProbe
from manila_lite.share.manager.replication.promotion import PromotionWriter
from manila_lite.share.manager.replication.replicas import ReplicasEndpoint
from manila_lite.share.manager.replication.rule_resync import RuleResync
from manila_lite.share.manager.replication.snapshots import (
    ReplicatedSnapshotsEndpoint,
)
from manila_lite.share.manager.replication.updates import (
    ReplicaUpdatesEndpoint,
)
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.migration_phases import (
    ServerMigrationPhases,
)
from manila_lite.share.manager.servers.migrations import (
    ServerMigrationsEndpoint,
)
from manila_lite.share.manager.servers.network_updates import (
    NetworkUpdatesEndpoint,
)
from manila_lite.share.manager.servers.setup import ServerNetworks
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.share.manager.snapshots import SnapshotsEndpoint
from manila_lite.share.operations.access.locks import Locks
from manila_lite.share.operations.access.share_rules import Access
from manila_lite.share.operations.access.snapshot_rules import SnapshotAccess
from manila_lite.share.operations.managing import Managing
from manila_lite.share.operations.networks.changes import NetworkChanges
from manila_lite.share.operations.networks.share_networks import ShareNetworks
from manila_lite.share.operations.recovery import Recovery
from manila_lite.share.operations.replication.replicas import Replicas
from manila_lite.share.operations.servers.migrations import ServerMigrations
from manila_lite.share.operations.servers.share_servers import ShareServers
from manila_lite.share.operations.services import Services
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.share.operations.snapshots import Snapshots
from manila_lite.work import table
from manila_lite.work.admission import AdmissionControl
from manila_lite.work.runner import Runner
from manila_lite.work.runner import Settings

LOG = logging.getLogger(__name__)

SCHEDULER_BINARY = 'manila-scheduler'

LISTENER_START_TIMEOUT = 0.5
LISTENER_STOP_TIMEOUT = 0.3
"""Seconds given to those who wait for messages; a broker may be away."""


@dataclasses.dataclass
class Process:
    """What the services of one process share; `id` is its incarnation."""

    conf: typing.Any
    db: Database
    transport: typing.Any = None
    locks: typing.Any = dataclasses.field(default_factory=NullCoordinator)
    rng: random.Random = dataclasses.field(default_factory=random.Random)
    id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))

    def client(self, contract: type) -> Client:
        return Client(contract, table.submit_durable, self.transport)

    def settings(self, workers: int) -> Settings:
        work = self.conf.work
        return Settings(
            lease=work.lease,
            sweep_interval=work.sweep_interval,
            workers=workers,
            max_attempts=work.max_attempts,
            retry_delay=work.retry_delay,
            operation_timeout=work.operation_timeout,
            message_ttl=self.conf.message_ttl,
        )

    def limits(self) -> dict[str, int]:
        return quota_limits.from_options(self.conf.quota)


# The API


@dataclasses.dataclass
class ApiServices:
    """What controllers are given."""

    conf: typing.Any
    db: Database
    enforcer: Enforcer
    shares: Shares
    access: Access
    snapshots: Snapshots
    snapshot_access: SnapshotAccess
    locks: Locks
    managing: Managing
    services: Services
    recovery: Recovery
    share_networks: ShareNetworks
    network_changes: NetworkChanges
    share_servers: ShareServers
    server_migrations: ServerMigrations
    replicas: Replicas
    limits: dict[str, int]
    admin_only_metadata: frozenset[str]
    admin_only_export_metadata: frozenset[str]
    pool_matches: typing.Callable


def api(process: Process, *, auth=None, checks=None, enforcer=None):
    """The WSGI application, and the services behind it."""
    conf = process.conf
    enforcer = enforcer or Enforcer(conf)
    found = ApiServices(
        conf=conf,
        db=process.db,
        enforcer=enforcer,
        shares=share_operations(process),
        access=access_operations(process),
        snapshots=snapshot_operations(process),
        snapshot_access=SnapshotAccess(
            process.db,
            process.client(SnapshotAccessRpc),
            AdmissionControl(process.db, conf.work.max_queue),
        ),
        locks=Locks(process.db),
        managing=Managing(
            conf,
            process.db,
            process.client(PlacementRpc),
            process.client(ManagingRpc),
        ),
        services=Services(
            process.db, process.client(EnsuringRpc), conf.service_down_time
        ),
        recovery=Recovery(process.db, process.client(ReconciliationRpc)),
        share_servers=ShareServers(
            process.db, process.client(ShareServersRpc), conf.service_down_time
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
        replicas=replica_operations(process),
        limits=process.limits(),
        admin_only_metadata=frozenset(conf.admin_only_metadata),
        admin_only_export_metadata=frozenset(conf.admin_only_el_metadata),
        pool_matches=pool_matches,
    )
    everything = {'database': database_check(process.db), **(checks or {})}
    app = build_app(
        conf, found, enforcer, auth, checks=everything
    )
    return app, found


def access_operations(process: Process) -> Access:
    return Access(
        process.db,
        process.client(AccessRpc),
        AdmissionControl(process.db, process.conf.work.max_queue),
        process.locks,
    )


def share_operations(process: Process) -> Shares:
    return Shares(
        process.conf,
        process.db,
        process.limits(),
        process.client(PlacementRpc),
        process.client(ProvisioningRpc),
        process.client(ReplicationRpc),
        AdmissionControl(process.db, process.conf.work.max_queue),
    )


def replica_operations(process: Process) -> Replicas:
    return Replicas(
        process.db,
        process.limits(),
        process.client(PlacementRpc),
        process.client(ReplicationRpc),
        process.client(ReplicaUpdatesRpc),
        process.client(AccessRpc),
        AdmissionControl(process.db, process.conf.work.max_queue),
    )


def snapshot_operations(process: Process) -> Snapshots:
    return Snapshots(
        process.db,
        process.limits(),
        process.client(SnapshotsRpc),
        process.client(ReplicatedSnapshotsRpc),
        AdmissionControl(process.db, process.conf.work.max_queue),
    )


def pool_matches(
    capabilities: typing.Mapping[str, typing.Any],
    extra_specs: typing.Mapping[str, str],
) -> bool:
    """Whether a pool offers everything that extra specs demand."""
    pool = choose.Pool(
        host='',
        capabilities=capabilities,
        zone=None,
        service_up=True,
        service_enabled=True,
        total_gb=None,
        free_gb=None,
        allocated_gb=0,
        pending_gb=0,
    )
    return not any(
        mismatch_reason(pool, key, wanted)
        for key, wanted in extra_specs.items()
    )


def database_check(db: Database):
    """Whether the database answers, for /healthcheck."""

    def check() -> str | None:
        try:
            db.read(services.list_zones)
        except db_exc.DBError:
            LOG.warning('The database does not answer', exc_info=True)
            return 'does not answer'
        return None

    return check


# Services that carry work out


class Service:
    """A runner with what wakes it and what runs beside it."""

    def __init__(
        self,
        runners: list[typing.Any],
        tasks: list[Task],
        *,
        listeners: list[typing.Any],
        jitter: float,
    ):
        self.runners = runners
        self.listeners = listeners
        self.periodic = Periodic(tasks, jitter=jitter)

    def start(self) -> None:
        with futures.ThreadPoolExecutor(len(self.listeners) or 1) as pool:
            listening = [pool.submit(one.start) for one in self.listeners]
            # A broker that is away must not keep work from being done.
            futures.wait(listening, LISTENER_START_TIMEOUT)
            for runner in self.runners:
                runner.start()
            self.periodic.start()
        for one in listening:
            one.result()

    def stop(self, timeout: float = 60.0) -> bool:
        """Stop; True when all the work in hand has ended."""
        deadline = time.monotonic() + timeout
        for runner in self.runners:  # no new work for any, while we wait
            runner.stop(0.0)
        self.periodic.stop()
        self._stop_listening()
        ended = [
            runner.stop(max(0.0, deadline - time.monotonic()))
            for runner in self.runners
        ]
        return all(ended)

    def _stop_listening(self) -> None:
        """Wait a little for the listeners, which look up only now and then.

        What they hear meanwhile is lost to nobody: hints are only hints.
        """
        threads = [
            threading.Thread(target=listener.stop, daemon=True)
            for listener in self.listeners
        ]
        deadline = time.monotonic() + LISTENER_STOP_TIMEOUT
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def scheduler(process: Process) -> Service:
    """The service that places share instances."""
    conf, db = process.conf, process.db
    multipliers = {
        'CapacityWeigher': conf.capacity_weight_multiplier,
        'PoolWeigher': conf.pool_weight_multiplier,
    }
    rules = FiltersAndWeighers(
        choose.load(conf.scheduler_default_filters, 'filters'),
        choose.load(conf.scheduler_default_weighers, 'weighers', multipliers),
        choose.load(conf.scheduler_default_extend_filters, 'filters'),
    )
    placement = PlacementEndpoint(
        db, rules, down_time=conf.service_down_time, rng=process.rng
    )
    owner = f'{SCHEDULER_BINARY}@{conf.host}:{process.id}'
    orphan_sweep = OrphanSweep(db, owner, conf.message_ttl)
    runner = Runner(
        db,
        queues=[SCHEDULER_TOPIC],
        handlers=endpoint_handlers(placement),
        owner=owner,
        settings=process.settings(conf.work.scheduler_workers),
        rng=process.rng,
        has_side_effects=False,
    )

    def beat() -> None:
        if not db.write(
            services.heartbeat,
            host=conf.host,
            binary=SCHEDULER_BINARY,
            incarnation=process.id,
            health=None,
        ):
            register()

    def register() -> None:
        db.write(
            services.register,
            host=conf.host,
            binary=SCHEDULER_BINARY,
            topic=SCHEDULER_TOPIC,
            zone=conf.storage_availability_zone,
            incarnation=process.id,
            enabled=conf.enable_new_services,
        )

    keep = datetime.timedelta(seconds=conf.work.journal_retention)
    tasks = [
        Task('heartbeat', conf.report_interval, beat),
        Task('rescue', conf.periodic_interval, orphan_sweep.run_pass),
        Task(
            'expired messages',
            conf.message_reap_interval,
            lambda: db.write(message_rows.purge_expired),
        ),
        Task(
            'old journal',
            conf.message_reap_interval,
            lambda: db.write(table.prune_journal, db.utcnow() - keep),
        ),
        Task(
            'old server migrations',
            conf.message_reap_interval,
            lambda: db.write(server_migration_rows.prune, db.utcnow() - keep),
        ),
        Task(
            'old decisions',
            conf.message_reap_interval,
            lambda: db.write(
                recovery_rows.prune_log,
                db.utcnow()
                - datetime.timedelta(seconds=conf.recovery.log_retention),
            ),
        ),
    ]
    service = Service(
        [runner],
        tasks,
        jitter=0.0,
        listeners=_listen(
            process, [(SCHEDULER_TOPIC, conf.host, runner, [placement])]
        ),
    )
    service.register = register
    service.orphan_sweep = orphan_sweep
    service.call_endpoints = [placement]
    return service


def share_service(process: Process) -> Service:
    """The service that runs the configured back ends."""
    conf = process.conf
    backends = [backend(process, name) for name in options.backends(conf)]
    tasks = [task for one in backends for task in _tasks(process, one)]
    service = Service(
        backends,
        tasks,
        jitter=0.0,
        listeners=_listen(
            process,
            [
                (SHARE_TOPIC, one.host, one.runner, one.call_endpoints)
                for one in backends
            ],
        ),
    )
    service.backends = backends
    return service


def _listen(process: Process, served) -> list[HintListener]:
    if process.transport is None:
        return []
    return [
        HintListener(process.transport, topic, server, runner.wake, endpoints)
        for topic, server, runner, endpoints in served
    ]


def backend(process: Process, name: str) -> Backend:
    """One back end, its driver loaded but not yet started."""
    conf, db = process.conf, process.db
    host = f'{conf.host}@{name}'
    configuration = Configuration(conf, name)
    driver = registry.load(configuration.share_driver)(
        configuration=configuration, private_storage=None
    )
    names = NameTemplates(
        conf.share_name_template, conf.share_snapshot_name_template
    )
    setup = server_setup(process, driver, configuration, names, host)
    servers = ShareServersEndpoint(
        db,
        driver,
        process.client(ShareServersRpc),
        host,
        setup,
        with_last_share=conf.delete_share_server_with_last_share,
    )
    provisioning = ProvisioningEndpoint(
        driver, names, conf.periodic_interval, setup, servers
    )
    snapshots = SnapshotsEndpoint(driver, names, conf.message_ttl)
    replicated_snapshots = ReplicatedSnapshotsEndpoint(
        snapshots, process.client(ReplicatedSnapshotsRpc), host, process.locks
    )
    access = AccessEndpoint(
        db,
        driver,
        process.client(AccessRpc),
        host,
        name_template=conf.share_name_template,
        message_ttl=conf.message_ttl,
        locks=process.locks,
    )
    snapshot_access = SnapshotAccessEndpoint(
        db,
        driver,
        process.client(SnapshotAccessRpc),
        host,
        names=names,
        message_ttl=conf.message_ttl,
    )
    rules = RuleResync(process.client(AccessRpc))
    replication = ReplicasEndpoint(
        driver,
        names,
        setup,
        servers,
        rules,
        PromotionWriter(rules, conf.message_ttl),
        process.locks,
    )
    reconciliation = _reconciliation(
        process, host, provisioning, snapshots, access, setup, replication
    )
    managing = ManagingEndpoint(driver, names, process.limits(), servers)
    ensuring = EnsuringEndpoint(
        db,
        driver,
        process.client(EnsuringRpc),
        host,
        name_template=conf.share_name_template,
        update_status=conf.update_shares_status_on_ensure,
        message_ttl=conf.message_ttl,
        access=access,
    )
    migrations = server_migrations(process, driver, setup, names)
    updates = replica_updates(process, driver, host, names, access)
    runner = Runner(
        db,
        queues=[host],
        handlers=endpoint_handlers(provisioning)
        | endpoint_handlers(snapshots)
        | endpoint_handlers(replicated_snapshots)
        | endpoint_handlers(access)
        | endpoint_handlers(snapshot_access)
        | endpoint_handlers(replication)
        | endpoint_handlers(managing)
        | endpoint_handlers(servers)
        | endpoint_handlers(NetworkUpdatesEndpoint(setup, conf.message_ttl))
        | endpoint_handlers(migrations)
        | endpoint_handlers(updates)
        | endpoint_handlers(reconciliation)
        | endpoint_handlers(ensuring),
        owner=f'manila-share@{host}:{process.id}',
        rescue=reconciliation.rescue,
        recheck=reconciliation.recheck,
        settings=process.settings(conf.work.workers_per_backend),
        rng=process.rng,
    )
    made = Backend(
        db,
        driver,
        runner,
        ensuring,
        host=host,
        zone=(
            configuration.safe_get('backend_availability_zone')
            or conf.storage_availability_zone
        ),
        incarnation=process.id,
        enabled=conf.enable_new_services,
        expire=_expirer(process),
        servers=setup,
    )
    if conf.startup_reconciliation_enabled:
        made.start_recovery_after(
            conf.startup_reconciliation_wait_seconds,
            reconciliation.request_pass,
        )
    made.reconciliation = reconciliation
    made.access = access
    made.provisioning = provisioning
    made.snapshots = snapshots
    made.replicated_snapshots = replicated_snapshots
    made.snapshot_access = snapshot_access
    made.deferred_deletion = DeferredDeletion(
        db, process.client(ProvisioningRpc), host
    )
    made.managing = managing
    made.replication = replication
    made.share_servers = servers
    made.server_migrations = migrations
    made.replica_updates = updates
    made.call_endpoints = [migrations]
    return made


def server_migrations(
    process: Process,
    driver: typing.Any,
    setup: ServerSetup,
    names: NameTemplates,
) -> ServerMigrationsEndpoint:
    """Who moves share servers to a back end."""
    conf = process.conf
    return ServerMigrationsEndpoint(
        process.db,
        driver,
        ServerMigrationPhases(
            process.client(AccessRpc),
            process.client(SnapshotAccessRpc),
            process.client(ShareServersRpc),
        ),
        setup,
        setup.service_host,
        names=names,
        interval=conf.server_migration_driver_continue_update_interval,
        probe=DriverProbe(
            conf.recovery.question_timeout, conf.recovery.unanswered_questions
        ),
    )


def replica_updates(
    process: Process,
    driver: typing.Any,
    host: str,
    names: NameTemplates,
    access: AccessEndpoint,
) -> ReplicaUpdatesEndpoint:
    """Who looks how well the replicas on a back end follow."""
    conf = process.conf
    return ReplicaUpdatesEndpoint(
        process.db,
        driver,
        process.client(ReplicaUpdatesRpc),
        host,
        OutcomeWriter(process.db, access, conf.message_ttl),
        names=names,
        locks=process.locks,
        probe=ReplicaProbe(
            DriverProbe(
                conf.recovery.question_timeout,
                conf.recovery.unanswered_questions,
            )
        ),
    )


def server_setup(
    process: Process,
    driver: typing.Any,
    configuration: Configuration,
    names: NameTemplates,
    host: str,
) -> ServerSetup:
    """Who finds and makes the share servers of a back end."""
    networks = None
    if driver.driver_handles_share_servers:

        def network(group: str, label: str) -> typing.Any:
            return load_network(process.db, process.conf, group, label)

        for_admins = configuration.admin_network_config_group
        networks = ServerNetworks(
            network(
                configuration.network_config_group
                or configuration.config_group,
                USER,
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
) -> ReconciliationEndpoint:
    """The rescues of a back end, of each kind of resource there is."""
    conf = process.conf
    rescues = process.client(ReconciliationRpc).on(host)
    works = {
        contract.name: process.client(contract).on(host)
        for contract in (
            ProvisioningRpc,
            SnapshotsRpc,
            SnapshotAccessRpc,
            ShareServersRpc,
            ServerMigrationRpc,
            ReplicationRpc,
            ReplicatedSnapshotsRpc,
        )
    }
    resources = [
        ShareServerRecovery(rescues, works, setup),
        ServerTaskRecovery(rescues, works),
        ShareInstanceRecovery(
            rescues, works, provisioning, conf.message_ttl, replication
        ),
        SnapshotInstanceRecovery(rescues, works, snapshots, conf.message_ttl),
        RuleSetRecovery(rescues, works, access),
        SnapshotRuleSetRecovery(rescues, works),
    ]
    return ReconciliationEndpoint(
        process.db,
        {kind: one for one in resources for kind in one.kinds},
        process.client(ReconciliationRpc),
        host,
        process.locks,
        DriverProbe(
            conf.recovery.question_timeout, conf.recovery.unanswered_questions
        ),
        conf.recovery.batch,
    )


def _expirer(process: Process):
    """Deletes a share of the recycle bin as its own project would."""
    operations = share_operations(process)

    def expire(made: Backend, share_id: str) -> None:
        try:
            share = process.db.read(shares.get_target, share_id)
            operations.delete(
                RequestContext(
                    project_id=share.project_id, user_id=share.user_id
                ),
                share,
            )
        except (exception.NotFound, exception.InvalidStatus) as error:
            LOG.info('Share %s in the recycle bin: %s', share_id, error)

    return expire


def _tasks(process: Process, made: Backend) -> list[Task]:
    conf = process.conf

    def when_up(run: typing.Callable) -> typing.Callable:
        # Until then the back end itself says how it is, and would be
        # contradicted by a task that has read its health a moment ago.
        return lambda: made.is_up and run()

    return [
        Task('heartbeat', conf.report_interval, when_up(made.beat)),
        Task('report', conf.periodic_interval, when_up(made.report)),
        *_recoveries(conf, when_up(made.reconciliation.request_pass)),
        Task('access rules', conf.periodic_interval, made.access.run_pass),
        Task(
            'access rules of snapshots',
            conf.periodic_interval,
            made.snapshot_access.run_pass,
        ),
        Task(
            'recycle bin',
            conf.check_for_expired_shares_in_recycle_bin_interval,
            made.expire,
        ),
        Task(
            'replicas',
            conf.replica_state_update_interval,
            when_up(made.replica_updates.request_pass),
        ),
        *_clean_ups(conf, made.share_servers),
        Task(
            'deferred deletion',
            conf.periodic_deferred_delete_interval,
            made.deferred_deletion.retry,
        ),
    ]


def _clean_ups(conf: typing.Any, servers: ShareServersEndpoint) -> list[Task]:
    """The end of share servers that nothing is on."""
    if not (conf.automatic_share_server_cleanup and servers.setup.networks):
        return []
    idle_for = datetime.timedelta(
        minutes=conf.unused_share_server_cleanup_interval
    )
    return [
        Task(
            'unused share servers',
            conf.periodic_interval,
            lambda: servers.delete_idle(idle_for),
        )
    ]


def _recoveries(conf: typing.Any, request_pass: typing.Callable) -> list[Task]:
    """The look on a timer; the first one is that of the start."""
    interval = conf.recovery.interval
    return (
        [Task('rescue', interval, request_pass, initial_delay=interval)]
        if interval
        else []
    )


def connect_hints(db: Database, sender: typing.Any) -> None:
    """Have the hints of every transaction sent after its commit."""

    def deliver(hints) -> None:
        for hint in hints:
            sender.send(*hint)

    db.deliver = deliver
