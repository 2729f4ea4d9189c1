"""Brings the access rules of share instances to their back end.

Requests queue rules and ask for one coalesced piece of work per instance.
A round of it takes everything that is queued at once, calls the driver
outside of any transaction, and writes down what came of each rule. What
is queued meanwhile is the next round's, by way of the work table.
"""

from collections.abc import Mapping
import logging
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries.access import share_rules
from manila_lite.db.session import ConcurrentChange
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import AccessRpc
from manila_lite.share.drivers.base import AccessReply
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.access_view import RuleView
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.states.access_rule import ACCESS_RULE
from manila_lite.states.access_rule import IN_TRANSIT
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.access_rule import SYNC_EXCLUDED
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.access_rule import RuleState
from manila_lite.work.notify import notify_user

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
    """What one round was begun with; `anew` asks for the whole set too."""

    found: LoadedInstance
    rules: list[RuleView]
    full: bool

    def in_state(self, *states: str) -> list[RuleView]:
        return [rule for rule in self.rules if rule.state in states]


@implements(AccessRpc)
class AccessEndpoint:
    """The access rules of the share instances of one back end."""

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        sync_client: Client,
        service_host: str,
        *,
        name_template: str,
        message_ttl: int,
        locks: Coordinator | NullCoordinator,
    ):
        self.db = db
        self.driver = driver
        self.sync_client = sync_client.on(service_host)
        self.service_host = service_host
        self.name_template = name_template
        self.message_ttl = message_ttl
        self.locks = locks

    # What others call

    def resync(
        self, session: Session, ctx: RequestContext, instance_id: str
    ) -> None:
        """Have the driver told the whole rule set of an instance again.

        For whoever has changed what rules mean there, such as the cast to
        read-only, or doubts that the back end has them.
        """
        # In the order of requests: the work first, then the instance.
        self.sync_client.sync_access(session, ctx, instance_id=instance_id)
        share_rules.mark_stale(session, instance_id)
        fire_matching(
            session, SHARE_INSTANCE_ACCESS, 'change', {'id': instance_id}
        )

    def run_pass(self) -> int:
        """Submit the work for rules that wait and have none."""
        return self.db.write(self.submit_missing_work)

    def submit_missing_work(self, session: Session) -> int:
        lost = share_rules.list_instances_without_work(
            session, self.service_host
        )
        for row in lost:
            LOG.warning(
                'Rules of share instance %s wait and nobody works on them',
                row.id,
            )
            self.resync(
                session,
                RequestContext(project_id=row.project_id, user_id=row.user_id),
                row.id,
            )
        return len(lost)

    # Take

    def prepare_sync_access(self, session: Session, job) -> SyncRound:
        """Take everything that is queued, in the claiming transaction.

        What is in transit then was left by a holder who is gone; nobody
        knows what the back end has of it.
        """
        found = share_view.load_instance(
            session, job.resource_id, lock_shared=True
        )
        if found.row.status in SYNC_EXCLUDED:
            raise exception.InvalidStatus(
                resource='share instance',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed='one that is there and keeps its rules',
            )
        stale = found.row.access_stale
        if stale:
            share_rules.mark_stale(session, found.row.id, False)
        rules = share_rules.list_for_instance(session, found.row.id)
        lost = [row for row in rules if row.state in IN_TRANSIT]
        if lost:
            self._move(session, found.row.id, lost, _REQUEUE)
            rules = share_rules.list_for_instance(session, found.row.id)
        self._move(session, found.row.id, rules, _TAKE)
        return SyncRound(
            found,
            access_view.rule_views(
                found.row, rules, self.driver, state_of=_taken
            ),
            bool(lost) or stale or job.abandoned,
        )

    def _move(self, session, instance_id, rules, events) -> None:
        """Make a move for every rule in one of the states."""
        for state, event in events.items():
            expected = sum(row.state == state for row in rules)
            if expected and expected != fire_matching(
                session, ACCESS_RULE, event, {'share_instance_id': instance_id}
            ):
                raise ConcurrentChange(table=share_rules.MAPPING.name)

    # Tell

    def sync_access(self, job, instance_id):
        answers = self._tell(job.prepared)
        with self.locks.lock(f'access-{instance_id}'):
            job.finish(self._settle, job, answers)

    def _tell(self, begun: SyncRound) -> RuleReplies:
        """What the driver says; nothing, when it need not be asked."""
        shown = SyncRound(
            begun.found,
            [rule for rule in begun.rules if not rule.hidden],
            begun.full,
        )
        changed = shown.in_state(*IN_TRANSIT)
        answers: dict[str, AccessReply] = {}
        if shown.full:
            answers |= self._apply(shown)
            for rule in changed:  # it is asked about them below
                answers.pop(rule.id, None)
        if changed:
            answers |= self._apply(
                shown,
                RuleState.APPLYING,
                RuleState.DENYING,
                RuleState.UPDATING,
            )
        return answers

    def _apply(self, shown: SyncRound, *changes: str):
        add, delete, update = (
            [rule.shown for rule in shown.in_state(state)]
            for state in changes or (None, None, None)
        )
        return self.driver.apply_access(
            RequestContext(),
            share_view.share_for_driver(shown.found, self.name_template),
            [
                rule.shown
                for rule in shown.in_state(
                    RuleState.ACTIVE, RuleState.APPLYING, RuleState.UPDATING
                )
            ],
            add,
            delete,
            update,
            share_server=shown.found.share_server,
        )

    # Settle

    def _settle(self, session: Session, job, answers: RuleReplies) -> None:
        """Write down what came of each rule.

        Rules that were changed or denied while the driver worked are
        queued by now; their moves do not match, and they stay so.
        """
        begun, instance_id = job.prepared, job.resource_id
        failed = self._failed(begun, answers)
        denied = [rule.id for rule in begun.in_state(RuleState.DENYING)]
        if denied:
            if begun.found.row.replica_state is not None:
                # Who removes another replica has the instances first.
                share_rules.lock_instance(session, instance_id)
            share_rules.lock_rules(session, denied)
        for state, event in _FAILED.items():
            ids = [rule.mapping_id for rule in failed if rule.state == state]
            if ids:
                fire_matching(
                    session,
                    ACCESS_RULE,
                    event,
                    {'id': ids},
                    updated_at=session.now,
                )
        for state, event in _DONE.items():
            if begun.in_state(state):
                # Those that are not done are in transit no longer.
                fire_matching(
                    session,
                    ACCESS_RULE,
                    event,
                    {'share_instance_id': instance_id},
                    **_times(session, event),
                )
        self._note_keys(session, instance_id, begun, answers)
        if denied:
            share_rules.remove_unmapped(session, denied)
        self._sum_up(session, instance_id)
        # Who should have come in and did not is outside, unless the whole
        # set, told before, has let him in.
        if any(
            begun.full or rule.state != RuleState.APPLYING for rule in failed
        ):
            self._ask_again(session, job)
        if failed:
            self._tell_user(session, job, Detail.FORBIDDEN_CLIENT_ACCESS)

    def _failed(
        self, begun: SyncRound, answers: RuleReplies
    ) -> list[RuleView]:
        """The rules that the driver says are not as they should be."""
        known = {
            rule.id: rule for rule in begun.rules if rule.state in _FAILED
        }
        for access_id in answers.keys() - known.keys():
            LOG.warning(
                'The driver of %s spoke of access rule %s, which '
                'it was not asked about',
                self.service_host,
                access_id,
            )
        failed = []
        for access_id, rule in known.items():
            state = answers.get(access_id, {}).get('state')
            # Nothing but gone is what was asked for of a denied rule.
            if state is not None and (
                state != RuleState.ACTIVE or rule.state == RuleState.DENYING
            ):
                failed.append(rule)
        return failed

    def _note_keys(self, session, instance_id, begun, answers) -> None:
        known = {rule.id: rule.shown.access_key for rule in begun.rules}
        share_rules.set_access_keys(
            session,
            instance_id,
            {
                access_id: answer['access_key']
                for access_id, answer in answers.items()
                if access_id in known
                and 'access_key' in answer
                and answer['access_key'] != known[access_id]
            },
        )

    def _sum_up(self, session: Session, instance_id: str) -> None:
        """Make `access_rules_status` say what the rules say."""
        status, states = share_rules.get_status_and_states(
            session, instance_id
        )
        if RuleState.ERROR in states:
            event = 'failed'
        elif states <= {RuleState.ACTIVE}:
            event = 'cleared' if status == RulesStatus.ERROR else 'synced'
        else:
            return  # others are queued, and work for them is owed
        if SHARE_INSTANCE_ACCESS[event].can_leave(status):
            fire_matching(
                session, SHARE_INSTANCE_ACCESS, event, {'id': instance_id}
            )

    # Fail

    def failed_sync_access(self, session, job, error):
        """Exactly what was in transit has failed."""
        failed = 0
        for event in ('apply_failed', 'update_failed', 'deny_failed'):
            failed += fire_matching(
                session,
                ACCESS_RULE,
                event,
                {'share_instance_id': job.resource_id},
                updated_at=session.now,
            )
        fire_matching(
            session, SHARE_INSTANCE_ACCESS, 'failed', {'id': job.resource_id}
        )
        if failed:
            self._tell_user(session, job, message_detail(error))
        if isinstance(error, NotImplementedError):
            return True
        if failed:
            self._ask_again(session, job)
        else:  # a look at what is lost does, in a while
            share_rules.mark_stale(session, job.resource_id)
        return True

    def _ask_again(self, session, job) -> None:
        """Have the back end put right, which may have more than is known.

        A rule in error is not in force; above all, one that should go.
        """
        share_rules.mark_stale(session, job.resource_id)
        self.sync_client.sync_access(
            session,
            RequestContext(project_id=job.project_id, user_id=job.user_id),
            instance_id=job.resource_id,
        )

    def _tell_user(self, session, job, detail: Detail) -> None:
        notify_user(
            session, job, Action.UPDATE_ACCESS_RULES, detail, self.message_ttl
        )


def _taken(row: typing.Any) -> str:
    """The state a row has got by being taken."""
    event = _TAKE.get(row.state)
    return row.state if event is None else ACCESS_RULE[event].target


def _times(session: Session, event: str) -> dict[str, object]:
    return (
        {}
        if ACCESS_RULE[event].target is None
        else {'updated_at': session.now}
    )


_UNSUPPORTED = (
    NotImplementedError,
    exception.InvalidShareAccess,
    exception.InvalidShareAccessLevel,
    exception.InvalidShareAccessType,
)


def message_detail(error: Exception) -> Detail:
    """What to tell the user of an error of the driver."""
    own = getattr(error, 'params', {}).get('message_detail')
    if own is not None:
        return own
    if isinstance(error, _UNSUPPORTED):
        return Detail.UNSUPPORTED_CLIENT_ACCESS
    if isinstance(error, exception.Forbidden):
        return Detail.FORBIDDEN_CLIENT_ACCESS
    return Detail.UNKNOWN_ERROR
