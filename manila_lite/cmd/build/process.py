"""What the services of one process share, and a service that runs work."""

from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
import contextlib
import dataclasses
import functools
import random
import threading
import time
import typing
import uuid

from oslo_config import cfg

from manila_lite.coordination import NullCoordinator
from manila_lite.db import errors
from manila_lite.db.queries.services import incarnations, releases, services
from manila_lite.db.session import Database
from manila_lite.periodic import Periodic, Task
from manila_lite.quota import limits as quota_limits
from manila_lite.rpc.contract import Client, Given
from manila_lite.rpc.hints import HintListener, HintSender
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.work import table
from manila_lite.work.admission import AdmissionControl
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner, SweepProbe

LISTENER_START_TIMEOUT = 0.5
LISTENER_STOP_TIMEOUT = 0.3
"""Seconds to wait for listeners; the broker may be down."""


@dataclasses.dataclass
class Process:
    """What the services of one process share.

    `id` is the incarnation: a new one for every start. `stopping` is set
    when the process is to stop, before its services are. `runners` are all
    that it starts.
    """

    conf: cfg.ConfigOpts
    db: Database
    transport: typing.Any = None
    locks: typing.Any = dataclasses.field(default_factory=NullCoordinator)
    rng: random.Random = dataclasses.field(default_factory=random.Random)
    id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))
    stopping: threading.Event = dataclasses.field(default_factory=threading.Event)
    release: releases.Release = dataclasses.field(default_factory=releases.current)
    runners: list[Runner] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def admission(self) -> AdmissionControl:
        return AdmissionControl(
            self.db,
            self.conf.work.max_queue,
            placement_queue=SCHEDULER_TOPIC,
            down_time=self.conf.service_down_time,
        )

    @functools.cached_property
    def sweep_probe(self) -> SweepProbe:
        return SweepProbe(self.db)

    def client(self, contract: type[Given]) -> Client[Given]:
        return Client(
            contract,
            table.submit_durable,
            self.transport,
            oldest_release=self.oldest_release,
        )

    def oldest_release(self, topic: str, host: str | None) -> int | None:
        """Return the oldest release that a message to a topic may reach."""
        return self.db.read(releases.oldest, topic, host, self.conf.service_down_time)

    def warning(self) -> str | None:
        """What this process lacks although it serves, in one sentence."""
        refused = self.transport and self.transport.refusals.reason
        if not refused:
            return None
        return f'The message broker {refused}; only the sweep finds work. See the log.'

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

    def limits(self) -> quota_limits.DefaultLimits:
        """Return the default quotas; `reload_limits` changes the result."""
        return self._limits

    def reload_limits(self) -> dict[str, int]:
        """Read the options again, for all that have the limits."""
        self._limits.update(quota_limits.from_options(self.conf.quota))
        return self._limits

    @functools.cached_property
    def _limits(self) -> quota_limits.DefaultLimits:
        return quota_limits.from_options(self.conf.quota)


class Service:
    """Runners, the listeners that wake them, and periodic tasks."""

    def __init__(
        self,
        runners: Sequence[typing.Any],
        tasks: list[Task],
        *,
        listeners: Sequence[typing.Any],
        fuzzy_delay: float = 0.0,
    ):
        self.runners, self.listeners, self.tasks = runners, listeners, tasks
        self.periodic = Periodic(tasks, jitter=fuzzy_delay)

    def start(self) -> None:
        with futures.ThreadPoolExecutor(len(self.listeners) or 1) as pool:
            listening = [pool.submit(one.start) for one in self.listeners]
            # A broker that is down must not keep work from starting.
            futures.wait(listening, LISTENER_START_TIMEOUT)
            for runner in self.runners:
                runner.start()
            self.periodic.start()
        for one in listening:
            one.result()

    def drain(self) -> None:
        """Stop claiming work; running work and heartbeats continue."""
        for runner in self.runners:
            runner.drain()
        self.periodic.drain()
        listeners, self.listeners = self.listeners, ()
        _stop_listening(listeners)

    def stop(self, timeout: float = 60.0) -> bool:
        """Stop; return True when all running work has ended in time."""
        self.drain()
        ended: list[bool] = []
        threads = [
            threading.Thread(
                target=lambda runner=runner: ended.append(runner.stop(timeout)),
                daemon=True,
            )
            for runner in self.runners
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.periodic.stop()
        return len(ended) == len(threads) and all(ended)


def _stop_listening(listeners: Sequence[typing.Any]) -> None:
    """Stop the listeners; wait briefly, since they poll.

    A message that arrives meanwhile may be dropped: it is only a hint.
    """
    threads = [
        threading.Thread(target=listener.stop, daemon=True) for listener in listeners
    ]
    deadline = time.monotonic() + LISTENER_STOP_TIMEOUT
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


Served = tuple[str, str, Runner, Sequence[typing.Any]]
"""Topic, server name, the runner to wake, endpoints that answer calls."""


def listen(process: Process, served: Iterable[Served]) -> list[HintListener]:
    """Return the listeners for hints and calls; none without transport."""
    if process.transport is None:
        return []
    return [
        HintListener(process.transport, topic, server, runner.wake, endpoints)
        for topic, server, runner, endpoints in served
    ]


def connect_hints(db: Database, sender: HintSender) -> None:
    """Send the hints of every transaction after its commit."""
    db.deliver = sender.send_all


class Registration:
    """Shows this process as one of a service of its node.

    Any process of the service takes the work of its topic.
    """

    def __init__(self, process: Process, binary: str, topic: str):
        self._process, self._binary, self._topic = process, binary, topic
        self.owner = f'{binary}@{process.conf.host}:{process.id}'
        self._on_change: Callable[[bool], None] = lambda enabled: None
        self._stopping = False

    def heartbeat(self) -> Task:
        """Return the task that writes the heartbeat."""
        interval = self._process.conf.report_interval
        return Task('heartbeat', interval, self.beat, drains=True)

    def beat(self) -> None:
        """Write the heartbeat; register again if the row was removed."""
        try:
            registered = incarnations.beat(
                self._process.db,
                **self._own(),
                health=incarnations.STOPPING if self._stopping else None,
                warning=self._process.warning(),
            )
            if not registered and not self._stopping:
                self._register()
        finally:  # whether or not its row is locked
            self.check_enabled()

    def stopping(self) -> None:
        """Show from now on that the process is stopping."""
        self._stopping = True

    def follow(self, on_change: Callable[[bool], None]) -> None:
        """Call the function with whether the service is enabled."""
        self._on_change = on_change

    def check_enabled(self) -> None:
        found = self._process.db.read(
            services.find, self._process.conf.host, self._binary
        )
        self._on_change(found is None or not found.disabled)

    def register(self) -> None:
        """Register the service; if its row is locked, a heartbeat does."""
        try:
            self._register()
        finally:
            self.check_enabled()

    def deregister(self) -> None:
        """Record that the process has ended, or raise DatabaseBusy."""
        self._process.db.write(
            incarnations.deregister,
            retry_limit=incarnations.ROW_PATIENCE,
            **self._own(),
        )

    def _register(self) -> None:
        conf = self._process.conf
        incarnations.register_if_free(
            self._process.db,
            topic=self._topic,
            zone=conf.storage_availability_zone,
            enabled=conf.enable_new_services,
            release=self._process.release,
            warning=self._process.warning(),
            **self._own(),
        )

    def _own(self) -> dict[str, typing.Any]:
        conf = self._process.conf
        return {
            'host': conf.host,
            'binary': self._binary,
            'incarnation': self._process.id,
            'down_time': conf.service_down_time,
        }


class RegisteredService(Service):
    """A service with one runner, shown by a row of its own."""

    def __init__(
        self,
        registration: Registration,
        runner: Runner,
        tasks: list[Task],
        *,
        listeners: Sequence[typing.Any],
        fuzzy_delay: float,
    ):
        super().__init__([runner], tasks, listeners=listeners, fuzzy_delay=fuzzy_delay)
        self.register = registration.register
        self._registration = registration
        self._runner = runner
        registration.follow(runner.set_enabled)

    def drain(self) -> None:
        """Stop claiming work; the service row says that it is stopping."""
        self._registration.stopping()
        super().drain()
        if self._runner.is_busy:
            # The database may not answer.
            threading.Thread(
                target=self._show_stopping, name='stopping', daemon=True
            ).start()

    def _show_stopping(self) -> None:
        with contextlib.suppress(*errors.UNAVAILABLE):
            self._registration.beat()

    def stop(self, timeout: float = 60.0) -> bool:
        """Stop; return True when all running work has ended."""
        if not super().stop(timeout):
            return False
        # If the database is down, the row is found to be dead later.
        with contextlib.suppress(*errors.UNAVAILABLE):
            self._registration.deregister()
        return True
