"""Updates of replicas that are behind, broken or short of a snapshot.

After the next update everything is as without the crash: healthy replicas
are available and in sync, with all snapshots, and users have at most one
message about each failure.
"""

import contextlib

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import SHARE_REPLICA
from tests.simulation import crash_images
from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots
from tests.support.replicated import ReplicatedCloud

MESSAGE = services.Message.__table__

HEALTHY = {'alpha': ('available', 'active'), 'beta': ('available', 'in_sync')}


class CrashableReplicatedCloud(crash_images.CrashableCloud, ReplicatedCloud):
    """A replicated cloud with crash points."""

    def check(self):
        """Assert that all replicas are healthy after the next update."""
        self.settle()
        self.update()
        self.check_invariants()
        for share_id in self.shares():
            assert self.states(share_id) == HEALTHY
            alpha, beta = (self.snapshots_on(row.id) for row in self.replicas(share_id))
            assert alpha == beta
            assert set(beta.values()) <= {'available'}
        notified = [row.resource_id for row in self.rows(sa.select(MESSAGE))]
        assert len(notified) == len(set(notified))

    def shares(self):
        return [row['id'] for row in self.api.get('/shares')['shares']]

    def reset(self, replica_id, status, state):
        """Reset a replica to a status and state."""
        for machine, value in ((SHARE_INSTANCE, status), (SHARE_REPLICA, state)):
            if value is not None:
                self.db.write(fire, machine, replica_id, machine.reset_event(value))


def resync(cloud, found):
    cloud.ask('resync', found['behind'])
    cloud.settle()


def fail_to_resync(cloud, found):
    with _failing_updates(cloud, 1, None):
        resync(cloud, found)


def resync_with_a_new_snapshot(cloud, found):
    cloud.ask('resync', found['coming'])
    cloud.settle()


def update(cloud, found):
    """Update replicas in error, out of sync, and with snapshots pending."""
    cloud.update()


def fail_to_update(cloud, found):
    with _failing_updates(cloud, 2, exception.ShareBackendException(msg='')):
        cloud.update()


@contextlib.contextmanager
def _failing_updates(cloud, times, error):
    faults = cloud.driver('beta').faults
    faults.fail_next('update_replica_state', times, error)
    yield
    # Another process may have made these calls, on a driver of its own.
    faults.clear()


VERBS = {
    'resync': resync,
    'resync fails': fail_to_resync,
    'resync with a new snapshot': resync_with_a_new_snapshot,
    'update': update,
    'update fails': fail_to_update,
}


def prepare(cloud):
    """Create replicas that need an update, each for another reason."""
    found = {}
    for kind in ('behind', 'coming', 'going', 'broken'):
        share_id = cloud.create_share_on('alpha')
        cloud.allow(share_id)
        found[kind] = cloud.replicate(share_id, 'beta')
        if kind in ('coming', 'going'):
            snapshot_id = cloud_snapshots.create(cloud, share_id)
            cloud.settle()
        if kind == 'going':
            cloud.update()
            cloud_snapshots.delete(cloud, snapshot_id)
            cloud.settle()
        if kind == 'broken':
            active = cloud.active(share_id).id
            cloud.db.write(fire, SHARE_INSTANCE, active, 'replica_failed')
            cloud.reset(found[kind], 'error', 'error')
    cloud_snapshots.create(cloud, cloud.replica(found['coming']).share_id)
    cloud.settle()
    cloud.reset(found['behind'], None, 'out_of_sync')
    return found


SCENE = Scene(
    name='replica updates',
    prepare=prepare,
    verbs=VERBS,
    kind=CrashableReplicatedCloud,
    options={'backends': ('alpha', 'beta')},
    check=CrashableReplicatedCloud.check,
    seeds=(40, 1),
    least=4,
)
