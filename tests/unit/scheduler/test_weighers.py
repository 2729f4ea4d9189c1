"""The score that each weigher gives a pool."""

import math

import pytest

from manila_lite.scheduler.weighers import (
    CapacityWeigher,
    GoodnessWeigher,
    HostAffinityWeigher,
    PoolWeigher,
)
from tests.unit.scheduler.builders import pool, request


@pytest.mark.facts('LP2145805')
@pytest.mark.parametrize(
    'candidate, expected',
    [
        ({'total_gb': 100, 'free_gb': 60, 'allocated_gb': 40}, 60),
        ({'total_gb': 100, 'free_gb': 60, 'allocated_gb': 50, 'pending_gb': 10}, 50),
        (
            {
                'capabilities': {
                    'thin_provisioning': True,
                    'max_over_subscription_ratio': 3,
                }
            },
            300,
        ),
    ],
)
def test_capacity_weighs_free_capacity(candidate, expected):
    assert CapacityWeigher().weigh(pool(**candidate), request()) == expected


@pytest.mark.parametrize('multiplier, expected', [(1.0, -math.inf), (-1.0, math.inf)])
def test_pool_of_unknown_capacity_is_last_either_way(multiplier, expected):
    weigher = CapacityWeigher(multiplier)
    candidate = pool(total_gb=None, free_gb=None)
    assert weigher.weigh(candidate, request()) == expected


@pytest.mark.facts('driver-filter.2', 'LP1975715')
@pytest.mark.parametrize(
    'function, expected',
    [
        (None, 0),
        ('55', 55),
        ('0', 0),
        ('100', 100),
        ('101', 0),
        ('-1', 0),
        ('share.size * 10', 70),
        ('stats.free_capacity_gb / 2', 50),
        ("(share.share_proto == 'NFS') ? 90 : 10", 90),
        ("(share.share_proto == 'CIFS') ? 90 : 10", 10),
        ('1 / 0', 0),
        ('unknown', 0),
        ("'high'", 0),
        ('', 0),
    ],
)
def test_goodness_is_the_function_or_nothing(function, expected):
    candidate = pool(capabilities={'goodness_function': function})
    assert GoodnessWeigher().weigh(candidate, request(size=7)) == expected


@pytest.mark.parametrize(
    'host, expected',
    [
        ('alpha@gold#one', 3),
        ('alpha@gold#two', 2),
        ('alpha@tin#one', 1),
        ('beta@gold#one', 0),
    ],
)
def test_host_affinity_prefers_pools_near_the_source(host, expected):
    weigher = HostAffinityWeigher()
    source = {'host': 'alpha@gold#one'}
    candidate = pool(host=host)
    placement = request(from_snapshot=True, **source)
    assert weigher.weigh(candidate, placement) == expected
    assert weigher.weigh(candidate, request(**source)) == 0
    assert weigher.weigh(candidate, request(from_snapshot=True)) == 0


def test_pool_weigher_counts_the_share_servers_of_the_pool():
    servers = {
        's1': [{'pool_name': 'one'}, {'pool_name': 'two'}],
        's2': [{'pool_name': 'one'}],
        's3': [],
    }
    capabilities = {'server_pools_mapping': servers}
    weights = {
        name: PoolWeigher().weigh(
            pool(host=f'alpha@gold#{name}', capabilities=capabilities), request()
        )
        for name in ('one', 'two', 'three')
    }
    assert weights == {'one': -2, 'two': -1, 'three': 0}
    assert PoolWeigher().weigh(pool(), request()) == 0
