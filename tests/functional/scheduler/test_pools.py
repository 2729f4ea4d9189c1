"""Capacity of pools: allocations, reports, and what still fits."""

import collections
from concurrent import futures
import random

import pytest
import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.models import services
from manila_lite.db.queries.services import pools
from manila_lite.share.manager import backend
from tests.support import sampling
from tests.support.service_process import CTX, POOL

HOST = 'node@alpha#pool'
SERVICE = 'node@alpha'
SERVICES = services.Service.__table__
DOWN_TIME = 60.0


@pytest.fixture
def node(build_node):
    node = build_node(backends=['alpha'], capacity=100)
    node.register()
    node.run()
    return node


def pool(node, host=HOST):
    return node.db.read(
        lambda session: session.first(sa.select(POOL).where(POOL.c.host == host))
    )


def allocation(node):
    found = pool(node)
    return found.allocated_gb, found.pending_gb, found.free_gb


def allocate(node, gb, room, reported_at=None):
    seen = pool(node).reported_at if reported_at is None else reported_at
    return node.db.write(
        pools.allocate, HOST, gb, seen, down_time=DOWN_TIME, most_allocated=room
    )


def report(node, free, known, **capabilities):
    node.db.write(
        pools.save_report,
        SERVICE,
        [pools.PoolReport(HOST, capabilities, 100.0, free)],
        known,
    )


# Allocation


@sampling.dialects
def test_allocation_is_limited_to_the_capacity(node):
    assert allocate(node, 60, 100.0)
    assert not allocate(node, 41, 100.0)
    assert allocate(node, 40, 100.0)
    assert allocation(node) == (100, 100, 100.0)


@sampling.dialects
def test_allocation_without_a_limit_always_succeeds(node):
    assert allocate(node, 10**6, None)


@sampling.dialects
def test_allocation_based_on_an_older_report_is_refused(node):
    """A later report shows that the pool has been filled by others."""
    seen = pool(node).reported_at
    report(node, 5.0, {})
    assert not allocate(node, 60, 100.0, seen)
    assert allocate(node, 5, 5.0)


MANY = 10
NAMES = [f'{SERVICE}#{number}' for number in range(MANY)]


@pytest.fixture
def many(node):
    """Return allocations on many pools, of different sizes, each of its limit."""
    reports = [pools.PoolReport(host, {}, 100.0, 100.0) for host in NAMES]
    node.db.write(pools.save_report, SERVICE, reports, {})
    return [
        pools.Allocation(host, gb, pool(node, host).reported_at, gb, gb)
        for gb, host in enumerate(NAMES, 1)
    ]


def allocate_all(node, allocations):
    return node.db.write(pools.allocate_all, allocations, down_time=DOWN_TIME)


@sampling.dialects
def test_each_of_many_pools_gets_its_part_up_to_its_limit(node, many):
    assert allocate_all(node, reversed(many[1:]))
    found = [pool(node, host) for host in NAMES]
    sizes = [0, *range(2, MANY + 1)]
    assert [(one.allocated_gb, one.pending_gb) for one in found] == [
        (gb, gb) for gb in sizes
    ]
    # Only the first pool has room left.
    for number, one in enumerate(many):
        assert allocate_all(node, [one]) is (number == 0)


@sampling.dialects
@pytest.mark.parametrize(
    'change', [{'reported_at': 1.0}, {'most_allocated': 2.0}, {'most_pending': 2.0}]
)
def test_one_of_many_pools_that_cannot_is_noticed(node, many, change):
    assert not allocate_all(node, [*many[:4], many[4]._replace(**change), *many[5:]])


@sampling.dialects
def test_allocations_at_once_neither_exceed_limits_nor_wait_for_each_other(node, many):
    """Two schedulers choose from the same pools."""
    most, rng = 100, random.Random(node.names[0])
    of_each = [
        one._replace(gb=1, most_allocated=most, most_pending=None) for one in many
    ]
    wanted = [rng.sample(of_each, 6) for _ in range(800)]
    retries = node.db.retries
    with futures.ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda each: _allocate_or_nothing(node, each), wanted))
    expected = collections.Counter(
        one.host
        for each, is_done in zip(wanted, done, strict=True)
        if is_done
        for one in each
    )
    assert {host: pool(node, host).allocated_gb for host in NAMES} == expected
    assert max(expected.values()) == most
    assert node.db.retries == retries


class _Refused(Exception):
    """One of the pools is full."""


def _allocate_or_nothing(node, allocations):
    def once(session):
        if not pools.allocate_all(session, allocations, down_time=DOWN_TIME):
            raise _Refused

    try:
        node.db.write(once)
    except _Refused:
        return False
    return True


@sampling.dialects
def test_allocation_in_a_missing_pool_is_refused(node):
    seen = pool(node).reported_at
    node.db.write(pools.save_report, SERVICE, [], {})
    assert not node.db.write(pools.allocate, HOST, 1, seen, down_time=DOWN_TIME)


@sampling.dialects
@pytest.mark.parametrize(
    'change',
    [
        {'disabled': True},
        {'health': 'no disk'},
        {'heartbeat_at': db_now() - DOWN_TIME - 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_allocation_on_a_service_that_was_closed_is_refused(node, change):
    """It may have been open when the pool was chosen."""
    assert allocate(node, 1, None)
    node.db.write(
        lambda session: session.run(
            sa.update(SERVICES).where(SERVICES.c.host == SERVICE).values(change)
        )
    )
    assert not allocate(node, 1, None)


# What a report includes


def test_report_includes_what_existed_before_it(node):
    node.create(10)
    node.run()
    assert allocation(node) == (10, 10, 100.0)
    node.backend().report()
    assert allocation(node) == (10, 0, 90.0)


def test_report_excludes_what_was_created_during_it(node):
    allocate(node, 10, None)
    known = node.db.read(pools.get_known_allocations, SERVICE)
    allocate(node, 7, None)
    report(node, 90.0, known)
    assert allocation(node) == (17, 7, 90.0)


@pytest.mark.facts('LP1872873')
def test_report_excludes_pending_creations(node):
    """Placed, but not yet created by the driver."""
    node.create(10)
    node.scheduler.runners[0].step()
    node.backend().report()
    assert allocation(node) == (10, 10, 100.0)
    node.run()
    node.backend().report()
    assert allocation(node) == (10, 0, 90.0)


@pytest.mark.parametrize('force', [False, True])
def test_report_excludes_pending_extensions(node, force):
    share = node.create(10)
    node.run()
    node.backend().report()
    node.ask('extend', share, 14, force=force)
    while node.scheduler.runners[0].step():
        pass
    assert allocation(node) == (14, 4, 90.0)
    node.backend().report()
    assert allocation(node) == (14, 4, 90.0)
    node.run()
    node.backend().report()
    assert allocation(node) == (14, 0, 86.0)


@pytest.fixture
def full(node):
    """Return a function that fills the pool and returns its share."""

    def fill(**capabilities):
        share = node.create(100)
        node.run()
        known = node.db.read(pools.get_known_allocations, SERVICE)
        report(node, 0.0, known, **capabilities)
        return share

    return fill


def delete(node, share):
    node.ask('delete', share)
    node.run()


@sampling.dialects
@pytest.mark.parametrize(
    'capabilities, room',
    [
        ({}, 100),
        ({'thin_provisioning': False}, 100),
        ({'thin_provisioning': True}, 0),
        ({'thin_provisioning': [True, False]}, 0),
    ],
)
def test_room_of_a_deleted_share_is_free_at_once_in_a_thick_pool(
    node, full, capabilities, room
):
    delete(node, full(**capabilities))
    assert allocation(node) == (0, -room, 0.0)
    known = node.db.read(pools.get_known_allocations, SERVICE)
    report(node, 100.0, known, **capabilities)
    assert allocation(node) == (0, 0, 100.0)


@sampling.dialects
def test_share_fits_where_one_was_deleted(node, full):
    delete(node, full(storage_protocol='NFS', driver_handles_share_servers=False))
    share = node.create(100)
    node.run()
    assert node.outcome(share) == ('available', 100)
    assert allocation(node) == (100, 0, 0.0)


@sampling.dialects
def test_room_that_the_report_may_have_is_not_counted_again(node, full):
    """The report is later than the beginning of the removal."""
    full()
    began = node.db.utcnow()
    known = node.db.read(pools.get_known_allocations, SERVICE)
    report(node, 100.0, known)
    node.db.write(pools.release, HOST, 100, began)
    assert allocation(node) == (0, 0, 100.0)


@sampling.dialects
def test_room_that_is_free_during_a_report_is_not_counted_again(node, full):
    share = full()
    known = node.db.read(pools.get_known_allocations, SERVICE)
    delete(node, share)
    report(node, 100.0, known)
    assert allocation(node) == (0, 0, 100.0)


@pytest.mark.facts('LP1908963')
@sampling.dialects
def test_concurrent_reports_subtract_nothing_twice(node):
    """Two managers of one back end report concurrently."""
    allocate(node, 10, None)
    known = [node.db.read(pools.get_known_allocations, SERVICE) for _ in range(2)]
    allocate(node, 5, None)
    report(node, 90.0, known[0])
    report(node, 89.0, known[1])
    assert allocation(node) == (15, 5, 90.0)


def test_shrink_and_delete_free_capacity_with_the_next_report(node):
    share = node.create(10)
    node.run()
    node.backend().report()
    node.ask('shrink', share, 4)
    node.run()
    assert allocation(node) == (4, 0, 90.0)
    node.ask('delete', share)
    node.run()
    assert allocation(node) == (0, 0, 90.0)
    node.backend().report()
    assert allocation(node) == (0, 0, 100.0)


def test_failed_extension_is_not_counted(node):
    share = node.create(10)
    node.run()
    for force in (False, True):
        node.driver().fail_next('extend_share')
        node.ask('extend', share, 14, force=force)
        node.run()
        assert pool(node).allocated_gb == 10
        node.operations.reset_status(CTX, node.target(share).instance_id, 'available')
    assert node.problems() == []


# Pools that appear and disappear


def test_report_removes_missing_pools(node):
    assert pool(node)
    node.db.write(
        pools.save_report,
        SERVICE,
        [pools.PoolReport(f'{SERVICE}#new', {'a': 1}, None, None)],
        node.db.read(pools.get_known_allocations, SERVICE),
    )
    assert pool(node) is None
    new = pool(node, f'{SERVICE}#new')
    assert (new.total_gb, new.free_gb, new.allocated_gb) == (None, None, 0)


def test_returning_pool_counts_its_shares(node):
    share = node.create(10)
    node.run()
    node.ask('extend', share, 14, force=True)
    node.db.write(pools.save_report, SERVICE, [], {})
    node.backend().report()
    assert pool(node).allocated_gb == 14
    node.run()
    assert node.problems() == []


def test_pools_of_other_back_ends_are_unchanged(node):
    node.db.write(
        pools.save_report,
        'node@alphabet',
        [pools.PoolReport('node@alphabet#pool', {}, 1.0, 1.0)],
        {},
    )
    node.db.write(pools.save_report, SERVICE, [], {})
    assert pool(node) is None
    assert pool(node, 'node@alphabet#pool')


# Reported values


@pytest.mark.parametrize(
    'said, total, free',
    [
        ({'total_capacity_gb': 10, 'free_capacity_gb': 2.5}, 10.0, 2.5),
        ({'total_capacity_gb': '10', 'free_capacity_gb': '2'}, 10.0, 2.0),
        ({'total_capacity_gb': 'infinite', 'free_capacity_gb': 'unknown'}, None, None),
        ({'total_capacity_gb': 'inf', 'free_capacity_gb': float('inf')}, None, None),
        ({'total_capacity_gb': float('nan'), 'free_capacity_gb': None}, None, None),
        ({'total_capacity_gb': [10]}, None, None),
        ({}, None, None),
    ],
)
def test_capacities_are_numbers_or_none(node, said, total, free):
    (one,) = backend.pool_reports(said, SERVICE, node.db.utcnow())
    assert (one.host, one.total_gb, one.free_gb) == ('node@alpha#pool', total, free)
    node.db.write(pools.save_report, SERVICE, [one], {})
    assert (pool(node).total_gb, pool(node).free_gb) == (total, free)


def test_values_of_the_back_end_apply_to_each_pool(node):
    said = {
        'vendor_name': 'v',
        'a': 1,
        'pools': [{'pool_name': 'x', 'a': 2}, {'pool_name': 'y'}],
    }
    reports = backend.pool_reports(said, SERVICE, node.db.utcnow())
    assert [
        (one.host, one.capabilities['a'], one.capabilities['vendor_name'])
        for one in reports
    ] == [(f'{SERVICE}#x', 2, 'v'), (f'{SERVICE}#y', 1, 'v')]
    assert all(
        'timestamp' in one.capabilities and 'pools' not in one.capabilities
        for one in reports
    )
