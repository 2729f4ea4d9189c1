"""Read and change the states of snapshots on replicas."""

import sqlalchemy as sa

from manila_lite.db.models import shares, snapshots as models
from tests.support import cloud_snapshots
from tests.support.replicated import backend_of

INSTANCE = models.SnapshotInstance.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__


def statuses(cloud, snapshot_id):
    """Return the status of every instance by its back end."""
    return {
        backend_of(row): row.status
        for row in cloud.rows(
            sa.select(INSTANCE.c.status, SHARE_INSTANCE.c.host)
            .join(SHARE_INSTANCE)
            .where(INSTANCE.c.snapshot_id == snapshot_id)
        )
    }


def status(cloud, snapshot_id):
    return cloud_snapshots.show(cloud, snapshot_id)['status']


def state(cloud, share_id, backend):
    return cloud.states(share_id)[backend][1]


def replica_on(cloud, share_id, backend):
    return next(row for row in cloud.replicas(share_id) if backend_of(row) == backend)


def complete(cloud, share_id):
    """Create a snapshot and wait until all replicas have it."""
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    cloud.update()
    assert status(cloud, snapshot_id) == 'available'
    return snapshot_id


def begin_promotion(cloud, share_id, backend='beta'):
    cloud.ask('promote', replica_on(cloud, share_id, backend).id)


def fall_out(cloud, share_id, backend='beta', what='out_of_sync'):
    cloud.ask('reset_replica_state', replica_on(cloud, share_id, backend).id, what)


class Terse:
    """A driver that reports of snapshots only what the test sets."""

    def __init__(self, driver, **answers):
        self._driver = driver
        self._answers = answers

    def __getattr__(self, name):
        found = getattr(self._driver, name)
        if name not in self._answers:
            return found

        def call(context, replica_list, replica_snapshots, **more):
            found(context, replica_list, replica_snapshots, **more)
            return self._answers[name](replica_snapshots)

        return call


def make_terse(cloud, backend='alpha', **answers):
    made = next(one for one in cloud.share.backends if one.host.endswith(f'@{backend}'))
    made.endpoints.snapshots.driver = Terse(made.endpoints.snapshots.driver, **answers)


def ask(cloud, verb, share_id, snapshot_id, code):
    if verb == 'take':
        cloud_snapshots.create(cloud, share_id, code)
    elif verb == 'delete':
        cloud_snapshots.delete(cloud, snapshot_id, code)
    else:
        cloud_snapshots.revert(cloud, share_id, snapshot_id, code)


def run(cloud, backend):
    """Run the pending work of one back end only."""
    runner = next(
        one.runner for one in cloud.share.backends if one.host.endswith(f'@{backend}')
    )
    while runner.step():
        pass


def found(cloud, query):
    return [one['id'] for one in cloud.api.get(f'/snapshots?{query}')['snapshots']]
