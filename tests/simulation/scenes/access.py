"""Rules of a share that two clients may use."""

import functools

from tests.simulation.crashing import Scene
from tests.support.access import ShareRules

FIRST, SECOND = '10.0.0.1', '10.0.0.2'
THIRD, FOURTH = '10.0.0.3', '10.0.0.4'


def allow(cloud, rules, ids):
    rules.allow(THIRD)
    cloud.settle()


def deny(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.settle()


def change(cloud, rules, ids):
    rules.change(ids[SECOND], 'ro')
    cloud.settle()


def all_at_once(cloud, rules, ids):
    rules.allow(THIRD)
    rules.deny(ids[SECOND])
    rules.change(ids[FIRST], 'ro')
    cloud.settle()


def deny_while_applying(cloud, rules, ids):
    new = rules.allow(THIRD)
    cloud.pause_at('before apply_access', lambda: rules.deny(new))
    cloud.settle()


def allow_after_apply(cloud, rules, ids):
    rules.allow(THIRD)
    cloud.pause_at('after apply_access', lambda: rules.allow(FOURTH, 'ro'))
    cloud.settle()


def fail(cloud, rules, ids):
    rules.driver.half_fail_next('update_access')
    rules.deny(ids[SECOND])
    rules.allow(THIRD)
    cloud.settle()


def delete(cloud, rules, ids):
    cloud.api.delete(rules.share_id)
    cloud.settle()


def deny_and_delete(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.api.act(rules.share_id, 'force_delete')
    cloud.settle()


def on_rules(act):
    """Return the verb that acts on the rules of what was prepared."""

    @functools.wraps(act)
    def verb(cloud, found):
        share_id, ids = found
        act(cloud, ShareRules(cloud, share_id), ids)

    return verb


VERBS = Scene.named(
    *map(
        on_rules,
        (
            allow,
            deny,
            change,
            all_at_once,
            deny_while_applying,
            allow_after_apply,
            fail,
            delete,
            deny_and_delete,
        ),
    )
)


def prepare(cloud):
    """Create a share that two clients may use."""
    rules = ShareRules(cloud, cloud.create_share())
    ids = {to: rules.allow(to) for to in (FIRST, SECOND)}
    cloud.settle()
    return rules.share_id, ids


def check_accepted_requests(cloud, found, name, points_before):
    """Assert that requests accepted before the crash were carried out."""
    if 'committed' not in points_before:
        return
    rules = ShareRules(cloud, found[0])
    if name == 'deny':
        assert SECOND not in rules.clients
        assert SECOND not in rules.states
    if name == 'allow':
        assert rules.states[THIRD] == 'active'
    if name == 'change':
        assert rules.clients[SECOND] == 'ro'


SCENE = Scene(
    name='access rules',
    prepare=prepare,
    verbs=VERBS,
    keeps=check_accepted_requests,
    seeds=(300, 2),
    points=70,
)
