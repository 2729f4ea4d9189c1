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
def node(build_node):
    """Two back ends, alpha first in line; nothing runs by itself."""
    node = build_node(capacity=CAPACITY)
    node.register()
    node.run()
    node.db.write(pools.adjust_allocated, 'node@beta#pool', 1)
    return node


def host(node, share_id):
    return node.target(share_id).host


def extra_spec(node, key, value):
    node.db.write(
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


def when_claimed(node, rival):
    """Have a rival come between the choice of a pool and its taking."""

    def on_step(name):
        if name == 'committed':
            node.db.on_step = lambda name: None
            rival()

    node.db.on_step = on_step


# Room


def test_a_share_goes_where_there_is_most_room(node):
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@alpha#pool'


def test_room_that_a_rival_took_is_looked_for_elsewhere(build_node, node):
    rival = build_node()
    when_claimed(
        node,
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
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@beta#pool'


def test_room_that_a_report_took_is_looked_for_elsewhere(build_node, node):
    """Others use the back end too, and it has just said so."""
    rival = build_node()
    when_claimed(
        node,
        lambda: rival.db.write(
            pools.save_report,
            'node@alpha',
            [pools.PoolReport('node@alpha#pool', {}, CAPACITY, 0.0)],
            {},
        ),
    )
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@beta#pool'


def test_when_rivals_take_all_room_the_user_hears_of_it(build_node, node):
    rival = build_node()

    def take_all():
        for name in ('alpha', 'beta'):
            rival.db.write(
                pools.save_report,
                f'node@{name}',
                [pools.PoolReport(f'node@{name}#pool', {}, CAPACITY, 0.0)],
                {},
            )

    when_claimed(node, take_all)
    share = node.create(2)
    node.run()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '009')]
    assert node.target(share).host is None


@pytest.mark.parametrize('seed', range(2))
def test_racing_schedulers_never_place_more_than_fits(build_node, seed):
    """Sizes of 1 to 3 GiB for twice the room there is, reports meanwhile."""
    nodes = [build_node(capacity=CAPACITY) for _ in range(2)]
    for node in nodes:
        node.start()
    first, second = nodes
    done = threading.Event()

    def ask(node, sizes):
        return [node.create(size) for size in sizes]

    def report():
        while not done.is_set():
            for backend in first.share.backends + second.share.backends:
                backend.report()

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        reporting = pool.submit(report)
        asking = [
            pool.submit(
                ask,
                nodes[number % 2],
                [1 + (number + n + seed) % 3 for n in range(6)],
            )
            for number in range(4)
        ]
        shares = [share for one in asking for share in one.result()]
        for node in nodes:
            node.quiet()
        done.set()
        reporting.result()
    statuses = [first.status(share) for share in shares]
    assert set(statuses) == {'available', 'error'}
    for name in first.names:
        total = sum(first.driver(name).inventory().values())
        assert CAPACITY // 2 < total <= CAPACITY
    assert first.problems() == []


@on_sqlite
def test_an_extension_stays_on_its_pool_and_within_it(node):
    share = node.create(2)
    node.run()
    node.ask('extend', share, CAPACITY)
    node.run()
    assert (node.status(share), node.target(share).size) == (
        'available',
        CAPACITY,
    )
    node.ask('extend', share, CAPACITY + 1)
    node.run()
    assert (node.status(share), node.target(share).size) == (
        'available',
        CAPACITY,
    )
    assert node.messages() == [('008', '009')]
    node.db.write(pools.adjust_allocated, 'node@beta#pool', -1)
    assert node.problems() == []


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
def test_the_user_hears_which_filter_left_nothing(node, spec, detail):
    if spec:
        extra_spec(node, *spec)
    share = node.create(2 if spec else CAPACITY + 1)
    node.run()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', detail)]


@on_sqlite
def test_a_zone_without_a_pool_is_named_as_the_reason(node):
    node.db.write(services.get_or_create_zone_id, 'elsewhere')
    node.create(2, availability_zone='elsewhere')
    node.run()
    assert node.messages() == [('001', '007')]


@on_sqlite
def test_without_pools_the_storage_is_not_ready_yet(build_node):
    node = build_node()
    node.scheduler.register()
    share = node.create(2)
    node.scheduler.runners[0].step()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '028')]


@on_sqlite
def test_without_a_type_and_a_default_the_user_is_asked_for_one(build_node):
    node = build_node(default='default_share_type =')
    node.register()
    share = node.create(2)
    node.run()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '024')]


@on_sqlite
@pytest.mark.parametrize(
    'change',
    [
        lambda node: node.db.write(
            services.set_disabled, 'node@alpha', 'manila-share', True, None
        ),
        lambda node: node.db.write(
            services.heartbeat,
            host='node@alpha',
            binary='manila-share',
            incarnation='i',
            health='out of order',
        ),
        lambda node: node.db.write(
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
def test_nothing_is_placed_where_no_service_can_take_it(node, change):
    change(node)
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@beta#pool'


@on_sqlite
def test_storage_that_is_about_to_start_is_waited_for(build_node):
    node = build_node(work='retry_delay = 1')
    node.register()
    for name in node.names:
        node.db.write(
            services.heartbeat,
            host=f'node@{name}',
            binary='manila-share',
            incarnation='i',
            health='still starting',
        )
    share = node.create(2)
    node.run()
    ((_, state, _, attempt, error),) = [
        one for one in node.owed() if one[0].startswith('placement')
    ]
    assert (state, attempt) == ('queued', 1)
    assert 'No share service is up' in error
    for backend in node.share.backends:
        backend.beat()
    for runner in node.runners:
        runner.start()
    node.quiet()
    assert node.status(share) == 'available'
    for runner in node.runners:
        assert runner.stop(10)


# Once, and at once


def test_a_share_is_placed_once_however_often_it_is_announced(build_node):
    nodes = [build_node(capacity=100).start() for _ in range(2)]
    first, second = nodes
    shares = [first.create(1) for _ in range(8)]
    for runner in second.scheduler.runners + first.scheduler.runners:
        for row in first.rows(sa.text('SELECT id FROM work')):
            runner.wake(row.id)
    first.quiet()
    assert {first.status(share) for share in shares} == {'available'}
    placed = first.value(sa.select(sa.func.sum(POOL.c.allocated_gb)))
    assert placed == len(shares)
    assert first.problems() == []


def test_an_instance_that_has_a_host_is_not_placed_again(node):
    instance = node.target(node.create(2)).instance_id
    node.db.write(
        share_instances.assign_host, instance, 'node@alpha#pool', None
    )
    with pytest.raises(exception.InvalidStatus):
        node.db.write(
            share_instances.assign_host, instance, 'node@beta#pool', None
        )
    assert node.value(sa.select(INSTANCE.c.host)) == 'node@alpha#pool'


def test_a_new_scheduler_decides_at_once(build_node, node):
    """It has heard no report: the database has."""
    share = node.create(2)
    new = build_node(capacity=CAPACITY)
    assert new.scheduler.runners[0].step()
    assert host(node, share) == 'node@alpha#pool'


# What nobody places


@pytest.fixture
def unregistered(build_node):
    """A share that was never placed, in error; and the house."""
    node = build_node()
    node.scheduler.register()
    share = node.create(2)
    node.scheduler.runners[0].step()
    assert (node.status(share), host(node, share)) == ('error', None)
    return node, share


@pytest.mark.parametrize(
    'status', ['creating', 'migrating', 'migrating_to', 'server_migrating']
)
def test_what_a_decree_left_in_flight_ends_visibly(unregistered, status):
    node, share = unregistered
    node.operations.reset_status(CTX, node.target(share).instance_id, status)
    told = len(node.messages())
    assert node.scheduler.orphan_sweep.run_pass() == 1
    assert node.status(share) == 'error'
    assert len(node.messages()) == told + 1
    assert node.scheduler.orphan_sweep.run_pass() == 0
    assert node.problems() == []


def test_what_a_decree_left_in_deletion_goes(unregistered):
    node, share = unregistered
    node.operations.reset_status(
        CTX, node.target(share).instance_id, 'deleting'
    )
    assert node.scheduler.orphan_sweep.run_pass() == 1
    assert node.rows(sa.select(SHARE)) == []
    assert node.problems() == []


def test_what_another_scheduler_ends_meanwhile_stops_no_pass(
    build_node, unregistered
):
    """Writers of SQLite take turns: there one of them finds nothing."""
    node, share = unregistered
    shares = [share, node.create(2), node.create(2)]
    while node.scheduler.runners[0].step():
        pass
    for one in shares:
        node.operations.reset_status(
            CTX, node.target(one).instance_id, 'migrating'
        )
    told = len(node.messages())
    at_once = threading.Barrier(3)

    def run(rival):
        at_once.wait()
        rival.scheduler.orphan_sweep.run_pass()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for running in [
            pool.submit(run, rival)
            for rival in (node, build_node(), build_node())
        ]:
            running.result()
    assert {node.status(one) for one in shares} == {'error'}
    assert len(node.messages()) == told + 3


def test_the_recycle_bin_is_emptied_of_what_has_no_host(build_node):
    node = build_node(default='soft_deleted_share_retention_time = 0')
    node.scheduler.register()
    shares = [node.create(2) for _ in range(2)]
    while node.scheduler.runners[0].step():
        pass
    node.ask('soft_delete', shares[0])
    assert node.scheduler.orphan_sweep.run_pass() == 1
    assert [row.id for row in node.rows(sa.select(SHARE))] == shares[1:]
    assert node.problems() == []
