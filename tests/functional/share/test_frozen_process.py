"""A process is frozen while its transaction has a row that others need."""

import contextlib
import threading
import time

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite.db import engines
from manila_lite.db.models import engine, services
from manila_lite.db.queries.services import incarnations, services as service_rows
from manila_lite.share.manager.backend import wait_until_up
from manila_lite.work import table
from tests.support import sampling
from tests.support.conflicts import frozen_session
from tests.support.processes import wait_until
from tests.support.service_process import TIMEOUT

pytestmark = sampling.dialects


SERVICE = services.Service.__table__
INCARNATION = services.ServiceIncarnation.__table__
WORK = engine.Work.__table__
DOWN_TIME = 60.0

PROMPT = 15.0
"""Seconds; what waits for a locked row takes 20 and more."""

LOCK_SERVICES = 'UPDATE services SET disabled_reason = NULL'
LOCK_INSTANCES = 'SELECT id FROM share_instances FOR UPDATE NOWAIT'

on_servers = pytest.mark.parametrize(
    'database_url', ['mysql', 'postgresql'], indirect=True
)
"""SQLite has no server that could end a transaction."""


@pytest.fixture
def node(build_node, monkeypatch):
    """A node whose sessions have short limits."""
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 1)
    monkeypatch.setattr(engines, 'IDLE_TIMEOUT', 2)
    node = build_node(backends=['alpha'])
    node.register()
    return node


@contextlib.contextmanager
def frozen_with(node, statement):
    """Freeze a thread within a transaction; yield the list of its errors."""
    has_row, awake, errors = threading.Event(), threading.Event(), []

    def freeze(session):
        session.run(statement)
        has_row.set()
        assert awake.wait(TIMEOUT)
        session.run(statement)

    def run():
        try:
            node.db.write(freeze)
        except db_exc.DBError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert has_row.wait(TIMEOUT)
    try:
        yield errors
    finally:
        awake.set()
        thread.join(TIMEOUT)
        assert not thread.is_alive()


@on_servers
def test_frozen_transaction_is_ended_and_writes_nothing(node):
    change = sa.update(SERVICE).values(disabled_reason='frozen')
    with frozen_with(node, change) as errors:
        node.db.write(
            service_rows.set_disabled, 'node@alpha', 'manila-share', True, 'awake'
        )
    assert isinstance(errors[0], db_exc.DBConnectionError)
    rows = node.rows(sa.select(SERVICE.c.disabled_reason, SERVICE.c.binary))
    assert {row.disabled_reason for row in rows} == {None, 'awake'}


def test_standby_starts_while_its_row_is_taken(node, build_node):
    node.db.write(lambda session: session.run(sa.delete(SERVICE)))
    node.backend().register()
    standby = build_node(backends=['alpha'])
    standby.db.retry_limit = 0.5
    backend = standby.backend()
    with frozen_with(node, sa.update(SERVICE).values(health='frozen')):
        backend.start()
    assert wait_until_up([backend], TIMEOUT)
    wait_until(
        lambda: (
            standby.process.id
            in {row.incarnation for row in standby.rows(sa.select(SERVICE))}
        ),
        'it is registered',
    )
    assert backend.stop(TIMEOUT)


# A session that stays frozen


def write(node, statement):
    node.db.write(lambda session: session.run(statement))


def own_row(node):
    (row,) = node.rows(
        sa.select(INCARNATION)
        .join(SERVICE)
        .where(
            INCARNATION.c.incarnation == node.process.id, SERVICE.c.host == 'node@alpha'
        )
    )
    return row


def shown(node):
    return node.db.read(service_rows.get, 'node@alpha', 'manila-share')


def processes(node):
    return {row.incarnation for row in node.rows(sa.select(INCARNATION))}


@contextlib.contextmanager
def promptly():
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PROMPT


@on_servers
def test_heartbeat_is_written_while_the_service_is_locked(node):
    before = own_row(node)
    node.backend().health = 'its disk is gone'
    with frozen_session(node.db.url, LOCK_SERVICES):
        with promptly():
            node.backend().beat()
        after = own_row(node)
        assert after.heartbeat_at > before.heartbeat_at
        assert after.health == 'its disk is gone'
        assert shown(node).health is None
    node.backend().beat()
    assert shown(node).health == 'its disk is gone'


@on_servers
def test_standby_works_while_its_service_is_locked(node, build_node):
    share = node.create()
    node.run()
    node.ask('delete', share)
    # What the driver says has changed, so that it ensures the shares.
    write(node, sa.update(SERVICE).values(backend_info='old'))
    standby = build_node(backends=['alpha'])
    backend = standby.backend()
    with frozen_session(node.db.url, LOCK_SERVICES):
        with promptly():
            backend.start()
            assert wait_until_up([backend], PROMPT)
            wait_until(lambda: not owed(node, 'provisioning'), 'the share is deleted')
        assert standby.process.id not in processes(node)
        assert owed(node, 'ensuring')
    backend.beat()
    assert standby.process.id in processes(node)
    wait_until(lambda: not node.owed(), 'all work is done')
    assert backend.stop(TIMEOUT)


def owed(node, contract):
    return [one for one in node.owed() if one[0].startswith(contract)]


@on_servers
def test_ensuring_locks_no_share_while_it_waits_for_its_service(node, monkeypatch):
    node.create()
    node.run()
    monkeypatch.setattr(node.backend().endpoints.ensuring, '_call_driver', elsewhere)
    write(node, sa.update(SERVICE).values(backend_info='old'))
    node.backend().endpoints.ensuring.start()
    waits = threading.Event()

    @sa.event.listens_for(node.db.engine, 'before_cursor_execute')
    def watch(connection, cursor, statement, *args):
        if statement.startswith('UPDATE services'):
            waits.set()

    running = threading.Thread(target=node.run)
    with frozen_session(node.db.url, LOCK_SERVICES):
        running.start()
        assert waits.wait(TIMEOUT)
        with frozen_session(node.db.url, LOCK_INSTANCES):
            pass
    running.join(TIMEOUT)
    assert node.owed() == []


def elsewhere(shares):
    return {one.id: {'export_locations': ['new:/path']} for one in shares}


@on_servers
def test_stop_does_not_wait_for_a_locked_service(node):
    node.run()
    node.backend().start()
    assert wait_until_up([node.backend()], TIMEOUT)
    assert node.owed() == []
    with frozen_session(node.db.url, LOCK_SERVICES), promptly():
        assert node.backend().stop(TIMEOUT)


@on_servers
def test_locked_service_does_not_delay_taking_over_of_others(build_node):
    dead, new = (build_node(backends=['alpha', 'beta']) for _ in range(2))
    dead.register()
    beta = dead.backend('beta').runner
    of_beta = WORK.c.queue == 'node@beta'
    work_id = dead.value(sa.select(WORK.c.id).where(of_beta))
    assert dead.db.write(table.claim, work_id, beta.queues, beta.owner, TIMEOUT)
    with (
        frozen_session(new.db.url, f"{LOCK_SERVICES} WHERE host = 'node@alpha'"),
        promptly(),
    ):
        new.share.take_over_from_dead(new.process, dead.process.id)
    assert new.value(sa.select(WORK.c.lease_until).where(of_beta)) == 0
    assert dead.process.id not in share_processes(new)


def share_processes(node):
    return {
        row.incarnation
        for row in node.rows(
            sa.select(INCARNATION.c.incarnation)
            .join(SERVICE)
            .where(SERVICE.c.binary == 'manila-share')
        )
    }


@on_servers
def test_dead_process_is_forgotten_beside_a_frozen_one(node, build_node):
    frozen = build_node(backends=['alpha'])
    frozen.register()
    lock = 'UPDATE service_incarnations SET health = NULL WHERE incarnation = '
    with frozen_session(node.db.url, f"{lock}'{frozen.process.id}'"), promptly():
        node.db.write(incarnations.forget, node.process.id)
    assert processes(node) == {frozen.process.id}


@on_servers
def test_locked_service_is_not_retired(node):
    with frozen_session(node.db.url, LOCK_SERVICES), promptly():
        node.share.mark_others_down(node.process)


@on_servers
def test_disabled_scheduler_stays_so_while_its_service_is_locked(node, build_node):
    node.db.write(service_rows.set_disabled, 'node', 'manila-scheduler', True, None)
    node.create()
    again = build_node(backends=['alpha'])
    (heartbeat,) = [task for task in again.scheduler.tasks if task.name == 'heartbeat']
    with frozen_session(node.db.url, LOCK_SERVICES):
        with promptly():
            again.scheduler.register()
        assert not again.scheduler.runners[0].step()
        with promptly():
            heartbeat.run()
    assert again.process.id not in processes(node)
    heartbeat.run()
    assert again.process.id in processes(node)
