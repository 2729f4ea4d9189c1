"""Filters and weighers do no work that cannot change the choice."""

import pytest

from manila_lite import plugins
from manila_lite.scheduler import choose
from manila_lite.scheduler.filters.places import ServiceUp
from tests.unit.scheduler.builders import pool, request

FILTERS = choose.load(plugins.names(choose.namespace('filters')), 'filters')
WEIGHERS = choose.load(plugins.names(choose.namespace('weighers')), 'weighers')
POOLS = [
    pool(
        host='alpha@gold#one',
        zone='nova',
        capabilities={'replication_type': 'readable', 'tier': 'gold'},
    ),
    pool(
        host='beta@silver#two',
        zone='far',
        capabilities={'create_share_from_snapshot_support': False},
    ),
]
WISHES = {
    'only_host': 'alpha@gold',
    'availability_zones': ('nova',),
    'subnets': {'nova': 1},
    'same_host': frozenset({'alpha@gold#one'}),
    'different_host': frozenset({'beta@silver#two'}),
    'attempted': frozenset({'beta@silver#two'}),
    'extra_specs': {'replication_type': 'readable', 'share_backend_name': 'gold'},
    'from_snapshot': True,
}


def requests():
    """Requests without wishes, and with each of them alone."""
    yield request()
    for name, value in WISHES.items():
        yield request(**{name: value})
    yield request(size=0)
    yield request(host='alpha@gold#one', from_snapshot=True)


@pytest.mark.parametrize('rule', FILTERS, ids=lambda rule: rule.name)
def test_filter_that_is_skipped_would_reject_no_pool(rule):
    skipped = [one for one in requests() if not rule.applies(one)]
    assert [
        rule.rejection_reason(candidate, one) for one in skipped for candidate in POOLS
    ] == [None] * len(skipped) * len(POOLS)


@pytest.mark.parametrize('weigher', WEIGHERS, ids=lambda rule: rule.name)
def test_weigher_that_is_skipped_would_prefer_no_pool(weigher):
    for one in requests():
        if not weigher.applies(one):
            scores = {weigher.weigh(candidate, one) for candidate in POOLS}
            assert len(scores) == 1


PARTICULAR = [
    pool(service_up=False),
    pool(service_enabled=False),
    pool(total_gb=None, free_gb=None),
    pool(free_gb=1.0, allocated_gb=7.0, pending_gb=6.0),
    pool(capabilities={'filter_function': 'share.size > 2'}),
    pool(capabilities={'filter_function': 'no expression ('}),
    pool(capabilities={'goodness_function': '10 * share.size'}),
    pool(capabilities={'storage_protocol': 'CIFS'}),
]


@pytest.mark.parametrize('rule', [ServiceUp(), *FILTERS], ids=lambda rule: rule.name)
def test_filter_says_the_same_of_all_pools_as_of_each(rule):
    pools = POOLS + PARTICULAR
    for one in requests():
        assert rule.rejection_reasons(pools, one) == [
            rule.rejection_reason(candidate, one) for candidate in pools
        ]


@pytest.mark.parametrize('weigher', WEIGHERS, ids=lambda rule: rule.name)
def test_weigher_scores_all_pools_like_each(weigher):
    pools = POOLS + PARTICULAR
    for one in requests():
        assert weigher.scores(pools, one) == [
            weigher.weigh(candidate, one) for candidate in pools
        ]


def test_most_filters_are_skipped_without_wishes():
    applied = {rule.name for rule in FILTERS if rule.applies(request())}
    assert applied == {'CapacityFilter', 'CapabilitiesFilter', 'DriverFilter'}


def test_explanation_names_skipped_filters():
    choice = choose.choose(request(), POOLS, FILTERS, [])
    assert [name for name, _ in choice.remaining][1:] == [
        rule.name for rule in FILTERS[: len(choice.remaining) - 1]
    ]
