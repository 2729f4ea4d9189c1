"""Rescue resources that do not belong to any single share service.

Share instances and share groups without a host that are in flight without
work are given up or removed, and so are the snapshots and access rules of such
replicas, and shares without a host whose time in the recycle bin is over. Share
networks belong to no back end, or to several; a change that no share server is
making any more is ended.
"""

from collections.abc import Callable
import contextlib
import logging
import time
import typing

from manila_lite import exception, messages
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.snapshots import remove_rules_on
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.groups import share_groups
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import ExpiredShareRow, InstanceRow, StuckRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.messages import Action
from manila_lite.quota.shares import remove_and_credit, remove_replica_and_credit
from manila_lite.quota.snapshots import (
    remove_and_credit as remove_snapshot_and_credit,
    remove_group,
)
from manila_lite.states import access_rule
from manila_lite.states.machine import GONE, Repeat
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_network import SHARE_NETWORK
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work.notify import displayed_resource

LOG = logging.getLogger(__name__)

BATCH = 100
"""The number of rows handled in one transaction."""


class SweepActor(typing.NamedTuple):
    """The actor of the transitions: one incarnation of a scheduler."""

    actor: str
    request_id: None = None


class OrphanSweep:
    """The periodic pass over orphans; `owner` is its actor."""

    def __init__(self, db: Database, owner: str, message_ttl: int):
        self.db = db
        self.by = SweepActor(owner)
        self.message_ttl = message_ttl

    def run_pass(self) -> int:
        """Handle all orphans; return the count. Without any, only reads."""
        found = self.db.read(recovery.list_stuck_kinds, self._handlers, None)
        return sum(self._all(*self._pass_over(kind)) for kind in found) + self._all(
            self._expired_shares, self._remove
        )

    def _all(self, find: Callable, handle: Callable) -> int:
        count = 0
        while self.db.read(find):
            handled = self.db.write(handle, by=self.by)
            count += handled
            if handled < BATCH:
                break
        return count

    @property
    def _handlers(self) -> dict[str, Callable[[Session, StuckRow, float], None]]:
        """Return what ends an orphan, by resource."""
        return {
            SHARE_NETWORK.resource: self._end_network_change,
            SHARE_GROUP.resource: self._end_group,
            SHARE_INSTANCE.resource: self._end_instance,
            SNAPSHOT_INSTANCE.resource: self._end_snapshot,
            access_rule.ACCESS_RULE.resource: self._end_rules,
            access_rule.SHARE_INSTANCE_ACCESS.resource: self._end_rules,
            access_rule.SNAPSHOT_ACCESS_RULE.resource: self._end_rules_of_snapshot,
        }

    def _pass_over(self, resource: str) -> tuple[Callable, Callable]:
        def find(session: Session) -> typing.Sequence[StuckRow]:
            return recovery.list_stuck(session, resource, None, most=BATCH)

        def end(session: Session) -> int:
            began, stuck = time.monotonic(), find(session)
            for row in stuck:
                LOG.warning(
                    '%s %s is %s without work, and on no back end',
                    resource.replace('_', ' ').capitalize(),
                    row.id,
                    row.status,
                )
                self._ignore_stale(self._handlers[resource], session, row, began)
            return len(stuck)

        return find, end

    def _expired_shares(self, session: Session) -> typing.Sequence[ExpiredShareRow]:
        return shares.list_expired(session, None)

    def _remove(self, session: Session) -> int:
        expired = self._expired_shares(session)
        for share in expired:
            for row in shares.list_instances(session, share.id):
                self._ignore_stale(self._discard, session, row.instance_id)
        return len(expired)

    def _end_network_change(
        self, session: Session, row: StuckRow, began: float
    ) -> None:
        (event,) = SHARE_NETWORK.in_flight[row.status].events
        fire(session, SHARE_NETWORK, row.id, event)
        self._record(
            session,
            row,
            'given up',
            SHARE_NETWORK[event].target,
            began,
            'none of its share servers is changing',
        )

    def _end_group(self, session: Session, row: StuckRow, began: float) -> None:
        """Remove a group that is deleted; give up any other."""
        rescue = SHARE_GROUP.in_flight[row.status]
        if isinstance(rescue, Repeat):
            remove_group(session, share_groups.get(session, row.id))
            action, status_after = 'repeated', GONE
        else:
            event = rescue.events[-1]
            fire(session, SHARE_GROUP, row.id, event)
            self._notify(session, row, ('SHARE_GROUP', row.id))
            action, status_after = 'given up', SHARE_GROUP[event].target
        self._record(session, row, action, status_after, began)

    def _notify(
        self, session: Session, row: StuckRow, resource: messages.Resource
    ) -> None:
        messages.record(
            session, row.project_id, Action.ALLOCATE_HOST, resource, self.message_ttl
        )

    def _ignore_stale(self, function: Callable[..., None], *args: typing.Any) -> None:
        """Call; another scheduler may have handled the same row just now."""
        with contextlib.suppress(exception.InvalidStatus, exception.ResourceNotFound):
            function(*args)

    def _end_instance(self, session: Session, row: StuckRow, began: float) -> None:
        rescue = SHARE_INSTANCE.in_flight[row.status]
        instance = share_instances.get(session, row.id)
        if isinstance(rescue, Repeat):
            self._remove_rows(session, instance)
            self._record(session, row, 'repeated', GONE, began)
            return
        event = rescue.events[-1]
        fire(session, SHARE_INSTANCE, row.id, event)
        if instance.replica_state in PASSIVE:
            share_moves.mark_unplaced_failed(session, row.id)
        shown = displayed_resource(
            instance.id, instance.share_id, instance.replica_state
        )
        self._notify(session, row, shown)
        self._record(session, row, 'given up', SHARE_INSTANCE[event].target, began)

    def _remove_rows(self, session: Session, instance: InstanceRow) -> None:
        if instance.replica_state in PASSIVE:
            remove_replica_and_credit(session, instance)
        else:
            remove_and_credit(session, instance)

    def _end_snapshot(self, session: Session, row: StuckRow, began: float) -> None:
        """Give up a snapshot on a replica that is never placed, or remove it."""
        instance = snapshots.find(session, row.id)
        if instance is None:
            return
        rescue = SNAPSHOT_INSTANCE.in_flight[row.status]
        if isinstance(rescue, Repeat):
            remove_snapshot_and_credit(session, instance)
            self._record(session, row, 'repeated', GONE, began)
            return
        event = rescue.events[-1]
        fire(session, SNAPSHOT_INSTANCE, row.id, event)
        remove_rules_on(session, instance.share_instance_id)
        self._record(session, row, 'given up', SNAPSHOT_INSTANCE[event].target, began)

    def _end_rules(self, session: Session, row: StuckRow, began: float) -> None:
        share_moves.mark_unplaced_failed(session, row.subject_id)
        share_rules.mark_stale(session, row.subject_id, False)
        self._record(session, row, 'given up', access_rule.RuleState.ERROR, began)

    def _end_rules_of_snapshot(
        self, session: Session, row: StuckRow, began: float
    ) -> None:
        instance = snapshots.find(session, row.subject_id)
        if instance is not None:
            remove_rules_on(session, instance.share_instance_id)
            snapshot_rules.mark_stale(session, instance.id, False)
            self._record(session, row, 'given up', GONE, began)

    def _record(
        self,
        session: Session,
        row: StuckRow,
        action: str,
        status_after: str | None,
        began: float,
        reason: str = 'it never had a host',
    ) -> None:
        recovery.record_decision(
            session,
            resource=row.resource,
            resource_id=row.id,
            status_before=row.status,
            action=action,
            status_after=status_after,
            reason=reason,
            duration=time.monotonic() - began,
        )

    def _discard(self, session: Session, instance_id: str) -> None:
        fire(session, SHARE_INSTANCE, instance_id, 'delete')
        remove_and_credit(session, share_instances.get(session, instance_id))
