"""Correct the roles of replicas that differ on the back ends, under a lock.

The lock serializes the driver calls about the replicas of a share. It spares
drivers conflicts. Correctness does not depend on it, but on the
guards and the generation with which outcomes are written.

A worker that was paused may have promoted a replica after another one had
become active. The database decides: its active replica is promoted again.
If back ends contradict it again and again, the pauses between attempts
grow; after the last attempt the active replica is in error.
"""

from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import datetime
import logging
import types
import typing
from typing import Annotated

from manila_lite import messages
from manila_lite.conf import Option
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.queries.recovery import recovery as recovery_rows
from manila_lite.db.queries.replicas import replicas, updates
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import InstanceRow, ReplicaRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import ReplicaRolesRpc
from manila_lite.share.drivers.base import ReplicaReply, ShareDriver, ShareForDriver
from manila_lite.share.manager.driver_view import replica_view, share_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.endpoint import outdated, owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.replication.outcome_writer import (
    is_promoting_or_reverting,
)
from manila_lite.share.manager.replication.promotion import PromotionWriter
from manila_lite.states.machine import Decision
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import PROMOTABLE, SHARE_REPLICA, ReplicaState
from manila_lite.work.job import JobContext
from manila_lite.work.notify import displayed_resource
from manila_lite.work.table import Claim

LOCKED_PAUSE = 1.0
"""Seconds until a retry when another worker holds the lock."""


def replica_lock_name(share_id: str) -> str:
    """Return the name of the lock for the replicas of a share."""
    return f'replicas-{share_id}'


@contextlib.contextmanager
def replica_lock(
    locks: Coordinator | NullCoordinator, job: JobContext, share_id: str
) -> Iterator[bool]:
    """Try the lock and yield whether it is held; else release the work."""
    with locks.try_lock(replica_lock_name(share_id)) as held:
        if not held:
            job.release(LOCKED_PAUSE)
            job.wake_after = LOCKED_PAUSE
        yield held


class ReplicaLocks:
    """Holds the locks of several shares, as far as they are free."""

    def __init__(self, locks: Coordinator | NullCoordinator, share_ids: Iterable[str]):
        self._locks = locks
        self._wanted = sorted(set(share_ids))
        self._held: dict[str, contextlib.ExitStack] = {}
        self._all = contextlib.ExitStack()
        self.are_released = False

    def __enter__(self) -> 'ReplicaLocks':
        with self._all:
            for share_id in self._wanted:
                own = self._all.enter_context(contextlib.ExitStack())
                if own.enter_context(self._locks.try_lock(replica_lock_name(share_id))):
                    self._held[share_id] = own
            self._all = self._all.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._all.__exit__(kind, error, trace)

    def has(self, share_id: str) -> bool:
        return share_id in self._held

    def release_others(self, kept: str) -> None:
        """Release all locks but one, as its driver call takes long."""
        for share_id, own in self._held.items():
            if share_id != kept:
                own.close()
        self.are_released = True


LOG = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
"""Attempts within `WINDOW` after which the active replica is in error."""

WINDOW = datetime.timedelta(days=1)
"""How far back attempts count; at most the retention of the recovery log."""

FIRST_PAUSE = datetime.timedelta(seconds=60)
"""Least time between the first two attempts; it doubles with each."""

_ATTEMPTS = (Decision.CORRECTED, Decision.NOT_CORRECTED)


@dataclasses.dataclass(eq=False)
class RoleWriter:
    """Requests corrections of roles and records their outcome."""

    db: Database
    roles_client: Client[ReplicaRolesRpc]
    promotion: PromotionWriter
    message_ttl: Annotated[int, Option('message_ttl')]

    def request_correction(
        self, job: Claim, share: ReplicatedShare, on_backend: str | None = None
    ) -> None:
        """Submit another promotion of the active replica, if it is time.

        `on_backend` is the replica that is active on its back end. If the
        active one is in error, as after a failed promotion, it is unknown
        which of them should be active: an administrator decides.
        """
        active = share.active
        if active is None or not _may_be_corrected(share, active.row):
            LOG.warning(
                'The back ends have another active replica of share %s; its '
                'roles are left alone, as the active one is %s',
                share.share_id,
                active.row.status if active else 'missing',
            )
            return
        self.db.write(self._request, active.row, on_backend, by=job, fsync=False)

    def _request(
        self, session: Session, row: InstanceRow, on_backend: str | None
    ) -> None:
        if (
            updates.get_generations(session, [row.id]).get(row.id)
            != row.replica_generation
        ):
            return
        attempts = self._attempts(session, row)
        if len(attempts) >= MAX_ATTEMPTS:
            self._give_up(session, row)
        elif not attempts or session.now >= _next_attempt(attempts):
            LOG.error(
                'The back ends have another active replica of share %s; '
                'replica %s is promoted again',
                row.share_id,
                row.id,
            )
            self.roles_client.on(row.host).reassert_active_replica(
                session,
                owner_context(row),
                share_replica_id=row.id,
                generation=row.replica_generation,
                on_backend=on_backend,
            )

    def _attempts(self, session: Session, row: InstanceRow) -> list[datetime.datetime]:
        return updates.list_times(session, row.id, _ATTEMPTS, session.now - WINDOW)

    def _give_up(
        self, session: Session, row: InstanceRow, explanation: str | None = None
    ) -> None:
        """Put the active replica into error, unless it has changed."""
        own = self._lock_current(session, row)
        if own is None or own.status != InstanceStatus.AVAILABLE:
            return
        fire(session, SHARE_INSTANCE, row.id, 'replica_failed')
        self._record(
            session,
            row,
            Decision.GIVEN_UP,
            reason=f'still contradicted after {MAX_ATTEMPTS} attempts',
            explanation=explanation,
        )

    def record_correction(
        self,
        session: Session,
        job: Claim,
        share: ReplicatedShare,
        row: InstanceRow,
        replies: typing.Iterable[ReplicaReply],
    ) -> None:
        """Record a second promotion of the active replica.

        Raises InvalidStatus when the replicas have changed meanwhile: the
        driver call may then contradict the new active replica.
        """
        locked = self.promotion.record_reassertion(session, job, share, replies)
        if not _is_current(locked, row):
            raise outdated(
                job,
                SHARE_REPLICA,
                row.id,
                f'of generation {row.replica_generation}',
                'the current generation',
            )
        replicas.advance_generation(session, row.share_id)
        self._record(session, row, Decision.CORRECTED)

    def record_failure(
        self, session: Session, row: InstanceRow, error: Exception
    ) -> None:
        """Record a failed attempt; after the last one, give up."""
        self._record(session, row, Decision.NOT_CORRECTED, reason=str(error))
        if len(self._attempts(session, row)) >= MAX_ATTEMPTS:
            self._give_up(session, row, messages.explanation_in(error))

    def _lock_current(self, session: Session, row: InstanceRow) -> ReplicaRow | None:
        locked = replicas.lock_instances(session, row.share_id)
        return next(
            (one for one in locked if one.id == row.id and _is_current(locked, row)),
            None,
        )

    def _record(
        self,
        session: Session,
        row: InstanceRow,
        decision: Decision,
        reason: str | None = None,
        explanation: str | None = None,
    ) -> None:
        """Log the decision and notify the project that owns the share."""
        gives_up = decision is Decision.GIVEN_UP
        recovery_rows.record_decision(
            session,
            resource=SHARE_REPLICA.resource,
            resource_id=row.id,
            host=row.host,
            status_before=row.status,
            status_after=InstanceStatus.ERROR if gives_up else row.status,
            action=str(decision),
            evidence='the back ends have another active replica',
            reason=reason,
            duration=0.0,
        )
        if decision is Decision.NOT_CORRECTED:
            return
        messages.record(
            session,
            row.project_id,
            messages.Action.PROMOTE,
            displayed_resource(row.id, row.share_id, row.replica_state),
            self.message_ttl,
            request_id=session.by.request_id if session.by else None,
            explanation=explanation or reason,
        )


@implements(ReplicaRolesRpc)
@dataclasses.dataclass(eq=False)
class ReplicaRolesEndpoint:
    """Promotes active replicas of one back end again."""

    driver: ShareDriver
    names: share_view.NameTemplates
    writer: RoleWriter
    locks: Coordinator | NullCoordinator

    def reassert_active_replica(
        self,
        job: JobContext,
        share_replica_id: str,
        generation: int,
        on_backend: str | None = None,
    ) -> None:
        share_id = job.read(updates.find_share_id, share_replica_id)
        if share_id is None:
            job.finish()
            return
        with replica_lock(self.locks, job, share_id) as held:
            if held:
                self._reassert(job, share_id, generation, on_backend)

    def _reassert(
        self, job: JobContext, share_id: str, generation: int, on_backend: str | None
    ) -> None:
        share = job.read(replica_view.load_replicated_share, share_id)
        own = share.find_replica(job.resource_id)
        if (
            own is None
            or own.row.replica_generation != generation
            or not _may_be_corrected(share, own.row)
        ):
            job.finish()
            return
        by_id = self._as_on_backend(share, own, on_backend)
        replies = self.driver.promote_replica(
            driver_context(),
            list(by_id.values()),
            by_id[own.row.id],
            share.rules_for_driver(own.row.id, self.driver, read_only=False),
            share_server=own.share_server,
        )
        job.finish(
            self.writer.record_correction, job.claim, share, own.row, replies or ()
        )

    def failed_reassert_active_replica(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        row = share_instances.find(session, job.resource_id)
        if row is not None and row.replica_generation == job.args['generation']:
            self.writer.record_failure(session, row, error)
        return True

    def _as_on_backend(
        self, share: ReplicatedShare, own: share_view.LoadedInstance, active: str | None
    ) -> dict[str, ShareForDriver]:
        """Return all replicas with the roles that the back ends have.

        A driver copies the last changes of the replica that was active.
        """
        others = [one.row.id for one in share.replicas if one is not own]
        if active is None and len(others) == 1:
            active = others[0]
        states = {own.row.id: ReplicaState.OUT_OF_SYNC}
        if active in others:
            states[active] = ReplicaState.ACTIVE
        return {
            one.id: dataclasses.replace(
                one, replica_state=states.get(one.id, one.replica_state)
            )
            for one in share.replicas_for_driver(self.names)
        }


def _may_be_corrected(share: ReplicatedShare, row: InstanceRow) -> bool:
    """Return whether this should be the only active replica, at rest."""
    return (
        row.replica_state == ReplicaState.ACTIVE
        and row.replication_type in PROMOTABLE
        and row.status == InstanceStatus.AVAILABLE
        and row.host is not None
        and not is_promoting_or_reverting([one.row for one in share.replicas])
    )


def _is_current(locked: typing.Sequence[ReplicaRow], row: InstanceRow) -> bool:
    """Return whether the replica is active as it was when it was read."""
    return not is_promoting_or_reverting(locked) and any(
        one.id == row.id
        and one.replica_generation == row.replica_generation
        and one.replica_state == ReplicaState.ACTIVE
        for one in locked
    )


def _next_attempt(attempts: list[datetime.datetime]) -> datetime.datetime:
    """Return when the next attempt may be made after these, newest first."""
    return attempts[0] + FIRST_PAUSE * 2 ** (len(attempts) - 1)
