"""Schedulers that decide from the database, and get in each other's way."""

import concurrent.futures
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.shares import instances as share_instances
from tests.functional.engine.service_process import CTX
from tests.functional.engine.service_process import INSTANCE
from tests.functional.engine.service_process import POOL
from tests.functional.engine.service_process import SHARE
from tests.functional.engine.service_process import TYPE_ID

CAPACITY = 12

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def house(build_house):
    """Two back ends, alpha first in line; nothing runs by itself."""
    house = build_house(capacity=CAPACITY)
    house.register()
    house.run()
    house.db.write(pools.change_allocated, 'node@beta#pool', 1)
    return house


def host(house, share_id):
    return house.target(share_id).host


def extra_spec(house, key, value):
    house.db.write(
        lambda session: session.run(
            sa.text(
                'INSERT INTO share_type_extra_specs '
                '(share_type_id, spec_key, spec_value) VALUES (:t, :k, :v)'
            ),
            t=TYPE_ID,
            k=key,
            v=value,
        )
    )


def when_claimed(house, rival):
    """Have a rival come between the choice of a pool and its taking."""

    def probe(name):
        if name == 'committed':
            house.db.probe = lambda name: None
            rival()

    house.db.probe = probe


# Room


def test_a_share_goes_where_there_is_most_room(house):
    share = house.create(2)
    house.run()
    assert host(house, share) == 'node@alpha#pool'


def test_room_that_a_rival_took_is_looked_for_elsewhere(build_house, house):
    rival = build_house()
    when_claimed(
        house,
        lambda: rival.db.write(
            pools.allocate,
            'node@alpha#pool',
            CAPACITY,
            None,
            rival.value(
                sa.select(POOL.c.reported_at).where(
                    POOL.c.host == 'node@alpha#pool'
                )
            ),
        ),
    )
    share = house.create(2)
    house.run()
    assert host(house, share) == 'node@beta#pool'


def test_room_that_a_report_took_is_looked_for_elsewhere(build_house, house):
    """Others use the back end too, and it has just said so."""
    rival = build_house()
    when_claimed(
        house,
        lambda: rival.db.write(
            pools.report,
            'node@alpha',
            [pools.Report('node@alpha#pool', {}, CAPACITY, 0.0)],
            {},
        ),
    )
    share = house.create(2)
    house.run()
    assert host(house, share) == 'node@beta#pool'


def test_when_rivals_take_all_room_the_user_hears_of_it(build_house, house):
    rival = build_house()

    def take_all():
        for name in ('alpha', 'beta'):
            rival.db.write(
                pools.report,
                f'node@{name}',
                [pools.Report(f'node@{name}#pool', {}, CAPACITY, 0.0)],
                {},
            )

    when_claimed(house, take_all)
    share = house.create(2)
    house.run()
    assert house.status(share) == 'error'
    assert house.messages() == [('001', '009')]
    assert house.target(share).host is None


@pytest.mark.parametrize('seed', range(2))
def test_racing_schedulers_never_place_more_than_fits(build_house, seed):
    """Sizes of 1 to 3 GiB for twice the room there is, reports meanwhile."""
    houses = [build_house(capacity=CAPACITY) for _ in range(2)]
    for house in houses:
        house.start()
    first, second = houses
    done = threading.Event()

    def ask(house, sizes):
        return [house.create(size) for size in sizes]

    def report():
        while not done.is_set():
            for backend in first.share.backends + second.share.backends:
                backend.report()

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        reporting = pool.submit(report)
        asking = [
            pool.submit(
                ask,
                houses[number % 2],
                [1 + (number + n + seed) % 3 for n in range(6)],
            )
            for number in range(4)
        ]
        shares = [share for one in asking for share in one.result()]
        for house in houses:
            house.quiet()
        done.set()
        reporting.result()
    statuses = [first.status(share) for share in shares]
    assert set(statuses) == {'available', 'error'}
    for name in first.names:
        total = sum(first.driver(name).inventory().values())
        assert CAPACITY // 2 < total <= CAPACITY
    assert first.problems() == []


@on_sqlite
def test_an_extension_stays_on_its_pool_and_within_it(house):
    share = house.create(2)
    house.run()
    house.ask('extend', share, CAPACITY)
    house.run()
    assert (house.status(share), house.target(share).size) == (
        'available',
        CAPACITY,
    )
    house.ask('extend', share, CAPACITY + 1)
    house.run()
    assert (house.status(share), house.target(share).size) == (
        'available',
        CAPACITY,
    )
    assert house.messages() == [('008', '009')]
    house.db.write(pools.change_allocated, 'node@beta#pool', -1)
    assert house.problems() == []


# Reasons


@on_sqlite
@pytest.mark.parametrize(
    'spec, detail',
    [
        (('share_backend_name', 'gamma'), '008'),
        (('snapshot_support', '<is> False'), '008'),
        (None, '009'),
    ],
)
def test_the_user_hears_which_filter_left_nothing(house, spec, detail):
    if spec:
        extra_spec(house, *spec)
    share = house.create(2 if spec else CAPACITY + 1)
    house.run()
    assert house.status(share) == 'error'
    assert house.messages() == [('001', detail)]


@on_sqlite
def test_a_zone_without_a_pool_is_named_as_the_reason(house):
    house.db.write(services.zone_id, 'elsewhere')
    house.create(2, availability_zone='elsewhere')
    house.run()
    assert house.messages() == [('001', '007')]


@on_sqlite
def test_without_pools_the_storage_is_not_ready_yet(build_house):
    house = build_house()
    house.scheduler.register()
    share = house.create(2)
    house.scheduler.runners[0].step()
    assert house.status(share) == 'error'
    assert house.messages() == [('001', '028')]


@on_sqlite
def test_without_a_type_and_a_default_the_user_is_asked_for_one(build_house):
    house = build_house(default='default_share_type =')
    house.register()
    share = house.create(2)
    house.run()
    assert house.status(share) == 'error'
    assert house.messages() == [('001', '024')]


@on_sqlite
@pytest.mark.parametrize(
    'change',
    [
        lambda house: house.db.write(
            services.set_disabled, 'node@alpha', 'manila-share', True, None
        ),
        lambda house: house.db.write(
            services.beat,
            host='node@alpha',
            binary='manila-share',
            incarnation='i',
            health='out of order',
        ),
        lambda house: house.db.write(
            lambda session: session.run(
                sa.text(
                    'UPDATE services SET heartbeat_at = 0 '
                    "WHERE host = 'node@alpha'"
                )
            )
        ),
    ],
    ids=['disabled', 'unwell', 'silent'],
)
def test_nothing_is_placed_where_no_service_can_take_it(house, change):
    change(house)
    share = house.create(2)
    house.run()
    assert host(house, share) == 'node@beta#pool'


@on_sqlite
def test_storage_that_is_about_to_start_is_waited_for(build_house):
    house = build_house(work='retry_delay = 1')
    house.register()
    for name in house.names:
        house.db.write(
            services.beat,
            host=f'node@{name}',
            binary='manila-share',
            incarnation='i',
            health='still starting',
        )
    share = house.create(2)
    house.run()
    ((_, state, _, attempt, error),) = [
        one for one in house.owed() if one[0].startswith('placement')
    ]
    assert (state, attempt) == ('queued', 1)
    assert 'No share service is up' in error
    for backend in house.share.backends:
        backend.beat()
    for runner in house.runners:
        runner.start()
    house.quiet()
    assert house.status(share) == 'available'
    for runner in house.runners:
        assert runner.stop(10)


# Once, and at once


def test_a_share_is_placed_once_however_often_it_is_announced(build_house):
    houses = [build_house(capacity=100).start() for _ in range(2)]
    first, second = houses
    shares = [first.create(1) for _ in range(8)]
    for runner in second.scheduler.runners + first.scheduler.runners:
        for row in first.rows(sa.text('SELECT id FROM work')):
            runner.wake(row.id)
    first.quiet()
    assert {first.status(share) for share in shares} == {'available'}
    placed = first.value(sa.select(sa.func.sum(POOL.c.allocated_gb)))
    assert placed == len(shares)
    assert first.problems() == []


def test_an_instance_that_has_a_host_is_not_placed_again(house):
    instance = house.target(house.create(2)).instance_id
    house.db.write(share_instances.place, instance, 'node@alpha#pool', None)
    with pytest.raises(exception.InvalidStatus):
        house.db.write(share_instances.place, instance, 'node@beta#pool', None)
    assert house.value(sa.select(INSTANCE.c.host)) == 'node@alpha#pool'


def test_a_new_scheduler_decides_at_once(build_house, house):
    """It has heard no report: the database has."""
    share = house.create(2)
    new = build_house(capacity=CAPACITY)
    assert new.scheduler.runners[0].step()
    assert host(house, share) == 'node@alpha#pool'


# What nobody places


@pytest.fixture
def homeless(build_house):
    """A share that was never placed, in error; and the house."""
    house = build_house()
    house.scheduler.register()
    share = house.create(2)
    house.scheduler.runners[0].step()
    assert (house.status(share), host(house, share)) == ('error', None)
    return house, share


@pytest.mark.parametrize(
    'status', ['creating', 'migrating', 'migrating_to', 'server_migrating']
)
def test_what_a_decree_left_in_flight_ends_visibly(homeless, status):
    house, share = homeless
    house.operations.reset_status(CTX, house.target(share).instance_id, status)
    told = len(house.messages())
    assert house.scheduler.unplaced.run_pass() == 1
    assert house.status(share) == 'error'
    assert len(house.messages()) == told + 1
    assert house.scheduler.unplaced.run_pass() == 0
    assert house.problems() == []


def test_what_a_decree_left_in_deletion_goes(homeless):
    house, share = homeless
    house.operations.reset_status(
        CTX, house.target(share).instance_id, 'deleting'
    )
    assert house.scheduler.unplaced.run_pass() == 1
    assert house.rows(sa.select(SHARE)) == []
    assert house.problems() == []


def test_what_another_scheduler_ends_meanwhile_stops_no_pass(
    build_house, homeless
):
    """Writers of SQLite take turns: there one of them finds nothing."""
    house, share = homeless
    shares = [share, house.create(2), house.create(2)]
    while house.scheduler.runners[0].step():
        pass
    for one in shares:
        house.operations.reset_status(
            CTX, house.target(one).instance_id, 'migrating'
        )
    told = len(house.messages())
    at_once = threading.Barrier(3)

    def run(rival):
        at_once.wait()
        rival.scheduler.unplaced.run_pass()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for running in [
            pool.submit(run, rival)
            for rival in (house, build_house(), build_house())
        ]:
            running.result()
    assert {house.status(one) for one in shares} == {'error'}
    assert len(house.messages()) == told + 3


def test_the_recycle_bin_is_emptied_of_what_has_no_host(build_house):
    house = build_house(default='soft_deleted_share_retention_time = 0')
    house.scheduler.register()
    shares = [house.create(2) for _ in range(2)]
    while house.scheduler.runners[0].step():
        pass
    house.ask('soft_delete', shares[0])
    assert house.scheduler.unplaced.run_pass() == 1
    assert [row.id for row in house.rows(sa.select(SHARE))] == shares[1:]
    assert house.problems() == []
