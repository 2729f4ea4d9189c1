"""The capacity filter accepts exactly what fits."""

from dataclasses import replace

from hypothesis import given, strategies as st
import pytest

from manila_lite.scheduler.filters.capacity import CapacityFilter, allocation_limit
from manila_lite.scheduler.pools import Capabilities
from tests.unit.scheduler.builders import pool, request

THIN = {'thin_provisioning': True, 'max_over_subscription_ratio': 2.0}

# fmt: off
LIMITS = [
    # total, free, allocated, pending, capabilities, limit
    (100,  100,  0,  0,  {}, 100),
    (100,  100,  40, 0,  {}, 100),                   # never above the total
    (100,  60,   40, 0,  {}, 100),
    (100,  50,   40, 0,  {}, 90),                    # others use 10
    (100,  100,  30, 30, {}, 100),                   # the report is older
    (100,  70,   30, 20, {}, 80),
    (100,  None, 40, 0,  {}, 100),
    (None, 60,   40, 10, {}, 90),
    (None, None, 40, 0,  {}, None),
    (100,  100,  0,  0,  {'reserved_percentage': 10}, 90),
    (100,  20,   80, 0,  {'reserved_percentage': 15}, 85),
    (None, 60,   40, 0,  {'reserved_percentage': 10}, 100),
    (1000, 1000, 0,  0,  {'reserved_percentage': '15'}, 850),
    (100,  100,  0,  0,  {'reserved_percentage': 'none'}, 100),
    (100,  100,  0,  0,  {'reserved_percentage': 100}, 0),
    # thin: bounded by the ratio and by the reported free capacity
    (100,  100,  50, 0,  THIN, 200),
    (100,  10,   50, 0,  THIN, 70),
    (100,  10,   50, 20, THIN, 50),
    (100,  100,  0,  0,  THIN | {'reserved_percentage': 10}, 180),
    (100,  5,    90, 0,  THIN | {'reserved_percentage': 10}, 80),
    (None, 10,   50, 0,  THIN, 70),
    (100,  100,  20, 0,  THIN | {'provisioned_capacity_gb': 50}, 170),
    (100,  100,  20, 10, THIN | {'provisioned_capacity_gb': 50}, 160),
    (100,  100,  20, 0,  THIN | {'provisioned_capacity_gb': 50,
                                 'max_over_subscription_ratio': 1}, 70),
    (100,  100,  20, 0,  {'provisioned_capacity_gb': 500}, 100),
    (100,  100,  20, 0,  THIN | {'thin_provisioning': False}, 100),
    (100,  100,  20, 0,  THIN | {'thin_provisioning': 'False'}, 100),
    (100,  100,  0,  0,  THIN | {'thin_provisioning': [False]}, 100),
    (100,  100,  0,  0,  THIN | {'thin_provisioning': [True, False]}, 200),
    (100,  100,  0,  0,  THIN | {'max_over_subscription_ratio': '1.5'}, 150),
    (100,  100,  0,  0,  THIN | {'max_over_subscription_ratio': 0.5}, 100),
    (100,  100,  0,  0,  THIN | {'max_over_subscription_ratio': None}, 100),
]
# fmt: on


@pytest.mark.facts('LP2020187', 'estimate-provisioned-capacity')
@pytest.mark.parametrize(
    'total, free, allocated, pending, capabilities, expected', LIMITS
)
def test_allocation_limit(total, free, allocated, pending, capabilities, expected):
    candidate = pool(
        total_gb=total,
        free_gb=free,
        allocated_gb=allocated,
        pending_gb=pending,
        capabilities=capabilities,
    )
    assert allocation_limit(candidate, request()) == expected


@pytest.mark.facts(
    'LP1961087.1', 'add-reserved-share-from-snapshot-percentage.2', 'LP1961087.2'
)
@pytest.mark.parametrize(
    'specific, placement',
    [
        ('reserved_snapshot_percentage', {'from_snapshot': True}),
        ('reserved_share_extend_percentage', {'is_extend': True}),
    ],
)
@pytest.mark.parametrize('value, expected', [(5, 95), (50, 50), (0, 80), (None, 80)])
def test_a_specific_reserve_falls_back_to_the_general_one(
    specific, placement, value, expected
):
    candidate = pool(capabilities={'reserved_percentage': 20, specific: value})
    assert allocation_limit(candidate, request(**placement)) == expected
    assert allocation_limit(candidate, request()) == 80


@pytest.mark.facts('check-thin-provisioning.2')
@pytest.mark.parametrize('key', ['thin_provisioning', 'capabilities:thin_provisioning'])
@pytest.mark.parametrize(
    'value, expected',
    [
        ('False', 100),
        ('<is> False', 100),
        ('no', 100),
        ('True', 200),
        ('<is> True', 200),
    ],
)
def test_a_share_type_may_refuse_thin_provisioning(key, value, expected):
    candidate = pool(capabilities=THIN | {'thin_provisioning': [True, False]})
    assert allocation_limit(candidate, request(extra_specs={key: value})) == expected


def test_the_last_gigabyte_can_be_allocated_and_no_more():
    candidate = pool(total_gb=10, free_gb=4, allocated_gb=6)
    rule = CapacityFilter()
    assert rule.rejection_reason(candidate, request(size=4)) is None
    assert rule.rejection_reason(candidate, request(size=5)) == (
        '5 GiB requested, 6 GiB allocated, limit 10 GiB'
    )


POOLS = st.builds(
    pool,
    total_gb=st.none() | st.integers(0, 500),
    free_gb=st.none() | st.integers(0, 500),
    capabilities=st.fixed_dictionaries(
        {},
        optional={
            'reserved_percentage': st.integers(0, 100),
            'reserved_snapshot_percentage': st.integers(0, 100),
            'thin_provisioning': st.sampled_from([True, False, [True, False], [False]]),
            'max_over_subscription_ratio': st.floats(1, 20),
            'provisioned_capacity_gb': st.integers(0, 500),
        },
    ),
).flatmap(
    lambda made: st.integers(0, 500).flatmap(
        lambda allocated: st.integers(0, allocated).map(
            lambda pending: replace(made, allocated_gb=allocated, pending_gb=pending)
        )
    )
)
REQUESTS = st.builds(request, size=st.integers(1, 100), from_snapshot=st.booleans())


def placed(candidate, size):
    return replace(
        candidate,
        allocated_gb=candidate.allocated_gb + size,
        pending_gb=candidate.pending_gb + size,
    )


@given(POOLS, REQUESTS)
def test_filter_is_exactly_the_guard_of_the_update(candidate, placement):
    limit = allocation_limit(candidate, placement)
    fits = limit is None or candidate.allocated_gb + placement.size <= limit
    assert (CapacityFilter().rejection_reason(candidate, placement) is None) == fits


@given(POOLS, REQUESTS)
def test_placing_a_share_does_not_change_the_limit(candidate, placement):
    assert allocation_limit(
        placed(candidate, placement.size), placement
    ) == allocation_limit(candidate, placement)


@given(POOLS, st.lists(REQUESTS, max_size=20))
def test_what_the_filter_accepts_fits(candidate, placement):
    start = candidate
    for one in placement:
        if CapacityFilter().rejection_reason(candidate, one) is None:
            candidate = placed(candidate, one.size)
    capabilities = candidate.capabilities
    thin = capabilities.get('thin_provisioning') in (True, [True, False])
    ratio = capabilities.get('max_over_subscription_ratio', 1) if thin else 1
    grown = candidate.allocated_gb > start.allocated_gb
    if candidate.total_gb is not None and grown:
        assert candidate.allocated_gb <= candidate.total_gb * ratio
    if candidate.free_gb is not None and grown:
        assert candidate.pending_gb <= candidate.free_gb * ratio


@given(POOLS, REQUESTS)
def test_a_reserve_never_raises_the_limit(candidate, placement):
    bare = {
        name: value
        for name, value in candidate.capabilities.items()
        if not name.startswith('reserved_')
    }
    without = allocation_limit(
        replace(candidate, capabilities=Capabilities(bare)), placement
    )
    limit = allocation_limit(candidate, placement)
    assert (limit is None) == (without is None)
    assert limit is None or limit <= without
