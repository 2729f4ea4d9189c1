"""What is done about share instances that no back end has.

Those in flight that nobody works on are given up or removed, and those in
the recycle bin whose time is over are removed: no share service would. So
it is with share networks, which are of no back end, or of several.
"""

from collections.abc import Callable
import contextlib
import logging
import time
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite import messages
from manila_lite.db.queries.admin import recovery
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.quota.replicas import remove_and_credit as discard_replica
from manila_lite.quota.shares import remove_and_credit
from manila_lite.states.machine import GONE
from manila_lite.states.machine import Repeat
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_network import SHARE_NETWORK
from manila_lite.states.share_replica import PASSIVE
from manila_lite.work.notify import displayed_resource

LOG = logging.getLogger(__name__)

BATCH = 100
"""How many are seen to in one transaction."""

_REASON = 'it never had a host'


class SweepActor(typing.NamedTuple):
    """Who makes the moves: a scheduler, and which start of it."""

    actor: str
    request_id: None = None


class OrphanSweep:
    """The pass over what has no host; `owner` names who makes it."""

    def __init__(self, db: Database, owner: str, message_ttl: int):
        self.db = db
        self.by = SweepActor(owner)
        self.message_ttl = message_ttl

    def run_pass(self) -> int:
        """See to all of it; how much it was. Reads only if it is nothing."""
        return (
            self._all(self._lost, self._rescue)
            + self._all(self._expired, self._remove)
            + self._all(self._unsettled, self._settle)
        )

    def _all(self, look: Callable, act: Callable) -> int:
        count = 0
        while self.db.read(look):
            done = self.db.write(act, by=self.by)
            count += done
            if done < BATCH:
                break
        return count

    def _lost(self, session: Session) -> typing.Sequence[sa.Row]:
        return recovery.list_stuck(
            session, SHARE_INSTANCE.resource, None, most=BATCH
        )

    def _rescue(self, session: Session) -> int:
        began, lost = time.monotonic(), self._lost(session)
        for row in lost:
            LOG.warning(
                'Share instance %s is %s without a host and nobody '
                'works on it',
                row.id,
                row.status,
            )
            self._unless_moved(self._end, session, row, began)
        return len(lost)

    def _expired(self, session: Session) -> typing.Sequence[str]:
        return shares.list_expired(session, None)

    def _remove(self, session: Session) -> int:
        expired = self._expired(session)
        for share_id in expired:
            for row in shares.list_instances(session, share_id):
                self._unless_moved(self._discard, session, row.instance_id)
        return len(expired)

    def _unsettled(self, session: Session) -> typing.Sequence[sa.Row]:
        return share_networks.list_stuck(session, BATCH)

    def _settle(self, session: Session) -> int:
        """Networks that change without a server that does."""
        began, found = time.monotonic(), self._unsettled(session)
        for row in found:
            self._unless_moved(self._end_change, session, row, began)
        return len(found)

    def _end_change(self, session: Session, row: sa.Row, began: float) -> None:
        (event,) = SHARE_NETWORK.in_flight[row.status].events
        fire(session, SHARE_NETWORK, row.id, event, updated_at=session.now)
        recovery.record_decision(
            session,
            resource=SHARE_NETWORK.resource,
            resource_id=row.id,
            status_before=row.status,
            action='given up',
            status_after=SHARE_NETWORK[event].target,
            reason='none of its share servers is changing',
            duration=time.monotonic() - began,
        )

    def _unless_moved(
        self, function: Callable[..., None], *args: typing.Any
    ) -> None:
        """Another scheduler may have seen to the same just now."""
        with contextlib.suppress(
            exception.InvalidStatus, exception.ResourceNotFound
        ):
            function(*args)

    def _end(self, session: Session, row: sa.Row, began: float) -> None:
        rescue = SHARE_INSTANCE.in_flight[row.status]
        instance = share_instances.get(session, row.id)
        if isinstance(rescue, Repeat):
            self._remove_rows(session, instance)
            self._note(session, row, 'repeated', GONE, began)
            return
        event = rescue.events[-1]
        fire(session, SHARE_INSTANCE, row.id, event, updated_at=session.now)
        if instance.replica_state in PASSIVE:
            replicas.mark_unplaced_failed(session, row.id)
        messages.record(
            session,
            project_id=row.project_id,
            request_id=None,
            action=Action.ALLOCATE_HOST,
            detail=Detail.UNKNOWN_ERROR,
            ttl=self.message_ttl,
            **displayed_resource(
                instance.id, instance.share_id, instance.replica_state
            ),
        )
        self._note(
            session, row, 'given up', SHARE_INSTANCE[event].target, began
        )

    def _remove_rows(self, session: Session, instance: sa.Row) -> None:
        if instance.replica_state in PASSIVE:
            discard_replica(session, instance)
        else:
            remove_and_credit(session, instance)

    def _note(
        self,
        session: Session,
        row: sa.Row,
        action: str,
        status_after: str | None,
        began: float,
    ) -> None:
        recovery.record_decision(
            session,
            resource=SHARE_INSTANCE.resource,
            resource_id=row.id,
            status_before=row.status,
            action=action,
            status_after=status_after,
            reason=_REASON,
            duration=time.monotonic() - began,
        )

    def _discard(self, session: Session, instance_id: str) -> None:
        fire(session, SHARE_INSTANCE, instance_id, 'delete')
        remove_and_credit(session, share_instances.get(session, instance_id))
