"""Rescue of the access rules of shares and of snapshots.

Rules are synced in sets, one instance at a time. The sync work itself
detects rules left in transit by a lost holder and then sends the full
set, so a rescue only has to submit this work. A record in the recovery
log is about the set and has the id of the instance.
"""

from collections.abc import Collection
import dataclasses

from manila_lite.db.moves.access_rules import mark_for_resync
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import InstanceRow, SnapshotInstanceRow
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.access.rules import AccessEndpoint
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.recovery.base import RescueCase, ResourceRecovery
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    SHARE_INSTANCE_ACCESS,
    SNAPSHOT_ACCESS_RULE,
    SYNC_EXCLUDED,
    RuleState,
)
from manila_lite.states.machine import Rescue, Resume
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.snapshot_instance import LEAVING

InstanceCase = RescueCase[InstanceRow, None]


def resync_of_failed(
    session: Session, access: Client, instance_ids: Collection[str]
) -> None:
    """Send all rules of those share instances that are in error.

    A call of a migration that came after its end may have taken them away.
    """
    found = [
        share_instances.find(session, id)
        for id in sorted(share_rules.list_instances_with_rules(session, instance_ids))
    ]
    failed = [
        row for row in found if row and row.host and row.status == InstanceStatus.ERROR
    ]
    # Same lock order as in requests: the work, then the instances.
    for row in failed:
        access.on(row.host).sync_access(session, owner_context(row), instance_id=row.id)
    mark_for_resync(session, [row.id for row in failed])


@dataclasses.dataclass(eq=False)
class RuleSetRecovery(ResourceRecovery[InstanceRow, None]):
    """Rescues the rules of share instances and `access_rules_status`."""

    machine = SHARE_INSTANCE_ACCESS

    access: AccessEndpoint

    @property
    def kinds(self) -> tuple[str, ...]:
        return (ACCESS_RULE.resource, SHARE_INSTANCE_ACCESS.resource)

    def find(self, session: Session, id: str) -> InstanceCase | None:
        row = share_instances.find(session, id)
        return None if row is None else RescueCase(row, None)

    def rescue_of(self, case: InstanceCase) -> Rescue | None:
        """Return Resume: the caller knows that the set is in flight."""
        return (
            None if case.row.status in SYNC_EXCLUDED else Resume('access.sync_access')
        )

    def recheck(self, session: Session, case: InstanceCase, id: str) -> None:
        """Send the whole set: a late call may have let a client in."""
        if self.rescue_of(case):
            self.access.resync(session, owner_context(case.row), id)

    def resubmit(self, session: Session, case: InstanceCase, kind: str) -> None:
        self.access.resync(session, owner_context(case.row), case.row.id)


SnapshotCase = RescueCase[SnapshotInstanceRow, None]


class SnapshotRuleSetRecovery(ResourceRecovery[SnapshotInstanceRow, None]):
    """Rescues the rules of snapshot instances."""

    machine = SNAPSHOT_ACCESS_RULE
    work_kinds = ('snapshot_access.sync_snapshot_access',)

    def find(self, session: Session, id: str) -> SnapshotCase | None:
        row = snapshots.find(session, id)
        return None if row is None else RescueCase(row, None)

    def status_of(self, case: SnapshotCase) -> str:
        """Return one state that stands for all states in the set."""
        return RuleState.QUEUED_TO_APPLY

    def rescue_of(self, case: SnapshotCase) -> Rescue | None:
        return (
            None
            if case.row.status in LEAVING
            else Resume('snapshot_access.sync_snapshot_access')
        )

    def recheck(self, session: Session, case: SnapshotCase, id: str) -> None:
        """Send the whole set: a late call may have let a client in."""
        rescue = self.rescue_of(case)
        if isinstance(rescue, Resume):
            # Same lock order as in requests: the work, then the instance.
            self.resubmit(session, case, rescue.kind)
            snapshot_rules.mark_stale(session, id)
