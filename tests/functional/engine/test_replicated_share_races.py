"""Rules and sizes against what is done to replicas, at one moment.

In real threads, on each database. Rows are locked in one order: whoever
meets another waits, and none has to begin anew.
"""

import concurrent.futures
from functools import partial
import threading

import pytest

from manila_lite import exception
from tests.support.access import ShareRules
from tests.support.replicated import ADMIN
from tests.support.replicated import ReplicatedCloud
from tests.support.seeds import seeds

SEEDS = seeds(3)
REFUSED = (
    exception.Invalid,
    exception.Conflict,
    exception.NotFound,
    exception.Forbidden,
)


@pytest.fixture
def cloud(database_url, tmp_path):
    cloud = ReplicatedCloud(tmp_path, url=database_url)
    yield cloud
    cloud.db.dispose()


@pytest.fixture
def rules(cloud):
    """Those of a share that is active on alpha, with a replica on beta."""
    share_id = cloud.create_share_on('alpha', size=2)
    cloud.replicate(share_id, 'beta')
    cloud.db.retries = 0
    return ShareRules(cloud, share_id)


def at_once(cloud, *calls):
    """Whether each of the calls, begun at one moment, was accepted."""
    start = threading.Barrier(len(calls))
    order = list(range(len(calls)))
    cloud.rng.shuffle(order)
    accepted = {}

    def ask(number):
        start.wait()
        try:
            calls[number]()
            accepted[number] = True
        except REFUSED:
            accepted[number] = False

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(ask, order))
    return [accepted[number] for number in range(len(calls))]


def passive(cloud, rules):
    return [
        row.id
        for row in cloud.replicas(rules.share_id)
        if row.replica_state != 'active'
    ]


def runner(cloud, name):
    return next(
        backend.runner
        for backend in cloud.share.backends
        if backend.host.endswith(f'@{name}')
    )


def made(cloud, rules):
    return partial(cloud.request_replica, rules.share_id)


def promoted(cloud, rules):
    return partial(cloud.ask, 'promote', passive(cloud, rules)[0])


def removed(cloud, rules):
    return partial(cloud.ask, 'delete', passive(cloud, rules)[0])


def settle(cloud, rules):
    """All at rest, and two replicas again."""
    cloud.settle()
    # MariaDB locks what lies between the keys of owed work, too: there a
    # transaction is at times begun anew.
    assert cloud.db.retries == 0 or cloud.db.dialect == 'mysql'
    cloud.check_invariants()
    for replica_id in passive(cloud, rules)[1:]:
        cloud.ask('delete', replica_id)
    if not passive(cloud, rules):
        cloud.request_replica(rules.share_id)
    run(cloud)


def run(cloud):
    """Carry out what is owed, without looking for what was left behind."""
    while cloud.step():
        pass


@pytest.mark.parametrize(
    'change', [made, promoted, removed], ids=lambda value: value.__name__
)
def test_rules_change_on_all_replicas_or_on_none(cloud, rules, change):
    kept = rules.allow('10.0.0.99')
    run(cloud)
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        to, level = f'10.0.0.{seed + 1}', ('ro', 'rw')[seed % 2]
        verb = seed % 3
        doomed = rules.allow('10.0.0.98')
        run(cloud)
        ask = (
            partial(rules.allow, to),
            partial(rules.deny, doomed),
            partial(rules.change, kept, level),
        )[verb]
        accepted, _ = at_once(cloud, ask, change(cloud, rules))
        settle(cloud, rules)
        if verb == 0:
            assert (to in rules.states) == accepted
        elif verb == 2 and accepted:
            assert rules.clients['10.0.0.99'] == level
        if verb != 1 or not accepted:
            rules.deny(doomed)
            run(cloud)
        assert '10.0.0.98' not in rules.clients
        cloud.check_invariants()


def test_two_clients_change_rules_without_waiting_in_a_circle(cloud, rules):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        known = [rules.allow(f'10.0.{seed}.{number}') for number in range(4)]
        run(cloud)
        at_once(
            cloud,
            *(partial(rules.deny, access_id) for access_id in known),
            *(
                partial(rules.allow, f'10.1.{seed}.{number}')
                for number in range(2)
            ),
            runner(cloud, 'alpha').step,
            runner(cloud, 'beta').step,
        )
        settle(cloud, rules)
    assert len(rules.states) == 2 * len(SEEDS)


def test_a_rule_leaves_the_last_replicas_that_have_it_at_once(cloud, rules):
    """One is denied it, the other is removed with it."""
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        rules.deny(rules.allow(f'10.0.0.{seed + 1}'))
        for row in cloud.replicas(rules.share_id):
            if row.replica_state != 'active':
                cloud.ask('force_delete', row.id)
        at_once(cloud, runner(cloud, 'alpha').step, runner(cloud, 'beta').step)
        settle(cloud, rules)
        assert rules.known == 0


def test_the_books_are_right_when_a_replica_goes_as_its_share_grows(
    cloud, rules
):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        size = cloud.api.show(rules.share_id)['size']
        grow = partial(
            cloud.services.shares.extend,
            ADMIN,
            rules.target,
            size + 1,
            force=bool(seed % 2),
        )
        at_once(cloud, grow, removed(cloud, rules))
        cloud.scheduler.runners[0].step()
        at_once(
            cloud, *(runner(cloud, name).step for name in cloud.backend_names)
        )
        settle(cloud, rules)
