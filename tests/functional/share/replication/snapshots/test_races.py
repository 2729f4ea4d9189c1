"""Concurrent requests about the snapshots and replicas of one share.

In real threads, on each database. Whichever is accepted first, all
replicas end with the same snapshots and the same rules.
"""

import collections
from functools import partial
import itertools

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import snapshots
from tests.support import cloud_snapshots, sampling
from tests.support.concurrent_calls import are_accepted
from tests.support.racing_requests import delete, revert, take

pytestmark = [sampling.dialects, sampling.enumeration]

INSTANCE = snapshots.SnapshotInstance.__table__
RULE = snapshots.SnapshotInstanceAccessRule.__table__
SEEDS = sampling.seeds(8, 1)
REFUSED = (exception.ReplicationException, exception.InvalidStatus, exception.NotFound)


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(url=database_url)
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


# Requests about snapshots


def force_delete(cloud, share_id, snapshot_id):
    return cloud_snapshots.act(cloud, snapshot_id, 'force_delete', expect=None)


def allow(cloud, share_id, snapshot_id):
    return cloud_snapshots.act(
        cloud,
        snapshot_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=None,
    )


# Requests about replicas


def make(cloud, share_id):
    return cloud.request_replica(share_id)


def remove(cloud, share_id):
    return cloud.ask('delete', cloud.passive(share_id)[0])


def promote(cloud, share_id):
    return cloud.ask('promote', cloud.passive(share_id)[0])


@pytest.mark.parametrize(
    'change', [make, remove, promote], ids=lambda change: change.__name__
)
def test_all_replicas_end_with_the_same_snapshots(cloud, change):
    share_id = cloud.create_share_on('alpha', size=2)
    outcomes = collections.Counter()
    for seed, verb in itertools.product(
        SEEDS, (take, delete, force_delete, revert, allow)
    ):
        # Ids come from it as well and must not repeat.
        cloud.rng.seed(f'race {verb.__name__} {seed}')
        snapshot_id = begin(cloud, share_id)
        calls = [
            partial(verb, cloud, share_id, snapshot_id),
            partial(change, cloud, share_id),
        ]
        cloud.rng.shuffle(calls)
        accepted = are_accepted(*calls, refused=REFUSED)
        assert any(accepted)
        if (verb, change) == (revert, promote):
            assert not all(accepted)
        outcomes[verb.__name__, sum(accepted)] += 1
        cloud.settle()
        cloud.update()
        cloud.check_invariants()
        check(cloud, share_id)
        for one in cloud.api.get('/snapshots')['snapshots']:
            cloud_snapshots.delete(cloud, one['id'])
        cloud.settle()
        cloud.update()
    assert cloud.usage('snapshots') == (0, 0)
    print(dict(outcomes))


def begin(cloud, share_id):
    """Prepare two replicas in sync, and a snapshot on both."""
    cloud.beat()  # the database has a real clock
    while len(cloud.passive(share_id)) > 1:
        cloud.ask('delete', cloud.passive(share_id)[0])
        cloud.settle()
    if not cloud.passive(share_id):
        cloud.replicate(share_id)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    cloud.update()
    assert cloud_snapshots.show(cloud, snapshot_id)['status'] == 'available'
    return snapshot_id


def check(cloud, share_id):
    """Check that all replicas have the same snapshots and rules."""
    found = {row.id: [] for row in cloud.replicas(share_id)}
    for row in cloud.rows(
        sa.select(
            INSTANCE.c.share_instance_id,
            INSTANCE.c.snapshot_id,
            INSTANCE.c.status,
            RULE.c.access_id,
            RULE.c.state,
        ).select_from(INSTANCE.outerjoin(RULE))
    ):
        found[row.share_instance_id].append(tuple(row[1:]))
    assert len({tuple(sorted(map(str, rows))) for rows in found.values()}) == 1, found
