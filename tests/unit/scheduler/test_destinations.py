"""Check whether a back end can hold all shares of a share server."""

from manila_lite.scheduler.destinations import rejection_reasons
from manila_lite.scheduler.filters.availability_zone import (
    AvailabilityZoneFilter,
)
from manila_lite.scheduler.filters.capabilities import CapabilitiesFilter
from manila_lite.scheduler.filters.capacity import CapacityFilter
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
        [small('one')],
        [need(1), need(1, 'other')],
        {'other': {'tier': 'gold'}},
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
    assert (
        reasons([small('one', total_gb=None, free_gb=None)], [need(10**9)])
        == []
    )
