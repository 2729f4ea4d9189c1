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
from manila_lite.api.v2.controllers import CONTROLLERS
from manila_lite.context import RequestContext
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries import messages as message_rows
from manila_lite.db.queries import services
from manila_lite.db.queries import shares
from manila_lite.db.session import Database
from manila_lite.periodic import Periodic
from manila_lite.periodic import Task
from manila_lite.policies.enforcer import Enforcer
from manila_lite.quota import limits as quota_limits
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import TOPIC as SHARE_TOPIC
from manila_lite.rpc.share import EnsuringRpc
from manila_lite.rpc.share import ProvisioningRpc
from manila_lite.rpc.share import ReconciliationRpc
from manila_lite.rpc.transport import HintListener
from manila_lite.scheduler import choose
from manila_lite.scheduler.filters.extra_specs import why_unmet
from manila_lite.scheduler.manager import Placement
from manila_lite.scheduler.manager import Rules
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.configuration import Configuration
from manila_lite.share.manager.backend import Backend
from manila_lite.share.manager.ensuring import Ensuring
from manila_lite.share.manager.provisioning import Provisioning
from manila_lite.share.manager.reconciliation import Reconciliation
from manila_lite.share.operations.services import Services
from manila_lite.share.operations.shares import Shares
from manila_lite.work import table
from manila_lite.work.brake import Brake
from manila_lite.work.runner import Runner
from manila_lite.work.runner import Settings

LOG = logging.getLogger(__name__)

SCHEDULER_BINARY = 'manila-scheduler'

LISTENERS_START_IN = 0.5
LISTENERS_STOP_AFTER = 0.3
"""Seconds given to those who wait for messages; a broker may be away."""


@dataclasses.dataclass
class Process:
    """What the services of one process share; `id` is its incarnation."""

    conf: typing.Any
    db: Database
    transport: typing.Any = None
    locks: typing.Any = dataclasses.field(default_factory=NullCoordinator)
    chance: random.Random = dataclasses.field(default_factory=random.Random)
    id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))

    def client(self, contract: type) -> Client:
        return Client(contract, table.submit_for, self.transport)

    def settings(self, workers: int) -> Settings:
        work = self.conf.work
        return Settings(
            lease=work.lease, sweep_interval=work.sweep_interval,
            workers=workers, max_attempts=work.max_attempts,
            retry_delay=work.retry_delay,
            operation_timeout=work.operation_timeout,
            message_ttl=self.conf.message_ttl)

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
    services: Services
    limits: dict[str, int]
    admin_only_metadata: frozenset[str]
    admin_only_export_metadata: frozenset[str]
    pool_matches: typing.Callable


def api(process: Process, *, auth=None, checks=None):
    """The WSGI application, and the services behind it."""
    conf = process.conf
    enforcer = Enforcer(conf)
    found = ApiServices(
        conf=conf, db=process.db, enforcer=enforcer,
        shares=share_operations(process),
        services=Services(process.db, process.client(EnsuringRpc),
                          conf.service_down_time),
        limits=process.limits(),
        admin_only_metadata=frozenset(conf.admin_only_metadata),
        admin_only_export_metadata=frozenset(conf.admin_only_el_metadata),
        pool_matches=pool_matches)
    everything = {'database': database_check(process.db), **(checks or {})}
    app = build_app(conf, found, enforcer, CONTROLLERS, auth,
                    checks=everything)
    return app, found


def share_operations(process: Process) -> Shares:
    return Shares(process.conf, process.db, process.limits(),
                  process.client(PlacementRpc),
                  process.client(ProvisioningRpc),
                  Brake(process.db, process.conf.work.max_queue))


def pool_matches(capabilities: typing.Mapping[str, typing.Any],
                 extra_specs: typing.Mapping[str, str]) -> bool:
    """Whether a pool offers everything that extra specs demand."""
    pool = choose.Pool(
        host='', capabilities=capabilities, zone=None, service_up=True,
        service_enabled=True, total_gb=None, free_gb=None, allocated_gb=0,
        pending_gb=0)
    return not any(why_unmet(pool, key, wanted)
                   for key, wanted in extra_specs.items())


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

    def __init__(self, runners: list[typing.Any], tasks: list[Task], *,
                 listeners: list[typing.Any], fuzz: float):
        self.runners = runners
        self.listeners = listeners
        self.periodic = Periodic(tasks, fuzz=fuzz)

    def start(self) -> None:
        with futures.ThreadPoolExecutor(len(self.listeners) or 1) as pool:
            listening = [pool.submit(one.start) for one in self.listeners]
            # A broker that is away must not keep work from being done.
            futures.wait(listening, LISTENERS_START_IN)
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
        ended = [runner.stop(max(0.0, deadline - time.monotonic()))
                 for runner in self.runners]
        return all(ended)

    def _stop_listening(self) -> None:
        """Wait a little for the listeners, which look up only now and then.

        What they hear meanwhile is lost to nobody: hints are only hints.
        """
        threads = [threading.Thread(target=listener.stop, daemon=True)
                   for listener in self.listeners]
        deadline = time.monotonic() + LISTENERS_STOP_AFTER
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def scheduler(process: Process) -> Service:
    """The service that places share instances."""
    conf, db = process.conf, process.db
    multipliers = {'CapacityWeigher': conf.capacity_weight_multiplier,
                   'PoolWeigher': conf.pool_weight_multiplier}
    rules = Rules(
        choose.load(conf.scheduler_default_filters, 'filters'),
        choose.load(conf.scheduler_default_weighers, 'weighers',
                    multipliers),
        choose.load(conf.scheduler_default_extend_filters, 'filters'))
    placement = Placement(
        db, rules, down_time=conf.service_down_time,
        message_ttl=conf.message_ttl, chance=process.chance)
    runner = Runner(
        db, queues=[SCHEDULER_TOPIC], handlers=endpoint_handlers(placement),
        owner=f'{SCHEDULER_BINARY}@{conf.host}:{process.id}',
        settings=process.settings(conf.work.scheduler_workers),
        chance=process.chance, acts_outside=False)

    def beat() -> None:
        if not db.write(services.beat, host=conf.host,
                        binary=SCHEDULER_BINARY, incarnation=process.id,
                        health=None):
            register()

    def register() -> None:
        db.write(services.register, host=conf.host, binary=SCHEDULER_BINARY,
                 topic=SCHEDULER_TOPIC, zone=conf.storage_availability_zone,
                 incarnation=process.id, enabled=conf.enable_new_services)

    keep = datetime.timedelta(seconds=conf.work.journal_retention)
    tasks = [
        Task('heartbeat', conf.report_interval, beat),
        Task('rescue', conf.periodic_interval, placement.run_pass),
        Task('expired messages', conf.message_reap_interval,
             lambda: db.write(message_rows.purge_expired)),
        Task('old journal', conf.message_reap_interval,
             lambda: db.write(table.prune_journal, db.utcnow() - keep)),
    ]
    service = Service([runner], tasks, fuzz=0.0, listeners=_listen(
        process, [(SCHEDULER_TOPIC, conf.host, runner)]))
    service.register = register
    service.placement = placement
    return service


def share_service(process: Process) -> Service:
    """The service that runs the configured back ends."""
    conf = process.conf
    backends = [backend(process, name) for name in options.backends(conf)]
    tasks = [task for one in backends for task in _tasks(process, one)]
    service = Service(
        backends, tasks, fuzz=0.0, listeners=_listen(process, [
            (SHARE_TOPIC, one.host, one.runner) for one in backends]))
    service.backends = backends
    return service


def _listen(process: Process, served) -> list[HintListener]:
    if process.transport is None:
        return []
    return [HintListener(process.transport, topic, server, runner.wake)
            for topic, server, runner in served]


def backend(process: Process, name: str) -> Backend:
    """One back end, its driver loaded but not yet started."""
    conf, db = process.conf, process.db
    host = f'{conf.host}@{name}'
    configuration = Configuration(conf, name)
    driver = registry.load(configuration.share_driver)(
        configuration=configuration, private_storage=None)
    provisioning = Provisioning(driver, conf.share_name_template)
    reconciliation = Reconciliation(
        db, provisioning, process.client(ReconciliationRpc),
        process.client(ProvisioningRpc), host, conf.message_ttl,
        process.locks)
    ensuring = Ensuring(
        db, driver, process.client(EnsuringRpc), host,
        name_template=conf.share_name_template,
        update_status=conf.update_shares_status_on_ensure,
        message_ttl=conf.message_ttl)
    runner = Runner(
        db, queues=[host],
        handlers=endpoint_handlers(provisioning)
        | endpoint_handlers(reconciliation)
        | endpoint_handlers(ensuring),
        owner=f'manila-share@{host}:{process.id}',
        rescue=reconciliation.rescue, recheck=reconciliation.recheck,
        settings=process.settings(conf.work.workers_per_backend),
        chance=process.chance)
    made = Backend(
        db, driver, runner, ensuring, host=host,
        zone=(configuration.safe_get('backend_availability_zone')
              or conf.storage_availability_zone),
        incarnation=process.id, enabled=conf.enable_new_services,
        expire=_expirer(process))
    made.reconciliation = reconciliation
    return made


def _expirer(process: Process):
    """Deletes a share of the recycle bin as its own project would."""
    operations = share_operations(process)

    def expire(made: Backend, share_id: str) -> None:
        try:
            share = process.db.read(shares.target, share_id)
            operations.delete(RequestContext(
                project_id=share.project_id, user_id=share.user_id), share)
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
        Task('rescue', conf.periodic_interval,
             made.reconciliation.run_pass),
        Task('recycle bin',
             conf.check_for_expired_shares_in_recycle_bin_interval,
             made.expire),
        Task('deferred deletion', conf.periodic_deferred_delete_interval,
             made.reconciliation.retry_deferred),
    ]


def connect_hints(db: Database, sender: typing.Any) -> None:
    """Have the hints of every transaction sent after its commit."""
    def deliver(hints) -> None:
        for hint in hints:
            sender.send(*hint)
    db.deliver = deliver

