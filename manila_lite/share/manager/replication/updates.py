"""Looks how well replicas follow, on the back end that each is on.

On a timer one piece of work goes through all the replicas of a back end,
page by page; an administrator has one of them looked at now. First the
driver is asked about snapshots that are on their way to the replica, or
from it, then about the replica itself. Nothing is written about what is
as it was.

Nobody asks a driver about a replica while others change who is active:
all of that is done under the lock of the share, and what was read before
is looked at again behind it. The locks of many replicas are had at once,
for as long as `HOLD`, so that one look does for all of them.
"""

from collections.abc import Callable, Mapping
import contextlib
import functools
import logging
import time
import typing

from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.replicas import updates as replica_updates
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import ReplicaUpdatesRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.replication import outcomes
from manila_lite.share.manager.replication.lock import LOCKED_PAUSE
from manila_lite.share.manager.replication.lock import replica_lock_name
from manila_lite.share.manager.replication.outcome_writer import OutcomeWriter
from manila_lite.share.manager.replication.outcome_writer import changed_fields
from manila_lite.share.manager.replication.outcome_writer import (
    is_role_or_data_changing,
)
from manila_lite.share.manager.replication.outcomes import DriverReply
from manila_lite.share.manager.replication.outcomes import SnapshotOutcome
from manila_lite.share.manager.replication.outcomes import Transitions
from manila_lite.share.manager.replication.probe import ProbeSubject
from manila_lite.share.manager.replication.probe import ReplicaProbe
from manila_lite.share.manager.replication.probe import ReplicaProbePending
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import ReplicaState

LOG = logging.getLogger(__name__)

PAGE_SIZE = 1000
"""How many replicas are read at once."""

GROUP_SIZE = 200
"""How many locks a pass has at once; each may cost an open file."""

LOCK_SECONDS = 1.0
"""Seconds for which it has them, and the driver is asked."""

YIELD_AFTER = 10.0
"""Seconds after which other work has its turn before the pass goes on."""

UNRESPONSIVE_PAUSE = 10.0
"""Seconds before a back end that does not answer is asked again."""

_PASS = f'{ReplicaUpdatesRpc.name}.update_share_replicas'


class DueReplica(typing.NamedTuple):
    """A replica that is to be updated, and its share as it was read."""

    found: LoadedInstance
    view: ReplicatedShare

    @property
    def row(self) -> typing.Any:
        return self.found.row


class ReplicaPage(typing.NamedTuple):
    """Some of the replicas; `last` is where others follow, or None."""

    due: list[DueReplica]
    last: str | None


@implements(ReplicaUpdatesRpc)
class ReplicaUpdatesEndpoint:
    """The updates of the replicas that are on one back end."""

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        updates: Client,
        service_host: str,
        outcome_writer: OutcomeWriter,
        *,
        names: NameTemplates,
        locks: Coordinator | NullCoordinator,
        probe: ReplicaProbe,
        page: int = PAGE_SIZE,
        yield_after: float = YIELD_AFTER,
        lock_seconds: float = LOCK_SECONDS,
    ):
        self.db = db
        self.driver = driver
        self.updates = updates.on(service_host)
        self.service_host = service_host
        self.outcome_writer = outcome_writer
        self.names = names
        self.locks = locks
        self.probe = probe
        self.page = page
        self.yield_after = yield_after
        self.lock_seconds = lock_seconds

    # The timer

    def request_pass(self) -> bool:
        """Ask for a pass, unless there is nothing to be updated.

        One that is still under way goes on: begun anew, it would never
        come to the last of the replicas.
        """
        if not _replicates(self.driver.get_share_stats()):
            return False
        wanted_by = self.db.read(self._is_wanted)
        if wanted_by is None:
            return False
        self.db.write(self._ask_for_pass, wanted_by)
        return True

    def _is_wanted(self, session: Session) -> int | None:
        """The id of the service, if there is something to be done."""
        service = services.get(session, self.service_host, BINARY)
        if replica_updates.is_work_pending(
            session, _PASS, service.id
        ) or not replica_updates.list_page(session, self.service_host, '', 1):
            return None
        return service.id

    def _ask_for_pass(self, session: Session, service_id: int) -> None:
        self.updates.update_share_replicas(
            session, RequestContext(), service_id=service_id
        )

    # The pass

    def update_share_replicas(self, job, service_id, after=''):
        page = job.read(self._read, after)
        try:
            done = self._update_page(job, page)
        except BackendUnresponsive as away:
            LOG.warning(
                'Replicas of %s are not updated: %s', self.service_host, away
            )
            job.finish(_nothing)
            return
        after = (
            page.last if done == len(page.due) else page.due[done - 1].row.id
        )
        if after is None:
            job.finish(_nothing)
        else:
            job.continue_with({**job.args, 'after': after}, _nothing)

    def _read(self, session: Session, after: str) -> ReplicaPage:
        rows = replica_updates.list_page(
            session, self.service_host, after, self.page + 1
        )
        wanted = rows[: self.page]
        views = (
            replica_view.load_replicated_shares(
                session, {row.share_id for row in wanted}
            )
            if wanted
            else {}
        )
        due = [
            DueReplica(found, views[row.share_id])
            for row in wanted
            if (found := views[row.share_id].get(row.id))
        ]
        return ReplicaPage(
            due, wanted[-1].id if len(rows) > self.page else None
        )

    def _update_page(self, job, page: ReplicaPage) -> int:
        """Update one after the other; how many before the turn is over."""
        done, size, until = 0, GROUP_SIZE, time.monotonic() + self.yield_after
        while done < len(page.due):
            count = self._update_group(job, page.due[done : done + size])
            done += count
            # Where drivers are slow others shall not wait for the locks.
            size = min(GROUP_SIZE, 2 * count)
            if time.monotonic() >= until:
                break
        return done

    def _update_group(self, job, group: list[DueReplica]) -> int:
        """Update as many as can be in `HOLD` seconds, but one; how many.

        Those whose lock another has are left to the next pass: whoever
        has it knows how they are.
        """
        with _Locks(self.locks, group) as locks:
            rounds = job.read(
                replica_updates.get_generations,
                [one.row.id for one in group if locks.has(one)],
            )
            until = time.monotonic() + self.lock_seconds
            done = 0
            for one in group:
                done += 1
                if (
                    locks.has(one)
                    and rounds.get(one.row.id) == one.row.replica_generation
                ):
                    self._update(
                        job, one, functools.partial(locks.let_go, but=one)
                    )
                if locks.are_gone or time.monotonic() >= until:
                    break
        return done

    # One

    def update_share_replica(self, job, share_replica_id):
        share_id = job.read(replica_updates.find_share_id, share_replica_id)
        if share_id is None:
            job.finish(_nothing)
            return
        with self.locks.try_lock(replica_lock_name(share_id)) as held:
            pause = self._update_one(job, share_id) if held else LOCKED_PAUSE
        if pause is None:
            job.finish(_nothing)
        else:
            job.release(pause)
            job.wake_after = pause

    def _update_one(self, job, share_id: str) -> float | None:
        """Look at one replica; seconds to wait where that has to wait."""
        view = job.read(replica_view.load_replicated_share, share_id)
        found = view.get(job.resource_id)
        if is_role_or_data_changing([one.row for one in view.replicas]):
            return LOCKED_PAUSE
        if (
            found is None
            or found.row.status not in replica_updates.POLLED_STATUSES
        ):
            return None
        try:
            self._update(job, DueReplica(found, view))
        except BackendUnresponsive as away:
            LOG.warning('Replica %s waits: %s', found.row.id, away)
            return UNRESPONSIVE_PAUSE
        return None

    def _update(
        self, job, due: DueReplica, on_slow: Callable[[], object] | None = None
    ) -> None:
        """Ask the driver all there is about a replica, and note it."""
        if is_role_or_data_changing([one.row for one in due.view.replicas]):
            return
        try:
            if due.row.replica_state == ReplicaState.ACTIVE:
                self._heal(job, due, on_slow)
            elif due.view.active is not None:
                due = self._poll(job, due, on_slow)
                if due is not None:
                    self._look(job, due, on_slow)
        except ReplicaProbePending as error:
            LOG.error('%s: %s', self.service_host, error)
            # What keeps silent for so long may well not follow.
            if error.overdue and due.row.replica_state == ReplicaState.IN_SYNC:
                self.outcome_writer.state(
                    job.claim, due.found, ReplicaState.OUT_OF_SYNC
                )

    def _poll(self, job, due: DueReplica, on_slow) -> DueReplica | None:
        """Ask about its snapshots; the replica as it is afterwards."""
        is_changed = False
        for one in outcomes.pending_snapshots(due.view, due.row.id):
            said = self._ask(
                due,
                one.row.id,
                on_slow,
                _understood(self.driver.update_replicated_snapshot),
                RequestContext(),
                due.view.shown(self.names),
                self._shown(due.found),
                [
                    replica_view.snapshot_for_driver(other, self.names)
                    for other in due.view.instances_of(one.row.snapshot_id)
                ],
                replica_view.snapshot_for_driver(one, self.names),
            )
            news = outcomes.snapshot_outcome(
                one.row.status, said, due.row.replication_type
            )
            if news.failed:
                LOG.warning(
                    'Snapshot %s on replica %s failed',
                    one.row.snapshot_id,
                    due.row.id,
                    exc_info=said.error,
                )
            if news.event or _is_news(one.row, news):
                is_changed |= self.outcome_writer.snapshot(
                    job.claim, due.found, one.row, news
                )
        if not is_changed:
            return due
        view = job.read(replica_view.load_replicated_share, due.view.share_id)
        found = view.get(due.row.id)
        if (
            found is None
            or found.row.replica_generation != due.row.replica_generation
        ):
            return None
        return DueReplica(found, view)

    def _look(self, job, due: DueReplica, on_slow) -> None:
        """Ask how well it follows."""
        row, view = due.row, due.view
        said = self._ask(
            due,
            'state',
            on_slow,
            self.driver.update_replica_state,
            RequestContext(),
            view.shown(self.names),
            self._shown(due.found),
            view.rules_for_driver(row.id, self.driver),
            view.pairs(row.id, self.names),
        )
        answer = outcomes.reported_state(said, row.replication_type)
        moves = outcomes.transitions_for(
            row.status,
            row.replica_state,
            answer,
            outcomes.missing_snapshots(view, row.id),
        )
        if moves == Transitions():
            return
        if moves.failed:
            LOG.error(
                'Replica %s on %s failed: %s',
                row.id,
                self.service_host,
                said.value,
                exc_info=said.error,
            )
        told = {}
        if moves.healed and not due.found.exports:
            # It was made when the answer to that was lost.
            told = self._status(due, on_slow)[0]
        self.outcome_writer.state(job.claim, due.found, answer, told)

    def _heal(self, job, due: DueReplica, on_slow) -> None:
        """Ask whether an active replica in error is there after all.

        One that has no others was never promoted, and another may be in
        error since it was reverted, say: what is wrong with it then is
        another matter.
        """
        if (
            due.row.status != InstanceStatus.ERROR
            or len(due.view.replicas) == 1
            or not job.read(replica_updates.has_failed_promotion, due.row.id)
        ):
            return
        answer, said = self._status(due, on_slow)
        if answer:
            self.outcome_writer.healed(job.claim, due.found, answer)
        else:
            LOG.warning(
                'Active replica %s is still in error: %s',
                due.row.id,
                said.error or said.value,
            )

    def _status(
        self, due: DueReplica, on_slow
    ) -> tuple[typing.Any, DriverReply]:
        """What is really there of a replica; nothing if it is not well."""
        said = self._ask(
            due,
            'status',
            on_slow,
            _understood(self.driver.get_replica_status),
            self._shown(due.found),
        )
        is_well = (
            isinstance(said.value, Mapping)
            and said.value.get('status') == InstanceStatus.AVAILABLE
        )
        return said.value if is_well else {}, said

    def _ask(
        self, due: DueReplica, what: str, on_slow, method, *args
    ) -> DriverReply:
        return self.probe.ask(
            ProbeSubject(due.row.id, due.row.replica_generation, what),
            _asked(method, due.found.share_server),
            *args,
            on_slow=on_slow,
        )

    def _shown(self, found: LoadedInstance):
        return share_view.share_for_driver(found, self.names.share)


class _Locks:
    """The locks of the shares of some replicas, as many as are free."""

    def __init__(
        self, locks: Coordinator | NullCoordinator, group: list[DueReplica]
    ):
        self._locks = locks
        self._wanted = sorted({one.row.share_id for one in group})
        self._held: dict[str, contextlib.ExitStack] = {}
        self._all = contextlib.ExitStack()
        self.are_gone = False

    def __enter__(self) -> '_Locks':
        with self._all:
            for share_id in self._wanted:
                own = self._all.enter_context(contextlib.ExitStack())
                if own.enter_context(
                    self._locks.try_lock(replica_lock_name(share_id))
                ):
                    self._held[share_id] = own
            self._all = self._all.pop_all()
        return self

    def __exit__(self, *error: typing.Any) -> None:
        self._all.__exit__(*error)

    def has(self, one: DueReplica) -> bool:
        return one.row.share_id in self._held

    def let_go(self, *, but: DueReplica) -> None:
        """Have others not wait for an answer about this one."""
        for share_id, own in self._held.items():
            if share_id != but.row.share_id:
                own.close()
        self.are_gone = True


def _replicates(stats: Mapping[str, typing.Any]) -> bool:
    """Whether a back end says that it has replicas of some type."""
    return any(
        one.get('replication_type')
        for one in (stats, *(stats.get('pools') or ()))
    )


def _understood(method: Callable) -> Callable:
    """The method; exports that make no sense are an error of the driver."""

    def ask(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        answer = method(*args, **kwargs)
        if isinstance(answer, Mapping):
            return {
                **answer,
                'export_locations': normalise_export_locations(
                    answer.get('export_locations')
                ),
            }
        return answer

    return ask


def _asked(method: Callable, server: typing.Any) -> Callable:
    return lambda *args: method(*args, share_server=server)


def _is_news(row: typing.Any, news: SnapshotOutcome) -> bool:
    return bool(changed_fields(row, news.values))


def _nothing(session: Session) -> None:
    """The work leaves nothing behind."""
