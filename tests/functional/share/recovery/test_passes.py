"""Passes of reconciliation: slow back ends, several managers."""

import concurrent.futures
import threading
import time

import pytest
import sqlalchemy as sa

from manila_lite.db.queries.recovery import recovery
from tests.functional.share.recovery.rescues import (
    GOOD,
    UNKNOWN,
    UPDATE,
    decisions,
    instance_id,
    move,
    rescue,
)
from tests.support import sampling
from tests.support.service_process import TIMEOUT, WORK

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


def questions(*nodes):
    return sum(
        [call.method for call in node.driver().calls].count('get_share_status')
        for node in nodes
    )


# Ask


# The pass


@sampling.dialects
def test_startup_pass_ignores_later_moves(node, share):
    other = node.create(3)
    node.run()
    move(node, share, 'reset_migrating')
    began = node.db.utcnow()
    move(node, other, 'reset_migrating')
    backend = node.backend()
    assert backend.endpoints.reconciliation.request_pass(began)
    node.run()
    assert node.status(share) == 'error'
    assert node.status(other) == 'migrating'
    assert not backend.endpoints.reconciliation.request_pass(began)
    assert backend.endpoints.reconciliation.request_pass()
    node.run()
    assert node.status(other) == 'error'


def test_pass_without_stuck_rows_writes_nothing_and_calls_no_driver(node, share):
    writes = []
    node.db.on_step = lambda name: writes.append(name)
    assert not node.backend().endpoints.reconciliation.request_pass()
    assert 'commit' not in writes
    assert len(writes) <= len(recovery.KINDS)
    assert questions(node) == 0


def test_many_rows_are_rescued_in_rounds(build_node):
    node = build_node(backends=['alpha'], work='\n[recovery]\nbatch = 3')
    node.register()
    shares = [node.create(1) for _ in range(10)]
    node.run()
    for share in shares:
        move(node, share, 'reset_migrating')
    assert node.backend().endpoints.reconciliation.request_pass()
    node.until(lambda: node.run() or not node.owed())
    assert {node.status(share) for share in shares} == {'error'}
    assert len(decisions(node)) == 10
    assert node.problems() == []


@on_sqlite
def test_hanging_probe_is_given_up(build_node):
    """The other calls return in time, however busy the machine is."""
    node = build_node(backends=['alpha'], work='\n[recovery]\nquestion_timeout = 1')
    node.register()
    shares = [node.create(1) for _ in range(3)]
    node.run()
    for share in shares:
        move(node, share, 'extend')
    hung, ended = node.driver().get_share_status, threading.Event()
    victim = instance_id(node, shares[1])

    def get_share_status(share, share_server=None):
        if share['id'] == victim:
            ended.wait(TIMEOUT)
        return hung(share, share_server)

    node.driver().get_share_status = get_share_status
    rescue(node)
    assert [node.status(share) for share in shares] == [
        'available',
        'extending_error',
        'available',
    ]
    ended.set()
    assert [one.reason for one in decisions(node) if one.reason] == [
        'the back end did not reply within 1 s'
    ]


def test_hanging_probes_do_not_block_other_work(build_node):
    """There are as many as workers, and users do not notice."""
    node = build_node(backends=['alpha']).start()
    stuck = [node.created(1) for _ in range(3)]
    other = node.created(1)
    for share in stuck:
        move(node, share, 'extend')
    hang = node.driver().hang_next('get_share_status', None)
    assert node.backend().endpoints.reconciliation.run_pass() == 3
    assert hang.wait_reached()
    node.ask('extend', other, 2)
    node.until(lambda: node.outcome(other) == ('available', 2))
    new = node.create(1)
    node.until(lambda: node.status(new) == 'available')
    assert {node.status(share) for share in stuck} == {'extending'}
    hang.release()
    node.until(lambda: {node.outcome(share) for share in stuck} == {('available', 1)})
    node.quiet()
    assert len(decisions(node)) == 3
    assert questions(node) == 3
    assert node.problems() == []


def test_row_that_raises_does_not_block_others(build_node):
    node = build_node(backends=['alpha'])
    node.register()
    shares = [node.create(1) for _ in range(5)]
    node.run()
    for share in shares:
        move(node, share, 'extend')
    node.driver().fail_next('get_share_status', 2, ZeroDivisionError())
    rescue(node)
    assert sorted(node.status(share) for share in shares) == [
        *['available'] * 3,
        *['extending_error'] * 2,
    ]
    assert node.owed() == []
    assert node.problems() == []


def test_unresponsive_back_end_is_not_called_repeatedly(build_node):
    node = build_node(
        backends=['alpha'],
        work='\n[recovery]\nquestion_timeout = 0.1\nunanswered_questions = 1',
    )
    node.register()
    shares = [node.create(1) for _ in range(3)]
    node.run()
    for share in shares:
        move(node, share, 'extend')
    answered = threading.Event()
    asked = []

    def get_share_status(share, share_server=None):
        asked.append(share['id'])
        answered.wait(TIMEOUT)
        return GOOD | {'size': 1}

    node.driver().get_share_status = get_share_status
    assert node.backend().endpoints.reconciliation.run_pass() == 3
    node.until(lambda: node.run() or not node.owed())
    answered.set()
    assert len(asked) == 1
    assert {node.status(share) for share in shares} == {'extending_error'}
    assert len(node.messages()) == 3
    reasons = {one.reason for one in decisions(node)}
    assert reasons == {
        'the back end did not reply within 0.1 s',
        'the back end did not reply to 1 other calls for 0.1 s',
    }


def test_every_row_of_a_hanging_back_end_ends(build_node):
    """More rows than threads and than a batch; another back end works."""
    node = build_node(
        backends=['alpha', 'beta'],
        work='\n[recovery]\nquestion_timeout = 1\nunanswered_questions = 2\nbatch = 3',
    ).start()
    stuck = [node.created(1) for _ in range(12)]
    for share in stuck:
        move(node, share, 'extend')
    hung, threads = threading.Event(), set()

    def get_share_status(share, share_server=None):
        threads.add(threading.get_ident())
        hung.wait(TIMEOUT)
        return GOOD | {'size': 1}

    victims = {share for share in stuck if '@alpha' in node.target(share).host}
    assert len(victims) >= 5
    node.driver().get_share_status = get_share_status
    began = time.monotonic()
    for backend in node.share.backends:
        assert backend.endpoints.reconciliation.request_pass()
    node.until(
        lambda: all(
            node.status(share) == 'available' for share in stuck if share not in victims
        )
    )
    node.until(lambda: {node.status(share) for share in victims} == {'extending_error'})
    took = time.monotonic() - began
    print(f'ended after {took:.1f} s')
    assert not hung.is_set()
    hung.set()
    assert len(threads) == 2
    assert len(node.messages()) == len(victims)


# Exactly once


def test_row_with_work_is_not_rescued(node, share):
    node.ask('extend', share, 5)
    assert node.backend().endpoints.reconciliation.run_pass() == 0
    node.run()
    assert node.outcome(share) == ('available', 5)


def test_rescue_leaves_a_resource_with_a_newer_request_alone(node, share):
    move(node, share, 'extend')
    assert node.backend().endpoints.reconciliation.run_pass() == 1
    move(node, share, 'extended')
    node.ask('extend', share, 5)
    node.run()
    assert node.outcome(share) == ('available', 5)
    assert node.messages() == []


@sampling.dialects
def test_two_passes_submit_one_rescue(node, share):
    move(node, share, 'reset_migrating')
    passes = node.backend().endpoints.reconciliation.run_pass
    assert [passes(), passes()] == [1, 0]
    node.run()
    assert node.messages() == [(UPDATE, UNKNOWN)]


@sampling.dialects
def test_two_managers_of_one_back_end_rescue_once(build_node, node):
    second = build_node(backends=['alpha'])
    second.register()
    shares = [node.create(3) for _ in range(4)]
    node.run()
    for share, event in zip(
        shares, ('reset_creating', 'extend', 'shrink', 'reset_migrating'), strict=True
    ):
        move(node, share, event)
    at_once = threading.Barrier(2)

    def rescue_at_once(one):
        at_once.wait()
        rescue(one)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(rescue_at_once, one) for one in (node, second)]:
            future.result()
    node.run()
    assert [node.status(share) for share in shares] == [
        'available',
        'available',
        'available',
        'error',
    ]
    assert node.messages() == [(UPDATE, UNKNOWN)]
    assert questions(node, second) == 3
    assert node.owed() == []
    assert node.problems() == []


@on_sqlite
def test_row_locked_by_another_manager_is_left_to_it(build_node):
    node, second = (build_node(backends=['alpha'], locked=True) for _ in range(2))
    node.register()
    share = node.create(3)
    node.run()
    move(node, share, 'extend')
    assert node.backend().endpoints.reconciliation.run_pass() == 1
    rescued = f'rescue-{instance_id(node, share)}'
    with second.process.locks.try_lock(rescued) as held:
        assert held
        node.run()
        assert node.status(share) == 'extending'
        assert questions(node, second) == 0
    node.db.write(lambda session: session.run(sa.update(WORK).values(next_try_at=0.0)))
    node.run()
    assert node.status(share) == 'available'
    assert questions(node, second) == 1
    assert len(decisions(node)) == 1


def test_back_ends_rescue_only_their_own_rows(build_node):
    node = build_node()
    node.register()
    node.run()
    shares = [node.create(1) for _ in range(6)]
    node.run()
    for share in shares:
        move(node, share, 'reset_migrating')
    of_alpha = [
        share for share in shares if node.target(share).host == 'node@alpha#pool'
    ]
    assert 0 < len(of_alpha) < 6
    assert rescue(node) == len(of_alpha)
    assert {share for share in shares if node.status(share) == 'error'} == set(of_alpha)
