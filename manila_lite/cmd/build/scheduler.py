"""Build the scheduler service."""

from collections.abc import Callable, Sequence
import datetime
import typing

from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.process import Service
from manila_lite.cmd.build.process import listen
from manila_lite.db.queries.admin import messages as message_rows
from manila_lite.db.queries.admin import recovery as recovery_rows
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.servers import migrations as server_migration_rows
from manila_lite.periodic import Task
from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.scheduler import choose
from manila_lite.scheduler.manager import FiltersAndWeighers
from manila_lite.scheduler.manager import PlacementEndpoint
from manila_lite.scheduler.orphan_sweep import OrphanSweep
from manila_lite.work import table
from manila_lite.work.runner import Runner

SCHEDULER_BINARY = 'manila-scheduler'


class SchedulerService(Service):
    """The service that places share instances on back ends."""

    def __init__(
        self,
        runner: Runner,
        tasks: list[Task],
        *,
        listeners: Sequence[typing.Any],
        register: Callable[[], None],
        placement: PlacementEndpoint,
        orphan_sweep: OrphanSweep,
    ):
        super().__init__([runner], tasks, listeners=listeners)
        self.register = register
        self.orphan_sweep = orphan_sweep
        self.call_endpoints = [placement]


def build_scheduler(process: Process) -> SchedulerService:
    """Build the scheduler with its runner, tasks and listeners."""
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
    return SchedulerService(
        runner,
        tasks,
        listeners=listen(
            process, [(SCHEDULER_TOPIC, conf.host, runner, [placement])]
        ),
        register=register,
        placement=placement,
        orphan_sweep=orphan_sweep,
    )
