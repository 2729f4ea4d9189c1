"""Record the outcome of a promotion.

Everything is written in one transaction, the new active replica last: the
database refuses a second active replica.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.access_rules import mark_for_resync
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import InstanceRow, ReplicaRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.messages import Action, Detail
from manila_lite.share.drivers.base import ReplicaReply, normalise_export_locations
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.replication.probe import RuleResync, rules_in_force
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import SHARE_REPLICA, ReplicaState
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

_RETIRED: dict[str | None, str] = {
    ReplicaState.IN_SYNC: 'retired_in_sync',
    ReplicaState.ERROR: 'retired_broken',
}
_PASSIVE: dict[str | None, str] = {
    ReplicaState.IN_SYNC: 'caught_up',
    ReplicaState.OUT_OF_SYNC: 'fell_behind',
    ReplicaState.ERROR: 'failed',
}


@dataclasses.dataclass(eq=False)
class PromotionWriter:
    """Records the possible outcomes of a promotion."""

    rules: RuleResync
    message_ttl: Annotated[int, Option('message_ttl')]

    def record_success(
        self,
        session: Session,
        job: Claim,
        share: ReplicatedShare,
        replies: Iterable[ReplicaReply],
    ) -> None:
        """Make the replica active; `share` is as given to the driver.

        Raises InvalidStatus when `reset_status` has changed the replica.
        """
        rows = self._record_promoted(session, job, share, replies, 'promoted')
        promoted = share.find_replica(job.resource_id)
        assert promoted is not None
        share_moves.activate(
            session, rows[job.resource_id], promoted.row.replication_type
        )
        replicas.advance_generation(session, share.share_id)

    def record_reassertion(
        self,
        session: Session,
        job: Claim,
        share: ReplicatedShare,
        replies: Iterable[ReplicaReply],
    ) -> Sequence[ReplicaRow]:
        """Record that the active replica was promoted once more.

        Returns the replicas as they were before; they are now locked. No
        other replica is known to be in sync.
        """
        known = {reply['id']: reply for reply in replies}
        rows = self._record_promoted(
            session,
            job,
            share,
            [
                {
                    'id': one.row.id,
                    'replica_state': ReplicaState.OUT_OF_SYNC,
                    **known.get(one.row.id, {}),
                }
                for one in share.replicas
            ],
            None,
        )
        return list(rows.values())

    def _record_promoted(
        self,
        session: Session,
        job: Claim,
        share: ReplicatedShare,
        replies: Iterable[ReplicaReply],
        event: str | None,
    ) -> dict[str, ReplicaRow]:
        """Make the others passive and their rules stale; return all rows.

        `event` is fired for the promoted replica before anything else.
        """
        by_id = {reply['id']: reply for reply in replies}
        self._check(job.resource_id, by_id)
        stale = [
            one.row
            for one in share.replicas
            # No back end has those of a replica that was placed on none.
            if one.row.host
            and share.rules.get(one.row.id)
            and not rules_in_force(by_id.get(one.row.id))
        ]
        self.rules.submit(session, owner_context(job), stale)
        rows = {row.id: row for row in replicas.lock_instances(session, share.share_id)}
        if event is not None:
            fire(session, SHARE_INSTANCE, job.resource_id, event)
        self._write_states(session, job, share, rows, by_id)
        mark_for_resync(session, {row.id for row in stale} & rows.keys())
        # Access to snapshots may depend on which replica is active.
        self.rules.resync_snapshots(session, owner_context(job), rows.values())
        return rows

    def _write_states(
        self,
        session: Session,
        job: Claim,
        share: ReplicatedShare,
        rows: Mapping[str, ReplicaRow],
        replies: Mapping[str, ReplicaReply],
    ) -> None:
        promoted = share.find_replica(job.resource_id)
        assert promoted is not None
        complete = _complete(session, share.share_id, job.resource_id)
        for id, row in rows.items():
            if id != job.resource_id:
                state = self._passive_state(
                    row, replies.get(id), complete.get(id, False)
                )
                self._make_passive(session, row, promoted.row.replication_type, state)
            self._replace_exports(session, id, replies.get(id))

    def _make_passive(
        self,
        session: Session,
        row: ReplicaRow,
        replication_type: str | None,
        state: str | None,
    ) -> None:
        if row.replica_state == ReplicaState.ACTIVE:
            share_moves.demote(
                session, row, replication_type, _RETIRED.get(state, 'retired')
            )
        elif state != row.replica_state:
            fire_matching(session, SHARE_REPLICA, _PASSIVE[state], {'id': row.id})

    def _check(self, promoted_id: str, replies: Mapping[str, ReplicaReply]) -> None:
        if replies.get(promoted_id, {}).get('replica_state') == ReplicaState.ERROR:
            raise exception.ReplicationException(
                reason=f'the driver reports {promoted_id} as in error'
            )

    def _passive_state(
        self, row: ReplicaRow, reply: ReplicaReply | None, has_all: bool
    ) -> str | None:
        """Return the new state of a replica that is not promoted."""
        state = reply.get('replica_state') if reply else None
        if state not in _PASSIVE:
            state = (
                ReplicaState.OUT_OF_SYNC
                if row.replica_state == ReplicaState.ACTIVE
                else row.replica_state
            )
        return (
            ReplicaState.OUT_OF_SYNC
            if state == ReplicaState.IN_SYNC and not has_all
            else state
        )

    def _replace_exports(
        self, session: Session, replica_id: str, reply: ReplicaReply | None
    ) -> None:
        if reply and reply.get('export_locations') is not None:
            share_instances.replace_export_locations(
                session,
                replica_id,
                normalise_export_locations(reply['export_locations']),
            )

    def record_refusal(self, session: Session, job: Claim, share_id: str) -> None:
        """Record that there is no active replica; nothing was changed."""
        replicas.lock_instances(session, share_id)
        fire(session, SHARE_INSTANCE, job.resource_id, 'promote_refused')
        replicas.advance_generation(session, share_id)
        notify_user(
            session, job, Action.PROMOTE, Detail.NO_ACTIVE_REPLICA, self.message_ttl
        )

    def record_failure(self, session: Session, share_id: str, replica_id: str) -> None:
        """Mark all replicas as in error until each is found healthy again.

        The caller sets the status of the replica to be promoted. The
        active replica keeps its state; the others are not known to be in
        sync.
        """
        rows = replicas.lock_instances(session, share_id)
        fire_matching(session, SHARE_INSTANCE, 'replica_failed', {'share_id': share_id})
        fire_matching(session, SHARE_REPLICA, 'failed', {'id': replica_id})
        behind = [
            row.id
            for row in rows
            if row.id != replica_id and row.replica_state == ReplicaState.IN_SYNC
        ]
        if behind:
            fire_matching(session, SHARE_REPLICA, 'fell_behind', {'id': behind})
        replicas.advance_generation(session, share_id)

    def record_conflict(self, session: Session, job: Claim, share_id: str) -> None:
        """Record the failure when `reset_status` has changed the replica."""
        self.record_failure(session, share_id, job.resource_id)
        notify_user(
            session, job, Action.PROMOTE, Detail.UNKNOWN_ERROR, self.message_ttl
        )

    def record_loss(self, session: Session, row: InstanceRow) -> None:
        """Record the failure of a promotion whose work was lost."""
        self.record_failure(session, row.share_id, row.id)
        fire(session, SHARE_INSTANCE, row.id, 'promote_failed')


def _complete(session: Session, share_id: str, active_id: str) -> dict[str, bool]:
    """Return by id whether a replica has all snapshots of the active one."""
    share = replica_view.load_replicated_share(session, share_id)

    def available_on(replica_id: str) -> set[str]:
        return {
            one.row.snapshot_id
            for one in share.snapshots_on(replica_id)
            if one.row.status == SnapshotStatus.AVAILABLE
        }

    required = available_on(active_id)
    return {one.row.id: required <= available_on(one.row.id) for one in share.replicas}
