"""Apply the access rules of share instances on their back end.

Requests queue rules and submit one coalesced row of work per instance.
One round of this work takes everything that is queued, calls the driver
outside of any transaction, and records the outcome of each rule. Rules
queued in the meantime belong to the next round, which the work table
guarantees.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import logging
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.moves.access_rules import mark_for_resync, retry_failed_rules
from manila_lite.db.queries.access import locks, share_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.rows import AccessRuleRow, InstanceRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire_known, fire_matching
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import AccessRpc
from manila_lite.share.drivers.base import AccessReply, AccessRuleForDriver, ShareDriver
from manila_lite.share.manager.access.refusals import notify_failed, notify_refused
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance, RuleView
from manila_lite.share.manager.endpoint import outdated, owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.removal import was_never_made
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    IN_TRANSIT,
    SHARE_INSTANCE_ACCESS,
    SYNC_EXCLUDED,
    RulesStatus,
    RuleState,
)
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

RuleReplies = Mapping[str, AccessReply]


class SyncRound(typing.NamedTuple):
    """The input of one round; with `full` the whole set is sent as well."""

    instance: LoadedInstance
    rules: list[RuleView]
    full: bool

    @property
    def are_all_denied(self) -> bool:
        """Whether no client is to have access."""
        return all(rule.state == RuleState.DENYING for rule in self.rules)

    def in_state(self, *states: str) -> list[RuleView]:
        return [rule for rule in self.rules if rule.state in states]


@implements(AccessRpc)
@dataclasses.dataclass(eq=False)
class AccessEndpoint:
    """Syncs the access rules of the share instances of one back end."""

    db: Database
    driver: ShareDriver
    sync_client: Client[AccessRpc]
    service_host: ServiceHost
    name_template: Annotated[str, Option('share_name_template')]
    message_ttl: Annotated[int, Option('message_ttl')]
    locks: Coordinator | NullCoordinator

    def __post_init__(self) -> None:
        self.sync_client = self.sync_client.on(self.service_host)

    # Called by other components

    def resync(self, session: Session, ctx: RequestContext, instance_id: str) -> None:
        """Send the whole rule set of an instance to the driver again."""
        # Same lock order as in requests: the work, then the instance.
        self.sync_client.sync_access(session, ctx, instance_id=instance_id)
        mark_for_resync(session, [instance_id])

    # Prepare

    def prepare_sync_access(self, session: Session, job: Claim) -> SyncRound:
        """Take all queued rules in the transaction that claims the work.

        Rules already in transit were left by a lost holder, and whether
        the back end has them is unknown.
        """
        instance = share_view.load_instance(session, job.resource_id, lock_shared=True)
        if instance.row.status in SYNC_EXCLUDED:
            raise outdated(
                job,
                SHARE_INSTANCE,
                instance.row.id,
                instance.row.status,
                'a status in which its rules can be synced',
            )
        stale = instance.row.access_stale
        if stale:
            share_rules.mark_stale(session, instance.row.id, False)
        rules = share_rules.list_for_instance(session, instance.row.id)
        lost = [row for row in rules if row.state in IN_TRANSIT]
        if lost:
            self._move(session, lost, _REQUEUE)
            rules = share_rules.list_for_instance(session, instance.row.id)
        self._move(session, rules, _TAKE)
        return SyncRound(
            instance,
            share_view.rule_views(instance.row, rules, self.driver, state_of=_taken),
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
            fire_known(session, ACCESS_RULE, event, ids)

    # Call the driver

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
        visible = SyncRound(
            sync_round.instance,
            [rule for rule in sync_round.rules if not rule.hidden],
            sync_round.full,
        )
        changed = visible.in_state(*IN_TRANSIT)
        replies: dict[str, AccessReply] = {}
        if visible.full:
            replies |= self._apply(visible)
            for rule in changed:  # the second call replies about these
                replies.pop(rule.id, None)
        if changed:
            replies |= self._apply(
                visible,
                visible.in_state(RuleState.APPLYING),
                visible.in_state(RuleState.DENYING),
                visible.in_state(RuleState.UPDATING),
            )
        return replies

    def _apply(
        self,
        sync_round: SyncRound,
        add: Sequence[RuleView] = (),
        delete: Sequence[RuleView] = (),
        update: Sequence[RuleView] = (),
    ) -> dict[str, AccessReply]:
        return self.driver.apply_access(
            driver_context(),
            share_view.share_for_driver(sync_round.instance, self.name_template),
            _for_driver(
                sync_round.in_state(
                    RuleState.ACTIVE, RuleState.APPLYING, RuleState.UPDATING
                )
            ),
            _for_driver(add),
            _for_driver(delete),
            _for_driver(update),
            share_server=sync_round.instance.share_server,
        )

    # Record the outcome

    def _record(self, session: Session, job: Claim, replies: RuleReplies) -> None:
        """Record the outcome of each rule.

        Rules changed or denied during the driver call are queued again:
        their moves do not match, and they stay queued.
        """
        sync_round: SyncRound = job.prepared
        instance_id = job.resource_id
        failed = self._failed(sync_round, replies)
        denied = [rule.id for rule in sync_round.in_state(RuleState.DENYING)]
        if denied:
            if sync_round.instance.row.replica_state is not None:
                # Removal of another replica locks the instances first.
                share_rules.lock_instance(session, instance_id)
            share_rules.lock_rules(session, denied)
        for state, event in _FAILED.items():
            ids = [rule.mapping_id for rule in failed if rule.state == state]
            if ids:
                fire_matching(session, ACCESS_RULE, event, {'id': ids}, touch=True)
        for state, event in _DONE.items():
            if sync_round.in_state(state):
                # Failed rules have already left the in-transit state.
                fire_matching(
                    session,
                    ACCESS_RULE,
                    event,
                    {'share_instance_id': instance_id},
                    touch=ACCESS_RULE[event].target is not None,
                )
        self._store_keys(session, instance_id, sync_round, replies)
        if denied:
            share_rules.remove_unmapped(session, denied)
        self._update_status(session, instance_id)
        # A client whose rule failed to apply has no access, unless the
        # full set, sent before, has granted it.
        if any(sync_round.full or rule.state != RuleState.APPLYING for rule in failed):
            self._resync_after_failure(session, job)
        if sync_round.full and sync_round.instance.row.access_sync_failed:
            self._retry_after_outage(session, job, sync_round.instance.row)
        if failed:
            notify_refused(
                session,
                job,
                failed,
                replies,
                self.message_ttl,
                locks.list_hiding_locks(session, sync_round.instance.row.share_id),
            )

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

    def _store_keys(
        self,
        session: Session,
        instance_id: str,
        sync_round: SyncRound,
        replies: RuleReplies,
    ) -> None:
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

    def _update_status(self, session: Session, instance_id: str) -> None:
        """Set `access_rules_status` to the sum of the rule states."""
        status, states = share_rules.get_status_and_states(session, instance_id)
        if RuleState.ERROR in states:
            event = 'failed'
        elif states <= {RuleState.ACTIVE}:
            event = 'cleared' if status == RulesStatus.ERROR else 'synced'
        else:
            return  # others are queued, and their work is pending
        if SHARE_INSTANCE_ACCESS[event].can_leave(status):
            fire_matching(session, SHARE_INSTANCE_ACCESS, event, {'id': instance_id})

    # Fail

    def failed_sync_access(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Mark exactly the rules in transit as failed."""
        applied, updated, denied = (
            fire_matching(
                session,
                ACCESS_RULE,
                event,
                {'share_instance_id': job.resource_id},
                touch=True,
            )
            for event in ('apply_failed', 'update_failed', 'deny_failed')
        )
        failed = applied + updated + denied
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'failed', {'id': job.resource_id})
        if failed:
            hidden = job.share_id is None or locks.list_hiding_locks(
                session, job.share_id
            )
            notify_failed(
                session,
                job,
                error,
                self.message_ttl,
                hidden=hidden,
                grants=applied + updated,
                denials=denied,
            )
        if isinstance(error, exception.BackendUnserved):
            share_rules.mark_sync_failed(session, job.resource_id)
            return True
        if isinstance(error, (NotImplementedError, exception.AttemptsExhausted)):
            return True  # a resync would fail, or end its process, again
        if failed:
            self._resync_after_failure(session, job)
        elif not isinstance(error, exception.ShareResourceNotFound):
            # The next pass over stale instances is soon enough. A share that
            # is missing would be missing again; it is ensured once it is back.
            share_rules.mark_sync_failed(session, job.resource_id)
        return True

    def _retry_after_outage(
        self, session: Session, job: Claim, row: InstanceRow
    ) -> None:
        """Send what has failed on a replica while it was out of reach.

        The back end has just taken the other rules. A rule that fails by
        itself does not lead here, so it is not sent again and again.
        """
        share_rules.clear_sync_failed(session, row.id)
        if row.replica_state not in PASSIVE:
            return
        active_id = replicas.find_active(session, row.share_id)
        if active_id is not None:
            self.sync_client.sync_access(
                session, owner_context(job), instance_id=row.id
            )
            retry_failed_rules(session, row.id, active_id)

    def _resync_after_failure(self, session: Session, job: Claim) -> None:
        """Resync the back end, which may have more rules than are known.

        A rule in error must not be in force, least of all a denied one.
        """
        share_rules.mark_stale(session, job.resource_id)
        self.sync_client.sync_access(
            session, owner_context(job), instance_id=job.resource_id
        )


def _for_driver(rules: Sequence[RuleView]) -> list[AccessRuleForDriver]:
    return [rule.for_driver for rule in rules]


def _taken(row: AccessRuleRow) -> str:
    """Return the state of a row after it has been taken."""
    event = _TAKE.get(row.state)
    if event is None:
        return row.state
    target = ACCESS_RULE[event].target
    assert target is not None
    return target
