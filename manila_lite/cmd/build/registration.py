"""The row that shows a process of a service, with its heartbeat."""

from collections.abc import Callable, Sequence
import contextlib
import threading
import typing

from manila_lite.cmd.build.process import Process, Service
from manila_lite.db import errors
from manila_lite.db.queries.services import incarnations, services
from manila_lite.periodic import Task
from manila_lite.work.runner import Runner


class Registration:
    """Shows this process as one of a service of its node.

    Any process of the service takes the work of its topic.
    """

    def __init__(self, process: Process, binary: str, topic: str):
        self._process = process
        self._binary = binary
        self._topic = topic
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
