"""Rules of a snapshot that two clients may mount."""

import functools

from tests.simulation.crashing import Scene
from tests.support.snapshot_access import (
    SnapshotRules,
    create_mountable_snapshot,
    enable_snapshot_mounts,
)

METHOD = 'snapshot_update_access'
FIRST, SECOND, THIRD, FOURTH = (f'10.0.0.{number}' for number in range(1, 5))


def allow(cloud, rules, ids):
    rules.allow(THIRD)
    cloud.settle()


def deny(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.settle()


def deny_while_applying(cloud, rules, ids):
    new = rules.allow(THIRD)['id']
    cloud.pause_at(f'before {METHOD}', lambda: rules.deny(new))
    cloud.settle()


def allow_after_apply(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.pause_at(f'after {METHOD}', lambda: rules.allow(FOURTH))
    cloud.settle()


def fail(cloud, rules, ids):
    rules.driver.half_fail_next(METHOD)
    rules.deny(ids[SECOND])
    rules.allow(THIRD)
    cloud.settle()


def delete(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.api.request('DELETE', rules.path, expect=202)
    cloud.settle()


def fail_to_delete(cloud, rules, ids):
    rules.driver.half_fail_next('delete_snapshot')
    cloud.api.request('DELETE', rules.path, expect=202)
    cloud.settle()


def on_rules(act):
    """Return the verb that acts on the rules of what was prepared."""

    @functools.wraps(act)
    def verb(cloud, found):
        snapshot_id, ids = found
        act(cloud, SnapshotRules(cloud, snapshot_id), ids)

    return verb


VERBS = Scene.named(
    *map(
        on_rules,
        (
            allow,
            deny,
            deny_while_applying,
            allow_after_apply,
            fail,
            delete,
            fail_to_delete,
        ),
    )
)


def prepare(cloud):
    """Create a snapshot that two clients may mount."""
    enable_snapshot_mounts(cloud)
    rules = create_mountable_snapshot(cloud)
    ids = {to: rules.allow(to)['id'] for to in (FIRST, SECOND)}
    cloud.settle()
    return rules.snapshot_id, ids


def check_accepted_requests(cloud, found, name, points_before):
    """Assert that requests accepted before the crash were carried out."""
    if 'committed' not in points_before or 'delete' in name:
        return
    states = SnapshotRules(cloud, found[0]).states
    if name == 'deny':
        assert states == {FIRST: 'active'}
    if name == 'allow':
        assert states[THIRD] == 'active'
    if name == 'deny_while_applying' and f'after {METHOD}' in points_before:
        assert THIRD not in states


SCENE = Scene(
    name='access rules of snapshots',
    prepare=prepare,
    verbs=VERBS,
    options={'backends': ['alpha']},
    keeps=check_accepted_requests,
    points=70,
)
