"""Work on one share instance is serialized.

Otherwise a force delete could overtake the creation, which would then
leave an orphan on the back end.
"""

import concurrent.futures
import threading

import pytest

from tests.support.service_process import CTX


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
    second.operations.reset_status(
        CTX, first.target(share).instance_id, 'available'
    )
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
