"""Read the pools that the scheduler can choose."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import threading

import orjson

from manila_lite.db.queries.services import pools as pool_rows, services
from manila_lite.db.rows import PoolAllocationRow, PoolReportRow, ServiceRow
from manila_lite.db.session import Database, Session
from manila_lite.rpc.share import BINARY
from manila_lite.scheduler.pools import Capabilities, Pool

MAX_AGE = 1.0
"""Seconds for which pools are ranked by what was read."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Report:
    """A parsed report; it never changes."""

    reported_at: float
    capabilities: Capabilities
    total_gb: float | None
    free_gb: float | None


class PoolReader:
    """Reads pools, and keeps what it has read for a second.

    A report is read and parsed once; it is identified by its pool and
    `reported_at`. What is kept only ranks pools: an allocation is guarded
    by the present row, and a request is refused for what `read` returns.
    """

    def __init__(self, db: Database, down_time: float):
        self.db = db
        self.down_time = down_time
        self._lock = threading.Lock()
        self._reports: Mapping[str, _Report] = {}
        self._pools: dict[str, Pool] = {}
        self._read_at: float | None = None
        self._begun = itertools.count(1)
        self._shown = 0

    def read(self) -> list[Pool]:
        """Return all pools as they are now, ordered by host.

        No lock is held meanwhile: the database may take long. Of two reads
        at the same time the one that began later is kept.
        """
        number = next(self._begun)
        read_at = self.db.clock()
        allocations, found, reports = self.db.read(self._rows, self._reports)
        serving = {row.host: row for row in found if row.binary == BINARY}
        pools = {
            row.host: self._pool(row, serving[row.service_host], reports[row.host])
            for row in allocations
            if row.service_host in serving and row.host in reports
        }
        before = self._pools
        # What was said of a pool is kept with it, see `rankings`.
        for host, pool in pools.items():
            if before.get(host) == pool:
                pools[host] = before[host]
        with self._lock:
            if number > self._shown:
                self._shown, self._read_at = number, read_at
                self._reports, self._pools = reports, pools
        return list(pools.values())

    def recent(self) -> list[Pool]:
        """Return all pools as they were at most MAX_AGE seconds ago."""
        with self._lock:
            # The clock may have been set back.
            if (
                self._read_at is not None
                and 0 <= self.db.clock() - self._read_at < MAX_AGE
            ):
                return list(self._pools.values())
        return self.read()

    def expire(self) -> None:
        """Read the pools again when they are needed next."""
        with self._lock:
            self._read_at = None

    def note_allocation(self, host: str, gb: int) -> None:
        """Count an allocation on a pool until it is read again."""
        with self._lock:
            pool = self._pools.get(host)
            if pool is not None:
                self._pools[host] = pool.with_allocation(gb)

    def _rows(
        self, session: Session, kept: Mapping[str, _Report]
    ) -> tuple[Sequence[PoolAllocationRow], Sequence[ServiceRow], dict[str, _Report]]:
        allocations = pool_rows.list_allocations(session)
        known = {
            row.host: report
            for row in allocations
            if (report := kept.get(row.host)) and report.reported_at == row.reported_at
        }
        new = [row.host for row in allocations if row.host not in known]
        parsed = {
            row.host: _report(row) for row in pool_rows.list_reports(session, new)
        }
        return allocations, services.list_all(session), known | parsed

    def _pool(
        self, row: PoolAllocationRow, service: ServiceRow, report: _Report
    ) -> Pool:
        return Pool(
            host=row.host,
            capabilities=report.capabilities,
            zone=service.zone,
            service_up=services.is_up(service, self.down_time),
            service_enabled=not service.disabled,
            total_gb=report.total_gb,
            free_gb=report.free_gb,
            allocated_gb=row.allocated_gb,
            pending_gb=row.pending_gb,
            reported_at=report.reported_at,
            service_health=service.health,
            service_heartbeat_at=service.heartbeat_at,
        )


def _report(row: PoolReportRow) -> _Report:
    return _Report(
        row.reported_at,
        Capabilities(orjson.loads(row.capabilities)),
        row.total_gb,
        row.free_gb,
    )
