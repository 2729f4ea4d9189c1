"""Build the scheduler service."""

from collections.abc import Sequence
import functools
import typing

from oslo_config import cfg

from manila_lite.cmd.build.process import (
    Process,
    RegisteredService,
    Registration,
    listen,
)
from manila_lite.cmd.build.purges import build_purges, purge_tasks
from manila_lite.cmd.gone_backends import build_canceller
from manila_lite.periodic import Task
from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.rpc.notifications import Notifications
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.scheduler import choose
from manila_lite.scheduler.at_once import AtOnce
from manila_lite.scheduler.events import EventSender
from manila_lite.scheduler.manager import FiltersAndWeighers, PlacementEndpoint
from manila_lite.scheduler.orphan_sweep import OrphanSweep
from manila_lite.scheduler.purge import Purge
from manila_lite.scheduler.sampler import LOOK_INTERVAL, Sampler
from manila_lite.scheduler.unserved_work import UnservedWork
from manila_lite.work.runner import Runner


def build_events(process: Process, owner: str) -> EventSender | None:
    """Build the sender of events; None if they are not enabled."""
    conf = process.conf
    if not conf.events.enabled:
        return None
    notifications = Notifications(conf, f'manila_lite.{conf.host}')
    return EventSender(process.db, owner, notifications.send, notifications.close)


def event_tasks(conf: cfg.ConfigOpts, events: EventSender | None) -> list[Task]:
    """Return the task of a scheduler that sends events."""
    if events is None:
        return []
    return [Task('events', conf.events.interval, events.run_pass)]


SCHEDULER_BINARY = 'manila-scheduler'


class SchedulerService(RegisteredService):
    """The service that places share instances on back ends."""

    def __init__(
        self,
        registration: Registration,
        runner: Runner,
        tasks: list[Task],
        *,
        listeners: Sequence[typing.Any],
        placement: PlacementEndpoint,
        orphan_sweep: OrphanSweep,
        unserved_work: UnservedWork,
        purges: list[Purge],
        events: EventSender | None,
        fuzzy_delay: float,
    ):
        super().__init__(
            registration, runner, tasks, listeners=listeners, fuzzy_delay=fuzzy_delay
        )
        self.orphan_sweep = orphan_sweep
        self.unserved_work = unserved_work
        self.purges = purges
        self.events = events
        self.call_endpoints = [placement]

    def stop(self, timeout: float = 60.0) -> bool:
        """Stop; return True when all running work has ended."""
        ended = super().stop(timeout)
        if self.events is not None:
            self.events.close()
        return ended


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
        db,
        rules,
        down_time=conf.service_down_time,
        wait_for_backends=conf.scheduler_wait_for_backends,
        max_attempts=conf.scheduler_max_attempts,
        rng=process.rng,
    )
    registration = Registration(process, SCHEDULER_BINARY, SCHEDULER_TOPIC)
    owner = registration.owner
    orphan_sweep = OrphanSweep(db, owner, conf.message_ttl)
    runner = Runner(
        db,
        queues=[SCHEDULER_TOPIC],
        handlers=endpoint_handlers(placement),
        owner=owner,
        settings=process.settings(conf.work.scheduler_workers),
        rng=process.rng,
        release=process.release.number,
        has_side_effects=False,
        probe=process.sweep_probe,
        shortcut=AtOnce(db, placement, process.release.number).place,
    )
    process.runners.append(runner)

    purges = build_purges(process, owner)
    unserved_work = UnservedWork(
        db,
        owner,
        conf.work.unserved_timeout,
        functools.partial(build_canceller, process),
    )
    events = build_events(process, owner)
    tasks = [
        registration.heartbeat(),
        Task('rescue', conf.periodic_interval, orphan_sweep.run_pass),
        *unserved_tasks(conf, unserved_work),
        *purge_tasks(purges),
        *event_tasks(conf, events),
        *sampling_tasks(process),
    ]
    return SchedulerService(
        registration,
        runner,
        tasks,
        listeners=listen(process, [(SCHEDULER_TOPIC, conf.host, runner, [placement])]),
        fuzzy_delay=conf.periodic_fuzzy_delay,
        placement=placement,
        orphan_sweep=orphan_sweep,
        unserved_work=unserved_work,
        purges=purges,
        events=events,
    )


def unserved_tasks(conf: cfg.ConfigOpts, unserved: UnservedWork) -> list[Task]:
    """Return the task that ends the work of back ends that are gone."""
    if not conf.work.unserved_timeout:
        return []
    return [Task('unserved work', conf.periodic_interval, unserved.run_pass)]


def sampling_tasks(process: Process) -> list[Task]:
    """Return the task that writes the samples of charts."""
    if not process.conf.monitoring.charts:
        return []
    return [Task('samples', LOOK_INTERVAL, Sampler(process.db).run_pass)]
