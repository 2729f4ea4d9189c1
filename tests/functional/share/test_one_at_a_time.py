"""Work on one share instance is serialized.

Otherwise a force delete could overtake the creation, which would then
leave an orphan on the back end.
"""

import collections
import concurrent.futures
import threading

import pytest

from tests.support import sampling
from tests.support.access import ShareRules
from tests.support.service_process import CTX

pytestmark = sampling.dialects


@pytest.fixture
def hanging(two_nodes):
    """`hanging(method)` blocks the first process; returns its release."""
    first, _ = two_nodes
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ends = []

        def hang(method):
            order = first.driver().hang_next(method)
            running = pool.submit(first.run)
            assert order.wait_reached()

            def end():
                order.release()
                running.result()

            ends.append(end)
            return end

        yield hang
        for end in ends:
            end()


def test_force_delete_waits_for_the_creation(two_nodes, hanging):
    first, second = two_nodes
    share = first.create(2)
    end = hanging('create_share')
    second.ask('force_delete', share)
    second.run()
    end()
    second.run()
    assert first.owed() == []
    assert first.problems() == []
    assert first.driver().inventory() == {}


def test_extend_waits_for_a_shrink_that_was_given_up(two_nodes, hanging):
    first, second = two_nodes
    share = first.create(5)
    first.run()
    first.ask('shrink', share, 3)
    end = hanging('shrink_share')
    second.operations.reset_status(CTX, first.target(share).instance_id, 'available')
    second.ask('extend', share, 9, force=True)
    second.run()
    end()
    second.run()
    assert first.owed() == []
    assert first.problems() == []
    assert first.target(share).size == 9


def test_deletion_waits_for_a_creation_whose_claim_is_not_committed(two_nodes):
    """A deletion accepted while the creation is being claimed waits, too."""
    first, second = two_nodes
    share = first.create(2)
    while first.scheduler.runners[0].step():
        pass
    claiming, go_on = threading.Event(), threading.Event()

    def pause(name):
        if name == 'commit' and not claiming.is_set():
            claiming.set()
            go_on.wait()

    def delete():
        second.ask('force_delete', share)
        second.run()

    first.db.on_step = pause
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        creating = pool.submit(first.run)
        claiming.wait()
        deleting = pool.submit(delete)
        concurrent.futures.wait([deleting], timeout=0.3)
        go_on.set()
        creating.result()
        deleting.result()
    second.run()
    assert first.owed() == []
    assert first.problems() == []


def test_calls_about_a_share_and_its_rules_never_overlap(build_node):
    """Four works at once on each share, claimed by two processes."""
    nodes = [
        build_node(backends=['alpha'], delay=0.02, work='workers_per_backend = 4')
        for _ in range(2)
    ]
    for node in nodes:
        node.start()
    first, second = nodes
    shares = [first.create(1) for _ in range(6)]
    first.quiet()
    for size in (2, 3):
        for number, share in enumerate(shares):
            ShareRules(second, share).allow(f'10.0.{size}.{number}')
            first.ask('extend', share, size)
        first.quiet()
    assert [node.driver().overlaps for node in nodes] == [[], []]
    assert first.problems() == []
    methods = collections.Counter(
        call.method for node in nodes for call in node.driver().calls
    )
    assert methods['extend_share'] == 2 * len(shares)
    assert methods['update_access'] == 2 * len(shares)
