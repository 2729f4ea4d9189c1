"""Placements without a claim: several in one transaction, or none."""

import pytest
import sqlalchemy as sa

from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import placements
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work import statements, table
from tests.support import sampling
from tests.support.service_process import INSTANCE, POOL, WORK

CAPACITY = 12
QUEUE = 'manila-scheduler'

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def node(build_node):
    """Two back ends; the test steps the runners."""
    node = build_node(capacity=CAPACITY)
    node.register()
    node.run()
    return node


@pytest.fixture
def place(node):
    """`place()`: place once what hints tell of; return what was placed."""
    runner = node.scheduler.runners[0]
    return lambda *work_ids: set(
        runner.shortcut(list(work_ids) or [row.id for row in works(node)])
    )


def works(node):
    return node.rows(sa.select(WORK).where(WORK.c.queue == QUEUE))


def work_of(node, share):
    return node.value(
        sa.select(WORK.c.id).where(WORK.c.resource_id == node.target(share).instance_id)
    )


def allocated(node):
    return {
        row.host: (row.allocated_gb, row.pending_gb)
        for row in node.rows(sa.select(POOL).order_by(POOL.c.host))
    }


def before_pools_are_read(node, rival):
    """Run a rival after the work was read, and before it is placed."""
    node.scheduler.call_endpoints[0].pools.expire()
    seen = []

    def on_step(name):
        seen.append(name)
        if seen == ['statement'] * 2:
            node.db.on_step = lambda name: None
            rival()

    node.db.on_step = on_step


@sampling.dialects
def test_shares_of_a_batch_take_one_transaction_and_few_statements(node, place):
    shares = [node.create(2) for _ in range(5)]
    ids = {work_of(node, share) for share in shares}
    node.scheduler.call_endpoints[0].pools.read()
    steps = []
    node.db.on_step = steps.append
    assert place(*ids) == ids
    # One reads, one allocates, one assigns hosts, one hands over.
    assert steps[: steps.index('committed')].count('statement') == 4
    assert steps.count('commit') == 1
    assert sum(gb for gb, _ in allocated(node).values()) == 10
    node.run()
    assert {node.status(share) for share in shares} == {'available'}
    assert node.problems() == []


def test_batch_counts_what_its_shares_take_from_each_other(node, place):
    """Two of 5 GiB fit into each pool of 12, and a fifth into none."""
    shares = [node.create(5) for _ in range(5)]
    left = work_of(node, shares[-1])
    assert place() == {work_of(node, share) for share in shares} - {left}
    assert {gb for gb, _ in allocated(node).values()} == {10}
    node.run()
    assert [node.status(share) for share in shares] == ['available'] * 4 + ['error']


def test_growth_is_placed_like_a_share(node, place):
    share = node.create(2)
    node.run()
    node.ask('extend', share, 5)
    new = node.create(1)
    assert len(place()) == 2
    node.run()
    assert node.outcome(share) == ('available', 5)
    assert node.outcome(new) == ('available', 1)
    assert node.problems() == []


def claim(node, share):
    """Claim the work as another scheduler does."""
    node.db.write(table.claim, work_of(node, share), [QUEUE], 'another', 60.0)


def put_back(node, share):
    """Claim it and put it back for another attempt."""

    def once(session):
        found = table.claim(session, work_of(node, share), [QUEUE], 'another', 60.0)
        table.retry(session, found, 0.0, 'later')

    node.db.write(once)


def withdraw(node, share):
    node.db.write(
        lambda session: session.run(
            sa.delete(WORK).where(WORK.c.id == work_of(node, share))
        )
    )


def delay(node, share):
    node.db.write(table.postpone, work_of(node, share), 60.0)


def give_to_newer(node, share):
    node.db.write(
        lambda session: session.run(
            sa.update(WORK)
            .where(WORK.c.id == work_of(node, share))
            .values(needs_release=10**6)
        )
    )


def end(node, share):
    """End the creation, as an administrator does who resets the status."""
    node.db.write(fire, SHARE_INSTANCE, node.target(share).instance_id, 'create_failed')


def give_host(node, share):
    node.db.write(
        placements.assign_host, node.target(share).instance_id, 'node@beta#pool', None
    )


@sampling.dialects
@sampling.enumeration
@pytest.mark.parametrize(
    'rival', [claim, put_back, withdraw, delay, give_to_newer, end, give_host]
)
def test_batch_with_work_that_was_taken_meanwhile_changes_nothing(
    build_node, node, place, rival
):
    shares = [node.create(2) for _ in range(3)]
    another = build_node(capacity=CAPACITY)
    before = allocated(node)
    ids = [work_of(node, share) for share in shares]
    hosts = []

    def act():
        rival(another, shares[1])
        hosts.append(node.rows(sa.select(INSTANCE.c.id, INSTANCE.c.host)))

    before_pools_are_read(node, act)
    assert place(*ids) == set()
    assert hosts == [node.rows(sa.select(INSTANCE.c.id, INSTANCE.c.host))]
    assert allocated(node) == before
    assert all(work_of(node, share) for share in (shares[0], shares[2]))


@on_sqlite
@pytest.mark.parametrize('filled', [False, True])
def test_pool_that_changed_meanwhile_takes_nothing(node, place, filled):
    """It reported again, or was filled."""
    [work] = [work_of(node, node.create(2))]
    placement = node.scheduler.call_endpoints[0]
    read = {pool.host: pool for pool in placement.pools.read()}
    for name in node.names:
        if filled:
            node.db.write(
                pools.allocate,
                f'node@{name}#pool',
                CAPACITY - 1,
                read[f'node@{name}#pool'].reported_at,
                down_time=60.0,
            )
        else:
            node.backend(name).report()
    before = allocated(node)
    assert place(work) == set()
    assert allocated(node) == before


@on_sqlite
@pytest.mark.parametrize('reason', ['affinity', 'size'])
def test_what_is_not_plain_is_left_to_a_claim(node, place, reason):
    other = node.create(1)
    if reason == 'affinity':
        special = node.create(1, scheduler_hints={'same_host': other})
    else:
        special = node.create(CAPACITY + 1)
    assert place() == {work_of(node, other)}
    assert [row.id for row in works(node)] == [work_of(node, special)]


@on_sqlite
def test_claim_raises_the_fence_of_new_work(node):
    """A fence of 0 shows that no worker holds, or has held, the work."""
    node.create(1)
    assert works(node)[0].fence == 0
    put_back(node, node.value(sa.select(INSTANCE.c.share_id)))
    assert works(node)[0].fence > 0
    assert works(node)[0].state == statements.QUEUED
