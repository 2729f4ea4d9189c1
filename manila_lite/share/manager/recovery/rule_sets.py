"""How the access rules of shares and of snapshots are rescued.

Rules are brought to a back end in sets, those of one instance at a time.
The work that does so finds by itself what a lost holder left in transit,
and tells the driver the whole set then: all there is to do is to ask for
it. A record is about the set, and so has the id of the instance.
"""

from manila_lite.db.queries.shares import instances
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.access.share_rules import Access
from manila_lite.share.manager.recovery.base import Case
from manila_lite.share.manager.recovery.base import Rescuable
from manila_lite.share.manager.recovery.base import owner_context
from manila_lite.states.access_rule import MACHINE
from manila_lite.states.access_rule import SNAPSHOT_MACHINE
from manila_lite.states.access_rule import STATUS_MACHINE
from manila_lite.states.access_rule import UNTOLD
from manila_lite.states.access_rule import A
from manila_lite.states.machine import Rescue
from manila_lite.states.machine import Resume
from manila_lite.states.snapshot_instance import GOING as SNAPSHOT_GOING


class RuleSets(Rescuable):
    """The rules of share instances, and the sum of each set."""

    machine = STATUS_MACHINE

    def __init__(
        self, rescues: Client, works: dict[str, Client], access: Access
    ):
        super().__init__(rescues, works)
        self.access = access

    @property
    def kinds(self) -> tuple[str, ...]:
        return (MACHINE.resource, STATUS_MACHINE.resource)

    def find(self, session: Session, id: str) -> Case | None:
        row = instances.find(session, id)
        return row and Case(row)

    def rescue_of(self, case: Case) -> Rescue | None:
        """Whoever asks has seen that something of the set is in flight."""
        return (
            None if case.row.status in UNTOLD else Resume('access.sync_access')
        )

    def again(self, session: Session, case: Case, kind: str) -> None:
        self.access.resync(session, owner_context(case.row), case.row.id)


class SnapshotRuleSets(Rescuable):
    """The rules of snapshot instances."""

    machine = SNAPSHOT_MACHINE

    def find(self, session: Session, id: str) -> Case | None:
        row = snapshots.find(session, id)
        return row and Case(row)

    def status_of(self, case: Case) -> str:
        """Rules of one set may be in several states; this stands for all."""
        return A.QUEUED_TO_APPLY

    def rescue_of(self, case: Case) -> Rescue | None:
        return (
            None
            if case.row.status in SNAPSHOT_GOING
            else Resume('snapshot_access.sync_snapshot_access')
        )
