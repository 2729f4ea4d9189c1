"""The row that shows a process of a service, with its heartbeat."""

from collections.abc import Sequence
import contextlib
import typing

from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.process import Service
from manila_lite.db import errors
from manila_lite.db.queries.admin import incarnations
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

    def beat(self) -> None:
        """Write the heartbeat; register again if the row was removed."""
        if not self._write(incarnations.heartbeat, health=None):
            self.register()

    def register(self) -> None:
        conf = self._process.conf
        self._write(
            incarnations.register,
            topic=self._topic,
            zone=conf.storage_availability_zone,
            enabled=conf.enable_new_services,
            release=self._process.release,
        )

    def deregister(self) -> None:
        self._write(incarnations.deregister)

    def _write(
        self, query: typing.Callable, **values: typing.Any
    ) -> typing.Any:
        conf = self._process.conf
        return self._process.db.write(
            query,
            host=conf.host,
            binary=self._binary,
            incarnation=self._process.id,
            down_time=conf.service_down_time,
            **values,
        )


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
        super().__init__(
            [runner], tasks, listeners=listeners, fuzzy_delay=fuzzy_delay
        )
        self.register = registration.register
        self._deregister = registration.deregister

    def stop(self, timeout: float = 60.0) -> bool:
        """Stop; return True when all running work has ended."""
        if not super().stop(timeout):
            return False
        # If the database is down, the row is found to be dead later.
        with contextlib.suppress(*errors.UNAVAILABLE):
            self._deregister()
        return True
