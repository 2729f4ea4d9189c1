"""Concurrent requests about the replicas of one share.

In real threads, on each database. No work runs in the meantime, so that
accepted requests keep what they have reserved.
"""

import collections
import concurrent.futures
import functools
from functools import partial
import itertools
import threading

import pytest

from manila_lite import exception
from tests.support import sampling
from tests.support.concurrent_calls import are_accepted, at_once
from tests.support.racing_requests import extend, take

pytestmark = [sampling.dialects, sampling.enumeration]

CLIENTS = 10
SEEDS = sampling.seeds(20, 1)
REFUSED = (
    exception.ReplicationException,
    exception.InvalidStatus,
    exception.NotFound,
    exception.ShareHasReplicas,
    exception.ShareSoftDeleted,
)


@pytest.fixture
def build_cloud(build_cloud, database_url):
    return functools.partial(build_cloud, url=database_url)


def test_one_of_ten_concurrent_promotions_is_accepted(build_cloud):
    cloud = build_cloud()
    share_id = cloud.create_share_on('alpha')
    cloud.allow(share_id)
    for _ in range(2):
        cloud.replicate(share_id)
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        calls = [
            partial(cloud.ask, 'promote', cloud.rng.choice(cloud.passive(share_id)))
            for _ in range(CLIENTS)
        ]
        accepted = are_accepted(*calls, rng=cloud.rng, refused=REFUSED)
        assert accepted.count(True) == 1, seed
        changing = [
            row
            for row in cloud.replicas(share_id)
            if row.status == 'replication_change'
        ]
        assert len(changing) == 1
        cloud.run_pending()
        assert cloud.active(share_id).id == changing[0].id
    cloud.settle()
    cloud.check_invariants()
    print(f'{len(SEEDS)} times one of {CLIENTS}')


def test_concurrent_deletions_leave_one_writable_replica(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        while len(cloud.replicas(share_id)) < 3:
            cloud.replicate(share_id)
        accepted = are_accepted(
            *[
                partial(cloud.ask, cloud.rng.choice(['delete', 'force_delete']), row.id)
                for row in cloud.replicas(share_id)
            ],
            rng=cloud.rng,
            refused=REFUSED,
        )
        assert accepted.count(False) == 1, seed
        cloud.run_pending()
        assert [
            (row.status, row.replica_state) for row in cloud.replicas(share_id)
        ] == [('available', 'active')]
    cloud.settle()
    cloud.check_invariants()


def shrink(cloud, share_id):
    return cloud.api.act(
        share_id, 'shrink', {'new_size': cloud.api.show(share_id)['size'] - 1}, None
    )


def replicate(cloud, share_id):
    return cloud.request_replica(share_id)


def delete(cloud, share_id):
    """Of the replica being promoted."""
    return cloud.ask('delete', cloud.passive(share_id)[0])


def allow(cloud, share_id):
    return cloud.api.act(
        share_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': f'10.0.0.{cloud.rng.randrange(250)}'},
        None,
    )


def test_promotion_and_conflicting_requests_are_never_both_accepted(build_cloud):
    cloud = build_cloud()
    share_id = cloud.create_share_on('alpha', size=20)
    seen = collections.Counter()
    for seed, other in itertools.product(SEEDS, (take, extend, shrink, delete)):
        cloud.rng.seed(f'race {seed}')
        if not cloud.passive(share_id):
            cloud.replicate(share_id)
        promoted, accepted = are_accepted(
            partial(cloud.ask, 'promote', cloud.passive(share_id)[0]),
            partial(other, cloud, share_id),
            rng=cloud.rng,
            refused=REFUSED,
        )
        assert promoted != accepted, (seed, other.__name__)
        seen[other.__name__ if accepted else 'promote'] += 1
        cloud.settle()
        cloud.update()
    cloud.check_invariants()
    print(f'of both always one: {seen}')


def test_requests_compatible_with_promotion_apply_to_the_new_active_replica(
    build_cloud,
):
    """A failover does not wait for a replica being created."""
    cloud = build_cloud()
    share_id = cloud.create_share_on('alpha')
    for seed, other in itertools.product(SEEDS, (replicate, allow)):
        cloud.rng.seed(f'race {seed}')
        while len(cloud.passive(share_id)) > 1:
            cloud.ask('delete', cloud.passive(share_id)[1])
            cloud.settle()
        if not cloud.passive(share_id):
            cloud.replicate(share_id)
        wanted = cloud.passive(share_id)[0]
        accepted = are_accepted(
            partial(cloud.ask, 'promote', wanted),
            partial(other, cloud, share_id),
            rng=cloud.rng,
            refused=REFUSED,
        )
        cloud.settle()
        cloud.update()
        assert any(accepted)
        assert not accepted[0] or cloud.active(share_id).id == wanted
        assert {row.status for row in cloud.replicas(share_id)} == {'available'}
    cloud.check_invariants()


def test_share_is_not_deleted_while_a_replica_is_created(build_cloud):
    cloud = build_cloud()
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        share_id = cloud.create_share_on('alpha')
        how = cloud.rng.choice(['delete', 'soft_delete'])
        asked = (
            partial(cloud.api.delete, share_id, None)
            if how == 'delete'
            else partial(cloud.api.act, share_id, how, None, None)
        )
        replicated, deleted = are_accepted(
            partial(cloud.request_replica, share_id),
            asked,
            rng=cloud.rng,
            refused=REFUSED,
        )
        assert replicated != deleted, (seed, how)
        cloud.settle()
    cloud.check_invariants()


def test_concurrent_requests_place_one_replica_per_pool(build_cloud):
    cloud = build_cloud()
    competing_runners = cloud.competing_runners()
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        share_id = cloud.create_share_on('alpha')
        asked = [cloud.request_replica(share_id, 'beta') for _ in range(2)]
        schedulers = [cloud.scheduler.runners[0], competing_runners[0]]
        at_once(*[one.step for one in schedulers], rng=cloud.rng)
        cloud.settle()
        assert sorted(cloud.replica(id).status for id in asked) == [
            'available',
            'error',
        ]
        for id in asked:
            cloud.ask('force_delete', id)
        cloud.settle()
    cloud.check_invariants()


def test_random_requests_with_two_services_keep_usage_consistent(build_cloud):
    """Two processes run work while more requests arrive."""
    cloud = build_cloud()
    share_id = cloud.create_share_on('alpha')
    cloud.allow(share_id)
    cloud.replicate(share_id)
    workers = [cloud.runners, cloud.competing_runners()]
    asked = threading.Event()

    def work(runners):
        while sum(runner.step() for runner in runners) or not asked.is_set():
            pass

    def ask():
        try:
            for seed in SEEDS:
                cloud.rng.seed(f'race {seed}')
                are_accepted(
                    *[
                        partial(verb, cloud, share_id)
                        for verb in (
                            promote_any,
                            replicate,
                            promote_any,
                            delete_any,
                            take,
                        )
                    ],
                    rng=cloud.rng,
                    refused=REFUSED,
                )
        finally:
            asked.set()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for done in [
            *(pool.submit(work, runners) for runners in workers),
            pool.submit(ask),
        ]:
            done.result()
    cloud.settle()
    cloud.update()
    cloud.update()
    cloud.check_invariants()


def promote_any(cloud, share_id):
    return cloud.ask('promote', cloud.rng.choice(cloud.replicas(share_id)).id)


def delete_any(cloud, share_id):
    return cloud.ask('delete', cloud.rng.choice(cloud.replicas(share_id)).id)
