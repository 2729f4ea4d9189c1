"""Concurrent requests for access rules, deletions and faults."""

import contextlib

import pytest
import sqlalchemy as sa

from manila_lite import exception
from tests.support import sampling
from tests.support.access import CTX, INSTANCE, ShareRules
from tests.support.cloud import Cloud, Crash

CLIENTS = [f'10.0.0.{number}' for number in range(1, 6)]
REFUSED = (
    exception.InvalidShare,
    exception.InvalidShareAccess,
    exception.ShareAccessExists,
    exception.ShareAccessNotFound,
    exception.ShareNotFound,
)
CAST = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance'))
    .values(cast_rules_to_readonly=~INSTANCE.c.cast_rules_to_readonly)
)
FAULTS = ('fail_next', 'half_fail_next', 'lose_reply_next')


def send_request(cloud, rules):
    """Send a random request; it may be refused."""
    choose = cloud.rng.choice
    verb = choose(
        (
            'allow',
            'allow',
            'allow',
            'deny',
            'deny',
            'change',
            'extend',
            'shrink',
            'snapshot',
            'ensure',
            'resync',
            'cast',
            'delete',
            'force_delete',
            'reset',
        )
    )
    with contextlib.suppress(*REFUSED):
        if verb == 'allow':
            rules.allow(choose(CLIENTS), choose(('rw', 'ro')))
        elif verb == 'deny':
            rules.deny(choose([*rules.rows] or ['none']))
        elif verb == 'change':
            rules.change(choose([*rules.rows] or ['none']), choose(('rw', 'ro')))
        elif verb in ('resync', 'cast'):
            resync(cloud, rules, cast=verb == 'cast')
        else:
            send_http_request(cloud, rules, verb)


def send_http_request(cloud, rules, verb):
    size = cloud.rng.randrange(1, 9)
    if verb == 'delete' and cloud.rng.random() < 0.7:
        return  # otherwise no share is left to race for
    if verb == 'delete':
        answer = cloud.api.delete(rules.share_id, expect=None)
    elif verb == 'ensure':
        answer = cloud.api.ensure(f'node@{rules.backend}', expect=None)
    elif verb == 'snapshot':
        answer = cloud.api.request(
            'POST', '/snapshots', {'snapshot': {'share_id': rules.share_id}}
        )
    elif verb == 'reset':
        answer = cloud.api.act(
            rules.share_id,
            'reset_status',
            {'status': cloud.rng.choice(('error', 'deleting'))},
            expect=None,
        )
    elif verb == 'force_delete':
        answer = cloud.rng.random() < 0.2 and cloud.api.act(
            rules.share_id, 'force_delete', expect=None
        )
    else:
        answer = cloud.api.act(rules.share_id, verb, {'new_size': size}, expect=None)
    assert not answer or answer.status_int < 500, (verb, answer.text)


def resync(cloud, rules, cast):
    """Change what the back end must enforce, as other code would."""
    target = rules.target
    if target.host is None or target.status != 'available':
        return

    def change(session):
        if cast:
            session.run(CAST, instance=target.instance_id)
        backend.endpoints.access.resync(session, CTX, target.instance_id)

    backend = next(
        one for one in cloud.share.backends if one.host == f'node@{rules.backend}'
    )
    cloud.db.write(change)


def disturb(cloud, rules):
    """Run some work, make it fail, or crash the process."""
    rng = cloud.rng.random()
    if rng < 0.1:
        cloud.crash_at(cloud.rng.randrange(25))
    elif rng < 0.3:
        driver = cloud.driver(cloud.rng.choice(cloud.backend_names))
        getattr(driver, cloud.rng.choice(FAULTS))('update_access')
    elif rng < 0.5:
        bad = cloud.rng.choice(CLIENTS)
        for backend in cloud.share.backends:
            backend.driver.refuse_rules(lambda verb, rule: rule['access_to'] == bad)
    elif rng < 0.6:
        cloud.pause_at(
            cloud.rng.choice(('before apply_access', 'after apply_access')),
            lambda: send_request(cloud, rules),
        )
    for _ in range(cloud.rng.randrange(4)):
        cloud.step()


def test_cast_requested_while_rules_are_sent_again_is_not_forgotten(tmp_path):
    """They are sent again because the back end did not take them before."""
    cloud = Cloud(tmp_path)
    rules = ShareRules(cloud, cloud.create_share(size=2))
    rules.allow('10.0.0.1', 'rw')
    cloud.settle()
    cloud.driver(rules.backend).fail_next('update_access')
    resync(cloud, rules, cast=False)
    while not sync_has_failed(cloud, rules):
        assert cloud.step()
    cloud.pause_at('before apply_access', lambda: resync(cloud, rules, cast=True))
    resync(cloud, rules, cast=False)
    cloud.settle()
    assert not cloud.pending_pauses
    cloud.check_invariants()
    cloud.db.dispose()


def sync_has_failed(cloud, rules):
    return cloud.db.read(
        lambda session: session.value(
            sa.select(INSTANCE.c.access_sync_failed).where(
                INSTANCE.c.id == rules.target.instance_id
            )
        )
    )


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(300, 3))
def test_any_order_of_requests_and_faults_keeps_invariants(tmp_path, seed):
    cloud = Cloud(tmp_path, seed=seed, loss_rate=0.2, duplicate_rate=0.2, capacity=100)
    shares = [ShareRules(cloud, cloud.create_share(size=2)) for _ in range(2)]
    for _ in range(20):
        rules = cloud.rng.choice(shares)
        try:
            send_request(cloud, rules)
            disturb(cloud, rules)
        except Crash:
            cloud.restart()
    cloud.restart()
    cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()
