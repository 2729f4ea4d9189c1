"""Rule and size changes concurrent with changes of replicas.

In real threads, on each database. Rows are locked in one order: requests
wait for each other, and none has to be retried.
"""

from functools import partial

import pytest

from manila_lite import exception
from tests.support import sampling
from tests.support.access import ShareRules
from tests.support.concurrent_calls import are_accepted
from tests.support.replicated import ADMIN

pytestmark = [sampling.dialects, sampling.enumeration]

SEEDS = sampling.seeds(20, 1)
REFUSED = (
    exception.Invalid,
    exception.Conflict,
    exception.NotFound,
    exception.Forbidden,
)


@pytest.fixture
def cloud(build_cloud, database_url):
    return build_cloud(url=database_url)


@pytest.fixture
def rules(cloud):
    """The rules of a share active on alpha, with a replica on beta."""
    share_id = cloud.create_share_on('alpha', size=2)
    cloud.replicate(share_id, 'beta')
    cloud.db.retries = 0
    return ShareRules(cloud, share_id)


def runner(cloud, name):
    return next(
        backend.runner
        for backend in cloud.share.backends
        if backend.host.endswith(f'@{name}')
    )


def made(cloud, rules):
    return partial(cloud.request_replica, rules.share_id)


def promoted(cloud, rules):
    return partial(cloud.ask, 'promote', cloud.passive(rules.share_id)[0])


def removed(cloud, rules):
    return partial(cloud.ask, 'delete', cloud.passive(rules.share_id)[0])


def settle(cloud, rules):
    """Bring everything to rest, with two replicas again."""
    cloud.settle()
    # MariaDB locks gaps between the keys of work, too: there transactions
    # are retried at times.
    assert cloud.db.retries == 0 or cloud.db.dialect == 'mysql'
    cloud.check_invariants()
    for replica_id in cloud.passive(rules.share_id)[1:]:
        cloud.ask('delete', replica_id)
    if not cloud.passive(rules.share_id):
        cloud.request_replica(rules.share_id)
    cloud.run_pending()


@pytest.mark.parametrize(
    'change', [made, promoted, removed], ids=lambda value: value.__name__
)
def test_rules_change_on_all_replicas_or_none(cloud, rules, change):
    kept = rules.allow('10.0.0.99')
    cloud.run_pending()
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        to, level = f'10.0.0.{seed + 1}', ('ro', 'rw')[seed % 2]
        verb = seed % 3
        doomed = rules.allow('10.0.0.98')
        cloud.run_pending()
        ask = (
            partial(rules.allow, to),
            partial(rules.deny, doomed),
            partial(rules.change, kept, level),
        )[verb]
        accepted, _ = are_accepted(ask, change(cloud, rules), rng=cloud.rng)
        settle(cloud, rules)
        if verb == 0:
            assert (to in rules.states) == accepted
        elif verb == 2 and accepted:
            assert rules.clients['10.0.0.99'] == level
        if verb != 1 or not accepted:
            rules.deny(doomed)
            cloud.run_pending()
        assert '10.0.0.98' not in rules.clients
        cloud.check_invariants()


def test_concurrent_rule_changes_do_not_deadlock(cloud, rules):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        known = [rules.allow(f'10.0.{seed}.{number}') for number in range(4)]
        cloud.run_pending()
        are_accepted(
            *(partial(rules.deny, access_id) for access_id in known),
            *(partial(rules.allow, f'10.1.{seed}.{number}') for number in range(2)),
            runner(cloud, 'alpha').step,
            runner(cloud, 'beta').step,
            rng=cloud.rng,
        )
        settle(cloud, rules)
    assert len(rules.states) == 2 * len(SEEDS)


def test_rule_removed_concurrently_from_its_last_replicas_is_deleted(cloud, rules):
    """It is denied on one, and the other is removed."""
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        rules.deny(rules.allow(f'10.0.0.{seed + 1}'))
        for row in cloud.replicas(rules.share_id):
            if row.replica_state != 'active':
                cloud.ask('force_delete', row.id)
        are_accepted(
            runner(cloud, 'alpha').step, runner(cloud, 'beta').step, rng=cloud.rng
        )
        settle(cloud, rules)
        assert rules.known == 0


def test_usage_is_consistent_when_replica_deletion_meets_extend(cloud, rules):
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
        are_accepted(grow, removed(cloud, rules), rng=cloud.rng)
        cloud.scheduler.runners[0].step()
        are_accepted(
            *(runner(cloud, name).step for name in cloud.backend_names), rng=cloud.rng
        )
        settle(cloud, rules)
