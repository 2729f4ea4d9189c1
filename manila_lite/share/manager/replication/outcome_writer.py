"""Record driver replies about replicas and the snapshots on them.

Every public method is a transaction of its own. It locks all replicas of
the share before it decides: a reply counts only for a replica of the same
generation as at the time of the call, and not while a replica of the
share is being promoted or reverted. A replica becomes in sync in the same
transaction that sees all its snapshots available, so that snapshots are
never shown as complete and then as incomplete.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import types
import typing
from typing import Annotated

from manila_lite import exception, messages
from manila_lite.conf import Option
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.access_rules import mark_for_resync, retry_failed
from manila_lite.db.queries.access.share_rules import RULES
from manila_lite.db.queries.replicas import replicas, updates
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import exports as snapshot_exports, snapshots
from manila_lite.db.rows import (
    IdStatusRow,
    InstanceRow,
    OwnedRow,
    PlainSnapshotInstanceRow,
    ReplicaRow,
    SnapshotInstanceRow,
    SyncedReplica,
)
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.quota.snapshots import remove_deleted
from manila_lite.share.drivers.base import ExportLocation
from manila_lite.share.manager.access.rules import AccessEndpoint
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.replication import outcomes
from manila_lite.share.manager.replication.outcomes import SnapshotOutcome
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import SHARE_REPLICA, ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SnapshotStatus
from manila_lite.work.table import Claim

PROGRESS_DONE = '100%'

_UP_TO_DATE = (ReplicaState.ACTIVE, ReplicaState.IN_SYNC)
_IN_REACH = (None, 'caught_up', 'activated')
"""The events of a replica, if any, that is up to date."""

PROMOTING_OR_REVERTING = frozenset(
    {InstanceStatus.REPLICATION_CHANGE, InstanceStatus.REVERTING}
)
"""Statuses of one replica that make replies about the others unreliable."""


@dataclasses.dataclass(eq=False)
class OutcomeWriter:
    """Records the outcome of driver replies about replicas."""

    db: Database
    access: AccessEndpoint
    message_ttl: Annotated[int, Option('message_ttl')]

    # The state of a replica

    def write_state(
        self,
        job: Claim,
        replica: LoadedInstance,
        reported: object,
        details: Mapping[str, typing.Any] = types.MappingProxyType({}),
        explanation: str | None = None,
    ) -> None:
        """Fire the events that follow from the reported state of a replica.

        `details` are those reported for a replica that has recovered, and
        `explanation` says why one has failed.
        """
        # A lost write is repeated by the next pass: no fsync.
        self.db.write(
            self._write_state,
            replica.row,
            reported,
            details.get('export_locations'),
            explanation,
            by=job,
            fsync=False,
        )

    def _write_state(
        self,
        session: Session,
        row: InstanceRow,
        reported: object,
        exports: list[ExportLocation] | None,
        explanation: str | None,
    ) -> None:
        retries = may_retry_rules(row, reported)
        if retries or (
            row.status == InstanceStatus.ERROR and reported in outcomes.HEALTHY
        ):
            self._submit_rule_sync(session, row)
        own = self._lock_current(session, row)
        if own is None or own.replica_state == ReplicaState.ACTIVE:
            return
        view = replica_view.load_replicated_share(session, row.share_id)
        transitions = outcomes.transitions_for(
            own.status,
            own.replica_state,
            reported,
            outcomes.missing_snapshots(view, own.id),
        )
        if transitions.status:
            fire(session, SHARE_INSTANCE, own.id, transitions.status)
        if transitions.state == 'activated':
            share_moves.activate(session, own, row.replication_type)
        elif transitions.state:
            fire(session, SHARE_REPLICA, own.id, transitions.state)
        if transitions.healed:
            self._mark_healthy(session, own, exports)
        if retries and view.active and transitions.state in _IN_REACH:
            retry_failed(
                session, RULES, own.id, RULES.get_states(session, view.active.row.id)
            )
        if transitions.failed:
            self._record_message(
                session,
                row,
                messages.Action.UPDATE,
                ('SHARE_REPLICA', own.id),
                explanation,
            )

    def write_synced(self, job: Claim, replicas: Sequence[SyncedReplica]) -> None:
        """Record when passive replicas had the content of their share."""
        if replicas:
            self.db.write(updates.record_synced, replicas, by=job, fsync=False)

    def write_healed(
        self, job: Claim, replica: LoadedInstance, details: Mapping[str, typing.Any]
    ) -> None:
        """Record that an active replica in error is available after all."""
        self.db.write(
            self._write_healed,
            replica.row,
            details.get('export_locations'),
            by=job,
            fsync=False,
        )

    def _write_healed(
        self, session: Session, row: InstanceRow, exports: list[ExportLocation] | None
    ) -> None:
        self._submit_rule_sync(session, row)
        own = self._lock_current(session, row)
        if own is None or own.replica_state != ReplicaState.ACTIVE:
            return
        if not SHARE_INSTANCE['replica_healed'].can_leave(own.status):
            return
        fire(session, SHARE_INSTANCE, own.id, 'replica_healed')
        self._mark_healthy(session, own, exports)

    def _submit_rule_sync(self, session: Session, row: InstanceRow) -> None:
        # Same lock order as in requests: the work, then the replicas.
        self.access.sync_client.sync_access(
            session, owner_context(row), instance_id=row.id
        )

    def _mark_healthy(
        self, session: Session, own: ReplicaRow, exports: list[ExportLocation] | None
    ) -> None:
        """Store its exports and mark its rules stale: they may be outdated."""
        if exports:
            share_instances.replace_export_locations(session, own.id, exports)
        mark_for_resync(session, [own.id])

    # The state of a snapshot on a replica

    def write_snapshot(
        self,
        job: Claim,
        replica: LoadedInstance,
        row: SnapshotInstanceRow,
        outcome: SnapshotOutcome,
    ) -> bool:
        """Record the outcome for a snapshot; return whether it applied."""
        return self.db.write(
            self._write_snapshot, replica.row, row, outcome, by=job, fsync=False
        )

    def _write_snapshot(
        self,
        session: Session,
        replica: InstanceRow,
        row: SnapshotInstanceRow,
        outcome: SnapshotOutcome,
    ) -> bool:
        own = self._lock_current(session, replica)
        current = snapshots.find(session, row.id)
        if own is None or current is None or current.status != row.status:
            return False
        try:
            if outcome.event in ('deleted', 'deferred_deleted'):
                remove_deleted(session, current)
            elif outcome.event == 'created':
                self._created(session, current, outcome.values)
            elif outcome.event:
                fire(session, SNAPSHOT_INSTANCE, row.id, outcome.event)
            else:
                updates.update_copying_snapshot(
                    session, row.id, **changed_fields(current, outcome.values)
                )
        except (exception.InvalidStatus, exception.ResourceNotFound):
            return False  # force-deleted, for example
        if outcome.failed:
            self._failed(session, own, current, outcome.explanation)
        return True

    def _created(
        self,
        session: Session,
        row: SnapshotInstanceRow,
        values: Mapping[str, typing.Any],
    ) -> None:
        fire(
            session,
            SNAPSHOT_INSTANCE,
            row.id,
            'created',
            progress=PROGRESS_DONE,
            provider_location=(
                values.get('provider_location') or row.provider_location
            ),
        )
        if row.mount_snapshot_support:
            snapshot_exports.replace(
                session, row.id, values.get('export_locations') or []
            )

    def _failed(
        self,
        session: Session,
        own: ReplicaRow,
        row: SnapshotInstanceRow,
        explanation: str | None,
    ) -> None:
        """Mark the replica out of sync if it lacks a snapshot; notify."""
        creating = row.status == SnapshotStatus.CREATING
        if creating and own.replica_state == ReplicaState.IN_SYNC:
            fire(session, SHARE_REPLICA, own.id, 'fell_behind')
        self._record_message(
            session,
            row,
            messages.Action.CREATE if creating else messages.Action.DELETE,
            ('SHARE_SNAPSHOT', row.snapshot_id),
            explanation,
        )

    # All

    def _lock_current(self, session: Session, row: InstanceRow) -> ReplicaRow | None:
        """Lock and return the replica; None when the reply is stale."""
        rows = replicas.lock_instances(session, row.share_id)
        if is_promoting_or_reverting(rows):
            return None
        return next(
            (
                one
                for one in rows
                if one.id == row.id
                and one.replica_generation == row.replica_generation
                and one.status in updates.POLLED_STATUSES
            ),
            None,
        )

    def _record_message(
        self,
        session: Session,
        row: OwnedRow,
        action: messages.Action,
        resource: messages.Resource,
        explanation: str | None,
    ) -> None:
        messages.record(
            session,
            row.project_id,
            action,
            resource,
            self.message_ttl,
            request_id=session.by.request_id if session.by else None,
            explanation=explanation,
        )


def may_retry_rules(row: InstanceRow, reported: object) -> bool:
    """Return whether rules may have failed because of an outage.

    It is over when the replica is up to date again, or when the back end
    may not have the rules as recorded. Rules that it refused stay in error.
    """
    return (
        row.access_rules_status == RulesStatus.ERROR
        and reported in _UP_TO_DATE
        and (row.replica_state != reported or row.access_stale)
    )


def is_promoting_or_reverting(rows: Sequence[IdStatusRow]) -> bool:
    """Return whether one of these replicas is promoted or reverted now."""
    return any(row.status in PROMOTING_OR_REVERTING for row in rows)


def changed_fields(
    row: PlainSnapshotInstanceRow, reported: Mapping[str, typing.Any]
) -> dict[str, str]:
    """Return the reported values of a snapshot that differ from its row."""
    return {
        name: str(reported[name])[:length]
        for name, length in (('progress', 32), ('provider_location', 255))
        if reported.get(name) and reported[name] != getattr(row, name)
    }
