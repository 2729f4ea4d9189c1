"""What is written when the promotion of a replica has ended.

All of it in one transaction, the new active replica last: the database
refuses a second one beside the old.
"""

from collections.abc import Iterable, Mapping
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.replication.rule_resync import RuleResync
from manila_lite.share.manager.replication.rule_resync import rules_in_force
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import SHARE_REPLICA
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work.notify import notify_user

_RETIRED = {
    ReplicaState.IN_SYNC: 'retired_in_sync',
    ReplicaState.ERROR: 'retired_broken',
}
_PASSIVE = {
    ReplicaState.IN_SYNC: 'caught_up',
    ReplicaState.OUT_OF_SYNC: 'fell_behind',
    ReplicaState.ERROR: 'failed',
}

PromotionReply = Mapping[str, typing.Any]


class PromotionWriter:
    """The ends that a promotion may have."""

    def __init__(self, rules: RuleResync, message_ttl: int):
        self.rules = rules
        self.message_ttl = message_ttl

    def promoted(
        self,
        session: Session,
        job,
        share: ReplicatedShare,
        answers: Iterable[PromotionReply],
    ) -> None:
        """The replica is the active one; `share` is what was asked about.

        Raises InvalidStatus when it was moved by decree meanwhile.
        """
        said = {answer['id']: answer for answer in answers}
        self._check(job.resource_id, said)
        retold = [
            one.row
            for one in share.replicas
            if share.rules.get(one.row.id)
            and not rules_in_force(said.get(one.row.id))
        ]
        self.rules.ask(
            session,
            RequestContext(project_id=job.project_id, user_id=job.user_id),
            retold,
        )
        taken = {
            row.id: row
            for row in replicas.lock_instances(session, share.share_id)
        }
        fire(
            session,
            SHARE_INSTANCE,
            job.resource_id,
            'promoted',
            updated_at=session.now,
        )
        type_ = share.get(job.resource_id).row.replication_type
        complete = _complete(session, share.share_id, job.resource_id)
        for id, row in taken.items():
            state = self._state(row, said.get(id), complete.get(id, False))
            if (
                id != job.resource_id
                and row.replica_state == ReplicaState.ACTIVE
            ):
                replicas.retire(
                    session, row, type_, _RETIRED.get(state, 'retired')
                )
            elif id != job.resource_id and state != row.replica_state:
                fire_matching(
                    session,
                    SHARE_REPLICA,
                    _PASSIVE[state],
                    {'id': id},
                    updated_at=session.now,
                )
            self._exports(session, id, said.get(id))
        replicas.activate(session, taken[job.resource_id], type_)
        replicas.advance_generation(session, share.share_id)
        self.rules.mark_stale(
            session, {row.id for row in retold} & taken.keys()
        )
        # Who may mount snapshots may depend on which replica is active.
        snapshot_rules.mark_stale_on_share_instances(session, taken.keys())

    def _check(
        self, promoted_id: str, said: Mapping[str, PromotionReply]
    ) -> None:
        if (
            said.get(promoted_id, {}).get('replica_state')
            == ReplicaState.ERROR
        ):
            raise exception.ReplicationException(
                reason=f'the driver says that {promoted_id} is in error'
            )

    def _state(self, row, answer: PromotionReply | None, has_all: bool) -> str:
        """What a replica is from now on, that is not the active one."""
        state = answer and answer.get('replica_state')
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

    def _exports(self, session, replica_id, answer):
        if answer and answer.get('export_locations') is not None:
            share_instances.replace_export_locations(
                session,
                replica_id,
                normalise_export_locations(answer['export_locations']),
            )

    def refused(self, session: Session, job, share_id: str) -> None:
        """There is none to take over from; nothing was done."""
        replicas.lock_instances(session, share_id)
        fire(
            session,
            SHARE_INSTANCE,
            job.resource_id,
            'promote_refused',
            updated_at=session.now,
        )
        replicas.advance_generation(session, share_id)
        notify_user(
            session,
            job,
            Action.PROMOTE,
            Detail.NO_ACTIVE_REPLICA,
            self.message_ttl,
        )

    def failed(self, session: Session, share_id: str, replica_id: str) -> None:
        """All replicas are in error, until each is well again.

        The status of the one that was to be promoted is the caller's to
        set. What is active stays so in the books: of the others nobody
        knows how well they follow.
        """
        taken = replicas.lock_instances(session, share_id)
        fire_matching(
            session,
            SHARE_INSTANCE,
            'replica_failed',
            {'share_id': share_id},
            updated_at=session.now,
        )
        fire_matching(
            session,
            SHARE_REPLICA,
            'failed',
            {'id': replica_id},
            updated_at=session.now,
        )
        behind = [
            row.id
            for row in taken
            if row.id != replica_id
            and row.replica_state == ReplicaState.IN_SYNC
        ]
        if behind:
            fire_matching(
                session,
                SHARE_REPLICA,
                'fell_behind',
                {'id': behind},
                updated_at=session.now,
            )
        replicas.advance_generation(session, share_id)

    def lost(self, session: Session, job, share_id: str) -> None:
        """The same where the replica was moved by decree meanwhile."""
        self.failed(session, share_id, job.resource_id)
        notify_user(
            session,
            job,
            Action.PROMOTE,
            Detail.UNKNOWN_ERROR,
            self.message_ttl,
        )

    def given_up(self, session: Session, row) -> None:
        """The same where nobody works on it any more."""
        self.failed(session, row.share_id, row.id)
        fire(
            session,
            SHARE_INSTANCE,
            row.id,
            'promote_failed',
            updated_at=session.now,
        )


def _complete(
    session: Session, share_id: str, active_id: str
) -> dict[str, bool]:
    """Which replicas have all the snapshots that one of them has."""
    share = replica_view.load_replicated_share(session, share_id)

    def available_on(replica_id: str) -> set[str]:
        return {
            one.row.snapshot_id
            for one in share.snapshots_on(replica_id)
            if one.row.status == SnapshotStatus.AVAILABLE
        }

    wanted = available_on(active_id)
    return {
        one.row.id: wanted <= available_on(one.row.id)
        for one in share.replicas
    }
