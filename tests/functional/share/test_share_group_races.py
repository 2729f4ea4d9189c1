"""Concurrent requests about one share group and its shares.

In real threads, on each database, over the API.
"""

from functools import partial
import itertools

import pytest

from manila_lite.db.models import share_groups as models
from tests.support import cloud_snapshots, databases, sampling, share_groups
from tests.support.concurrent_calls import at_once, status_codes

pytestmark = [sampling.dialects, sampling.enumeration]

GROUP = models.ShareGroup.__table__
CLIENTS = 8
SEEDS = sampling.seeds(20, 2)
_CONF = """
[quota]
share_groups = -1
share_group_snapshots = -1
shares = -1
gigabytes = -1
snapshots = -1
snapshot_gigabytes = -1
"""


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(_CONF, url=database_url, backends=('alpha',))
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


@pytest.fixture
def type_id(cloud):
    return share_groups.create_type(cloud.api)


def with_shares(cloud, type_id, number=2):
    """Create a group with shares; return its id and theirs."""
    group = share_groups.create(cloud, type_id)
    shares = [cloud.create_share(share_group_id=group) for _ in range(number)]
    return group, shares


def test_one_of_many_snapshots_of_a_group_is_taken_at_a_time(cloud, type_id):
    group, shares = with_shares(cloud, type_id)
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            *[partial(share_groups.request_snapshot, cloud.api, group, None)] * CLIENTS,
            rng=cloud.rng,
        )
        assert sorted(codes) == [202] + [409] * (CLIENTS - 1), seed
        cloud.settle()
        assert {cloud.api.show(id)['status'] for id in shares} == {'available'}
    cloud.check_invariants()


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_no_share_joins_a_group_whose_snapshot_is_being_accepted(
    cloud, type_id, database_url
):
    group, _ = with_shares(cloud, type_id)
    share_groups.request_snapshot(cloud.api, group)
    cloud.settle()  # the next request commits once
    locked = []
    cloud.pause_at(
        'commit',
        lambda: locked.append(
            databases.is_locked(database_url, GROUP, group, shared=True)
        ),
    )
    share_groups.request_snapshot(cloud.api, group)
    assert locked == [True]


def create_share(cloud, group, share):
    return cloud.api.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'share_group_id': group}},
    )


def delete_share(cloud, group, share):
    path = f'/shares/{share}?share_group_id={group}'
    return cloud.api.request('DELETE', path)


def take_group_snapshot(cloud, group, share):
    return share_groups.request_snapshot(cloud.api, group, None)


def extend_share(cloud, group, share):
    return cloud.api.act(share, 'extend', {'new_size': 2}, None)


def delete_group(cloud, group, share):
    return share_groups.delete(cloud.api, group, expect=None)


def force_delete_group(cloud, group, share):
    return share_groups.act(cloud.api, group, 'force_delete', expect=None)


REQUESTS = (
    create_share,
    delete_share,
    extend_share,
    take_group_snapshot,
    delete_group,
    force_delete_group,
)


@pytest.mark.parametrize('first, second', [*itertools.combinations(REQUESTS, 2)])
def test_any_two_requests_at_once_leave_nothing_half_done(
    cloud, type_id, first, second
):
    for seed in SEEDS[:2]:
        cloud.rng.seed(f'race {seed}')
        group, (share,) = with_shares(cloud, type_id, 1)
        at_once(
            partial(first, cloud, group, share),
            partial(second, cloud, group, share),
            rng=cloud.rng,
        )
        cloud.settle()
        check_members(cloud, group)
        if force_delete_group not in (first, second):
            # By force it is left on its back end, as published.
            cloud.check_invariants()


@pytest.mark.parametrize('removes', [delete_group, force_delete_group])
def test_share_never_joins_a_group_that_is_removed(cloud, type_id, removes):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        group = share_groups.create(cloud, type_id)
        at_once(
            *[partial(create_share, cloud, group, None)] * 3,
            partial(removes, cloud, group, None),
            rng=cloud.rng,
        )
        cloud.settle()
        check_members(cloud, group)


def check_members(cloud, group):
    """A share is in a group that exists, or in none."""
    answer = cloud.api.request('GET', f'/share-groups/{group}')
    listed = cloud.api.get(f'/shares?share_group_id={group}')['shares']
    if answer.status_int == 404:
        assert listed == []
    else:
        assert answer.json['share_group']['status'] == 'available'
        statuses = {cloud.api.show(one['id'])['status'] for one in listed}
        assert statuses <= {'available'}
