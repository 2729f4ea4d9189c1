"""Whether processes of a cluster need more and more memory."""

import dataclasses
import statistics

from benchmarks.service import memory
from tests.cluster import cluster

WARM = 3
"""Rounds after which a process has loaded what it uses."""

MOST = 1.15, 8.0
"""By which factor, and by how many MiB more, it may grow after that."""


@dataclasses.dataclass
class Growth:
    """The memory of each process, as it was after each round of its life."""

    seen: dict[tuple[str, str], list[float]] = dataclasses.field(default_factory=dict)

    def look(self, running: cluster.Cluster) -> str:
        """Note the memory of all processes; return what they need now."""
        now = []
        for service in running.services.values():
            for pid in service.node.pids():
                started = cluster.started_at(pid)
                if started is None:
                    continue
                now.append(_memory(pid))
                key = service.name, f'{pid} of {started}'
                self.seen.setdefault(key, []).append(now[-1])
        return f'{len(now)} processes, {sum(now):.0f} MiB'

    def problems(self) -> list[str]:
        """Return the processes that have grown, in their last rounds, too."""
        factor, more = MOST
        return [
            f'{name}, {pid}, has grown: '
            + ', '.join(f'{one:.1f}' for one in found)
            + ' MiB'
            for (name, pid), found in self.seen.items()
            if len(found) >= 3 * WARM
            and statistics.median(found[-WARM:])
            > factor * statistics.median(found[WARM : 2 * WARM]) + more
        ]


def _memory(pid: int) -> float:
    try:
        return memory(pid)
    except (LookupError, OSError):
        return 0.0  # it ends just now
