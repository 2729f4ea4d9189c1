"""Schedulers that decide from the database and compete for capacity."""

import concurrent.futures
import json
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.services import incarnations, pools, services
from manila_lite.db.queries.shares import placements
from manila_lite.host import Host
from tests.support import sampling
from tests.support.service_process import CTX, INSTANCE, POOL, SHARE, TYPE_ID
from tests.support.unserved import lose

CAPACITY = 12

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def node(build_node):
    """Two back ends, alpha preferred; the test steps the runners."""
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
    """Run a rival between the choice of a pool and its allocation."""

    def on_step(name):
        if name == 'committed':
            node.scheduler.call_endpoints[0].pools.recent()
            node.db.on_step = lambda name: None
            rival()

    node.db.on_step = on_step


# Capacity


def test_share_is_placed_on_the_emptiest_pool(node):
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@alpha#pool'


def test_capacity_taken_by_a_rival_causes_another_choice(build_node, node):
    rival = build_node()
    when_claimed(
        node,
        lambda: rival.db.write(
            pools.allocate,
            'node@alpha#pool',
            CAPACITY,
            rival.value(
                sa.select(POOL.c.reported_at).where(POOL.c.host == 'node@alpha#pool')
            ),
            down_time=60.0,
        ),
    )
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@beta#pool'


def test_pool_that_has_just_reported_is_passed_over_only_once(node):
    """It is the emptiest one, but what was read of it is out of date."""
    first = node.create(2)
    node.run()
    used = host(node, first)
    (other,) = {'node@alpha#pool', 'node@beta#pool'} - {used}
    node.backend(Host.parse(other).backend).report()
    shares = [node.create(2) for _ in range(2)]
    node.run()
    assert other in {host(node, share) for share in shares}


def test_best_pool_is_used_although_it_has_just_reported(node):
    """Its figures are the same as before."""
    when_claimed(node, node.backend('alpha').report)
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@alpha#pool'


def test_capacity_reduced_by_a_report_causes_another_choice(build_node, node):
    """A report that others use the back end, too, has just arrived."""
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


def test_user_is_notified_when_rivals_take_all_capacity(build_node, node):
    rival = build_node()

    def take_all():
        for row in rival.db.read(
            pools.list_reports, ['node@alpha#pool', 'node@beta#pool']
        ):
            rival.db.write(
                pools.save_report,
                row.host.removesuffix('#pool'),
                [
                    pools.PoolReport(
                        row.host, json.loads(row.capabilities), CAPACITY, 0.0
                    )
                ],
                {},
            )

    when_claimed(node, take_all)
    share = node.create(2)
    node.run()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '009')]
    assert node.target(share).host is None


@sampling.dialects
@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(12, 1))
def test_racing_schedulers_never_place_more_than_fits(build_node, seed):
    """Sizes of 1 to 3 GiB for twice the capacity, with concurrent reports."""
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
                ask, nodes[number % 2], [1 + (number + n + seed) % 3 for n in range(6)]
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
        assert CAPACITY // 2 <= total <= CAPACITY
    assert first.problems() == []


@pytest.mark.facts('LP1855391.1', 'LP1968891')
@on_sqlite
def test_extend_stays_within_its_pool(node):
    share = node.create(2)
    node.run()
    node.ask('extend', share, CAPACITY)
    node.run()
    assert (node.status(share), node.target(share).size) == ('available', CAPACITY)
    node.ask('extend', share, CAPACITY + 1)
    node.run()
    assert (node.status(share), node.target(share).size) == ('available', CAPACITY)
    assert node.messages() == [('008', '009')]
    node.db.write(pools.adjust_allocated, 'node@beta#pool', -1)
    assert node.problems() == []


@pytest.mark.facts('LP1973621')
@pytest.mark.parametrize(
    'option, size', [('', 4), ('scheduler_default_extend_filters = CapacityFilter', 6)]
)
def test_filters_of_extensions_are_configured(build_cloud, option, size):
    """The function is one of the default filters; it gets the old size."""
    cloud = build_cloud(
        option, prepared=True, backend_conf='filter_function = share.size < 3'
    )
    share = cloud.create_share(size=2)
    for new_size in (4, 6):
        cloud.api.act(share, 'extend', {'new_size': new_size})
        cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['size']) == ('available', size)


@pytest.mark.facts('per-backend-az')
def test_back_end_may_have_a_zone_of_its_own(build_cloud):
    cloud = build_cloud(
        'storage_availability_zone = general\n'
        '[alpha]\nbackend_availability_zone = special\n',
        prepared=True,
    )
    zones = cloud.api.get('/availability-zones')['availability_zones']
    assert {one['name'] for one in zones} == {'general', 'special'}
    for zone, backend in (('general', 'beta'), ('special', 'alpha')):
        share = cloud.api.show(cloud.create_share(availability_zone=zone))
        assert share['availability_zone'] == zone
        assert f'@{backend}#' in share['host']


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
@pytest.mark.facts('user-messages.filters')
def test_user_is_notified_which_filter_rejected_all_pools(node, spec, detail):
    if spec:
        extra_spec(node, *spec)
    share = node.create(2 if spec else CAPACITY + 1)
    node.run()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', detail)]


@on_sqlite
def test_zone_without_pools_is_reported_as_the_reason(node):
    node.db.write(services.get_or_create_zone_id, 'elsewhere')
    node.create(2, availability_zone='elsewhere')
    node.run()
    assert node.messages() == [('001', '007')]


@on_sqlite
def test_user_is_notified_without_pools_that_storage_is_not_ready(build_node):
    node = build_node()
    node.scheduler.register()
    share = node.create(2)
    node.scheduler.runners[0].step()
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '028')]


@on_sqlite
@pytest.mark.facts('LP1870280')
def test_request_without_type_and_default_type_is_refused(build_node):
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
            incarnations.heartbeat,
            host='node@alpha',
            binary='manila-share',
            incarnation=node.process.id,
            health='out of order',
            down_time=60.0,
        ),
        lambda node: lose(node.db, 'node@alpha'),
    ],
    ids=['disabled', 'unwell', 'silent'],
)
def test_share_is_not_placed_on_an_unavailable_service(node, change):
    change(node)
    share = node.create(2)
    node.run()
    assert host(node, share) == 'node@beta#pool'


@on_sqlite
def test_placement_waits_for_storage_about_to_start(build_node):
    node = build_node(work='retry_delay = 1')
    node.register()
    for name in node.names:
        node.db.write(
            incarnations.heartbeat,
            host=f'node@{name}',
            binary='manila-share',
            incarnation=node.process.id,
            health='still starting',
            down_time=60.0,
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


# Exactly once, and without delay


def test_duplicated_hints_place_a_share_once(build_node):
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


def test_instance_with_a_host_is_not_placed_again(node):
    instance = node.target(node.create(2)).instance_id
    node.db.write(placements.assign_host, instance, 'node@alpha#pool', None)
    with pytest.raises(exception.InvalidStatus):
        node.db.write(placements.assign_host, instance, 'node@beta#pool', None)
    assert node.value(sa.select(INSTANCE.c.host)) == 'node@alpha#pool'


def test_new_scheduler_can_place_at_once(build_node, node):
    """It has received no report, but the database has."""
    share = node.create(2)
    new = build_node(capacity=CAPACITY)
    assert new.scheduler.runners[0].step()
    assert host(node, share) == 'node@alpha#pool'


# Orphans


@pytest.fixture
def unregistered(build_node):
    """A share in error that was never placed, and its node."""
    node = build_node()
    node.scheduler.register()
    share = node.create(2)
    node.scheduler.runners[0].step()
    assert (node.status(share), host(node, share)) == ('error', None)
    return node, share


@pytest.mark.parametrize(
    'status', ['creating', 'migrating', 'migrating_to', 'server_migrating']
)
def test_share_without_host_reset_to_in_flight_is_given_up(unregistered, status):
    node, share = unregistered
    node.operations.reset_status(CTX, node.target(share).instance_id, status)
    messages_before = len(node.messages())
    assert node.scheduler.orphan_sweep.run_pass() == 1
    assert node.status(share) == 'error'
    assert len(node.messages()) == messages_before + 1
    assert node.scheduler.orphan_sweep.run_pass() == 0
    assert node.problems() == []


def test_share_without_host_reset_to_deleting_is_deleted(unregistered):
    node, share = unregistered
    node.operations.reset_status(CTX, node.target(share).instance_id, 'deleting')
    assert node.scheduler.orphan_sweep.run_pass() == 1
    assert node.rows(sa.select(SHARE)) == []
    assert node.problems() == []


def test_orphan_handled_by_another_scheduler_does_not_stop_the_pass(
    build_node, unregistered
):
    """SQLite serializes writers: there one of them finds nothing."""
    node, share = unregistered
    shares = [share, node.create(2), node.create(2)]
    while node.scheduler.runners[0].step():
        pass
    for one in shares:
        node.operations.reset_status(CTX, node.target(one).instance_id, 'migrating')
    messages_before = len(node.messages())
    at_once = threading.Barrier(3)

    def run(rival):
        at_once.wait()
        rival.scheduler.orphan_sweep.run_pass()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for running in [
            pool.submit(run, rival) for rival in (node, build_node(), build_node())
        ]:
            running.result()
    assert {node.status(one) for one in shares} == {'error'}
    assert len(node.messages()) == messages_before + 3


def test_recycle_bin_is_emptied_of_shares_without_host(build_node):
    node = build_node(default='soft_deleted_share_retention_time = 0')
    node.scheduler.register()
    shares = [node.create(2) for _ in range(2)]
    while node.scheduler.runners[0].step():
        pass
    node.ask('soft_delete', shares[0])
    assert node.scheduler.orphan_sweep.run_pass() == 1
    assert [row.id for row in node.rows(sa.select(SHARE))] == shares[1:]
    assert node.problems() == []
