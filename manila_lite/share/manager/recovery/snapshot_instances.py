"""How snapshot instances are rescued."""

import typing

from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.snapshots import snapshots as rows
from manila_lite.db.session import Session
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Client
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.recovery.base import Askable
from manila_lite.share.manager.recovery.base import Case
from manila_lite.share.manager.recovery.base import Question
from manila_lite.share.manager.recovery.base import Reading
from manila_lite.share.manager.snapshots import Snapshots
from manila_lite.states.snapshot_instance import MACHINE
from manila_lite.states.snapshot_instance import S
from manila_lite.work.notify import tell

_OF_REPLICAS = {
    'snapshots.delete_snapshot_instance': (
        'replicated_snapshots.delete_replicated_snapshot'
    )
}


class SnapshotInstances(Askable):
    machine = MACHINE

    def __init__(
        self,
        rescues: Client,
        works: dict[str, Client],
        snapshots: Snapshots,
        message_ttl: int,
    ):
        super().__init__(rescues, works)
        self.snapshots = snapshots
        self.message_ttl = message_ttl

    def find(self, session: Session, id: str) -> Case | None:
        found = rows.find(session, id) and driver_view.find_snapshot(
            session, id
        )
        return found and Case(found.row, found)

    def question(self, case: Case, name: str) -> Question:
        return (
            getattr(self.snapshots.driver, name),
            self.snapshots.view(case.found),
            case.found.share_server,
        )

    def read(self, case: Case, answer: typing.Any) -> Reading:
        """The answer itself, where it is one that can be noted."""
        share = case.found.share.row
        try:
            status, size = answer['status'], answer.get('size')
            proto = answer.get('share_proto', share.share_proto)
            export_locations(answer.get('export_locations'))
        except (TypeError, KeyError, AttributeError) as error:
            return Reading(reason=f'the back end makes no sense: {error!r}')
        if status != S.AVAILABLE:
            return Reading(reason=f'the back end says {status}')
        if proto != share.share_proto:
            return Reading(reason=f'the back end has it as {proto}')
        if not isinstance(size, int | None):
            return Reading(reason=f'the back end says it has {size} GiB')
        return Reading(answer)

    def again(self, session: Session, case: Case, kind: str) -> None:
        """In the way of replication where there is more than one copy."""
        if (
            case.row.replica_state is not None
            and replicas.count(session, case.row.share_id) > 1
        ):
            kind = _OF_REPLICAS[kind]
        super().again(session, case, kind)

    def converge(
        self,
        session: Session,
        job: typing.Any,
        case: Case,
        event: str,
        facts: typing.Any,
    ) -> None:
        self.snapshots.created(session, case.row, facts)

    def give_up(
        self, session: Session, job: typing.Any, case: Case, event: str
    ) -> None:
        self.snapshots.given_up(session, case.row, event)
        tell(
            session,
            job,
            Action.CREATE if case.row.status == S.CREATING else Action.UPDATE,
            Detail.UNKNOWN_ERROR,
            self.message_ttl,
        )
