"""Brings the access rules of snapshots to their back end.

As with the rules of shares, a round takes all that is queued for one
snapshot instance at once, calls the driver outside of any transaction,
and writes down what came of each rule. Work on a snapshot instance takes
turns: its rules do not change while it is created, deleted or let go.
"""

import contextlib
import logging
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import SnapshotAccessRpc
from manila_lite.share.drivers.base import AccessReply
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareServerMapping
from manila_lite.share.drivers.base import SnapshotForDriver
from manila_lite.share.drivers.base import normalise_access_replies
from manila_lite.share.manager.access.share_rules import message_detail
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.access_view import RuleView
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE
from manila_lite.states.access_rule import RuleState
from manila_lite.states.machine import GONE
from manila_lite.states.snapshot_instance import SYNC_EXCLUDED
from manila_lite.work.notify import notify_user

LOG = logging.getLogger(__name__)

_DONE = {RuleState.APPLYING: 'applied', RuleState.DENYING: 'denied'}
_FAILED = {
    RuleState.APPLYING: 'apply_failed',
    RuleState.DENYING: 'deny_failed',
    RuleState.ACTIVE: 'broke',
}


RuleReplies = dict[str, AccessReply]


class SnapshotSyncRound(typing.NamedTuple):
    """What one round was begun with; `anew` tells the driver all of it."""

    found: LoadedSnapshot
    rules: list[RuleView]
    full: bool

    def shown(self, *states: str) -> list[typing.Any]:
        """What the driver is shown of the rules in these states."""
        return [
            rule.shown
            for rule in self.rules
            if rule.state in states and not rule.hidden
        ]


@implements(SnapshotAccessRpc)
class SnapshotAccessEndpoint:
    """The access rules of the snapshots of one back end."""

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        sync_client: Client,
        service_host: str,
        *,
        names: NameTemplates,
        message_ttl: int,
    ):
        self.db = db
        self.driver = driver
        self.sync_client = sync_client.on(service_host)
        self.service_host = service_host
        self.names = names
        self.message_ttl = message_ttl

    def run_pass(self) -> int:
        """Submit the work for rules that wait and have none."""
        return self.db.write(self.submit_missing_work)

    def submit_missing_work(self, session: Session) -> int:
        lost = snapshot_rules.list_instances_without_work(
            session, self.service_host
        )
        for row in lost:
            LOG.warning(
                'Rules of snapshot instance %s wait and nobody works on them',
                row.id,
            )
            self._submit(session, row, row.id)
        return len(lost)

    # A round: take, tell, settle

    def prepare_sync_snapshot_access(
        self, session: Session, job
    ) -> SnapshotSyncRound:
        """Take everything that is queued, in the claiming transaction.

        What is in transit then was left by a holder who is gone; nobody
        knows what the back end has of it.
        """
        found = share_view.load_snapshot(
            session, job.resource_id, lock_shared=True
        )
        if found.row.status in SYNC_EXCLUDED:
            raise exception.InvalidStatus(
                resource='snapshot instance',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed='one that is there and keeps its rules',
            )
        lost = [
            _fire(session, found.row.id, event)
            for event in ('requeue_apply', 'requeue_deny')
        ]
        for event in ('apply', 'withdraw'):
            _fire(session, found.row.id, event)
        stale = found.row.access_stale
        if stale:
            snapshot_rules.mark_stale(session, found.row.id, False)
        return SnapshotSyncRound(
            found,
            _rules(session, found, self.driver),
            any(lost) or stale or job.abandoned,
        )

    def sync_snapshot_access(self, job, snapshot_instance_id):
        job.finish(self._settle, job, self._tell(job.prepared))

    def _tell(self, begun: SnapshotSyncRound) -> RuleReplies:
        """What the driver says; nothing, when it need not be asked."""
        add, delete = (
            begun.shown(RuleState.APPLYING),
            begun.shown(RuleState.DENYING),
        )
        if not (begun.full or add or delete):
            return {}
        if begun.full:
            add, delete = [], []
        return _update(
            self.driver,
            share_view.snapshot_for_driver(begun.found, self.names),
            begun.found.share_server,
            begun.shown(RuleState.ACTIVE, RuleState.APPLYING),
            add,
            delete,
        )

    def _settle(self, session: Session, job, answers: RuleReplies) -> None:
        """Write down what came of each rule.

        One that was denied while the driver worked is queued by now; its
        move does not match, and it stays so.
        """
        rules = job.prepared.rules
        failed = [rule for rule in rules if _has_failed(rule, answers)]
        done = [rule for rule in rules if rule not in failed]
        denied = [rule.id for rule in done if rule.state == RuleState.DENYING]
        snapshot_rules.lock_rules(session, denied)
        for events, those in ((_FAILED, failed), (_DONE, done)):
            for state, event in events.items():
                ids = [
                    rule.mapping_id for rule in those if rule.state == state
                ]
                if ids:
                    fire_matching(
                        session,
                        SNAPSHOT_ACCESS_RULE,
                        event,
                        {'id': ids},
                        **_times(session, event),
                    )
        snapshot_rules.remove_unmapped(session, denied)
        if any(rule.state == RuleState.DENYING for rule in failed):
            self._ask_again(session, job)
        if failed:
            self._tell_user(session, job, Detail.FORBIDDEN_CLIENT_ACCESS)

    def failed_sync_snapshot_access(self, session: Session, job, error):
        """Exactly what was in transit has failed."""
        failed = [
            _fire(session, job.resource_id, event)
            for event in ('apply_failed', 'deny_failed')
        ]
        if any(failed):
            self._tell_user(session, job, message_detail(error))
        if isinstance(error, NotImplementedError):
            return True
        if any(failed):
            self._ask_again(session, job)
        else:  # a look at what is lost does, in a while
            snapshot_rules.mark_stale(session, job.resource_id)
        return True

    def _ask_again(self, session, job) -> None:
        """Have the back end put right, which may have more than is known.

        A rule in error is not in force; above all, one that should go.
        """
        snapshot_rules.mark_stale(session, job.resource_id)
        self._submit(session, job, job.resource_id)

    def _submit(self, session, whose, snapshot_instance_id) -> None:
        self.sync_client.sync_snapshot_access(
            session,
            RequestContext(project_id=whose.project_id, user_id=whose.user_id),
            snapshot_instance_id=snapshot_instance_id,
        )

    def _tell_user(self, session, job, detail: Detail) -> None:
        notify_user(
            session, job, Action.UPDATE_ACCESS_RULES, detail, self.message_ttl
        )


# When an instance goes, its rules go first.


class SnapshotTeardown(typing.NamedTuple):
    """An instance that goes, and the rules that go before it."""

    found: LoadedSnapshot
    rules: list[RuleView]


def queue_denials(
    session: Session, found: LoadedSnapshot, driver: ShareDriver
) -> SnapshotTeardown:
    """Have every rule of the instance be denied."""
    rules = (
        _rules(session, found, driver)
        if found.row.mount_snapshot_support
        else []
    )
    if rules:
        for event in ('deny', 'withdraw'):
            _fire(session, found.row.id, event)
    return SnapshotTeardown(found, rules)


def deny_all(
    driver: ShareDriver, snapshot: SnapshotForDriver, leaving: SnapshotTeardown
) -> None:
    """Tell the driver that nobody may use the snapshot any longer."""
    shown = [rule.shown for rule in leaving.rules if not rule.hidden]
    if shown:
        with contextlib.suppress(NotImplementedError):
            _update(
                driver, snapshot, leaving.found.share_server, [], [], shown
            )


def fail_denials(session: Session, snapshot_instance_id: str) -> None:
    """The instance stays; its rules are in error, and none is in force.

    Where it can still be reached, the back end is told so in a while.
    """
    if _fire(session, snapshot_instance_id, 'deny_failed'):
        snapshot_rules.mark_stale(session, snapshot_instance_id)


def _update(
    driver: ShareDriver,
    snapshot: SnapshotForDriver,
    share_server: ShareServerMapping | None,
    *rules: list[typing.Any],
) -> RuleReplies:
    """What the driver answers; one that cannot raises, as others do."""
    update = getattr(driver, 'snapshot_update_access', None)
    if update is None:
        raise NotImplementedError
    return normalise_access_replies(
        update(RequestContext(), snapshot, *rules, share_server=share_server)
    )


def _rules(
    session: Session, found: LoadedSnapshot, driver: ShareDriver
) -> list[RuleView]:
    return access_view.rule_views(
        found.share.row,
        snapshot_rules.list_for_instance(session, found.row.id),
        driver,
    )


def _fire(session: Session, snapshot_instance_id: str, event: str) -> int:
    return fire_matching(
        session,
        SNAPSHOT_ACCESS_RULE,
        event,
        {'share_snapshot_instance_id': snapshot_instance_id},
        **_times(session, event),
    )


def _times(session: Session, event: str) -> dict[str, object]:
    return (
        {}
        if SNAPSHOT_ACCESS_RULE[event].target is GONE
        else {'updated_at': session.now}
    )


def _has_failed(rule: RuleView, answers: RuleReplies) -> bool:
    """Whether the driver says that a rule is not as it should be.

    Nothing but gone is what was asked for of a denied rule.
    """
    state = answers.get(rule.id, {}).get('state')
    return (
        rule.state in _FAILED
        and state is not None
        and (state != RuleState.ACTIVE or rule.state == RuleState.DENYING)
    )
