"""Build the share service: every configured back end, and its tasks."""

from collections.abc import Sequence
import contextlib
import datetime
import logging
import typing

from oslo_config import cfg

from manila_lite import conf as options, exception
from manila_lite.cmd.build.backend import build_backend
from manila_lite.cmd.build.process import Process, Service, listen
from manila_lite.db.queries.services import incarnations
from manila_lite.periodic import Task
from manila_lite.rpc.share import BINARY, TOPIC as SHARE_TOPIC
from manila_lite.share.manager.backend import Backend
from manila_lite.share.manager.heartbeats import Heartbeats
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.work import table

LOG = logging.getLogger(__name__)

_SUPERVISION_INTERVAL = 1.0


class ShareService(Service):
    """The service that runs the configured back ends."""

    def __init__(
        self,
        backends: list[Backend],
        tasks: list[Task],
        *,
        listeners: Sequence[typing.Any],
        fuzzy_delay: float,
    ):
        super().__init__(backends, tasks, listeners=listeners, fuzzy_delay=fuzzy_delay)
        self.backends = backends

    def take_over_from_dead(self, process: Process, id: str) -> None:
        """Expire the leases of a dead incarnation, which serves nothing."""
        for backend in self.backends:
            runner = backend.runner
            process.db.write(
                table.expire_leases, runner.queues, runner.owner.replace(process.id, id)
            )
            # The row of one back end must not hold up the work of others.
            with contextlib.suppress(exception.DatabaseBusy):
                backend.deregister(id)
        process.db.write(incarnations.forget, id)

    def mark_others_down(self, process: Process) -> None:
        """Show back ends as down that are not in the configuration."""
        conf = process.conf
        for host in process.db.write(
            incarnations.mark_unserved_down,
            node=conf.host,
            binary=BINARY,
            served={backend.host for backend in self.backends},
            down_time=conf.service_down_time,
        ):
            LOG.warning(
                'Back end %s is not in the configuration of this node; it '
                'gets no new shares',
                host,
            )


def build_share_service(process: Process) -> ShareService:
    """Build the share service with all configured back ends."""
    conf = process.conf
    backends = []
    with options.all_errors(conf, exception.ManilaLiteError) as collect:
        for name in options.backends(conf):
            with collect(name):
                backends.append(build_backend(process, name))
    heartbeats = Heartbeats(process.db, backends, conf.report_interval)
    tasks = [task for one in backends for task in _tasks(process, one, heartbeats)]
    return ShareService(
        backends,
        tasks,
        listeners=listen(
            process,
            [
                (SHARE_TOPIC, one.host, one.runner, one.call_endpoints)
                for one in backends
            ],
        ),
        fuzzy_delay=conf.periodic_fuzzy_delay,
    )


def _tasks(process: Process, backend: Backend, heartbeats: Heartbeats) -> list[Task]:
    conf, endpoints = process.conf, backend.endpoints

    def when_started(run: typing.Callable) -> typing.Callable:
        return lambda: backend.is_started and run()

    return [
        Task(
            'heartbeat',
            conf.report_interval,
            lambda: heartbeats.beat(backend),
            drains=True,
        ),
        Task('report', conf.periodic_interval, when_started(backend.report_or_be_down)),
        Task(
            'supervision',
            _SUPERVISION_INTERVAL,
            when_started(lambda: backend.driver.keep_serving()),
            drains=True,
        ),
        *_recoveries(conf, when_started(endpoints.reconciliation.request_pass)),
        Task(
            'recycle bin',
            conf.check_for_expired_shares_in_recycle_bin_interval,
            backend.expire,
        ),
        Task(
            'share transfers',
            conf.check_for_expired_transfers,
            endpoints.share_transfers.expire,
        ),
        Task(
            'replicas',
            conf.replica_state_update_interval,
            when_started(endpoints.replica_updates.request_pass),
        ),
        *_clean_ups(conf, endpoints.share_servers),
        Task(
            'deferred deletion',
            conf.periodic_deferred_delete_interval,
            backend.deferred_deletion.retry,
        ),
    ]


def _clean_ups(conf: cfg.ConfigOpts, servers: ShareServersEndpoint) -> list[Task]:
    """Return the task that deletes unused share servers, if enabled."""
    if not (conf.automatic_share_server_cleanup and servers.setup.networks):
        return []
    idle_for = datetime.timedelta(minutes=conf.unused_share_server_cleanup_interval)
    return [
        Task(
            'unused share servers',
            conf.periodic_interval,
            lambda: servers.delete_idle(idle_for),
        )
    ]


def _recoveries(conf: cfg.ConfigOpts, request_pass: typing.Callable) -> list[Task]:
    """Return the periodic recovery; start-up runs the first pass."""
    interval = conf.recovery.interval
    return (
        [Task('rescue', interval, request_pass, initial_delay=interval)]
        if interval
        else []
    )
