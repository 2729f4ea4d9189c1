"""Start, heartbeat and reports of back ends."""

import threading

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.db.queries.services import services as services_rows
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.manager.backend import Backend, wait_until_up
from manila_lite.work import table
from tests.support.processes import wait_until
from tests.support.service_process import POOL, TIMEOUT

SERVICE = services.Service.__table__

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


def health(node, name='alpha'):
    return node.value(
        sa.select(SERVICE.c.health).where(SERVICE.c.host == f'node@{name}')
    )


class Pauses:
    """Pauses that take no time; the last one ends the retries."""

    def __init__(self, most=None):
        self.taken = []
        self.most = most
        self.during_pause = lambda: None

    def __call__(self, seconds):
        self.taken.append(seconds)
        self.during_pause()
        return len(self.taken) == self.most


@pytest.fixture
def again(build_node):
    """`again(pauses)` returns a node and alpha with these retry pauses."""
    made = []

    def make(pauses):
        node = build_node()
        node.scheduler.register()
        old = node.backend()
        node.share.backends[0] = new = Backend(
            node.db,
            old.driver,
            old.runner,
            old.endpoints,
            old.deferred_deletion,
            host=old.host,
            zone=old.zone,
            incarnation=old.incarnation,
            enabled=True,
            down_time=60.0,
            hang_time=300.0,
            expire=old._expire,
            pause=pauses,
        )
        made.append(new)
        return node, new

    yield make
    for backend in made:
        assert backend.stop(TIMEOUT)


# Start


@pytest.mark.facts('LP1690159', 'LP1853940')
def test_driver_that_fails_to_start_is_retried(again):
    pauses = Pauses()
    node, backend = again(pauses)
    reports = []
    pauses.during_pause = lambda: reports.append(health(node))
    node.driver().fail_next('do_setup', 2)
    node.driver().fail_next('check_for_setup_error', 1)
    backend.start()
    assert wait_until_up([backend], TIMEOUT)
    assert pauses.taken == [1.0, 2.0, 4.0]
    assert reports[0].startswith('The driver failed to start: ')
    assert 'do_setup' in reports[1]
    assert 'check_for_setup_error' in reports[2]
    assert health(node) is None
    assert backend.is_up


@on_sqlite
def test_retry_pauses_grow_up_to_one_minute(again):
    pauses = Pauses(most=9)
    node, backend = again(pauses)
    node.driver().fail_next('do_setup', None)
    backend.start()
    assert not wait_until_up([backend], TIMEOUT)
    assert pauses.taken == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert not backend.is_up


def test_back_end_takes_no_work_and_no_shares_until_up(again):
    pauses = Pauses()
    node, backend = again(pauses)
    beta = node.backend('beta')
    node.scheduler.runners[0].start()
    shares = []

    def during_pause():
        """Beta starts while alpha does not."""
        beta.register()
        beta.set_up()
        beta.runner.start()
        shares.extend(node.create(1) for _ in range(3))
        node.quiet()
        assert {node.target(share).host for share in shares} == {'node@beta#pool'}
        node.ask('delete', shares[0])
        assert not node.driver().initialized

    pauses.during_pause = during_pause
    node.driver().fail_next('do_setup')
    backend.start()
    assert wait_until_up([backend], TIMEOUT)
    node.quiet()
    assert node.driver().initialized
    assert node.scheduler.runners[0].stop(TIMEOUT)
    assert beta.runner.stop(TIMEOUT)


def test_work_of_a_back_end_waits_until_it_is_up(again):
    pauses = Pauses()
    node, backend = again(pauses)
    backend.register()
    backend.set_up()
    share = node.create(1)
    node.run()
    node.ask('delete', share)
    node.driver().initialized = False
    owed = []
    pauses.during_pause = lambda: owed.append(len(node.owed()))
    node.driver().fail_next('do_setup')
    backend.start()
    assert wait_until_up([backend], TIMEOUT)
    node.quiet()
    assert owed == [1]
    assert node.driver().inventory() == {}


@on_sqlite
@pytest.mark.parametrize('error', [db_exc.DBConnectionError, exception.DatabaseBusy])
def test_database_outage_does_not_stop_start_retries(again, error):
    pauses = Pauses()
    node, backend = again(pauses)
    failures = iter(range(6))

    def fail(name):
        if (
            name == 'statement'
            and node.driver().calls
            and next(failures, None) is not None
        ):
            raise error()

    node.db.on_step = fail
    backend.start()
    assert wait_until_up([backend], TIMEOUT)
    assert pauses.taken
    assert next(failures, None) is None
    assert health(node) is None


@on_sqlite
def test_stop_ends_start_retries(build_node):
    node = build_node()
    backend = node.backend()
    failed = threading.Event()
    node.db.on_step = lambda name: (
        backend.health.startswith('The driver failed')
        and name == 'committed'
        and failed.set()
    )
    node.driver().fail_next('do_setup', None)
    backend.start()
    assert failed.wait(TIMEOUT)
    assert backend.stop(TIMEOUT)
    assert not wait_until_up([backend], TIMEOUT)


# Heartbeats


def service(node, name='alpha'):
    return node.rows(sa.select(SERVICE).where(SERVICE.c.host == f'node@{name}'))


def test_heartbeat_updates_the_service_timestamp(build_node):
    node = build_node()
    node.register()
    (before,) = service(node)
    node.backend().beat()
    (after,) = service(node)
    assert after.heartbeat_at > before.heartbeat_at
    assert after.incarnation == node.process.id


def test_heartbeat_registers_a_missing_service(build_node):
    node = build_node()
    node.register()
    (before,) = service(node)
    node.db.write(lambda session: session.run(sa.delete(SERVICE)))
    node.backend().beat()
    (after,) = service(node)
    assert (after.host, after.binary, after.topic, after.health) == (
        before.host,
        before.binary,
        before.topic,
        None,
    )
    assert after.availability_zone_id == before.availability_zone_id
    assert not after.disabled


def test_restart_leaves_a_disabled_service_disabled(build_node):
    node = build_node()
    node.register()
    node.db.write(
        lambda session: session.run(
            sa.update(SERVICE).values(disabled=True, disabled_reason='x')
        )
    )
    new = build_node()
    new.register()
    (found,) = service(node)
    assert (found.disabled, found.disabled_reason) == (True, 'x')
    assert found.incarnation == new.process.id


@on_sqlite
def test_new_services_may_start_disabled(build_node):
    node = build_node(default='enable_new_services = false')
    node.register()
    assert {row.disabled for row in node.rows(sa.select(SERVICE))} == {True}


def enable(node, name, enabled):
    node.db.write(
        services_rows.set_disabled, f'node@{name}', 'manila-share', not enabled, None
    )


# A driver that hangs


@pytest.fixture
def hanging(build_node):
    """A node whose drivers need a while to create a share."""
    node = build_node(
        section='dummy_driver_driver_methods_delays = create_share:2',
        work='driver_hang_time = 0.2\nworkers_per_backend = 2',
    )
    return node.start()


def test_back_end_that_hangs_is_down_until_a_worker_is_back(hanging):
    node = hanging
    alpha = node.backend()
    enable(node, 'beta', False)
    shares = [node.create(1) for _ in range(3)]
    node.until(lambda: alpha.down_reason() is not None)
    alpha.beat()
    assert 'occupied all workers for more than 0.2 s' in health(node)
    assert not alpha.is_up
    enable(node, 'beta', True)
    elsewhere = node.create(1)
    node.until(lambda: node.target(elsewhere).host is not None)
    assert node.target(elsewhere).host == 'node@beta#pool'
    node.quiet()
    alpha.beat()
    assert health(node) is None
    assert {node.status(share) for share in shares} == {'available'}
    assert node.problems() == []


def test_back_end_with_a_free_worker_does_not_hang(hanging):
    node = hanging
    hangs = [node.driver(name).hang_next('create_share') for name in node.names]
    node.create(1)
    wait_until(
        lambda: any(hang.wait_reached(0) for hang in hangs), 'a worker is occupied'
    )
    for backend in node.share.backends:
        assert backend.runner.busy_since() is None
        assert backend.down_reason() is None
    for hang in hangs:
        hang.release()
    node.quiet()


# Slow calls


class ThreeAtOnce(dummy.DummyDriver):
    max_concurrent_operations = 3


def is_creating(node, name, count):
    """Whether the driver of a back end is in so many calls at once."""
    running = node.value(
        sa.select(sa.func.count())
        .select_from(table.WORK)
        .where(
            table.WORK.c.queue == f'node@{name}', table.WORK.c.state == table.RUNNING
        )
    )
    return running == count


def workers(name):
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith(f'node@{name}-worker-')
    ]


@pytest.mark.parametrize(
    'options, limit',
    [
        ({}, 16),
        ({'section': f'share_driver = {__name__}.ThreeAtOnce'}, 3),
        ({'work': 'workers_per_backend = 5'}, 5),
    ],
)
def test_slow_calls_run_at_once_up_to_the_limit(build_node, options, limit):
    """One back end that is slow does not hold up the other."""
    node = build_node(**options).start()
    enable(node, 'beta', False)
    hang = node.driver('alpha').hang_next('create_share', times=None)
    slow = [node.create(1) for _ in range(limit + 4)]
    node.until(lambda: is_creating(node, 'alpha', limit))
    assert len(workers('alpha')) == limit
    enable(node, 'alpha', False)
    enable(node, 'beta', True)
    quick = [node.create(1) for _ in range(4)]
    node.until(lambda: {node.status(share) for share in quick} == {'available'})
    assert is_creating(node, 'alpha', limit)
    hang.release()
    node.quiet()
    assert {node.status(share) for share in slow} == {'available'}
    for name in node.names:
        wait_until(lambda name=name: len(workers(name)) == 2, 'two workers are left')
    assert node.problems() == []


# Reports


@on_sqlite
def test_back_end_that_is_not_up_is_not_called(build_node):
    node = build_node()
    node.backend().register()
    for task in node.share.tasks:
        if task.name in ('heartbeat', 'report'):
            task.run()
    assert node.driver().calls == []
    assert node.rows(sa.select(POOL)) == []


@on_sqlite
def test_pools_are_reported_with_their_capabilities(build_node):
    node = build_node(backends=['alpha'], section='dummy_driver_pools = one,two')
    node.register()
    assert [row.host for row in node.rows(sa.select(POOL).order_by(POOL.c.host))] == [
        'node@alpha#one',
        'node@alpha#two',
    ]
    assert {row.total_gb for row in node.rows(sa.select(POOL))} == {1000.0}


def test_back_end_that_cannot_report_gets_no_shares(build_node):
    node = build_node()
    node.register()
    alpha = node.backend()
    node.driver().fail_next('_update_share_stats')
    (before,) = node.rows(sa.select(POOL).where(POOL.c.service_host == 'node@alpha'))
    alpha.report_or_be_down()
    assert not alpha.is_up
    assert alpha.is_started
    assert health(node).startswith('The driver cannot report: ')
    assert 'The figures are stale since 2' in health(node)
    shares = [node.create(1) for _ in range(3)]
    node.run()
    assert {node.target(share).host for share in shares} == {'node@beta#pool'}
    alpha.report_or_be_down()
    assert alpha.is_up
    assert health(node) is None
    (after,) = node.rows(sa.select(POOL).where(POOL.c.service_host == 'node@alpha'))
    assert after.reported_at > before.reported_at


def test_back_end_whose_file_server_does_not_answer_is_down(build_node):
    node = build_node()
    node.register()
    node.driver().fail_next(
        '_update_share_stats', error=exception.FileServerUnresponsive(server='NFS')
    )
    node.backend().report_or_be_down()
    assert 'the NFS server does not answer' in health(node)


@on_sqlite
def test_database_error_does_not_blame_the_back_end(build_node):
    node = build_node()
    node.register()

    def fail(name):
        raise exception.DatabaseBusy

    node.db.on_step = fail
    with pytest.raises(exception.DatabaseBusy):
        node.backend().report_or_be_down()
    assert node.backend().is_up


def test_back_end_that_hangs_in_its_report_is_down(build_node):
    node = build_node(work='driver_hang_time = 0.1')
    node.register()
    alpha = node.backend()
    hang = node.driver().hang_next('_update_share_stats')
    thread = threading.Thread(target=alpha.report_or_be_down)
    thread.start()
    wait_until(lambda: not alpha.is_up, 'it is down')
    alpha.beat()
    assert 'it has not reported for more than 0.1 s' in health(node)
    hang.release()
    thread.join(TIMEOUT)
    alpha.beat()
    assert health(node) is None
