"""What is written when the promotion of a replica has ended.

All of it in one transaction, the new active replica last: the database
refuses a second one beside the old.
"""

from collections.abc import Iterable, Mapping
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import snapshot_rules as snapshot_access
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.replica_view import Replicated
from manila_lite.share.manager.replication.rule_resync import RuleTelling
from manila_lite.share.manager.replication.rule_resync import rules_hold
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE
from manila_lite.states.share_replica import MACHINE
from manila_lite.states.share_replica import P
from manila_lite.states.snapshot_instance import S as SnapshotS
from manila_lite.work.notify import tell

_RETIRED = {P.IN_SYNC: 'retired_in_sync', P.ERROR: 'retired_broken'}
_PASSIVE = {
    P.IN_SYNC: 'caught_up',
    P.OUT_OF_SYNC: 'fell_behind',
    P.ERROR: 'failed',
}

Answer = Mapping[str, typing.Any]


class Promotion:
    """The ends that a promotion may have."""

    def __init__(self, rules: RuleTelling, message_ttl: int):
        self.rules = rules
        self.message_ttl = message_ttl

    def promoted(
        self,
        session: Session,
        job,
        share: Replicated,
        answers: Iterable[Answer],
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
            and not rules_hold(said.get(one.row.id))
        ]
        self.rules.ask(
            session,
            RequestContext(project_id=job.project_id, user_id=job.user_id),
            retold,
        )
        taken = {row.id: row for row in replicas.take(session, share.share_id)}
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
            if id != job.resource_id and row.replica_state == P.ACTIVE:
                replicas.retire(
                    session, row, type_, _RETIRED.get(state, 'retired')
                )
            elif id != job.resource_id and state != row.replica_state:
                fire_matching(
                    session,
                    MACHINE,
                    _PASSIVE[state],
                    {'id': id},
                    updated_at=session.now,
                )
            self._exports(session, id, said.get(id))
        replicas.activate(session, taken[job.resource_id], type_)
        replicas.next_round(session, share.share_id)
        self.rules.doubt(session, {row.id for row in retold} & taken.keys())
        # Who may mount snapshots may depend on which replica is active.
        snapshot_access.doubt_on(session, taken.keys())

    def _check(self, promoted_id: str, said: Mapping[str, Answer]) -> None:
        if said.get(promoted_id, {}).get('replica_state') == P.ERROR:
            raise exception.ReplicationException(
                reason=f'the driver says that {promoted_id} is in error'
            )

    def _state(self, row, answer: Answer | None, has_all: bool) -> str:
        """What a replica is from now on, that is not the active one."""
        state = answer and answer.get('replica_state')
        if state not in _PASSIVE:
            state = (
                P.OUT_OF_SYNC
                if row.replica_state == P.ACTIVE
                else row.replica_state
            )
        return P.OUT_OF_SYNC if state == P.IN_SYNC and not has_all else state

    def _exports(self, session, replica_id, answer):
        if answer and answer.get('export_locations') is not None:
            instances.replace_export_locations(
                session,
                replica_id,
                export_locations(answer['export_locations']),
            )

    def refused(self, session: Session, job, share_id: str) -> None:
        """There is none to take over from; nothing was done."""
        replicas.take(session, share_id)
        fire(
            session,
            SHARE_INSTANCE,
            job.resource_id,
            'promote_refused',
            updated_at=session.now,
        )
        replicas.next_round(session, share_id)
        tell(
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
        taken = replicas.take(session, share_id)
        fire_matching(
            session,
            SHARE_INSTANCE,
            'replica_failed',
            {'share_id': share_id},
            updated_at=session.now,
        )
        fire_matching(
            session,
            MACHINE,
            'failed',
            {'id': replica_id},
            updated_at=session.now,
        )
        behind = [
            row.id
            for row in taken
            if row.id != replica_id and row.replica_state == P.IN_SYNC
        ]
        if behind:
            fire_matching(
                session,
                MACHINE,
                'fell_behind',
                {'id': behind},
                updated_at=session.now,
            )
        replicas.next_round(session, share_id)

    def lost(self, session: Session, job, share_id: str) -> None:
        """The same where the replica was moved by decree meanwhile."""
        self.failed(session, share_id, job.resource_id)
        tell(
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
    share = replica_view.find(session, share_id)

    def available_on(replica_id: str) -> set[str]:
        return {
            one.row.snapshot_id
            for one in share.snapshots_on(replica_id)
            if one.row.status == SnapshotS.AVAILABLE
        }

    wanted = available_on(active_id)
    return {
        one.row.id: wanted <= available_on(one.row.id)
        for one in share.replicas
    }
