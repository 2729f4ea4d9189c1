"""The choice of a pool and its explanation."""

import functools
import importlib
import pkgutil
import random

from hypothesis import given, strategies as st
import pytest

from manila_lite import exception, plugins
from manila_lite.scheduler import filters, weighers
from manila_lite.scheduler.choose import choose, load, namespace
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.capabilities import (
    CapabilitiesFilter,
    CreateFromSnapshotFilter,
    DriverFilter,
    ShareBackendNameFilter,
    ShareReplicationFilter,
)
from manila_lite.scheduler.filters.capacity import CapacityFilter
from manila_lite.scheduler.filters.places import (
    AffinityFilter,
    AvailabilityZoneFilter,
    IgnoreAttemptedHostsFilter,
    RetryFilter,
    ServiceUp,
)
from manila_lite.scheduler.weighers import CapacityWeigher, GoodnessWeigher, Weigher
from tests.support import entry_points
from tests.support.reference import table
from tests.unit.scheduler.builders import pool, request

ZONE_AND_SPACE = [AvailabilityZoneFilter(), CapacityFilter()]


def hosts(choice):
    return [ranked.pool.host for ranked in choice.ranked]


def test_pools_with_more_capacity_come_first():
    pools = [
        pool('a@b#small', free_gb=10),
        pool('a@b#large', free_gb=90),
        pool('a@b#middle', free_gb=50),
    ]
    choice = choose(request(), pools, ZONE_AND_SPACE, [CapacityWeigher()])
    assert [(ranked.pool.name, ranked.weight) for ranked in choice.ranked] == [
        ('large', 1.0),
        ('middle', 0.5),
        ('small', 0.0),
    ]
    assert choice.rejecting_filter is None
    assert choice.message_detail is None
    assert choice.remaining == [
        ('ServiceUp', 3),
        ('AvailabilityZoneFilter', 3),
        ('CapacityFilter', 3),
    ]


@pytest.mark.parametrize('rng', [None, random.Random(1)])
def test_only_the_best_pools_are_ranked_and_all_are_counted(rng):
    pools = [pool(f'a@b#{free}', free_gb=free) for free in range(20, 45)]
    choice = choose(request(), pools, ZONE_AND_SPACE, [CapacityWeigher()], rng, 12)
    assert hosts(choice) == [f'a@b#{free}' for free in range(44, 32, -1)]
    explanation = choice.explanation()
    assert explanation.startswith('25 pools considered, 25 accepted.')
    assert explanation.endswith('a@b#35 weighs 0.625; and 15 more.')


def test_a_negative_multiplier_fills_pools_up_and_unknown_stays_last():
    pools = [
        pool('a@b#small', free_gb=10),
        pool('a@b#large', free_gb=90),
        pool('a@b#unknown', total_gb=None, free_gb=None),
    ]
    for multiplier, expected in [
        (2.0, ['large', 'small', 'unknown']),
        (-2.0, ['small', 'large', 'unknown']),
    ]:
        choice = choose(request(), pools, [], [CapacityWeigher(multiplier)])
        assert [one.pool.name for one in choice.ranked] == expected


def test_weights_are_normalised_then_multiplied_then_summed():
    pools = [
        pool(f'a@b#{name}', free_gb=free, capabilities={'goodness_function': goodness})
        for name, free, goodness in [(1, 100, '0'), (2, 60, '5'), (3, 20, '10')]
    ]
    choice = choose(request(), pools, [], [CapacityWeigher(1.0), GoodnessWeigher(3.0)])
    assert [(ranked.pool.name, ranked.weight) for ranked in choice.ranked] == [
        ('3', 3.0),
        ('2', 2.0),
        ('1', 1.0),
    ]


def test_filters_are_applied_in_order_and_the_first_reason_counts():
    pools = [
        pool('a@b#down', service_up=False, zone='x', free_gb=0),
        pool('a@b#far', zone='x', free_gb=0),
        pool('a@b#full', free_gb=0),
    ]
    choice = choose(request(availability_zones=('nova',)), pools, ZONE_AND_SPACE, [])
    assert choice.ranked == []
    assert choice.rejecting_filter == 'CapacityFilter'
    assert choice.remaining == [
        ('ServiceUp', 2),
        ('AvailabilityZoneFilter', 1),
        ('CapacityFilter', 0),
    ]
    assert [(refusal.host, refusal.filter) for refusal in choice.rejections] == [
        ('a@b#down', 'ServiceUp'),
        ('a@b#far', 'AvailabilityZoneFilter'),
        ('a@b#full', 'CapacityFilter'),
    ]
    assert choice.explanation() == (
        '3 pools considered, 0 accepted. '
        'ServiceUp left 2, rejected a@b#down: its service is down. '
        'AvailabilityZoneFilter left 1, rejected a@b#far: it is in zone x, '
        'wanted nova. '
        'CapacityFilter left 0, rejected a@b#full: 1 GiB requested, 0 GiB '
        'allocated, limit 0 GiB.'
    )


def test_pools_that_refused_the_share_are_rejected_whatever_is_configured():
    choice = choose(
        request(attempted=frozenset({'a@b#large'})),
        [pool('a@b#small', free_gb=10), pool('a@b#large', free_gb=90)],
        ZONE_AND_SPACE,
        [CapacityWeigher()],
    )
    assert hosts(choice) == ['a@b#small']
    assert 'rejected a@b#large: it was tried before' in choice.explanation()


def test_explanation_of_many_pools_stays_short():
    pools = [pool(f'a@b#{n:03}', service_up=n % 2 == 0) for n in range(200)]
    text = choose(request(), pools, [], []).explanation()
    assert text.startswith(
        '200 pools considered, 100 accepted. '
        'ServiceUp left 100, rejected 100 pools: its service is down. '
    )
    assert text.count('; and 90 more.') == 1
    assert text.endswith('a@b#018 weighs 0.000; and 90 more.')
    assert '\n' not in text


def test_explanation_begins_with_the_rare_reason():
    others = [pool(f'a@gold#{n:02}', zone='x') for n in range(94)]
    choice = choose(
        request(availability_zones=('nova',)),
        [*others, pool('a@tin#one', zone='y')],
        ZONE_AND_SPACE,
        [],
    )
    assert choice.explanation().endswith(
        'rejected a@tin#one: it is in zone y, wanted nova; '
        '94 pools: it is in zone x, wanted nova.'
    )


# fmt: off
# The values of each of many pools, and what they have in common.
KINDS = [
    ({'capabilities': {'share_backend_name': 'b{}'}},
     "share_backend_name differs, wanted 'tin'"),
    ({'zone': 'z{}'}, 'its zone differs, wanted nova'),
    ({'total_gb': 90, 'free_gb': 0, 'allocated_gb': '{}'},
     '1 GiB requested, less may be allocated'),
    ({'service_up': False, 'service_health': 'disk {} is lost'},
     'its back end is down'),
]
# fmt: on


@pytest.mark.parametrize('values, kind', KINDS)
def test_reasons_that_differ_by_their_values_are_one(values, kind):
    def own(number, value):
        if isinstance(value, dict):
            return {key: own(number, each) for key, each in value.items()}
        if not isinstance(value, str):
            return value
        text = value.format(number)
        return int(text) if text.isdigit() else text

    rare = {'capabilities': {'share_backend_name': 'tin', 'filter_function': '0'}}
    pools = [
        pool(f'a@b{n}', **{'capabilities': rare['capabilities'], **own(n, values)})
        for n in range(94)
    ]
    choice = choose(
        request(
            availability_zones=('nova',), extra_specs={'share_backend_name': 'tin'}
        ),
        [*pools, pool('a@rare', **rare)],
        [*ZONE_AND_SPACE, ShareBackendNameFilter(), DriverFilter()],
        [],
    )
    assert f'rejected 94 pools: {kind}.' in choice.explanation()
    assert "a@rare: its filter function '0' returns" in choice.explanation()


# fmt: off
# Values of the only pool of the type, and what decides.
ONLY_POOLS = [
    ({'service_up': False}, 'ServiceUp', 'NO_VALID_HOST'),
    ({'service_enabled': False}, 'ServiceUp', 'NO_VALID_HOST'),
    ({'zone': 'x'}, 'AvailabilityZoneFilter', 'FILTER_AVAILABILITY'),
    ({'free_gb': 0}, 'CapacityFilter', 'FILTER_CAPACITY'),
    ({'capabilities': {'share_backend_name': 'tin', 'filter_function': '0'}},
     'DriverFilter', 'FILTER_DRIVER'),
    ({'capabilities': {'share_backend_name': 'lead'}},
     'ShareBackendNameFilter', 'FILTER_CAPABILITIES'),
]
# fmt: on


@pytest.mark.parametrize('only, decisive, name', ONLY_POOLS)
@pytest.mark.parametrize('others', [0, 3])
def test_pools_that_could_serve_the_type_decide_the_reason(
    codes, only, decisive, name, others
):
    found = {'capabilities': {'share_backend_name': 'tin'}, **only}
    choice = choose(
        request(
            availability_zones=('nova',), extra_specs={'share_backend_name': 'tin'}
        ),
        [pool(f'a@gold#{n}') for n in range(others)] + [pool('a@b', **found)],
        [*ZONE_AND_SPACE, DriverFilter(), ShareBackendNameFilter()],
        [],
    )
    assert choice.rejecting_filter == decisive
    assert choice.message_detail == codes[name]


# fmt: off
DETAILS = [
    # name of the message, filter, values of the pool, values of the request
    ('FILTER_AVAILABILITY', AvailabilityZoneFilter, {},
     {'availability_zones': ('x',)}),
    ('FILTER_CAPABILITIES', CapabilitiesFilter, {}, {'share_proto': 'X'}),
    ('FILTER_CAPABILITIES', ShareBackendNameFilter, {},
     {'extra_specs': {'share_backend_name': 'tin'}}),
    ('FILTER_CAPACITY', CapacityFilter, {'free_gb': 0}, {}),
    ('FILTER_DRIVER', DriverFilter, {'capabilities': {'filter_function': '0'}},
     {}),
    ('FILTER_IGNORE', IgnoreAttemptedHostsFilter, {},
     {'attempted': frozenset({'alpha@gold#one'})}),
    ('FILTER_RETRY', RetryFilter, {},
     {'attempted': frozenset({'alpha@gold#one'})}),
    ('FILTER_REPLICATION', ShareReplicationFilter, {},
     {'extra_specs': {'replication_type': 'dr'}}),
    ('FILTER_CREATE_FROM_SNAPSHOT', CreateFromSnapshotFilter, {},
     {'from_snapshot': True}),
    ('NO_VALID_HOST', AffinityFilter, {},
     {'same_host': frozenset({'elsewhere'})}),
    ('NO_VALID_HOST', CapacityFilter, {'service_up': False}, {}),
]
# fmt: on


@pytest.fixture(scope='module')
def codes():
    return {
        row['name']: row['code']
        for row in table('message-codes.csv')
        if row['kind'] == 'detail'
    }


@pytest.mark.parametrize('name, rule, candidate, placement', DETAILS)
def test_user_gets_the_published_message(codes, name, rule, candidate, placement):
    choice = choose(request(**placement), [pool(**candidate)], [rule()], [])
    assert choice.message_detail == codes[name]


def test_without_any_pool_the_user_gets_another_message(codes):
    choice = choose(request(), [], ZONE_AND_SPACE, [CapacityWeigher()])
    assert choice.message_detail == codes['SHARE_BACKEND_NOT_READY_YET']
    assert choice.rejecting_filter is None
    assert choice.explanation() == '0 pools considered, 0 accepted.'


def test_pool_that_a_share_may_not_leave_is_named_when_it_is_unknown():
    placement = request(is_extend=True, host='a@b#gone')
    choice = choose(placement, [pool('a@b#one')], ZONE_AND_SPACE, [])
    assert choice.explanation() == (
        '0 pools considered, 0 accepted. a@b#gone is not among the known pools.'
    )


def test_extended_share_stays_where_it_is():
    pools = [pool('a@b#one'), pool('a@b#two')]
    placement = request(is_extend=True, host='a@b#two')
    assert hosts(choose(placement, pools, ZONE_AND_SPACE, [])) == ['a@b#two']


POOLS = st.lists(
    st.builds(
        pool,
        st.integers(0, 30).map('a@b#{}'.format),
        free_gb=st.none() | st.integers(0, 3),
        total_gb=st.none() | st.integers(0, 3),
        zone=st.sampled_from(['nova', 'x']),
        service_up=st.booleans(),
    ),
    unique_by=lambda candidate: candidate.host,
    max_size=12,
)


@given(POOLS, st.randoms(use_true_random=False))
def test_order_of_pools_does_not_matter(pools, random_):
    placement = request(availability_zones=('nova',))
    shuffled = random_.sample(pools, len(pools))
    weighers = [CapacityWeigher(), GoodnessWeigher()]
    first = choose(placement, pools, ZONE_AND_SPACE, weighers)
    second = choose(placement, shuffled, ZONE_AND_SPACE, weighers)
    assert first.ranked == second.ranked
    assert first.remaining == second.remaining
    assert set(first.rejections) == set(second.rejections)


@given(POOLS)
def test_every_pool_is_ranked_or_refused_once(pools):
    choice = choose(request(), pools, ZONE_AND_SPACE, [CapacityWeigher()])
    refused = [refusal.host for refusal in choice.rejections]
    assert sorted(hosts(choice) + refused) == sorted(p.host for p in pools)
    assert all(0 <= ranked.weight <= 1 for ranked in choice.ranked)
    assert (choice.message_detail is None) == bool(choice.ranked)


def test_equal_pools_are_shuffled_by_the_given_generator():
    pools = [pool(f'a@b#{n}') for n in range(5)] + [pool('a@c', free_gb=1)]

    def drawn(seed):
        return hosts(
            choose(request(), pools, [], [CapacityWeigher()], random.Random(seed))
        )

    assert hosts(choose(request(), pools, [], [])) == sorted(drawn(1))
    assert drawn(1) == drawn(1)
    assert len({drawn(seed)[0] for seed in range(50)}) == 5
    assert {drawn(seed)[-1] for seed in range(50)} == {'a@c'}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution with the entry points given to it."""

    return functools.partial(entry_points.install, monkeypatch, tmp_path)


def test_filters_and_weighers_are_found_by_name(install):
    install(f"""\
        [manila_lite.scheduler.filters]
        Space = {CapacityFilter.__module__}:CapacityFilter
        [manila_lite.scheduler.weighers]
        Room = {CapacityWeigher.__module__}:CapacityWeigher
        Good = {GoodnessWeigher.__module__}:GoodnessWeigher
        """)
    assert [type(one) for one in load(['Space'], 'filters')] == [CapacityFilter]
    made = load(['Good', 'Room'], 'weighers', {'Room': -2.0})
    assert [(type(one), one.multiplier) for one in made] == [
        (GoodnessWeigher, 1.0),
        (CapacityWeigher, -2.0),
    ]
    assert load([], 'filters') == []


def test_an_unknown_name_is_reported_with_the_known_ones(install):
    install(f"""\
        [manila_lite.scheduler.filters]
        Space = {CapacityFilter.__module__}:CapacityFilter
        """)
    with pytest.raises(exception.BadConfiguration, match='Missing') as caught:
        load(['Missing'], 'filters')
    assert 'Space' in str(caught.value)


@pytest.mark.parametrize('target', ['no_such_module:X', 'json:NoSuchName'])
def test_broken_entry_point_is_a_bad_configuration(install, target):
    install(f"""\
        [manila_lite.scheduler.weighers]
        Broken = {target}
        """)
    with pytest.raises(exception.BadConfiguration, match='Broken'):
        load(['Broken'], 'weighers')


def _modules(folder, package):
    return [f'{package}.{found.name}' for found in pkgutil.iter_modules(folder)]


@pytest.mark.parametrize('package, base', [(filters, Filter), (weighers, Weigher)])
def test_our_entry_points_have_the_names_of_their_classes(package, base):
    ours = {}
    folder = getattr(package, '__path__', ())
    for found in [package.__name__, *_modules(folder, package.__name__)]:
        module = importlib.import_module(found)
        ours |= {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, base)
            and value not in (base, ServiceUp)
            and not name.startswith('_')
        }
    kind = package.__name__.rpartition('.')[2]
    assert ours == {
        name: plugins.load(namespace(kind), name)
        for name in plugins.names(namespace(kind))
    }


def test_default_filters_and_weighers_can_be_loaded():
    for option, kind in [
        ('scheduler_default_filters', 'filters'),
        ('scheduler_default_extend_filters', 'filters'),
        ('scheduler_default_weighers', 'weighers'),
    ]:
        row = next(row for row in table('config-options.csv') if row['name'] == option)
        names = row['default'].split(',')
        assert [one.name for one in load(names, kind)] == names
