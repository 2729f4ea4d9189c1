"""Concurrent requests about one share and its snapshots.

In real threads, on each database, over the API. No work runs in the
meantime, so that accepted requests keep what they have reserved.
"""

import collections
from functools import partial
import threading

import pytest

from manila_lite.db.moves.snapshots import release_share
from manila_lite.db.transitions import TransitionBatch
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from tests.support import cloud_snapshots, sampling
from tests.support.concurrent_calls import at_once, status_codes
from tests.support.racing_requests import delete, extend, revert, take

pytestmark = [sampling.dialects, sampling.enumeration]

CLIENTS = 10
SEEDS = sampling.seeds(60, 3)
PAIRS = SEEDS[::2]


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(
        '[quota]\nsnapshots = -1\nsnapshot_gigabytes = -1',
        url=database_url,
        backends=('alpha',),
    )
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


def test_one_of_ten_concurrent_reverts_is_accepted(cloud):
    share_id = cloud.create_share(size=2)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            *[partial(revert, cloud, share_id, snapshot_id)] * CLIENTS, rng=cloud.rng
        )
        assert sorted(codes) == [202] + [409] * (CLIENTS - 1), seed
        assert cloud.api.show(share_id)['status'] == 'reverting'
        cloud.run_pending()
        assert cloud.api.show(share_id)['status'] == 'available'
    cloud.settle()
    cloud.check_invariants()
    print(f'{len(SEEDS)} seeds, each one 202 and {CLIENTS - 1} times 409')


def allow(cloud, share_id, snapshot_id):
    return cloud.api.act(
        share_id, 'allow_access', {'access_type': 'ip', 'access_to': '10.0.0.1'}, None
    )


@pytest.mark.parametrize(
    'other, refused',
    [(take, 400), (delete, 400), (extend, 400), (allow, 400)],
    ids=lambda value: getattr(value, '__name__', None),
)
def test_revert_and_conflicting_requests_are_never_both_accepted(cloud, other, refused):
    share_id = cloud.create_share(size=2)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    seen = set()
    for seed in PAIRS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            partial(revert, cloud, share_id, snapshot_id),
            partial(other, cloud, share_id, snapshot_id),
            rng=cloud.rng,
        )
        reverted = codes[0] == 202
        accepted = codes[1] in (200, 202)
        assert reverted != accepted, codes
        assert codes[1] == refused if reverted else codes[0] == 409, codes
        seen.add(reverted)
        cloud.run_pending()
        share_id, snapshot_id = prepared_again(
            cloud, other, reverted, share_id, snapshot_id
        )
    cloud.settle()
    cloud.check_invariants()
    print(f'{other.__name__}: {len(PAIRS)} times one of both, {seen}')


def prepared_again(cloud, other, reverted, share_id, snapshot_id):
    """Prepare a share with its newest snapshot available and no rule."""
    if not reverted and other in (take, delete):
        snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    if not reverted and other is allow:
        rules = cloud.api.get(f'/share-access-rules?share_id={share_id}')
        for rule in rules['access_list']:
            cloud.api.act(share_id, 'deny_access', {'access_id': rule['id']})
        cloud.settle()
    return share_id, snapshot_id


def test_older_snapshot_is_never_restored(cloud):
    """Concurrent requests for the newest snapshot, or for a newer one."""
    share_id = cloud.create_share(size=2)
    older = cloud_snapshots.create_available(cloud, share_id)
    outcomes = collections.Counter()
    for seed in PAIRS:
        cloud.rng.seed(f'race {seed}')
        newest = cloud_snapshots.create_available(cloud, share_id)
        codes = status_codes(
            partial(revert, cloud, share_id, older),
            partial(revert, cloud, share_id, newest),
            partial(take, cloud, share_id, None),
            partial(delete, cloud, share_id, newest),
            rng=cloud.rng,
        )
        assert codes[0] == 409, codes
        assert codes[1:] in ([202, 400, 400], [409, 202, 202]), codes
        outcomes[tuple(codes[1:])] += 1
        cloud.settle()
        for one in cloud.api.get('/snapshots')['snapshots']:
            if one['id'] != older:
                cloud_snapshots.delete(cloud, one['id'])
        cloud.settle()
    cloud.check_invariants()
    print(f'revert, take, delete: {dict(outcomes)}')


def test_revert_and_deny_are_never_both_accepted(cloud):
    share_id = cloud.create_share(size=2)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    for seed in PAIRS:
        cloud.rng.seed(f'race {seed}')
        rule_id = allow(cloud, share_id, None).json['access']['id']
        cloud.settle()
        codes = status_codes(
            partial(revert, cloud, share_id, snapshot_id),
            partial(
                cloud.api.act, share_id, 'deny_access', {'access_id': rule_id}, None
            ),
            rng=cloud.rng,
        )
        assert codes in ([202, 400], [409, 202]), codes
        cloud.settle()
        if codes[0] == 202:
            cloud.api.act(share_id, 'deny_access', {'access_id': rule_id})
            cloud.settle()
    cloud.check_invariants()


def test_share_deletion_is_refused_during_a_revert(cloud):
    share_id = cloud.create_share(size=2)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    for seed in PAIRS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            partial(revert, cloud, share_id, snapshot_id),
            partial(cloud.api.delete, share_id, None),
            rng=cloud.rng,
        )
        assert codes == [202, 403]
        cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize('end', ['delete', 'soft_delete'])
def test_share_deletion_and_snapshot_are_never_both_accepted(cloud, end):
    for seed in PAIRS:
        cloud.rng.seed(f'race {seed}')
        share_id = cloud.create_share(size=1)
        gone = (
            partial(cloud.api.delete, share_id, None)
            if end == 'delete'
            else partial(cloud.api.act, share_id, end, None, None)
        )
        codes = status_codes(gone, partial(take, cloud, share_id, None), rng=cloud.rng)
        assert codes[0] == 403 or codes[1] in (400, 403, 404), codes
        assert 202 in codes
        cloud.settle()
    cloud.check_invariants()


def test_one_of_concurrent_snapshots_is_accepted(cloud):
    share_id = cloud.create_share(size=1)
    for seed in PAIRS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            *[partial(take, cloud, share_id, None)] * CLIENTS, rng=cloud.rng
        )
        assert sorted(codes) == [202] + [400] * (CLIENTS - 1)
        cloud.settle()
    assert cloud.usage('snapshots') == (len(PAIRS), 0)
    cloud.check_invariants()


def end(session, share_instance_id, id):
    """Record a snapshot as the work that takes it does."""
    moves = TransitionBatch(session)
    release_share(session, share_instance_id, excluding=id, batch=moves)
    moves.fire_one(SNAPSHOT_INSTANCE, id, 'created')
    moves.write()


def take_two(cloud):
    """Take two snapshots of a share, as a reset allows; return ways to end them."""
    share_id = cloud.create_share()
    take(cloud, share_id)
    cloud.api.act(share_id, 'reset_status', {'status': 'available'})
    take(cloud, share_id)
    found = cloud.api.get('/snapshot-instances/detail')['snapshot_instances']
    assert [row['status'] for row in found] == ['creating'] * 2
    return share_id, [
        partial(cloud.db.write, end, row['share_instance_id'], row['id'])
        for row in found
    ]


def test_share_is_busy_until_the_last_of_two_snapshots_has_ended(cloud):
    share_id, ends = take_two(cloud)
    for number, then in enumerate(['snapshotting', 'available']):
        ends[number]()
        assert cloud.api.show(share_id)['status'] == then


def test_share_is_free_after_two_snapshots_that_end_together(cloud, database_url):
    """Both find the other still creating."""
    share_id, ends = take_two(cloud)
    both_have_looked = threading.Barrier(2)
    steps = collections.Counter()

    def wait_for_the_other(step):
        steps[threading.get_ident()] += 1
        if steps[threading.get_ident()] == 2:
            both_have_looked.wait(30)

    if not database_url.startswith('sqlite'):  # where only one can look
        cloud.db.on_step = wait_for_the_other
    at_once(*ends)
    cloud.db.on_step = lambda step: None
    assert cloud.api.show(share_id)['status'] == 'available'
