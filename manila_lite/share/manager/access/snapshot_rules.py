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
from manila_lite.db.queries.access import snapshot_rules as snapshot_access
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import SnapshotAccessRpc
from manila_lite.share.drivers.base import AccessAnswer
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareServer
from manila_lite.share.drivers.base import SnapshotForDriver
from manila_lite.share.drivers.base import access_answers
from manila_lite.share.manager.access.share_rules import detail_of
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.driver_view.access_view import Rule
from manila_lite.share.manager.driver_view.share_view import FoundSnapshot
from manila_lite.share.manager.driver_view.share_view import Names
from manila_lite.states.access_rule import SNAPSHOT_MACHINE as RULE
from manila_lite.states.access_rule import A
from manila_lite.states.machine import GONE
from manila_lite.states.snapshot_instance import UNTOLD
from manila_lite.work.notify import tell

LOG = logging.getLogger(__name__)

_DONE = {A.APPLYING: 'applied', A.DENYING: 'denied'}
_FAILED = {
    A.APPLYING: 'apply_failed',
    A.DENYING: 'deny_failed',
    A.ACTIVE: 'broke',
}


Answers = dict[str, AccessAnswer]


class Round(typing.NamedTuple):
    """What one round was begun with; `anew` tells the driver all of it."""

    found: FoundSnapshot
    rules: list[Rule]
    anew: bool

    def shown(self, *states: str) -> list[typing.Any]:
        """What the driver is shown of the rules in these states."""
        return [
            rule.shown
            for rule in self.rules
            if rule.state in states and not rule.hidden
        ]


@implements(SnapshotAccessRpc)
class SnapshotAccess:
    """The access rules of the snapshots of one back end."""

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        syncs: Client,
        service_host: str,
        *,
        names: Names,
        message_ttl: int,
    ):
        self.db = db
        self.driver = driver
        self.syncs = syncs.on(service_host)
        self.service_host = service_host
        self.names = names
        self.message_ttl = message_ttl

    def run_pass(self) -> int:
        """Submit the work for rules that wait and have none."""
        return self.db.write(self.submit_lost)

    def submit_lost(self, session: Session) -> int:
        lost = snapshot_access.without_work(session, self.service_host)
        for row in lost:
            LOG.warning(
                'Rules of snapshot instance %s wait and nobody works on them',
                row.id,
            )
            self._submit(session, row, row.id)
        return len(lost)

    # A round: take, tell, settle

    def prepare_sync_snapshot_access(self, session: Session, job) -> Round:
        """Take everything that is queued, in the claiming transaction.

        What is in transit then was left by a holder who is gone; nobody
        knows what the back end has of it.
        """
        found = driver_view.find_snapshot(session, job.resource_id, keep=True)
        if found.row.status in UNTOLD:
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
        doubted = found.row.access_doubted
        if doubted:
            snapshot_access.doubt(session, found.row.id, False)
        return Round(
            found,
            _rules(session, found, self.driver),
            any(lost) or doubted or job.abandoned,
        )

    def sync_snapshot_access(self, job, snapshot_instance_id):
        job.finish(self._settle, job, self._tell(job.found))

    def _tell(self, begun: Round) -> Answers:
        """What the driver says; nothing, when it need not be asked."""
        add, delete = begun.shown(A.APPLYING), begun.shown(A.DENYING)
        if not (begun.anew or add or delete):
            return {}
        if begun.anew:
            add, delete = [], []
        return _update(
            self.driver,
            driver_view.snapshot_for_driver(begun.found, self.names),
            begun.found.share_server,
            begun.shown(A.ACTIVE, A.APPLYING),
            add,
            delete,
        )

    def _settle(self, session: Session, job, answers: Answers) -> None:
        """Write down what came of each rule.

        One that was denied while the driver worked is queued by now; its
        move does not match, and it stays so.
        """
        rules = job.found.rules
        failed = [rule for rule in rules if _has_failed(rule, answers)]
        done = [rule for rule in rules if rule not in failed]
        denied = [rule.id for rule in done if rule.state == A.DENYING]
        snapshot_access.keep(session, denied)
        for events, those in ((_FAILED, failed), (_DONE, done)):
            for state, event in events.items():
                ids = [
                    rule.mapping_id for rule in those if rule.state == state
                ]
                if ids:
                    fire_matching(
                        session,
                        RULE,
                        event,
                        {'id': ids},
                        **_times(session, event),
                    )
        snapshot_access.remove_unmapped(session, denied)
        if any(rule.state == A.DENYING for rule in failed):
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
            self._tell_user(session, job, detail_of(error))
        if isinstance(error, NotImplementedError):
            return True
        if any(failed):
            self._ask_again(session, job)
        else:  # a look at what is lost does, in a while
            snapshot_access.doubt(session, job.resource_id)
        return True

    def _ask_again(self, session, job) -> None:
        """Have the back end put right, which may have more than is known.

        A rule in error is not in force; above all, one that should go.
        """
        snapshot_access.doubt(session, job.resource_id)
        self._submit(session, job, job.resource_id)

    def _submit(self, session, whose, snapshot_instance_id) -> None:
        self.syncs.sync_snapshot_access(
            session,
            RequestContext(project_id=whose.project_id, user_id=whose.user_id),
            snapshot_instance_id=snapshot_instance_id,
        )

    def _tell_user(self, session, job, detail: Detail) -> None:
        tell(
            session, job, Action.UPDATE_ACCESS_RULES, detail, self.message_ttl
        )


# When an instance goes, its rules go first.


class Leaving(typing.NamedTuple):
    """An instance that goes, and the rules that go before it."""

    found: FoundSnapshot
    rules: list[Rule]


def take_all(
    session: Session, found: FoundSnapshot, driver: ShareDriver
) -> Leaving:
    """Have every rule of the instance be denied."""
    rules = (
        _rules(session, found, driver)
        if found.row.mount_snapshot_support
        else []
    )
    if rules:
        for event in ('deny', 'withdraw'):
            _fire(session, found.row.id, event)
    return Leaving(found, rules)


def deny_all(
    driver: ShareDriver, snapshot: SnapshotForDriver, leaving: Leaving
) -> None:
    """Tell the driver that nobody may use the snapshot any longer."""
    shown = [rule.shown for rule in leaving.rules if not rule.hidden]
    if shown:
        with contextlib.suppress(NotImplementedError):
            _update(
                driver, snapshot, leaving.found.share_server, [], [], shown
            )


def give_up(session: Session, snapshot_instance_id: str) -> None:
    """The instance stays; its rules are in error, and none is in force.

    Where it can still be reached, the back end is told so in a while.
    """
    if _fire(session, snapshot_instance_id, 'deny_failed'):
        snapshot_access.doubt(session, snapshot_instance_id)


def _update(
    driver: ShareDriver,
    snapshot: SnapshotForDriver,
    share_server: ShareServer | None,
    *rules: list[typing.Any],
) -> Answers:
    """What the driver answers; one that cannot raises, as others do."""
    update = getattr(driver, 'snapshot_update_access', None)
    if update is None:
        raise NotImplementedError
    return access_answers(
        update(RequestContext(), snapshot, *rules, share_server=share_server)
    )


def _rules(
    session: Session, found: FoundSnapshot, driver: ShareDriver
) -> list[Rule]:
    return access_view.rules(
        found.share.row,
        snapshot_access.of_instance(session, found.row.id),
        driver,
    )


def _fire(session: Session, snapshot_instance_id: str, event: str) -> int:
    return fire_matching(
        session,
        RULE,
        event,
        {'share_snapshot_instance_id': snapshot_instance_id},
        **_times(session, event),
    )


def _times(session: Session, event: str) -> dict[str, object]:
    return {} if RULE[event].target is GONE else {'updated_at': session.now}


def _has_failed(rule: Rule, answers: Answers) -> bool:
    """Whether the driver says that a rule is not as it should be.

    Nothing but gone is what was asked for of a denied rule.
    """
    state = answers.get(rule.id, {}).get('state')
    return (
        rule.state in _FAILED
        and state is not None
        and (state != A.ACTIVE or rule.state == A.DENYING)
    )
