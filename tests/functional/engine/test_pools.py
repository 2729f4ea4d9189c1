"""The books about pools: what is placed, what is known of it, what fits."""

import pytest
import sqlalchemy as sa

from manila_lite.db.queries.admin import pools
from manila_lite.share.manager import pool_reports as statistics
from tests.functional.engine.service_process import CTX
from tests.functional.engine.service_process import POOL

HOST = 'node@alpha#pool'
SERVICE = 'node@alpha'


@pytest.fixture
def house(build_house):
    house = build_house(backends=['alpha'], capacity=100)
    house.register()
    house.run()
    return house


def pool(house, host=HOST):
    return house.db.read(
        lambda session: session.one(sa.select(POOL).where(POOL.c.host == host))
    )


def books(house):
    found = pool(house)
    return found.allocated_gb, found.pending_gb, found.free_gb


def allocate(house, gb, room, reported_at=None):
    seen = pool(house).reported_at if reported_at is None else reported_at
    return house.db.write(pools.allocate, HOST, gb, room, seen)


def report(house, free, known):
    house.db.write(
        pools.report, SERVICE, [pools.Report(HOST, {}, 100.0, free)], known
    )


# Taking room


def test_room_is_taken_up_to_the_brim_and_no_further(house):
    assert allocate(house, 60, 100.0)
    assert not allocate(house, 41, 100.0)
    assert allocate(house, 40, 100.0)
    assert books(house) == (100, 100, 100.0)


def test_without_a_limit_there_is_always_room(house):
    assert allocate(house, 10**6, None)


def test_room_of_an_older_report_is_not_taken(house):
    """Others have filled the pool since, and a report says so."""
    seen = pool(house).reported_at
    report(house, 5.0, {})
    assert not allocate(house, 60, 100.0, seen)
    assert allocate(house, 5, 5.0)


def test_a_pool_that_vanished_has_no_room(house):
    seen = pool(house).reported_at
    house.db.write(pools.report, SERVICE, [], {})
    assert not house.db.write(pools.allocate, HOST, 1, None, seen)


# What the back end knows


def test_a_report_knows_of_what_was_there_before_it(house):
    house.create(10)
    house.run()
    assert books(house) == (10, 10, 100.0)
    house.backend().report()
    assert books(house) == (10, 0, 90.0)


def test_a_report_does_not_know_of_what_came_during_it(house):
    allocate(house, 10, None)
    known = house.db.read(pools.known, SERVICE)
    allocate(house, 7, None)
    report(house, 90.0, known)
    assert books(house) == (17, 7, 90.0)


def test_a_report_does_not_know_of_what_is_still_to_be_made(house):
    """Placed, but the driver has not come to it yet."""
    house.create(10)
    house.scheduler.runners[0].step()
    house.backend().report()
    assert books(house) == (10, 10, 100.0)
    house.run()
    house.backend().report()
    assert books(house) == (10, 0, 90.0)


@pytest.mark.parametrize('force', [False, True])
def test_a_report_does_not_know_of_growth_still_to_come(house, force):
    share = house.create(10)
    house.run()
    house.backend().report()
    house.ask('extend', share, 14, force=force)
    while house.scheduler.runners[0].step():
        pass
    assert books(house) == (14, 4, 90.0)
    house.backend().report()
    assert books(house) == (14, 4, 90.0)
    house.run()
    house.backend().report()
    assert books(house) == (14, 0, 86.0)


def test_two_reports_at_once_take_nothing_twice(house):
    """Two managers of one back end ask their drivers at the same time."""
    allocate(house, 10, None)
    known = [house.db.read(pools.known, SERVICE) for _ in range(2)]
    allocate(house, 5, None)
    report(house, 90.0, known[0])
    report(house, 89.0, known[1])
    assert books(house) == (15, 5, 90.0)


def test_what_shrinks_or_goes_frees_room_when_the_back_end_says_so(house):
    share = house.create(10)
    house.run()
    house.backend().report()
    house.ask('shrink', share, 4)
    house.run()
    assert books(house) == (4, 0, 90.0)
    house.ask('delete', share)
    house.run()
    assert books(house) == (0, 0, 90.0)
    house.backend().report()
    assert books(house) == (0, 0, 100.0)


def test_growth_that_failed_is_not_counted(house):
    share = house.create(10)
    house.run()
    for force in (False, True):
        house.driver().fail_next('extend_share')
        house.ask('extend', share, 14, force=force)
        house.run()
        assert pool(house).allocated_gb == 10
        house.operations.reset_status(
            CTX, house.target(share).instance_id, 'available'
        )
    assert house.problems() == []


# Pools that come and go


def test_a_report_replaces_vanished_pools(house):
    assert pool(house)
    house.db.write(
        pools.report,
        SERVICE,
        [pools.Report(f'{SERVICE}#new', {'a': 1}, None, None)],
        house.db.read(pools.known, SERVICE),
    )
    assert pool(house) is None
    new = pool(house, f'{SERVICE}#new')
    assert (new.total_gb, new.free_gb, new.allocated_gb) == (None, None, 0)


def test_a_pool_that_comes_back_counts_what_is_on_it(house):
    share = house.create(10)
    house.run()
    house.ask('extend', share, 14, force=True)
    house.db.write(pools.report, SERVICE, [], {})
    house.backend().report()
    assert pool(house).allocated_gb == 14
    house.run()
    assert house.problems() == []


def test_pools_of_other_back_ends_are_left_alone(house):
    house.db.write(
        pools.report,
        'node@alphabet',
        [pools.Report('node@alphabet#pool', {}, 1.0, 1.0)],
        {},
    )
    house.db.write(pools.report, SERVICE, [], {})
    assert pool(house) is None
    assert pool(house, 'node@alphabet#pool')


# What drivers say


@pytest.mark.parametrize(
    'said, total, free',
    [
        ({'total_capacity_gb': 10, 'free_capacity_gb': 2.5}, 10.0, 2.5),
        ({'total_capacity_gb': '10', 'free_capacity_gb': '2'}, 10.0, 2.0),
        (
            {'total_capacity_gb': 'infinite', 'free_capacity_gb': 'unknown'},
            None,
            None,
        ),
        (
            {'total_capacity_gb': 'inf', 'free_capacity_gb': float('inf')},
            None,
            None,
        ),
        (
            {'total_capacity_gb': float('nan'), 'free_capacity_gb': None},
            None,
            None,
        ),
        ({'total_capacity_gb': [10]}, None, None),
        ({}, None, None),
    ],
)
def test_capacities_are_numbers_or_nothing(house, said, total, free):
    (one,) = statistics.reports(said, SERVICE, house.db.utcnow())
    assert (one.host, one.total_gb, one.free_gb) == (
        'node@alpha#pool',
        total,
        free,
    )
    house.db.write(pools.report, SERVICE, [one], {})
    assert (pool(house).total_gb, pool(house).free_gb) == (total, free)


def test_what_a_back_end_says_holds_for_each_of_its_pools(house):
    said = {
        'vendor_name': 'v',
        'a': 1,
        'pools': [{'pool_name': 'x', 'a': 2}, {'pool_name': 'y'}],
    }
    reports = statistics.reports(said, SERVICE, house.db.utcnow())
    assert [
        (one.host, one.capabilities['a'], one.capabilities['vendor_name'])
        for one in reports
    ] == [(f'{SERVICE}#x', 2, 'v'), (f'{SERVICE}#y', 1, 'v')]
    assert all(
        'timestamp' in one.capabilities and 'pools' not in one.capabilities
        for one in reports
    )
