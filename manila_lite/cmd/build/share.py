"""Build the share service: every configured back end, and its tasks."""

from collections.abc import Sequence
import datetime
import typing

from manila_lite import conf as options
from manila_lite.cmd.build.backend import build_backend
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.process import Service
from manila_lite.cmd.build.process import listen
from manila_lite.periodic import Task
from manila_lite.rpc.share import TOPIC as SHARE_TOPIC
from manila_lite.share.manager.backend import Backend
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint


class ShareService(Service):
    """The service that runs the configured back ends."""

    def __init__(
        self,
        backends: list[Backend],
        tasks: list[Task],
        *,
        listeners: Sequence[typing.Any],
    ):
        super().__init__(backends, tasks, listeners=listeners)
        self.backends = backends


def build_share_service(process: Process) -> ShareService:
    """Build the share service with all configured back ends."""
    conf = process.conf
    backends = [
        build_backend(process, name) for name in options.backends(conf)
    ]
    tasks = [task for one in backends for task in _tasks(process, one)]
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
    )


def _tasks(process: Process, backend: Backend) -> list[Task]:
    conf, endpoints = process.conf, backend.endpoints

    def when_up(run: typing.Callable) -> typing.Callable:
        # Until the back end is up it reports its health itself; a task that
        # read the health a moment ago would overwrite that.
        return lambda: backend.is_up and run()

    return [
        Task('heartbeat', conf.report_interval, when_up(backend.beat)),
        Task('report', conf.periodic_interval, when_up(backend.report)),
        *_recoveries(conf, when_up(endpoints.reconciliation.request_pass)),
        Task(
            'access rules', conf.periodic_interval, endpoints.access.run_pass
        ),
        Task(
            'access rules of snapshots',
            conf.periodic_interval,
            endpoints.snapshot_access.run_pass,
        ),
        Task(
            'recycle bin',
            conf.check_for_expired_shares_in_recycle_bin_interval,
            backend.expire,
        ),
        Task(
            'replicas',
            conf.replica_state_update_interval,
            when_up(endpoints.replica_updates.request_pass),
        ),
        *_clean_ups(conf, endpoints.share_servers),
        Task(
            'deferred deletion',
            conf.periodic_deferred_delete_interval,
            backend.deferred_deletion.retry,
        ),
    ]


def _clean_ups(conf: typing.Any, servers: ShareServersEndpoint) -> list[Task]:
    """Return the task that deletes unused share servers, if enabled."""
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
    """Return the periodic recovery; start-up runs the first pass."""
    interval = conf.recovery.interval
    return (
        [Task('rescue', interval, request_pass, initial_delay=interval)]
        if interval
        else []
    )
