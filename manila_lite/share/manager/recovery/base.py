"""What a kind of resource provides for its recovery."""

import abc
from collections.abc import Callable
import dataclasses
import typing
from typing import Annotated

from manila_lite.conf import Option
from manila_lite.db.session import Session
from manila_lite.messages import Action, Detail
from manila_lite.quota import charges
from manila_lite.rpc.contract import Client, Durable
from manila_lite.rpc.share import RESCUES, ReconciliationRpc
from manila_lite.share.manager.endpoint import Owned, owner_context
from manila_lite.states.machine import Machine, Repeat, Rescue, Resume
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim


class RescuedRow(Owned, typing.Protocol):
    """The columns of every resource that can be rescued."""

    @property
    def id(self) -> str: ...

    @property
    def host(self) -> str | None: ...


Row = typing.TypeVar('Row', bound=RescuedRow)
Loaded = typing.TypeVar('Loaded')


class RescueCase(typing.NamedTuple, typing.Generic[Row, Loaded]):
    """A resource as read for its rescue.

    `loaded` is what its kind needs to call the driver, None for kinds that
    the driver is not asked about.
    """

    row: Row
    loaded: Loaded


class Verdict(typing.NamedTuple):
    """What a driver's reply means for a resource.

    `reason` says why the resource cannot reach its target status; None
    means that it can. `retry_after` is set while the back end is still
    busy: the seconds until the next probe. `is_absent` if it has nothing.
    """

    facts: typing.Any = None
    reason: str | None = None
    retry_after: float | None = None
    is_absent: bool = False


def verdict_on_status(reply: typing.Any, wanted: str) -> Verdict:
    """Return the reply itself if it reports this status."""
    try:
        status = reply['status']
    except (TypeError, KeyError) as error:
        return Verdict(reason=f'the reply of the driver is invalid: {error!r}')
    if status != wanted:
        return Verdict(reason=f'the back end reports status {status}')
    return Verdict(reply)


class Ending(typing.NamedTuple):
    """How a rescue ends: the event of the state table, and what is known.

    `facts` are those of the verdict that a resource converges to;
    `explanation` tells administrators why it is given up.
    """

    job: Claim
    event: str
    facts: typing.Any = None
    explanation: str = ''


DriverCall = tuple[Callable[..., typing.Any], *tuple[typing.Any, ...]]
"""A driver method and its arguments."""


@dataclasses.dataclass(eq=False)
class ResourceRecovery(abc.ABC, typing.Generic[Row, Loaded]):
    """How one kind of resource is found and rescued.

    `rescue_client` submits the rescues; `kinds` are the resources of the
    state tables that are rescued this way.
    """

    machine: typing.ClassVar[Machine]
    work_kinds: typing.ClassVar[tuple[str, ...]] = ()
    """Kinds of work that is not stored under the resource of `machine`."""
    end_of_resumes: typing.ClassVar[str | None] = None
    """The event that ends what was resumed too often without a step.

    None resumes for ever: a denial that is given up would let clients in.
    """

    rescue_client: Client[ReconciliationRpc]
    work_clients: dict[str, Client]
    message_ttl: Annotated[int, Option('message_ttl')]

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.machine.resource,)

    @property
    def rescue(self) -> str:
        """The contract method that carries out the rescue."""
        return RESCUES[self.machine.resource]

    @abc.abstractmethod
    def find(self, session: Session, id: str) -> RescueCase[Row, Loaded] | None:
        """Read the resource; None when it no longer exists."""

    def status_of(self, case: RescueCase[Row, Loaded]) -> str:
        return getattr(case.row, self.machine.column)

    def rescue_of(self, case: RescueCase[Row, Loaded]) -> Rescue | None:
        """Return the rescue in the state table; None when at rest."""
        return self.machine.in_flight.get(self.status_of(case))

    def last_event(self, rescue: Repeat | Resume) -> str | None:
        """Return the event that gives up when the rescue leads nowhere."""
        if isinstance(rescue, Repeat):
            return rescue.failed
        return self.end_of_resumes

    def submit(
        self, session: Session, id: str, owner: Owned, asked_by: str = ''
    ) -> None:
        """Submit the rescue of a resource on behalf of its owner."""
        argument = _resource_argument(self.rescue_client, self.rescue)
        getattr(self.rescue_client, self.rescue)(
            session, owner_context(owner), asked_by=asked_by, **{argument: id}
        )

    def recheck(self, session: Session, case: RescueCase[Row, Loaded], id: str) -> None:
        """Submit a comparison of a resource at rest with the back end."""
        self.submit(session, id, case.row)

    def resubmit(
        self, session: Session, case: RescueCase[Row, Loaded], kind: str
    ) -> None:
        """Submit the work named by a rescue again."""
        contract, _, method = kind.partition('.')
        work = self.work_clients[contract]
        argument = _resource_argument(work, method)
        getattr(work, method)(
            session, owner_context(case.row), **{argument: case.row.id}
        )

    def give_up(
        self, session: Session, case: RescueCase[Row, Loaded], end: Ending
    ) -> None:
        """Fire the failure event and notify the user.

        Kinds of resources that are never given up do not implement it.
        """
        raise NotImplementedError

    def notify(self, session: Session, end: Ending, action: Action) -> None:
        """Notify the user that an action has failed."""
        notify_user(
            session,
            end.job,
            action,
            Detail.UNKNOWN_ERROR,
            self.message_ttl,
            explanation=end.explanation,
        )

    def reason_of_loss(self, case: RescueCase[Row, Loaded]) -> str:
        """Return why a resource is given up whose work was lost."""
        return 'the progress of the lost work is unknown'

    def release_reservations(self, session: Session, job: Claim) -> None:
        """Release what lost work had reserved."""
        charges.release_reservations(session, job.charges)


class ProbedRecovery(ResourceRecovery[Row, Loaded]):
    """A kind of resource whose state the back end can report."""

    @abc.abstractmethod
    def driver_call(self, case: RescueCase[Row, Loaded], name: str) -> DriverCall:
        """Return the driver method of this name with its arguments."""

    @abc.abstractmethod
    def interpret(self, case: RescueCase[Row, Loaded], reply: object) -> Verdict:
        """Return what a reply of the driver means for the resource."""

    @abc.abstractmethod
    def converge(
        self, session: Session, case: RescueCase[Row, Loaded], end: Ending
    ) -> None:
        """Update the rows to match the back end."""

    def is_comparable(self, case: RescueCase[Row, Loaded]) -> bool:
        """Return whether the back end may differ from a row at rest."""
        return False

    def store_differences(
        self, session: Session, case: RescueCase[Row, Loaded], facts: object
    ) -> bool:
        """Store what differs on the back end; return whether it did."""
        return False


def _resource_argument(client: Client, method: str) -> str:
    """Return the argument of this work that holds the id of its resource."""
    work = client.contract.methods[method]
    assert isinstance(work, Durable)
    return work.resource
