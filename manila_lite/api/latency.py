"""How long the requests of a process took, for the charts of the page.

Each process of the API adds its own counts to the table of samples, and
schedulers make one figure of them.
"""

import functools

from manila_lite import metrics
from manila_lite.db.queries.services import samples
from manila_lite.db.queries.services.samples import Latencies
from manila_lite.db.session import Database

INTERVAL = 60.0
"""Seconds between two reports; what a process has not reported is lost."""

_PREFIX = '/v2'


class LatencyReports:
    """Reports the requests that were answered since the last report."""

    def __init__(self, db: Database, process_id: str):
        self.db, self.process_id = db, process_id
        self._reported = _counted()

    def run_pass(self) -> bool:
        """Write what is new; return whether there was anything."""
        counted = _counted()
        counts = [
            now - before
            for now, before in zip(counted.counts, self._reported.counts, strict=True)
        ]
        if not any(counts):
            return False
        found = counted._replace(counts=counts)
        self.db.write(samples.add_latencies, self.process_id, found, fsync=False)
        self._reported = counted
        return True


def _counted() -> Latencies:
    """Return the counts of all requests to the API, without those to the page."""
    bounds = metrics.REQUESTS.bounds
    none = Latencies(bounds, [0] * (len(bounds) + 1))
    found = [
        Latencies(bounds, distribution.counts)
        for (_, route, _), distribution in metrics.REQUESTS.family().samples.items()
        if route.startswith(_PREFIX)
    ]
    return functools.reduce(Latencies.plus, found, none)
