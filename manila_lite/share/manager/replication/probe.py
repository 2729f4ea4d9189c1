"""Questions about replicas, to drivers that may be slow or never answer."""

import threading
import time
import typing

from manila_lite import exception
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.replication.outcomes import DriverReply


class ReplicaProbePending(exception.ManilaLiteError):
    """The driver still has a question about the replica.

    `overdue` says that it has had it for longer than it may, and that
    somebody has waited for the answer before.
    """

    message = 'The driver has not answered about replica {replica_id}.'

    @property
    def overdue(self) -> bool:
        return self.params['overdue']


class ProbeSubject(typing.NamedTuple):
    """What is asked about: a replica in a round, and what of it.

    `what` is 'state', 'status', or the id of a snapshot on it.
    """

    replica_id: str
    round: int
    what: str


class _Asked:
    """A question that was put, and what came of it so far."""

    def __init__(self, subject: ProbeSubject):
        self.subject = subject
        self.since = time.monotonic()
        self.said: DriverReply | None = None

    def __repr__(self) -> str:
        return f'<the {self.subject.what} of {self.subject.replica_id}>'

    def carry_out(self, method: typing.Callable, args: tuple) -> None:
        try:
            self.said = DriverReply(method(*args))
        except Exception as error:  # noqa: BLE001 what it means is decided
            self.said = DriverReply(error=error)


class ReplicaProbe:
    """Asks one question at a time about each replica.

    While a driver has not answered it is not asked again about the same
    replica, so that a replica on which it hangs costs one thread. What it
    says too late is told to whoever next asks the same, in the same round.
    """

    def __init__(self, probe: DriverProbe):
        self.probe = probe
        self._asked: dict[str, _Asked] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        subject: ProbeSubject,
        method: typing.Callable,
        *args: typing.Any,
        on_slow: typing.Callable[[], object] | None = None,
    ) -> DriverReply:
        """What the driver says; raises Unanswered or BackEndAway.

        `late` is called when it is slow to answer.
        """
        asked, said = self._begin(subject)
        if said is not None:
            return said
        try:
            answer = self.probe.ask(
                asked.carry_out, method, args, on_slow=on_slow
            )
        except BaseException:
            self._forget(asked)
            raise
        if asked.said is None or answer.reason:
            raise ReplicaProbePending(
                replica_id=subject.replica_id, overdue=False
            )
        self._forget(asked)
        return asked.said

    def _begin(
        self, subject: ProbeSubject
    ) -> tuple[_Asked, DriverReply | None]:
        """A new question, or what was answered to the same before."""
        with self._lock:
            before = self._asked.get(subject.replica_id)
            if before is not None and before.said is None:
                raise ReplicaProbePending(
                    replica_id=subject.replica_id,
                    overdue=time.monotonic()
                    >= before.since + self.probe.timeout,
                )
            asked = self._asked[subject.replica_id] = _Asked(subject)
            if before is not None and before.subject == subject:
                del self._asked[subject.replica_id]
                return asked, before.said
            return asked, None

    def _forget(self, asked: _Asked) -> None:
        with self._lock:
            if self._asked.get(asked.subject.replica_id) is asked:
                del self._asked[asked.subject.replica_id]
