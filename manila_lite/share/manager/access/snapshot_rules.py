"""Apply the access rules of snapshots on their back end.

As with share rules, one round takes everything that is queued for one
snapshot instance, calls the driver outside of any transaction, and
records the outcome of each rule. Work on a snapshot instance is
serialized: its rules do not change while it is created, deleted or
unmanaged.
"""

import contextlib
import dataclasses
import logging
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.moves.access_rules import retry_failed_snapshot_rules
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire_matching
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import SnapshotAccessRpc
from manila_lite.share.drivers.base import (
    AccessReply,
    AccessRules,
    MountSnapshotSupport,
    ShareDriver,
    ShareServerMapping,
    SnapshotForDriver,
    normalise_access_replies,
)
from manila_lite.share.manager.access.refusals import notify_failed, notify_refused
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import (
    LoadedSnapshot,
    NameTemplates,
    RuleView,
)
from manila_lite.share.manager.endpoint import Owned, outdated, owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE, RuleState
from manila_lite.states.machine import GONE
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SYNC_EXCLUDED
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

_DONE = {RuleState.APPLYING: 'applied', RuleState.DENYING: 'denied'}
_FAILED = {
    RuleState.APPLYING: 'apply_failed',
    RuleState.DENYING: 'deny_failed',
    RuleState.ACTIVE: 'broke',
}


RuleReplies = dict[str, AccessReply]


class SnapshotSyncRound(typing.NamedTuple):
    """The input of one round; with `full` the whole set is sent."""

    snapshot: LoadedSnapshot
    rules: list[RuleView]
    full: bool

    def for_driver(self, *states: str) -> AccessRules:
        """Return the rules in these states in the form given to drivers."""
        return [
            rule.for_driver
            for rule in self.rules
            if rule.state in states and not rule.hidden
        ]


@implements(SnapshotAccessRpc)
@dataclasses.dataclass(eq=False)
class SnapshotAccessEndpoint:
    """Syncs the access rules of the snapshots of one back end."""

    db: Database
    driver: ShareDriver
    sync_client: Client[SnapshotAccessRpc]
    service_host: ServiceHost
    names: NameTemplates
    message_ttl: Annotated[int, Option('message_ttl')]

    def __post_init__(self) -> None:
        self.sync_client = self.sync_client.on(self.service_host)

    # A round: take the queued rules, call the driver, record the outcome

    def prepare_sync_snapshot_access(
        self, session: Session, job: Claim
    ) -> SnapshotSyncRound:
        """Take all queued rules in the transaction that claims the work.

        Rules already in transit were left by a lost holder, and whether
        the back end has them is unknown.
        """
        snapshot = share_view.load_snapshot(session, job.resource_id, lock_shared=True)
        if snapshot.row.status in SYNC_EXCLUDED:
            raise outdated(
                job,
                SNAPSHOT_INSTANCE,
                snapshot.row.id,
                snapshot.row.status,
                'a status in which its rules can be synced',
            )
        lost = [
            _fire(session, snapshot.row.id, event)
            for event in ('requeue_apply', 'requeue_deny')
        ]
        for event in ('apply', 'withdraw'):
            _fire(session, snapshot.row.id, event)
        stale = snapshot.row.access_stale
        if stale:
            snapshot_rules.mark_stale(session, snapshot.row.id, False)
        return SnapshotSyncRound(
            snapshot,
            _rules(session, snapshot, self.driver),
            any(lost) or stale or job.abandoned,
        )

    def sync_snapshot_access(self, job: JobContext, snapshot_instance_id: str) -> None:
        sync_round: SnapshotSyncRound = job.prepared
        job.finish(self._record, job.claim, self._call_driver(sync_round))

    def _call_driver(self, sync_round: SnapshotSyncRound) -> RuleReplies:
        """Return the driver's replies; empty when no call is needed."""
        add, delete = (
            sync_round.for_driver(RuleState.APPLYING),
            sync_round.for_driver(RuleState.DENYING),
        )
        if not (sync_round.full or add or delete):
            return {}
        if sync_round.full:
            add, delete = [], []
        return _update(
            self.driver,
            share_view.snapshot_for_driver(sync_round.snapshot, self.names),
            sync_round.snapshot.share_server,
            sync_round.for_driver(RuleState.ACTIVE, RuleState.APPLYING),
            add,
            delete,
        )

    def _record(self, session: Session, job: Claim, replies: RuleReplies) -> None:
        """Record the outcome of each rule.

        A rule denied during the driver call is queued again: its move
        does not match, and it stays queued.
        """
        sync_round: SnapshotSyncRound = job.prepared
        rules = sync_round.rules
        failed = [rule for rule in rules if _has_failed(rule, replies)]
        done = [rule for rule in rules if rule not in failed]
        denied = [rule.id for rule in done if rule.state == RuleState.DENYING]
        snapshot_rules.lock_rules(session, denied)
        for events, selected in ((_FAILED, failed), (_DONE, done)):
            for state, event in events.items():
                ids = [rule.mapping_id for rule in selected if rule.state == state]
                if ids:
                    fire_matching(
                        session,
                        SNAPSHOT_ACCESS_RULE,
                        event,
                        {'id': ids},
                        touch=SNAPSHOT_ACCESS_RULE[event].target is not GONE,
                    )
        snapshot_rules.remove_unmapped(session, denied)
        if any(rule.state == RuleState.DENYING for rule in failed):
            self._resync_after_failure(session, job)
        if sync_round.full and sync_round.snapshot.row.access_sync_failed:
            self._retry_after_outage(session, job, sync_round.snapshot)
        if failed:
            notify_refused(session, job, failed, replies, self.message_ttl)

    def failed_sync_snapshot_access(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Mark exactly the rules in transit as failed."""
        failed = [
            _fire(session, job.resource_id, event)
            for event in ('apply_failed', 'deny_failed')
        ]
        if any(failed):
            notify_failed(
                session,
                job,
                error,
                self.message_ttl,
                grants=failed[0],
                denials=failed[1],
            )
        if isinstance(error, exception.BackendUnserved):
            snapshot_rules.mark_sync_failed(session, job.resource_id)
            return True
        if isinstance(error, (NotImplementedError, exception.AttemptsExhausted)):
            return True  # a resync would fail, or end its process, again
        if any(failed):
            self._resync_after_failure(session, job)
        elif not isinstance(
            error, (exception.ShareResourceNotFound, exception.SnapshotResourceNotFound)
        ):
            # As for shares: what is missing would be missing again.
            snapshot_rules.mark_sync_failed(session, job.resource_id)
        return True

    def _retry_after_outage(
        self, session: Session, job: Claim, snapshot: LoadedSnapshot
    ) -> None:
        """Send what has failed on a replica while it was out of reach."""
        row = snapshot.row
        snapshot_rules.clear_sync_failed(session, row.id)
        if snapshot.share.row.replica_state in PASSIVE:
            self._submit(session, job, row.id)
            retry_failed_snapshot_rules(session, row.snapshot_id, row.id)

    def _resync_after_failure(self, session: Session, job: Claim) -> None:
        """Resync the back end, which may have more rules than are known.

        A rule in error must not be in force, least of all a denied one.
        """
        snapshot_rules.mark_stale(session, job.resource_id)
        self._submit(session, job, job.resource_id)

    def _submit(
        self, session: Session, owner: Owned, snapshot_instance_id: str
    ) -> None:
        self.sync_client.sync_snapshot_access(
            session, owner_context(owner), snapshot_instance_id=snapshot_instance_id
        )


# Teardown: the rules of an instance are removed before the instance.


class SnapshotTeardown(typing.NamedTuple):
    """A snapshot instance to be removed, and its rules."""

    snapshot: LoadedSnapshot
    rules: list[RuleView]


def queue_denials(
    session: Session, snapshot: LoadedSnapshot, driver: ShareDriver
) -> SnapshotTeardown:
    """Move all rules of the instance to denying."""
    rules = (
        _rules(session, snapshot, driver) if snapshot.row.mount_snapshot_support else []
    )
    if rules:
        for event in ('deny', 'withdraw'):
            _fire(session, snapshot.row.id, event)
    return SnapshotTeardown(snapshot, rules)


def deny_all(
    driver: ShareDriver, snapshot: SnapshotForDriver, removal: SnapshotTeardown
) -> None:
    """Remove all access to the snapshot on the back end."""
    denied = [rule.for_driver for rule in removal.rules if not rule.hidden]
    if denied:
        with contextlib.suppress(NotImplementedError):
            _update(driver, snapshot, removal.snapshot.share_server, [], [], denied)


def fail_denials(session: Session, snapshot_instance_id: str) -> None:
    """Mark the rules of an instance that could not be removed as failed.

    A rule in error is not in force: a later resync removes it from a back
    end that can still be reached.
    """
    if _fire(session, snapshot_instance_id, 'deny_failed'):
        snapshot_rules.mark_stale(session, snapshot_instance_id)


def _update(
    driver: ShareDriver,
    snapshot: SnapshotForDriver,
    share_server: ShareServerMapping | None,
    rules: AccessRules,
    add: AccessRules,
    delete: AccessRules,
) -> RuleReplies:
    """Return the replies of a driver with mountable snapshots."""
    if not isinstance(driver, MountSnapshotSupport):
        raise NotImplementedError
    return normalise_access_replies(
        driver.snapshot_update_access(
            driver_context(), snapshot, rules, add, delete, share_server=share_server
        )
    )


def _rules(
    session: Session, snapshot: LoadedSnapshot, driver: ShareDriver
) -> list[RuleView]:
    return share_view.rule_views(
        snapshot.share.row,
        snapshot_rules.list_for_instance(session, snapshot.row.id),
        driver,
    )


def _fire(session: Session, snapshot_instance_id: str, event: str) -> int:
    return fire_matching(
        session,
        SNAPSHOT_ACCESS_RULE,
        event,
        {'share_snapshot_instance_id': snapshot_instance_id},
        touch=SNAPSHOT_ACCESS_RULE[event].target is not GONE,
    )


def _has_failed(rule: RuleView, replies: RuleReplies) -> bool:
    """Return whether the driver reports a rule as failed.

    A denied rule must be gone: any reported state means failure.
    """
    state = replies.get(rule.id, {}).get('state')
    return (
        rule.state in _FAILED
        and state is not None
        and (state != RuleState.ACTIVE or rule.state == RuleState.DENYING)
    )
