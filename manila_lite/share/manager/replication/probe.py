"""Questions about replicas, to drivers that may be slow or never answer."""

import threading
import time
import typing

from manila_lite import exception
from manila_lite.share.manager.driver_probe import Questions
from manila_lite.share.manager.replication.outcomes import Said


class Unanswered(exception.ManilaLiteError):
    """The driver still has a question about the replica.

    `overdue` says that it has had it for longer than it may, and that
    somebody has waited for the answer before.
    """

    message = 'The driver has not answered about replica {replica_id}.'

    @property
    def overdue(self) -> bool:
        return self.facts['overdue']


class Subject(typing.NamedTuple):
    """What is asked about: a replica in a round, and what of it.

    `what` is 'state', 'status', or the id of a snapshot on it.
    """

    replica_id: str
    round: int
    what: str


class _Asked:
    """A question that was put, and what came of it so far."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.since = time.monotonic()
        self.said: Said | None = None

    def __repr__(self) -> str:
        return f'<the {self.subject.what} of {self.subject.replica_id}>'

    def carry_out(self, method: typing.Callable, args: tuple) -> None:
        try:
            self.said = Said(method(*args))
        except Exception as error:  # noqa: BLE001 what it means is decided
            self.said = Said(error=error)


class ReplicaQuestions:
    """Asks one question at a time about each replica.

    While a driver has not answered it is not asked again about the same
    replica, so that a replica on which it hangs costs one thread. What it
    says too late is told to whoever next asks the same, in the same round.
    """

    def __init__(self, questions: Questions):
        self.questions = questions
        self._asked: dict[str, _Asked] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        subject: Subject,
        method: typing.Callable,
        *args: typing.Any,
        late: typing.Callable[[], object] | None = None,
    ) -> Said:
        """What the driver says; raises Unanswered or BackEndAway.

        `late` is called when it is slow to answer.
        """
        asked, said = self._begin(subject)
        if said is not None:
            return said
        try:
            answer = self.questions.ask(
                asked.carry_out, method, args, late=late
            )
        except BaseException:
            self._forget(asked)
            raise
        if asked.said is None or answer.reason:
            raise Unanswered(replica_id=subject.replica_id, overdue=False)
        self._forget(asked)
        return asked.said

    def _begin(self, subject: Subject) -> tuple[_Asked, Said | None]:
        """A new question, or what was answered to the same before."""
        with self._lock:
            before = self._asked.get(subject.replica_id)
            if before is not None and before.said is None:
                raise Unanswered(
                    replica_id=subject.replica_id,
                    overdue=time.monotonic()
                    >= before.since + self.questions.timeout,
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
