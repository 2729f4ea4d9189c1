"""Requests of many clients to a cluster while its nodes fail at random.

After each round everything is mended. Then nothing may be in flight, and what
clients were promised, the quota, the journal and the back ends have to agree.
"""

from collections.abc import Callable, Iterable, Iterator
import pathlib
import random
import time
import typing
from typing import NamedTuple

import sqlalchemy as sa

from manila_lite.db.models import engine, shares, snapshots
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.drivers.dummy.fencing import FencingGate
from manila_lite.share.drivers.dummy.state import DummyState, share_exports
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work import table
from tests.cluster.cluster import Cluster
from tests.cluster.fault import Fault
from tests.cluster.faults import Faults
from tests.cluster.load import ClusterLoad
from tests.cluster.overlaps import OverlapWatch
from tests.cluster.server_faults import BROKERS_AWAY
from tests.cluster.services import Timing
from tests.support import invariants, snapshot_access_invariants, snapshot_invariants
from tests.support.load import NO_RESPONSE_ERRORS
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

TIMING = Timing(
    report_interval=1, service_down_time=6, lease=3, sweep=0.3, recovery=5, delay=0.1
)
CLIENTS = 16
OVERLAP = 'overlapping calls'
AT_REST_WITHIN = 120.0
"""Seconds after which something counts as stuck; far more than it takes."""


JOURNAL = engine.Transition.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__


_BEHIND = (
    sa.select(SNAPSHOT_INSTANCE.c.id, SNAPSHOT_INSTANCE.c.status)
    .select_from(SNAPSHOT_INSTANCE.join(INSTANCE))
    .where(
        SNAPSHOT_INSTANCE.c.status.in_(
            [SnapshotStatus.CREATING, SnapshotStatus.DELETING]
        ),
        INSTANCE.c.replica_state.in_(sorted(PASSIVE)),
    )
)


def _moves_of(session: Session, id: str) -> list[str]:
    """Return the moves of a resource, oldest first."""
    return [
        f'{row.made_at} {row.resource} {row.event}: {row.from_status} to '
        f'{row.to_status} by {row.made_by}, {row.reason}'
        for row in session.rows(
            sa.select(JOURNAL).where(JOURNAL.c.resource_id == id).order_by(JOURNAL.c.id)
        )
    ]


def _instances_beside(session: Session, id: str) -> list[str]:
    """Return the instances of the share that an id belongs to."""
    own = sa.select(INSTANCE.c.share_id).outerjoin(
        SNAPSHOT_INSTANCE, SNAPSHOT_INSTANCE.c.share_instance_id == INSTANCE.c.id
    )
    return [
        f'{row.id} {row.status} {row.replica_state} on {row.host}'
        for row in session.rows(
            sa.select(INSTANCE).where(
                INSTANCE.c.share_id.in_(
                    own.where(
                        (INSTANCE.c.id == id)
                        | (SNAPSHOT_INSTANCE.c.id == id)
                        | (INSTANCE.c.share_id == id)
                    )
                )
            )
        )
    ]


class Result(NamedTuple):
    """What one round found; nothing in `problems` is how it should be."""

    text: str
    problems: list[str]


class PatientClient(RestClient):
    """Repeats requests that a busy machine does not answer in time."""

    @classmethod
    def like(cls, other: RestClient) -> 'PatientClient':
        return cls(other.url, headers=other.headers)

    def request(self, *args: object, **facts: object) -> typing.Any:
        return wait_until(
            lambda: self._answered(*args, **facts), 'the API answers', 180.0
        )[0]

    def _answered(self, *args: object, **facts: object) -> list | None:
        try:
            return [super().request(*args, **facts)]
        except NO_RESPONSE_ERRORS:
            return None
        except AssertionError:
            if self.last.status_code in (502, 503, 504):
                return None
            raise


class Chaos:
    """Rounds of faults under load, decided by a seed."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        per_minute: int = 300,
        faults: str = '',
        at_rest_within: float = AT_REST_WITHIN,
        rest: Callable[[str], RestClient] | None = None,
    ):
        self.cluster = cluster
        self._at_rest_within = at_rest_within
        rest = rest or cluster.rest
        self.faults = Faults(cluster, random.Random(f'{seed} faults'), faults)
        self.load = ClusterLoad(
            lambda: rest('project'),
            lambda: rest('receiver'),
            seed,
            with_data_service=cluster.size.data > 0,
            per_minute=per_minute,
            clients=CLIENTS,
        )
        self._watch = OverlapWatch(self._gates)
        self._lost: set[str] = set()
        """How back ends differ from rows since transactions were lost."""

    def round(self, seconds: float) -> Result:
        """Let faults happen for some seconds; return what became of it."""
        with self._watch.watching():
            return self._round(seconds)

    def _round(self, seconds: float) -> Result:
        self.faults.forget()
        before = self._accepted
        deadline = time.monotonic() + seconds
        problems = []
        self.load.start()
        try:
            while time.monotonic() < deadline:
                problems += self._fault()
        finally:
            self.load.stop()
        self.cluster.wait_until_ready()
        found = self.load.enable_services(self._patient_client())
        began = time.monotonic()
        stuck = self._wait_until_at_rest()
        text = (
            f'{self._accepted - before} accepted, '
            f'{self.load.repeated} repeated, '
            f'{self.load.incomplete} answered in part, '
            f'at rest after {time.monotonic() - began:.1f} s; '
            + ', '.join(self.faults.happened)
        )
        if stuck:
            return Result(text, [*problems, *stuck])
        found += [one for one in self._problems() if one not in self._lost]
        if self.faults.lost:
            lost = {
                one
                for one in set(found) - set(self._of_rows())
                if not one.startswith(OVERLAP)
                and any(id in one for id in self.faults.lost)
            }
            self._lost |= lost
            text += (
                f'; {len(lost)} differences by lost moves of '
                f'{len(self.faults.lost)} resources'
            )
            found = [one for one in found if one not in lost]
        return Result(text, [*problems, *found])

    def _patient_client(self) -> PatientClient:
        return PatientClient.like(self.cluster.rest())

    @property
    def _accepted(self) -> int:
        return sum(self.load.accepted.values())

    def _fault(self) -> list[str]:
        """Let a fault happen; return what is wrong about it."""
        before, problems = self._accepted, []

        def check(fault: Fault) -> None:
            if not fault.has_effect():
                problems.append(f'{fault.name} had no effect')
            if fault.name == BROKERS_AWAY and self._accepted == before:
                problems.append(f'{fault.name}: no request was accepted')

        self.faults.happen(check)
        return problems

    def settle(self) -> list[str]:
        """Wait until nothing is in flight; return what is wrong then."""
        return self._wait_until_at_rest() or [*self._problems()]

    def _of_rows(self) -> Iterator[str]:
        """Yield what no loss of transactions explains."""
        yield from self.cluster.db.read(invariants.of_rows)
        yield from self.load.server_errors

    def _wait_until_at_rest(self) -> list[str]:
        """Return what is still in flight when it should be at rest."""
        try:
            wait_until(
                lambda: not self._in_flight(),
                'nothing is in flight',
                self._at_rest_within,
                interval=0.5,
            )
        except AssertionError:
            return [*self._in_flight(), *self._histories()]
        return []

    def _histories(self) -> Iterator[str]:
        """Yield the moves of what is stuck, and of what it belongs to."""
        db = self.cluster.db
        stuck = {
            id
            for kind in recovery.KINDS
            for row in db.read(recovery.list_in_flight, kind, most=1000)
            for id in (row.id, row.subject_id)
        }
        for id in sorted(stuck):
            for instance in db.read(_instances_beside, id):
                yield f'beside {id}: {instance}'
            for move in db.read(_moves_of, id):
                yield f'{id}: {move}'

    def _in_flight(self) -> list[str]:
        """Return what is in flight, without what waits for another resource.

        That one is in flight itself, or waits for a request: a migration
        after its first phase. Snapshots on replicas that are not active wait
        for the next update of these.
        """
        db = self.cluster.db
        return [
            *(
                f'{row.kind} for {row.resource_id} is {row.state}'
                for row in db.read(table.list_work)
            ),
            *(
                f'{row.resource} {row.id} is {row.status}'
                for kind in recovery.KINDS
                for row in db.read(recovery.list_in_flight, kind, most=1000)
                if not row.waits
            ),
            *(
                f'snapshot {row.id} is {row.status} until its replica is updated'
                for row in db.read(lambda session: session.rows(_BEHIND))
            ),
        ]

    def _problems(self) -> Iterator[str]:
        folders = {
            service.service_host: self.cluster.dummy_state(service.backend)
            for service in self.cluster.of_kind('share')
        }
        read = self.cluster.db.read
        yield from read(invariants.problems, folders)
        for check, inventory in (
            (snapshot_invariants, dummy.snapshot_inventory),
            (snapshot_access_invariants, dummy.snapshot_access_inventory),
        ):
            yield from read(
                check.problems,
                {host: inventory(path) for host, path in folders.items()},
            )
        yield from self.load.check(self._patient_client())
        yield from self._unmanaged(folders.values())
        yield from self._overlaps()

    def _unmanaged(self, folders: Iterable[pathlib.Path]) -> Iterator[str]:
        """Yield the shares that were unmanaged and have lost their data."""
        paths = {
            location['path']
            for folder in folders
            for records in (
                DummyState(folder).shares,
                DummyState(folder).unmanaged_shares,
            )
            for _, record in records.records()
            for location in share_exports(record)
        }
        for path in self.load.unmanaged.keys() - paths:
            yield f'{path} was unmanaged and is not on its back end'

    def _overlaps(self) -> Iterator[str]:
        """Yield the driver calls that ran at once for different work.

        A process that could not renew its lease is in its call when another
        one takes over; the token keeps it from changing anything.
        """
        for seen in self._watch.take(self.faults.lost_leases):
            yield f'{OVERLAP} on {seen.backend}: {seen.overlap}'

    def _gates(self) -> dict[str, FencingGate]:
        return {
            service.backend: FencingGate(self.cluster.dummy_state(service.backend))
            for service in self.cluster.of_kind('share')
        }
