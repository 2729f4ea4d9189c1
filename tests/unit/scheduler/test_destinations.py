"""Check whether a back end can hold all shares of a share server."""

from manila_lite.scheduler.destinations import plan, rejection_reasons
from manila_lite.scheduler.filters.capabilities import CapabilitiesFilter
from manila_lite.scheduler.filters.capacity import CapacityFilter
from manila_lite.scheduler.filters.places import AvailabilityZoneFilter
from tests.unit.scheduler.builders import pool

FILTERS = [AvailabilityZoneFilter(), CapacityFilter(), CapabilitiesFilter()]
NFS = {'storage_protocol': 'NFS'}


def need(size, share_type_id='type', share_proto='NFS'):
    return {
        'share_type_id': share_type_id,
        'share_proto': share_proto,
        'size': size,
        'count': 1,
    }


def reasons(pools, needs, specs=None):
    return rejection_reasons(pools, needs, specs or {}, FILTERS)


def small(name, **values):
    return pool(
        host=f'host@back#{name}',
        **{'total_gb': 10.0, 'free_gb': 10.0, 'capabilities': NFS, **values},
    )


def test_the_total_of_all_types_has_to_fit():
    pools = [small('one')]
    assert reasons(pools, [need(6), need(4, 'other')]) == []
    (reason,) = reasons(pools, [need(6), need(5, 'other')])
    assert reason == '11 GiB are needed, 10 GiB are available'


def test_pools_of_a_back_end_are_added_up():
    assert reasons([small('one'), small('two')], [need(20)]) == []
    assert reasons([small('one'), small('two')], [need(21)]) != []


def test_pools_that_accept_no_type_do_not_count():
    pools = [small('one', capabilities=NFS | {'tier': 'gold'}), small('two')]
    specs = {'type': {'tier': 'gold'}}
    assert reasons(pools, [need(10)], specs) == []
    assert reasons(pools, [need(11)], specs) != []


def test_shares_with_qos_types_need_a_pool_that_supports_them():
    pools = [small('one')]
    able = [small('one', capabilities=NFS | {'qos_type_support': True})]
    wanted = [need(1), need(1) | {'has_qos_type': True}]
    assert reasons(able, wanted) == []
    (reason,) = reasons(pools, wanted)
    assert 'it does not report qos_type_support' in reason
    assert reasons(pools, [need(1) | {'has_qos_type': False}]) == []


def test_every_type_needs_a_pool():
    (reason,) = reasons(
        [small('one')], [need(1), need(1, 'other')], {'other': {'tier': 'gold'}}
    )
    assert 'no pool accepts shares of type other' in reason
    assert reasons([small('one')], [need(1, share_proto='CIFS')]) != []
    assert reasons([], [need(1)]) != []


def test_the_zones_of_a_type_hold():
    specs = {'type': {'availability_zones': 'moon, mars'}}
    assert reasons([small('one', zone='mars')], [need(1)], specs) == []
    (reason,) = reasons([small('one', zone='venus')], [need(1)], specs)
    assert 'it is in zone venus' in reason


def test_room_without_a_limit_holds_anything():
    assert reasons([small('one', total_gb=None, free_gb=None)], [need(10**9)]) == []


def reserved(pools, needs, specs=None):
    """Return the planned GiB by the name of the pool."""
    found, reservations = plan(pools, needs, specs or {}, FILTERS)
    assert not found
    sums = {}
    for one in reservations:
        name = one.host.partition('#')[2]
        sums[name] = sums.get(name, 0) + one.gb
    return sums


def test_room_is_planned_in_the_pool_of_the_same_name():
    pools = [small('one'), small('two')]
    assert reserved(pools, [need(6) | {'pool': 'two'}]) == {'two': 6}
    assert reserved(pools, [need(6) | {'pool': 'other'}]) == {'one': 6}
    assert reserved(pools, [need(12) | {'pool': 'two'}]) == {'one': 2, 'two': 10}


def test_types_that_few_pools_accept_are_planned_first():
    pools = [small('one', capabilities=NFS | {'tier': 'gold'}), small('two')]
    specs = {'gold': {'tier': 'gold'}}
    needs = [need(10) | {'pool': 'one'}, need(10, 'gold')]
    gold_pool = small('two', capabilities=NFS | {'tier': 'lead'})
    assert reserved([pools[0], gold_pool], needs, specs) == {'one': 10, 'two': 10}


def test_what_fits_only_in_total_is_planned_where_there_is_room():
    """The driver decides how to spread the shares."""
    pools = [
        small('one', capabilities=NFS | {'tier': 'gold'}),
        small('two', capabilities=NFS | {'tier': 'lead'}),
    ]
    specs = {'gold': {'tier': 'gold'}, 'lead': {'tier': 'lead'}}
    needs = [need(12, 'gold'), need(3, 'lead')]
    assert reserved(pools, needs, specs) == {'one': 10, 'two': 5}


def test_a_pool_without_a_limit_takes_everything():
    pools = [small('one', total_gb=None, free_gb=None), small('two')]
    assert reserved(pools, [need(50)]) == {'one': 50}
    assert reserved(pools, [need(50) | {'pool': 'two'}]) == {'one': 40, 'two': 10}


def test_fractions_of_a_gib_hold_no_shares():
    pools = [
        small('one', free_gb=1.5, total_gb=1.5),
        small('two', free_gb=1.5, total_gb=1.5),
    ]
    assert reserved(pools, [need(2)]) == {'one': 1, 'two': 1}
    assert reasons(pools, [need(3)]) == ['3 GiB are needed, 2 GiB are available']


def test_thick_shares_are_compared_with_their_own_limit():
    """Of one pool, which may hold 20 GiB of thin shares."""
    thin = NFS | {
        'thin_provisioning': [True, False],
        'max_over_subscription_ratio': 2.0,
    }
    pools = [small('one', capabilities=thin)]
    specs = {'thick': {'thin_provisioning': '<is> False'}}
    _, reservations = plan(pools, [need(12), need(6, 'thick')], specs, FILTERS)
    assert [(one.gb, one.most_allocated) for one in reservations] == [
        (6, 10.0),
        (12, 20.0),
    ]


def test_the_plan_holds_until_the_next_report():
    (one,) = plan([small('one', reported_at=7.5)], [need(6)], {}, FILTERS)[1]
    assert one == ('host@back#one', 6, 7.5, 10.0, 10.0)


def test_the_same_reason_for_several_pools_is_given_once():
    specs = {'type': {'tier': 'gold'}}
    needs = [need(1) | {'pool': name} for name in ('one', 'two')]
    assert len(reasons([small('one')], needs, specs)) == 1
