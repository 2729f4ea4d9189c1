"""Calls about replicas to drivers that may be slow or never return."""

from collections.abc import Mapping
import threading
import time
import typing

from manila_lite import exception
from manila_lite.share.drivers.base import (
    ShareServerForDriver,
    normalise_export_locations,
)
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.replication.outcomes import DriverReply


class ReplicaProbePending(exception.ManilaLiteError):
    """The driver has not returned from a call about the replica.

    `overdue` is set when a previous caller has waited for the reply and
    the time limit has passed.
    """

    message = 'The driver has not replied about replica {replica_id}.'

    @property
    def overdue(self) -> bool:
        return bool(self.params['overdue'])


class ProbeSubject(typing.NamedTuple):
    """What a call is about: an aspect of a replica in one generation.

    `what` is 'state', 'status', or the id of a snapshot on it.
    """

    replica_id: str
    generation: int
    what: str


class _Call:
    """A call to the driver, and its reply when it has returned."""

    def __init__(self, subject: ProbeSubject):
        self.subject = subject
        self.started_at = time.monotonic()
        self.reply: DriverReply | None = None

    def __repr__(self) -> str:
        return f'<the {self.subject.what} of {self.subject.replica_id}>'

    def run(self, method: typing.Callable, args: tuple) -> None:
        try:
            self.reply = DriverReply(method(*args))
        except Exception as error:  # noqa: BLE001 outcomes.py interprets it
            self.reply = DriverReply(error=error)


class ReplicaProbe:
    """Makes one driver call at a time about each replica.

    While a call has not returned, no other is made about the same
    replica, so that a replica on which the driver hangs costs one thread.
    A late reply is returned to the next caller with the same subject.
    """

    def __init__(self, probe: DriverProbe):
        self.probe = probe
        self._calls: dict[str, _Call] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        subject: ProbeSubject,
        method: typing.Callable,
        *args: typing.Any,
        on_slow: typing.Callable[[], object] | None = None,
    ) -> DriverReply:
        """Return the driver's reply; `on_slow` is called when it is slow.

        Raises ReplicaProbePending or BackendUnresponsive.
        """
        call, late_reply = self._begin(subject)
        if late_reply is not None:
            return late_reply
        try:
            result = self.probe.ask(call.run, method, args, on_slow=on_slow)
        except BaseException:
            self._forget(call)
            raise
        if call.reply is None or result.reason:
            raise ReplicaProbePending(replica_id=subject.replica_id, overdue=False)
        self._forget(call)
        if isinstance(call.reply.error, exception.ClaimLost):
            raise call.reply.error  # says nothing about the replica
        return call.reply

    def _begin(self, subject: ProbeSubject) -> tuple[_Call, DriverReply | None]:
        """Return a new call, or the late reply to the same call before."""
        with self._lock:
            before = self._calls.get(subject.replica_id)
            if before is not None and before.reply is None:
                raise ReplicaProbePending(
                    replica_id=subject.replica_id,
                    overdue=time.monotonic() >= before.started_at + self.probe.timeout,
                )
            call = self._calls[subject.replica_id] = _Call(subject)
            if (
                before is not None
                and before.subject == subject
                and before.reply is not None
                and not isinstance(before.reply.error, exception.ClaimLost)
            ):
                del self._calls[subject.replica_id]
                return call, before.reply
            return call, None

    def _forget(self, call: _Call) -> None:
        with self._lock:
            if self._calls.get(call.subject.replica_id) is call:
                del self._calls[call.subject.replica_id]


def with_normalised_exports(method: typing.Callable) -> typing.Callable:
    """Wrap a driver method so that invalid exports raise as its error."""

    def call(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        reply = method(*args, **kwargs)
        if isinstance(reply, Mapping):
            return {
                **reply,
                'export_locations': normalise_export_locations(
                    reply.get('export_locations')
                ),
            }
        return reply

    return call


def with_server(
    method: typing.Callable, server: ShareServerForDriver | None
) -> typing.Callable:
    """Wrap a driver method so that it gets the server of the replica."""
    return lambda *args: method(*args, share_server=server)
