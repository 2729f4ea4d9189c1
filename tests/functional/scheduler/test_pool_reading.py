"""Pools are read rarely, and a decision holds for what they are now."""

from concurrent import futures
import contextlib
import threading

import pytest
import sqlalchemy as sa

from manila_lite.db.queries.services import pools, services
from tests.support.service_process import TIMEOUT

CAPACITY = 12
REPORTED = {'storage_protocol': 'NFS_CIFS', 'driver_handles_share_servers': False}


@pytest.fixture
def node(build_node, monkeypatch):
    """Two back ends whose pools the scheduler has just read, however long it takes."""
    node = build_node(capacity=CAPACITY)
    node.register()
    node.run()
    now = node.db.clock()
    monkeypatch.setattr(node.db, 'clock', lambda: now)
    reader(node).read()
    return node


def reader(node):
    return node.scheduler.call_endpoints[0].pools


@contextlib.contextmanager
def statements(node):
    """Collect the text of all statements, and the ends of transactions."""
    sent = []

    def note(connection, cursor, statement, parameters, context, many):
        sent.append(statement)

    def end(connection):
        sent.append('COMMIT')

    engines = {node.db.engine, node.db._read_engine}
    for engine in engines:
        sa.event.listen(engine, 'before_cursor_execute', note)
        sa.event.listen(engine, 'commit', end)
    try:
        yield sent
    finally:
        for engine in engines:
            sa.event.remove(engine, 'before_cursor_execute', note)
            sa.event.remove(engine, 'commit', end)


def set_disabled(node, name, disabled):
    node.db.write(services.set_disabled, f'node@{name}', 'manila-share', disabled, None)


def place(node, size=2, **facts):
    """Place a share; return its pool."""
    share = node.create(size, **facts)
    while node.scheduler.runners[0].step():
        pass
    return node.target(share).host


def report(node, name, free):
    node.db.write(
        pools.save_report,
        f'node@{name}',
        [pools.PoolReport(f'node@{name}#pool', REPORTED, CAPACITY, free)],
        {},
    )


# How often


def test_placement_does_not_read_pools_within_its_claim(build_node):
    node = build_node()
    node.register()
    with statements(node) as sent:
        assert place(node)
    claim = next(
        number
        for number, statement in enumerate(sent)
        if statement.startswith('UPDATE work')
    )
    held = sent[claim : sent.index('COMMIT', claim)]
    assert not [statement for statement in held if 'pools' in statement]
    assert [one for one in sent if 'capabilities' in one]


def test_placements_of_one_second_read_the_pools_once(node):
    with statements(node) as sent:
        for _ in range(5):
            assert place(node, 1)
    assert not [one for one in sent if 'SELECT pools' in one]


def test_report_is_read_once(node):
    with statements(node) as sent:
        reader(node).read()
    assert not [one for one in sent if 'capabilities' in one]
    report(node, 'alpha', 5.0)
    with statements(node) as sent:
        found = {pool.host: pool for pool in reader(node).read()}
    assert len([one for one in sent if 'capabilities' in one]) == 1
    alpha, beta = found['node@alpha#pool'], found['node@beta#pool']
    assert (alpha.capabilities, alpha.free_gb) == (REPORTED, 5.0)
    assert beta.capabilities != REPORTED


def test_pools_appear_and_disappear(node):
    node.db.write(pools.save_report, 'node@alpha', [], {})
    assert [pool.host for pool in reader(node).read()] == ['node@beta#pool']
    node.backend().report()
    assert [pool.host for pool in reader(node).read()] == [
        'node@alpha#pool',
        'node@beta#pool',
    ]


def test_slow_read_does_not_delay_what_was_read(node):
    reached, released = threading.Event(), threading.Event()
    main = threading.current_thread()

    def wait(name):
        if threading.current_thread() is not main:
            reached.set()
            assert released.wait(TIMEOUT)

    node.db.on_step = wait
    with futures.ThreadPoolExecutor(1) as threads:
        slow = threads.submit(reader(node).read)
        assert reached.wait(TIMEOUT)
        reader(node).note_allocation('node@alpha#pool', 3)
        noted = {pool.host: pool.allocated_gb for pool in reader(node).recent()}
        report(node, 'alpha', 5.0)
        reader(node).read()
        released.set()
        assert len(slow.result()) == 2
    assert noted['node@alpha#pool'] == 3
    (free,) = (
        pool.free_gb for pool in reader(node).recent() if pool.host == 'node@alpha#pool'
    )
    assert free == 5.0


# What a decision is based on


def test_service_disabled_a_moment_ago_is_given_no_share(node):
    set_disabled(node, 'alpha', True)
    assert {place(node, 1) for _ in range(4)} == {'node@beta#pool'}


def test_request_is_refused_only_for_what_is_true_now(node):
    for name in node.names:
        report(node, name, 0.0)
    reader(node).read()
    report(node, 'beta', float(CAPACITY))
    assert place(node) == 'node@beta#pool'
    assert node.messages() == []


def test_service_enabled_a_moment_ago_is_given_the_share(node):
    for name in node.names:
        set_disabled(node, name, True)
    reader(node).read()
    set_disabled(node, 'beta', False)
    assert place(node) == 'node@beta#pool'


def test_placements_of_one_second_are_spread(node):
    placed = [place(node, 1) for _ in range(4)]
    assert placed.count('node@alpha#pool') == 2


def test_space_freed_a_moment_ago_is_not_given_away_twice(node):
    """A deferred deletion: the back end has yet to free the space."""
    for name in node.names:
        node.db.write(pools.adjust_allocated, f'node@{name}#pool', 10)
    reader(node).read()
    for name in node.names:
        node.db.write(pools.adjust_allocated, f'node@{name}#pool', -10)
    assert place(node, 3) is None
    assert node.messages() == [('001', '009')]
