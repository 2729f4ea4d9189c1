"""Poll the state of replicas, each on its own back end.

On a timer, one row of work covers all replicas of a back end, page by
page; an administrator can resync a single replica. The driver is polled
first about snapshots being created on or deleted from the replica, then
about the replica itself. Nothing is written if nothing has changed.

Promotion and these calls exclude each other by the lock of the share, and
generations read before are checked again under the lock. A pass holds the
locks of many shares at a time, for up to `LOCK_SECONDS`, so that one
query checks all of them.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import logging
import time
import typing

from manila_lite import messages
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.queries.replicas import updates
from manila_lite.db.queries.services import services
from manila_lite.db.rows import InstanceRow, SyncedReplica
from manila_lite.db.session import Database, Session
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import BINARY, ReplicaUpdatesRpc
from manila_lite.share.drivers.base import ShareDriver, ShareForDriver
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_view import replica_view, share_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.replication import outcomes, roles
from manila_lite.share.manager.replication.outcome_writer import (
    OutcomeWriter,
    changed_fields,
    is_promoting_or_reverting,
    may_retry_rules,
)
from manila_lite.share.manager.replication.outcomes import DriverReply, Transitions
from manila_lite.share.manager.replication.probe import (
    ProbeSubject,
    ReplicaProbe,
    ReplicaProbePending,
    with_normalised_exports,
    with_server,
)
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import PROMOTABLE, ReplicaState
from manila_lite.work.job import JobContext

LOG = logging.getLogger(__name__)

PAGE_SIZE = 1000
"""Number of replicas read at a time."""

GROUP_SIZE = 200
"""Number of locks held at a time; each may cost an open file."""

LOCK_SECONDS = 1.0
"""Seconds for which a group of locks is held during driver calls."""

YIELD_AFTER = 10.0
"""Seconds after which a pass is queued again behind other work."""

UNRESPONSIVE_PAUSE = 10.0
"""Seconds until an unresponsive back end is called again."""

_PASS = f'{ReplicaUpdatesRpc.name}.update_share_replicas'


class DueReplica(typing.NamedTuple):
    """A replica to be updated, and its share as read before."""

    replica: share_view.LoadedInstance
    view: ReplicatedShare

    @property
    def row(self) -> InstanceRow:
        return self.replica.row


class ReplicaPage(typing.NamedTuple):
    """A page of replicas; `last` is the marker of the next page, if any."""

    due: list[DueReplica]
    last: str | None


@implements(ReplicaUpdatesRpc)
@dataclasses.dataclass(eq=False)
class ReplicaUpdatesEndpoint:
    """Updates the replicas on one back end."""

    db: Database
    driver: ShareDriver
    update_client: Client[ReplicaUpdatesRpc]
    service_host: ServiceHost
    outcome_writer: OutcomeWriter
    role_writer: roles.RoleWriter
    names: share_view.NameTemplates
    locks: Coordinator | NullCoordinator
    probe: ReplicaProbe
    page: int = PAGE_SIZE
    yield_after: float = YIELD_AFTER
    lock_seconds: float = LOCK_SECONDS

    def __post_init__(self) -> None:
        self.update_client = self.update_client.on(self.service_host)
        self._is_unsupported_logged = False

    # The timer

    def request_pass(self) -> bool:
        """Submit a pass unless there is nothing to update.

        A pass under way is not restarted: otherwise it might never reach
        the last replicas. Returns whether a pass was submitted.
        """
        if not _supports_replication(self.driver.get_share_stats()):
            return False
        service_id = self.db.read(self._find_due_service)
        if service_id is None:
            return False
        self.db.write(self._submit_pass, service_id)
        return True

    def _find_due_service(self, session: Session) -> int | None:
        """Return the id of the service if a pass is due."""
        service = services.get(session, self.service_host, BINARY)
        if updates.is_work_pending(session, _PASS, service.id) or not updates.list_page(
            session, self.service_host, '', 1
        ):
            return None
        return service.id

    def _submit_pass(self, session: Session, service_id: int) -> None:
        self.update_client.update_share_replicas(
            session, RequestContext(), service_id=service_id
        )

    # The pass

    def update_share_replicas(
        self, job: JobContext, service_id: int, after: str = ''
    ) -> None:
        page = job.read(self._read, after)
        try:
            done = self._update_page(job, page)
        except BackendUnresponsive as error:
            LOG.warning('Replicas of %s are not updated: %s', self.service_host, error)
            job.finish()
            return
        last = page.last if done == len(page.due) else page.due[done - 1].row.id
        if last is None:
            job.finish()
        else:
            job.continue_with({**job.args, 'after': last})

    def _read(self, session: Session, after: str) -> ReplicaPage:
        rows = updates.list_page(session, self.service_host, after, self.page + 1)
        wanted = rows[: self.page]
        views = (
            replica_view.load_replicated_shares(
                session, {row.share_id for row in wanted}
            )
            if wanted
            else {}
        )
        due = [
            DueReplica(replica, views[row.share_id])
            for row in wanted
            if (replica := views[row.share_id].find_replica(row.id))
        ]
        return ReplicaPage(due, wanted[-1].id if len(rows) > self.page else None)

    def _update_page(self, job: JobContext, page: ReplicaPage) -> int:
        """Update replicas until it is time to yield; return the count."""
        done, size, until = 0, GROUP_SIZE, time.monotonic() + self.yield_after
        synced: list[SyncedReplica] = []
        while done < len(page.due):
            try:
                count = self._update_group(job, page.due[done : done + size], synced)
            except BackendUnresponsive:
                self.outcome_writer.write_synced(job.claim, synced)
                raise
            done += count
            # With a slow driver, hold fewer locks at a time.
            size = min(GROUP_SIZE, 2 * count)
            if time.monotonic() >= until:
                break
        self.outcome_writer.write_synced(job.claim, synced)
        return done

    def _update_group(
        self, job: JobContext, group: list[DueReplica], synced: list[SyncedReplica]
    ) -> int:
        """Update replicas for at most `lock_seconds`; return the count.

        At least one is updated. Replicas whose lock is held elsewhere are
        left to the next pass.
        """
        with roles.ReplicaLocks(
            self.locks, [one.row.share_id for one in group]
        ) as locks:
            generations = job.read(
                updates.get_generations,
                [one.row.id for one in group if locks.has(one.row.share_id)],
            )
            until = time.monotonic() + self.lock_seconds
            done = 0
            for one in group:
                done += 1
                if (
                    locks.has(one.row.share_id)
                    and generations.get(one.row.id) == one.row.replica_generation
                ):
                    self._update(
                        job,
                        one,
                        synced,
                        functools.partial(locks.release_others, one.row.share_id),
                    )
                if locks.are_released or time.monotonic() >= until:
                    break
        return done

    # One

    def update_share_replica(self, job: JobContext, share_replica_id: str) -> None:
        share_id = job.read(updates.find_share_id, share_replica_id)
        if share_id is None:
            job.finish()
            return
        with roles.replica_lock(self.locks, job, share_id) as held:
            if not held:
                return
            pause = self._update_one(job, share_id)
        if pause is None:
            job.finish()
        else:
            job.release(pause)
            job.wake_after = pause

    def _update_one(self, job: JobContext, share_id: str) -> float | None:
        """Update one replica; return the seconds to wait if it must wait."""
        view = job.read(replica_view.load_replicated_share, share_id)
        replica = view.find_replica(job.resource_id)
        if is_promoting_or_reverting([one.row for one in view.replicas]):
            return roles.LOCKED_PAUSE
        if replica is None or replica.row.status not in updates.POLLED_STATUSES:
            return None
        synced: list[SyncedReplica] = []
        try:
            self._update(job, DueReplica(replica, view), synced)
        except BackendUnresponsive as error:
            LOG.warning(
                'The update of replica %s is deferred: %s', replica.row.id, error
            )
            return UNRESPONSIVE_PAUSE
        self.outcome_writer.write_synced(job.claim, synced)
        return None

    def _update(
        self,
        job: JobContext,
        due: DueReplica,
        synced: list[SyncedReplica],
        on_slow: Callable[[], object] | None = None,
    ) -> None:
        """Make all due driver calls about a replica; record the replies.

        The time of its last sync is added to `synced`, to be recorded with
        those of others.
        """
        if is_promoting_or_reverting([one.row for one in due.view.replicas]):
            return
        try:
            if due.row.replica_state == ReplicaState.ACTIVE:
                self._check_active(job, due, on_slow)
            elif due.view.active is not None:
                current = self._poll_snapshots(job, due, on_slow)
                if current is not None:
                    due = current
                    self._poll_state(job, due, synced, on_slow)
        except ReplicaProbePending as error:
            LOG.error('%s: %s', self.service_host, error)
            # A replica without replies for so long may be out of sync.
            if error.overdue and due.row.replica_state == ReplicaState.IN_SYNC:
                self.outcome_writer.write_state(
                    job.claim, due.replica, ReplicaState.OUT_OF_SYNC
                )

    def _poll_snapshots(
        self, job: JobContext, due: DueReplica, on_slow: Callable[[], object] | None
    ) -> DueReplica | None:
        """Poll the pending snapshots; return the replica as it is then.

        None means that the replica is gone or in another generation.
        """
        is_changed = False
        for one in outcomes.pending_snapshots(due.view, due.row.id):
            reply = self._ask(
                due,
                one.row.id,
                on_slow,
                with_normalised_exports(self.driver.update_replicated_snapshot),
                driver_context(),
                due.view.replicas_for_driver(self.names),
                self._for_driver(due.replica),
                [
                    replica_view.snapshot_for_driver(other, self.names)
                    for other in due.view.instances_of(one.row.snapshot_id)
                ],
                replica_view.snapshot_for_driver(one, self.names),
            )
            outcome = outcomes.snapshot_outcome(
                one.row.status, reply, due.row.replication_type
            )
            if outcome.failed:
                LOG.warning(
                    'Snapshot %s on replica %s failed',
                    one.row.snapshot_id,
                    due.row.id,
                    exc_info=reply.error,
                )
                outcome = outcome._replace(
                    explanation=_explanation(due, 'update_replicated_snapshot', reply)
                )
            if outcome.event or changed_fields(one.row, outcome.values):
                is_changed |= self.outcome_writer.write_snapshot(
                    job.claim, due.replica, one.row, outcome
                )
        if not is_changed:
            return due
        view = job.read(replica_view.load_replicated_share, due.view.share_id)
        replica = view.find_replica(due.row.id)
        if (
            replica is None
            or replica.row.replica_generation != due.row.replica_generation
        ):
            return None
        return DueReplica(replica, view)

    def _poll_state(
        self,
        job: JobContext,
        due: DueReplica,
        synced: list[SyncedReplica],
        on_slow: Callable[[], object] | None,
    ) -> None:
        """Poll the state of a passive replica."""
        row, view = due.row, due.view
        reply, synced_at = outcomes.split_state_reply(
            self._ask(
                due,
                'state',
                on_slow,
                self.driver.update_replica_state,
                driver_context(),
                view.replicas_for_driver(self.names),
                self._for_driver(due.replica),
                view.rules_for_driver(row.id, self.driver),
                view.snapshot_pairs(row.id, self.names),
            )
        )
        if synced_at is not None:
            synced.append(SyncedReplica(row.id, row.replica_generation, synced_at))
        if outcomes.claims_active_role(reply, row.replication_type):
            self.role_writer.request_correction(job.claim, view, row.id)
        state = outcomes.reported_state(reply, row.replication_type)
        transitions = outcomes.transitions_for(
            row.status,
            row.replica_state,
            state,
            outcomes.missing_snapshots(view, row.id),
        )
        if transitions == Transitions() and not may_retry_rules(row, state):
            return
        if transitions.failed:
            LOG.error(
                'Replica %s on %s failed: %s',
                row.id,
                self.service_host,
                reply.value,
                exc_info=reply.error,
            )
        details: Mapping[str, typing.Any] = {}
        if transitions.healed and not due.replica.exports:
            # It was created, but the reply to that call was lost.
            details = self._get_status(due, on_slow)[0]
        self.outcome_writer.write_state(
            job.claim,
            due.replica,
            state,
            details,
            _explanation(due, 'update_replica_state', reply),
        )

    def _check_active(
        self, job: JobContext, due: DueReplica, on_slow: Callable[[], object] | None
    ) -> None:
        """Check the role of the active replica, or heal it.

        It is healed after a failed promotion only; other errors stay.
        """
        row, is_in_error = due.row, due.row.status == InstanceStatus.ERROR
        if not (
            len(due.view.replicas) > 1
            and job.read(updates.has_failed_promotion, row.id)
            if is_in_error
            else row.replication_type in PROMOTABLE
        ):
            return
        details, reply = self._get_status(due, on_slow)
        if outcomes.denies_active_role(reply) and not is_in_error:
            self.role_writer.request_correction(job.claim, due.view)
        elif is_in_error and details:
            self.outcome_writer.write_healed(job.claim, due.replica, details)
        elif isinstance(reply.error, NotImplementedError):
            self._log_unsupported()
        elif not details:
            LOG.warning(
                'Active replica %s is not reported as available: %s',
                row.id,
                reply.error or reply.value,
            )

    def _log_unsupported(self) -> None:
        if not self._is_unsupported_logged:
            self._is_unsupported_logged = True
            LOG.warning(
                'The roles of active replicas on %s are not checked: its '
                'driver has no get_replica_status',
                self.service_host,
            )

    def _get_status(
        self, due: DueReplica, on_slow: Callable[[], object] | None
    ) -> tuple[Mapping[str, typing.Any], DriverReply]:
        """Return the details of an available replica, and the reply."""
        reply = self._ask(
            due,
            'status',
            on_slow,
            with_normalised_exports(self.driver.get_replica_status),
            self._for_driver(due.replica),
        )
        is_available = (
            isinstance(reply.value, Mapping)
            and reply.value.get('status') == InstanceStatus.AVAILABLE
        )
        return reply.value if is_available else {}, reply

    def _ask(
        self,
        due: DueReplica,
        what: str,
        on_slow: Callable[[], object] | None,
        method: Callable[..., typing.Any],
        *args: object,
    ) -> DriverReply:
        return self.probe.ask(
            ProbeSubject(due.row.id, due.row.replica_generation, what),
            with_server(method, due.replica.share_server),
            *args,
            on_slow=on_slow,
        )

    def _for_driver(self, replica: share_view.LoadedInstance) -> ShareForDriver:
        return share_view.share_for_driver(replica, self.names.share)


def _explanation(due: DueReplica, method: str, reply: DriverReply) -> str | None:
    """Return what the driver says of a failure, for administrators."""
    if reply.error is not None:
        return messages.explanation_in(reply.error)
    reported = reply.value
    if isinstance(reported, Mapping):
        reported = reported.get('status')
    return f'{method} of back end {due.row.host} reports {reported!r}'


def _supports_replication(stats: Mapping[str, typing.Any]) -> bool:
    """Return whether a back end reports any replication type."""
    return any(
        one.get('replication_type') for one in (stats, *(stats.get('pools') or ()))
    )
