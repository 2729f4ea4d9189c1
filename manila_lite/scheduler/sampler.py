"""Writes the samples that charts show, one for each slot of time.

Every scheduler looks; the first one that finds a slot without a sample writes
it, and the key of the table refuses any other. A process that ends between
has written all samples of a slot or none.
"""

from manila_lite.db.queries.services import samples
from manila_lite.db.session import Database

LOOK_INTERVAL = 60.0
"""Seconds between two looks whether a slot has no sample."""


class Sampler:
    """The periodic pass; it only reads if the last slot has a sample."""

    def __init__(self, db: Database):
        self.db = db

    def run_pass(self) -> int:
        """Write the samples that are missing; return the number of slots."""
        count = 0
        for resolution, slot in self.db.read(samples.find_missing).items():
            figures = self.db.read(samples.measure, resolution, slot)
            # A lost sample would be a gap in a chart.
            count += self.db.write(
                samples.record, resolution, slot, figures, fsync=False
            )
            self.db.write(samples.prune, resolution, slot, fsync=False)
        return count
