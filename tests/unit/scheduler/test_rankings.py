"""Choices for requests that are alike are those of `choose`."""

import random

import pytest

from manila_lite.scheduler.choose import choose, load
from manila_lite.scheduler.filters.capacity import CapacityFilter
from manila_lite.scheduler.pools import Capabilities
from manila_lite.scheduler.rankings import MAX_KINDS, Rankings
from manila_lite.scheduler.weighers import CapacityWeigher
from tests.unit.scheduler.builders import pool, request

FILTERS = load(
    [
        'OnlyHostFilter',
        'AvailabilityZoneFilter',
        'CapacityFilter',
        'CapabilitiesFilter',
        'DriverFilter',
        'ShareReplicationFilter',
        'CreateFromSnapshotFilter',
        'AffinityFilter',
        'AntiAffinityFilter',
    ],
    'filters',
)
WEIGHERS = load(
    ['CapacityWeigher', 'GoodnessWeigher', 'PoolWeigher', 'HostAffinityWeigher'],
    'weighers',
    {'PoolWeigher': 0.25},
)
MOST = 3


def rankings(filters=FILTERS, weighers=WEIGHERS, rng=None):
    return Rankings(filters, weighers, rng, MOST)


class CountingFilter(CapacityFilter):
    repeatable = True

    def __init__(self):
        self.seen = 0

    def rejection_reasons(self, pools, request):
        self.seen += len(pools)
        return super().rejection_reasons(pools, request)


def report(rng, number):
    """Return a pool that may have changed in any respect."""
    capabilities = {}
    if rng.random() < 0.1:
        capabilities['storage_protocol'] = 'CIFS'
    if rng.random() < 0.3:
        capabilities['server_pools_mapping'] = {'server': [{'pool_name': 'pool'}]}
    return pool(
        f'host{number}@gold#pool',
        capabilities,
        zone=rng.choice(['nova', 'nova', 'other']),
        service_up=rng.random() < 0.9,
        free_gb=rng.choice([None, 2, 5, 9, 80]),
        allocated_gb=rng.choice([0, 90, 95]),
    )


REQUESTS = [
    {},
    {'size': 3, 'availability_zones': ('nova',)},
    {'extra_specs': {'snapshot_support': '<is> True'}},
    {'only_host': 'host1@gold'},
]


@pytest.mark.parametrize('seed', range(12))
def test_choices_are_those_of_choose(seed):
    """Pools fill up, report, go down, appear and change their capabilities."""
    rng = random.Random(seed)
    kept = rankings()
    pools = {one.host: one for one in (report(rng, number) for number in range(24))}
    for step in range(120):
        wanted = request(**rng.choice(REQUESTS), share={'id': str(step)})
        if rng.random() < 0.3:
            one = report(rng, rng.randrange(25))
            pools[one.host] = one
        expected = choose(wanted, pools.values(), FILTERS, WEIGHERS, None, MOST)
        choice = kept.choose(wanted, pools.values())
        if not expected.ranked:
            assert choice is None
            continue
        assert choice.ranked == expected.ranked
        assert choice.explanation() == expected.explanation()
        best = choice.ranked[0].pool
        pools[best.host] = best.with_allocation(wanted.size)


def test_only_the_pool_of_the_last_share_is_looked_at_again():
    rule = CountingFilter()
    kept = rankings([rule], [CapacityWeigher()])
    pools = {one.host: one for one in (pool(f'a@b#{n}') for n in range(100))}
    for number in range(1, 20):
        best = kept.choose(request(), pools.values()).ranked[0].pool
        pools[best.host] = best.with_allocation(1)
        assert rule.seen == 99 + number


def test_pools_of_equal_weight_are_chosen_at_random():
    pools = [pool(f'a@b#{n}') for n in range(5)]
    kept = rankings(rng=random.Random(1))
    chosen = {kept.choose(request(), pools).ranked[0].pool.host for _ in range(100)}
    assert chosen == {one.host for one in pools}


@pytest.mark.parametrize('name', ['filter_function', 'goodness_function'])
def test_functions_judge_each_share_by_itself(name):
    kept = rankings()
    plain = [pool(f'a@b#{n}') for n in range(10)]
    assert kept.choose(request(), plain)
    judging = [pool('a@b#0', {name: 'share.size < 2'}), *plain[1:]]
    assert kept.choose(request(), judging) is None
    assert kept.choose(request(), judging) is None
    assert kept.choose(request(), plain)


class PickyFilter(CapacityFilter):
    """What is derived from a filter may look at anything."""


class PickyWeigher(CapacityWeigher):
    pass


@pytest.mark.parametrize(
    'filters, weighers', [([PickyFilter()], []), ([], [PickyWeigher()])]
)
def test_filters_and_weighers_of_others_are_always_asked(filters, weighers):
    assert rankings(filters, weighers).choose(request(), [pool()]) is None


@pytest.mark.parametrize(
    'values',
    [
        {'same_host': frozenset({'a@b#c'})},
        {'different_host': frozenset({'a@b#c'})},
        {'subnets': {None: 1}},
        {'attempted': frozenset({'a@b#c'})},
        {'is_extend': True, 'host': 'a@b#c'},
        {'from_snapshot': True},
        {'group_host': 'a@b#c'},
    ],
)
def test_requests_with_more_to_look_at_are_left_to_choose(values):
    assert request(**values).kind is None
    assert rankings().choose(request(**values), [pool()]) is None


def test_number_of_kinds_that_are_kept_is_limited():
    kept = rankings()
    for size in range(1, 3 * MAX_KINDS):
        assert kept.choose(request(size=size), [pool(total_gb=None, free_gb=None)])
        assert len(kept._kept) <= MAX_KINDS


def test_pool_that_reports_again_has_other_limits():
    kept = rankings()
    assert kept.choose(request(size=50), [pool()])
    smaller = Capabilities({**pool().capabilities, 'reserved_percentage': 60})
    assert kept.choose(request(size=50), [pool(capabilities=smaller)]) is None
