from tests.drivers import contract


class TestShares(contract.ShareContract):
    """Their whole life, and what every verb does when repeated."""


class TestStats(contract.StatsContract):
    """What the scheduler is told."""


class TestSnapshots(contract.SnapshotContract):
    """Snapshots, and what is made with them."""
