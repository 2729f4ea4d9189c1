"""What recovery has to know of a kind of resource, and tells about it."""

import abc
from collections.abc import Callable
import enum
import typing

from manila_lite.context import RequestContext
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import RESCUES
from manila_lite.states.machine import Machine
from manila_lite.states.machine import Rescue


class Decision(enum.StrEnum):
    """What was done about a resource, as its record names it."""

    CONVERGED = 'converged'
    GIVEN_UP = 'given up'
    REPEATED = 'repeated'
    RESUMED = 'resumed'
    CORRECTED = 'corrected'
    LEFT_ALONE = 'left alone'


class RescueCase(typing.NamedTuple):
    """A resource as a rescue finds it.

    `row` has at least id, host, project_id and user_id; `found` is
    whatever else the kind of resource needs to ask the driver.
    """

    row: typing.Any
    found: typing.Any = None


class Verdict(typing.NamedTuple):
    """What a driver's answer means.

    `reason` says why the resource cannot become what it was to become,
    and is None where it can. `patience` is how many seconds later to ask
    again, of what the back end still works on.
    """

    facts: typing.Any = None
    reason: str | None = None
    patience: float | None = None


DriverCall = tuple[Callable[..., typing.Any], *tuple[typing.Any, ...]]
"""A method, and the arguments of its call."""


class ResourceRecovery(abc.ABC):
    """One kind of resource: how to look, and how to go on.

    `rescues` is the client on whose queue rescues are submitted, `kinds`
    are the state tables whose resources are rescued so.
    """

    machine: Machine

    def __init__(self, rescues: Client, works: dict[str, Client]):
        self.rescues = rescues
        self.works = works

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.machine.resource,)

    @property
    def rescue(self) -> str:
        """The method that carries the rescue out."""
        return RESCUES[self.machine.resource]

    @abc.abstractmethod
    def find(self, session: Session, id: str) -> RescueCase | None:
        """The resource as it is now, or None when it is gone."""

    def status_of(self, case: RescueCase) -> str:
        return getattr(case.row, self.machine.column)

    def rescue_of(self, case: RescueCase) -> Rescue | None:
        """What the state table says is done; None when it is at rest."""
        return self.machine.in_flight.get(self.status_of(case))

    def submit(
        self, session: Session, id: str, owner: typing.Any, asked_by: str = ''
    ) -> None:
        """Have somebody rescue what has this id, for whose it is."""
        argument = self.rescues.contract.methods[self.rescue].resource
        getattr(self.rescues, self.rescue)(
            session, owner_context(owner), asked_by=asked_by, **{argument: id}
        )

    def resubmit(self, session: Session, case: RescueCase, kind: str) -> None:
        """Submit the work of a rescue once more."""
        contract, _, method = kind.partition('.')
        work = self.works[contract]
        argument = work.contract.methods[method].resource
        getattr(work, method)(
            session, owner_context(case.row), **{argument: case.row.id}
        )

    def release_reservations(self, session: Session, job: typing.Any) -> None:
        """Return what lost work had reserved."""
        charges.release_reservations(session, job.charges)


class ProbedRecovery(ResourceRecovery):
    """A kind of resource that the back end can be asked about."""

    @abc.abstractmethod
    def question(self, case: RescueCase, name: str) -> DriverCall:
        """The driver's method of that name, and what it is given."""

    @abc.abstractmethod
    def read(self, case: RescueCase, answer: typing.Any) -> Verdict:
        """What an answer of the driver means for the resource."""

    @abc.abstractmethod
    def converge(
        self,
        session: Session,
        job: typing.Any,
        case: RescueCase,
        event: str,
        facts: typing.Any,
    ) -> None:
        """Make the rows say what the back end has."""

    @abc.abstractmethod
    def give_up(
        self, session: Session, job: typing.Any, case: RescueCase, event: str
    ) -> None:
        """Make the loss visible, to users too."""

    def is_comparable(self, case: RescueCase) -> bool:
        """Whether the back end may have changed what is at rest."""
        return False

    def correct(
        self, session: Session, case: RescueCase, facts: typing.Any
    ) -> bool:
        """Note what has changed; whether anything had."""
        return False


def owner_context(row: typing.Any) -> RequestContext:
    """Work about a resource is done for whom it belongs to."""
    return RequestContext(project_id=row.project_id, user_id=row.user_id)
