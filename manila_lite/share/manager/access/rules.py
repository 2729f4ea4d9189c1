"""Apply the access rules of shares and of snapshots on their back end.

Requests queue rules and submit one coalesced row of work per instance.
One round of this work takes everything that is queued, calls the driver
outside of any transaction, and records the outcome of each rule. Rules
queued in the meantime belong to the next round, which the work table
guarantees. Work on a snapshot instance is serialized: its rules do not
change while it is created, deleted or unmanaged.
"""

import abc
from collections.abc import Collection, Mapping, Sequence
import dataclasses
import logging
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.moves.access_rules import fire_on, mark_for_resync, retry_failed
from manila_lite.db.queries.access import locks, share_rules, snapshot_rules
from manila_lite.db.queries.access.rules import RuleTables
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.rows import AccessRuleRow, InstanceRow, SnapshotInstanceRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import TransitionBatch, fire_known, fire_matching
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import AccessRpc, SnapshotAccessRpc
from manila_lite.share.drivers.base import AccessReply, AccessRuleForDriver, ShareDriver
from manila_lite.share.manager.access.refusals import notify_failed, notify_refused
from manila_lite.share.manager.access.teardown import update_snapshot_access
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    LoadedSnapshot,
    NameTemplates,
    RuleView,
)
from manila_lite.share.manager.endpoint import outdated, owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.removal import was_never_made
from manila_lite.states import access_rule, snapshot_instance
from manila_lite.states.access_rule import (
    IN_TRANSIT,
    SHARE_INSTANCE_ACCESS,
    RulesStatus,
    RuleState,
)
from manila_lite.states.machine import Machine
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import PASSIVE
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

_REQUEUE = {
    RuleState.APPLYING: 'requeue_apply',
    RuleState.UPDATING: 'requeue_update',
    RuleState.DENYING: 'requeue_deny',
}
_TAKE = {
    RuleState.QUEUED_TO_APPLY: 'apply',
    RuleState.QUEUED_TO_UPDATE: 'update',
    RuleState.QUEUED_TO_DENY: 'withdraw',
}
_DONE = {
    RuleState.APPLYING: 'applied',
    RuleState.UPDATING: 'updated',
    RuleState.DENYING: 'denied',
}
_FAILED = {
    RuleState.APPLYING: 'apply_failed',
    RuleState.UPDATING: 'update_failed',
    RuleState.DENYING: 'deny_failed',
    RuleState.ACTIVE: 'broke',
}
_NOT_ON_BACKEND = (exception.ShareResourceNotFound, exception.SnapshotResourceNotFound)

RuleReplies = Mapping[str, AccessReply]


class SyncRound(typing.NamedTuple):
    """The input of one round; with `full` the whole set is sent as well.

    `row` is the instance that has the rules, `instance` that of its share.
    """

    row: InstanceRow | SnapshotInstanceRow
    instance: LoadedInstance
    rules: list[RuleView]
    full: bool
    snapshot: LoadedSnapshot | None = None

    @property
    def are_all_denied(self) -> bool:
        """Whether no client is to have access."""
        return all(rule.state == RuleState.DENYING for rule in self.rules)

    def in_state(self, *states: str) -> list[RuleView]:
        return [rule for rule in self.rules if rule.state in states]

    def for_driver(self, *states: str) -> list[AccessRuleForDriver]:
        """Return the rules in these states that are given to drivers."""
        return [rule.for_driver for rule in self.in_state(*states) if not rule.hidden]


@dataclasses.dataclass(eq=False)
class RuleEndpoint(abc.ABC):
    """Syncs the access rules of the instances of one back end."""

    rules: typing.ClassVar[RuleTables]
    can_hide: typing.ClassVar[bool] = False
    """Whether locks can hide such rules from users."""

    db: Database
    driver: ShareDriver
    sync_client: Client[typing.Any]
    service_host: ServiceHost
    message_ttl: Annotated[int, Option('message_ttl')]

    def __post_init__(self) -> None:
        self.sync_client = self.sync_client.on(self.service_host)

    @abc.abstractmethod
    def _submit(self, session: Session, ctx: RequestContext, id: str) -> None:
        """Submit the work that syncs the rules of an instance."""

    # Prepare

    def _take(
        self,
        session: Session,
        job: Claim,
        row: InstanceRow | SnapshotInstanceRow,
        instance: LoadedInstance,
        machine: Machine,
        excluded: Collection[str],
    ) -> SyncRound:
        """Take all queued rules in the transaction that claims the work.

        Rules already in transit were left by a lost holder, and whether
        the back end has them is unknown.
        """
        if row.status in excluded:
            raise outdated(
                job,
                machine,
                row.id,
                row.status,
                'a status in which its rules can be synced',
            )
        stale = row.access_stale
        if stale:
            self.rules.mark_stale(session, row.id, False)
        rules = self.rules.list_for_instance(session, row.id)
        lost = [rule for rule in rules if rule.state in IN_TRANSIT]
        if lost:
            self._move(session, lost, _REQUEUE)
            rules = self.rules.list_for_instance(session, row.id)
        self._move(session, rules, _TAKE)
        return SyncRound(
            row,
            instance,
            share_view.rule_views(
                instance.row, rules, self.driver, state_of=self._taken
            ),
            bool(lost) or stale or job.abandoned,
        )

    def _move(
        self,
        session: Session,
        rules: Sequence[AccessRuleRow],
        events: Mapping[str, str],
    ) -> None:
        """Fire `events`, by state, for the rules in these states."""
        for state, event in events.items():
            ids = [row.mapping_id for row in rules if row.state == state]
            fire_known(session, self.rules.machine, event, ids)

    def _taken(self, row: AccessRuleRow) -> str:
        """Return the state of a row after it has been taken."""
        event = _TAKE.get(row.state)
        if event is None:
            return row.state
        target = self.rules.machine[event].target
        assert target is not None
        return target

    # Record the outcome

    def _record(self, session: Session, job: Claim, replies: RuleReplies) -> None:
        """Record the outcome of each rule.

        Rules changed or denied during the driver call are queued again:
        their moves do not match, and they stay queued.
        """
        sync_round: SyncRound = job.prepared
        row = sync_round.row
        failed = self._failed(sync_round, replies)
        denied = [rule.id for rule in sync_round.in_state(RuleState.DENYING)]
        self._lock_denied(session, sync_round, denied)
        for state, event in _FAILED.items():
            ids = [rule.mapping_id for rule in failed if rule.state == state]
            if ids:
                fire_matching(session, self.rules.machine, event, {'id': ids})
        moves = TransitionBatch(session)
        for state, event in _DONE.items():
            self._end(session, moves, sync_round, state, event, failed)
        self._sum_up(session, moves, sync_round, replies, denied)
        moves.write()
        # A client whose rule failed to apply has no access, unless the
        # full set, sent before, has granted it.
        if any(sync_round.full or rule.state != RuleState.APPLYING for rule in failed):
            self._resync_after_failure(session, job)
        if sync_round.full and row.access_sync_failed:
            self._retry_after_outage(session, job, sync_round)
        if failed:
            share_id = sync_round.instance.row.share_id
            notify_refused(
                session,
                job,
                failed,
                replies,
                self.message_ttl,
                locks.list_hiding_locks(session, share_id) if self.can_hide else (),
            )

    def _end(
        self,
        session: Session,
        moves: TransitionBatch,
        sync_round: SyncRound,
        state: str,
        event: str,
        failed: Collection[RuleView],
    ) -> None:
        """Fire the event of success for the rules taken in this state.

        Failed rules have already left it.
        """
        of_instance = {self.rules.instance_column: sync_round.row.id}
        ids = {rule.mapping_id for rule in sync_round.in_state(state)} - {
            rule.mapping_id for rule in failed
        }
        if not ids:
            return
        if state == RuleState.DENYING:
            # The journal keeps what rules that are gone belonged to.
            fire_matching(session, self.rules.machine, event, of_instance)
        else:
            moves.fire_own(self.rules.machine, event, of_instance, ids)

    def _failed(self, sync_round: SyncRound, replies: RuleReplies) -> list[RuleView]:
        """Return the rules that the driver reports as failed."""
        known = {rule.id: rule for rule in sync_round.rules if rule.state in _FAILED}
        for access_id in replies.keys() - known.keys():
            LOG.warning(
                'The driver of %s replied about access rule %s, which was '
                'not part of the request',
                self.service_host,
                access_id,
            )
        failed = []
        for access_id, rule in known.items():
            state = replies.get(access_id, {}).get('state')
            # A denied rule must be gone: any state means failure.
            if state is not None and (
                state != RuleState.ACTIVE or rule.state == RuleState.DENYING
            ):
                failed.append(rule)
        return failed

    def _lock_denied(
        self, session: Session, sync_round: SyncRound, access_ids: Sequence[str]
    ) -> None:
        """Lock the rules that are removed with their last mapping."""
        self.rules.lock_rules(session, access_ids)

    def _sum_up(
        self,
        session: Session,
        moves: TransitionBatch,
        sync_round: SyncRound,
        replies: RuleReplies,
        denied: Sequence[str],
    ) -> None:
        """Store what follows from the moves and the replies."""
        self.rules.remove_unmapped(session, denied)

    @abc.abstractmethod
    def _find_states_on_active(
        self, session: Session, sync_round: SyncRound
    ) -> Mapping[str, str] | None:
        """Return the states of the rules on the active replica, if there is one."""

    # Fail

    def _fail(self, session: Session, job: Claim, error: Exception) -> int:
        """Mark exactly the rules in transit as failed; return the number."""
        counts = {
            event: fire_on(session, self.rules, job.resource_id, event)
            for event in ('apply_failed', 'update_failed', 'deny_failed')
            if event in self.rules.machine
        }
        failed, denials = sum(counts.values()), counts['deny_failed']
        if failed:
            notify_failed(
                session,
                job,
                error,
                self.message_ttl,
                hidden=self.can_hide
                and (
                    job.share_id is None
                    or locks.list_hiding_locks(session, job.share_id)
                ),
                grants=failed - denials,
                denials=denials,
            )
        if isinstance(error, exception.BackendUnserved):
            self.rules.mark_sync_failed(session, job.resource_id)
        elif isinstance(error, (NotImplementedError, exception.AttemptsExhausted)):
            pass  # a resync would fail, or end its process, again
        elif failed:
            self._resync_after_failure(session, job)
        elif not isinstance(error, _NOT_ON_BACKEND):
            # The next pass over stale instances is soon enough. What is
            # missing would be missing again; it is ensured once it is back.
            self.rules.mark_sync_failed(session, job.resource_id)
        return failed

    def _retry_after_outage(
        self, session: Session, job: Claim, sync_round: SyncRound
    ) -> None:
        """Send what has failed on a replica while it was out of reach.

        The back end has just taken the other rules. A rule that fails by
        itself does not lead here, so it is not sent again and again.
        """
        row = sync_round.row
        self.rules.clear_sync_failed(session, row.id)
        if sync_round.instance.row.replica_state not in PASSIVE:
            return
        states = self._find_states_on_active(session, sync_round)
        if states is not None:
            self._submit(session, owner_context(job), row.id)
            retry_failed(session, self.rules, row.id, states)

    def _resync_after_failure(self, session: Session, job: Claim) -> None:
        """Resync the back end, which may have more rules than are known.

        A rule in error must not be in force, least of all a denied one.
        """
        self.rules.mark_stale(session, job.resource_id)
        self._submit(session, owner_context(job), job.resource_id)


@implements(AccessRpc)
@dataclasses.dataclass(eq=False)
class AccessEndpoint(RuleEndpoint):
    """Syncs the access rules of the share instances of one back end."""

    rules = share_rules.RULES
    can_hide = True

    sync_client: Client[AccessRpc]
    name_template: Annotated[str, Option('share_name_template')]
    locks: Coordinator | NullCoordinator

    def resync(self, session: Session, ctx: RequestContext, instance_id: str) -> None:
        """Send the whole rule set of an instance to the driver again."""
        # Same lock order as in requests: the work, then the instance.
        self._submit(session, ctx, instance_id)
        mark_for_resync(session, [instance_id])

    def prepare_sync_access(self, session: Session, job: Claim) -> SyncRound:
        instance = share_view.load_instance(session, job.resource_id, lock_shared=True)
        return self._take(
            session,
            job,
            instance.row,
            instance,
            SHARE_INSTANCE,
            access_rule.SYNC_EXCLUDED,
        )

    def sync_access(self, job: JobContext, instance_id: str) -> None:
        sync_round: SyncRound = job.prepared
        try:
            replies = self._call_driver(sync_round)
        except exception.ShareResourceNotFound:
            if not (
                was_never_made(sync_round.instance.row) and sync_round.are_all_denied
            ):
                raise
            replies = {}
        with self.locks.lock(f'access-{instance_id}'):
            job.finish(self._record, job.claim, replies)

    def _call_driver(self, sync_round: SyncRound) -> RuleReplies:
        """Return the driver's replies; empty when no call is needed."""
        changed = [rule for rule in sync_round.in_state(*IN_TRANSIT) if not rule.hidden]
        replies: dict[str, AccessReply] = {}
        if sync_round.full:
            replies |= self._apply(sync_round)
            for rule in changed:  # the second call replies about these
                replies.pop(rule.id, None)
        if changed:
            replies |= self._apply(
                sync_round,
                sync_round.for_driver(RuleState.APPLYING),
                sync_round.for_driver(RuleState.DENYING),
                sync_round.for_driver(RuleState.UPDATING),
            )
        return replies

    def _apply(
        self,
        sync_round: SyncRound,
        add: Sequence[AccessRuleForDriver] = (),
        delete: Sequence[AccessRuleForDriver] = (),
        update: Sequence[AccessRuleForDriver] = (),
    ) -> dict[str, AccessReply]:
        return self.driver.apply_access(
            driver_context(),
            share_view.share_for_driver(sync_round.instance, self.name_template),
            sync_round.for_driver(
                RuleState.ACTIVE, RuleState.APPLYING, RuleState.UPDATING
            ),
            add,
            delete,
            update,
            share_server=sync_round.instance.share_server,
        )

    def _lock_denied(
        self, session: Session, sync_round: SyncRound, access_ids: Sequence[str]
    ) -> None:
        if access_ids and sync_round.instance.row.replica_state is not None:
            # Removal of another replica locks the instances first.
            share_rules.lock_instance(session, sync_round.row.id)
        super()._lock_denied(session, sync_round, access_ids)

    def _sum_up(
        self,
        session: Session,
        moves: TransitionBatch,
        sync_round: SyncRound,
        replies: RuleReplies,
        denied: Sequence[str],
    ) -> None:
        """Store new access keys and the status of the rule set, too."""
        super()._sum_up(session, moves, sync_round, replies, denied)
        instance_id = sync_round.row.id
        known = {rule.id: rule.for_driver.access_key for rule in sync_round.rules}
        share_rules.set_access_keys(
            session,
            instance_id,
            {
                access_id: reply['access_key']
                for access_id, reply in replies.items()
                if access_id in known
                and 'access_key' in reply
                and reply['access_key'] != known[access_id]
            },
        )
        if moves.fire_unless(
            SHARE_INSTANCE_ACCESS,
            instance_id,
            'synced',
            share_rules.ANY_UNSETTLED,
            of_instance=instance_id,
        ):
            return
        status, states = share_rules.get_status_and_states(session, instance_id)
        if RuleState.ERROR in states:
            event = 'failed'
        elif states <= {RuleState.ACTIVE}:
            event = 'cleared' if status == RulesStatus.ERROR else 'synced'
        else:
            return  # others are queued, and their work is pending
        if SHARE_INSTANCE_ACCESS[event].can_leave(status):
            fire_matching(session, SHARE_INSTANCE_ACCESS, event, {'id': instance_id})

    def _find_states_on_active(
        self, session: Session, sync_round: SyncRound
    ) -> Mapping[str, str] | None:
        active_id = replicas.find_active(session, sync_round.instance.row.share_id)
        return self.rules.get_states(session, active_id) if active_id else None

    def failed_sync_access(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self._fail(session, job, error)
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'failed', {'id': job.resource_id})
        return True

    def _submit(self, session: Session, ctx: RequestContext, id: str) -> None:
        self.sync_client.sync_access(session, ctx, instance_id=id)


@implements(SnapshotAccessRpc)
@dataclasses.dataclass(eq=False)
class SnapshotAccessEndpoint(RuleEndpoint):
    """Syncs the access rules of the snapshots of one back end."""

    rules = snapshot_rules.RULES

    sync_client: Client[SnapshotAccessRpc]
    names: NameTemplates

    def prepare_sync_snapshot_access(self, session: Session, job: Claim) -> SyncRound:
        snapshot = share_view.load_snapshot(session, job.resource_id, lock_shared=True)
        sync_round = self._take(
            session,
            job,
            snapshot.row,
            snapshot.share,
            snapshot_instance.SNAPSHOT_INSTANCE,
            snapshot_instance.SYNC_EXCLUDED,
        )
        return sync_round._replace(snapshot=snapshot)

    def sync_snapshot_access(self, job: JobContext, snapshot_instance_id: str) -> None:
        sync_round: SyncRound = job.prepared
        job.finish(self._record, job.claim, self._call_driver(sync_round))

    def _call_driver(self, sync_round: SyncRound) -> RuleReplies:
        """Return the driver's replies; empty when no call is needed."""
        add, delete = (
            sync_round.for_driver(RuleState.APPLYING),
            sync_round.for_driver(RuleState.DENYING),
        )
        if not (sync_round.full or add or delete):
            return {}
        if sync_round.full:
            add, delete = [], []
        assert sync_round.snapshot is not None
        return update_snapshot_access(
            self.driver,
            share_view.snapshot_for_driver(sync_round.snapshot, self.names),
            sync_round.snapshot.share_server,
            sync_round.for_driver(RuleState.ACTIVE, RuleState.APPLYING),
            add,
            delete,
        )

    def _find_states_on_active(
        self, session: Session, sync_round: SyncRound
    ) -> Mapping[str, str]:
        assert sync_round.snapshot is not None
        return snapshot_rules.get_states_on_active_replica(
            session, sync_round.snapshot.row.snapshot_id
        )

    def failed_sync_snapshot_access(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self._fail(session, job, error)
        return True

    def _submit(self, session: Session, ctx: RequestContext, id: str) -> None:
        self.sync_client.sync_snapshot_access(session, ctx, snapshot_instance_id=id)
