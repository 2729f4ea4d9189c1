"""Concurrent requests for snapshots keep all invariants, in every order."""

import datetime

import pytest

from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.context import RequestContext
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Database
from manila_lite.share.operations.snapshots import Snapshots
from tests.support import cloud_snapshots, sampling
from tests.support.cloud import Cloud, Crash
from tests.support.rewind import rewindable

VERBS = (
    'create',
    'create',
    'revert',
    'revert',
    'delete',
    'force_delete',
    'extend',
    'shrink',
    'delete_share',
    'soft_delete',
    'restore',
    'reset',
)
FAULTS = ('create_snapshot', 'revert_to_snapshot', 'extend_share')
# What is force-deleted remains on a back end that fails to delete it.
DEFERRED_VERBS = tuple(verb for verb in VERBS if verb != 'force_delete')
DEFERRED_FAULTS = (*FAULTS, 'delete_snapshot', 'delete_share')
# Not to available: `reset_status` to it may contradict the back end.
RESETS = ('error', 'error_deleting', 'manage_error')
HOUR = 3600
SEEDS = sampling.seeds(100, 2)


def send_request(cloud, share_id, known, verbs):
    """Send a random request; it must not end in a server error."""
    verb = cloud.rng.choice(verbs)
    snapshot_id = cloud.rng.choice(known)
    size = cloud.rng.randrange(1, 9)
    if verb == 'create':
        created = cloud_snapshots.create(cloud, share_id, expect=None)
        known.extend([created] if created else [])
        return
    answer = {
        'revert': lambda: cloud_snapshots.revert(cloud, share_id, snapshot_id, None),
        'delete': lambda: cloud_snapshots.delete(cloud, snapshot_id, None),
        'delete_share': lambda: cloud.api.delete(share_id, None),
        'force_delete': lambda: cloud_snapshots.act(
            cloud, snapshot_id, 'force_delete', expect=None
        ),
        'reset': lambda: cloud_snapshots.act(
            cloud,
            snapshot_id,
            'reset_status',
            {'status': cloud.rng.choice(RESETS)},
            None,
        ),
        'extend': lambda: cloud.api.act(share_id, 'extend', {'new_size': size}, None),
        'shrink': lambda: cloud.api.act(share_id, 'shrink', {'new_size': size}, None),
    }.get(verb, lambda: cloud.api.act(share_id, verb, None, None))()
    assert answer.status_int < 500, (verb, answer.text)


def disturb(cloud, faults):
    """Run some work, make it fail, retry it, or crash the process."""
    rng = cloud.rng.random()
    if rng < 0.1:
        cloud.crash_at(cloud.rng.randrange(15))
    elif rng < 0.2:
        cloud.driver().fail_next(cloud.rng.choice(faults))
    elif rng < 0.3:
        cloud.driver().lose_reply_next(
            cloud.rng.choice(('create_snapshot', 'delete_snapshot'))
        )
    elif rng < 0.4:
        cloud.share.backends[0].deferred_deletion.retry()
    for _ in range(cloud.rng.randrange(4)):
        cloud.step()


def prepare(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=3)
    return share_id, cloud_snapshots.create_available(cloud, share_id)


@sampling.enumeration
@pytest.mark.parametrize(
    'extra_conf, verbs, faults',
    [
        ('', VERBS, FAULTS),
        ('is_deferred_deletion_enabled = true', DEFERRED_VERBS, DEFERRED_FAULTS),
    ],
    ids=['at once', 'deferred'],
)
def test_any_order_of_requests_and_faults_keeps_invariants(
    tmp_path, extra_conf, verbs, faults
):
    with rewindable(tmp_path, prepare, backends=('alpha',)) as begin:
        for seed in SEEDS:
            cloud, (share_id, snapshot_id) = begin(seed, extra_conf=extra_conf)
            cloud.loss_rate = cloud.duplicate_rate = 0.2
            try:
                run_randomly(cloud, share_id, [snapshot_id], verbs, faults)
            except AssertionError as error:
                pytest.fail(f'seed {seed}: {error}')


def run_randomly(cloud, share_id, known, verbs, faults):
    """Run requests and faults in random order, then recover."""
    for _ in range(14):
        try:
            send_request(cloud, share_id, known, verbs)
            disturb(cloud, faults)
        except Crash:
            cloud.restart()
    cloud.restart()
    cloud.settle()
    cloud.check_invariants()


def test_clock_skew_keeps_the_order_of_snapshots(tmp_path):
    """A later snapshot has a later created_at, whichever service accepts."""
    cloud = Cloud(tmp_path, backends=('alpha',))
    share_id = cloud.create_share(size=1)
    made = []
    for skew in (0, -HOUR, HOUR, 0, -HOUR, 0):
        operations, db = other_service(cloud, skew)
        made.append(
            operations.create(
                RequestContext(project_id='project', user_id='user'),
                db.read(shares.get_target, share_id),
            )['id']
        )
        db.dispose()
        cloud.settle()
    listed = cloud.api.get('/snapshots/detail?sort_dir=asc')['snapshots']
    assert [one['id'] for one in listed] == made
    times = [datetime.datetime.fromisoformat(one['created_at']) for one in listed]
    assert times == sorted(set(times))
    cloud.check_invariants()
    cloud.db.dispose()


def other_service(cloud, skew):
    """Return the operations of a service with clock skew, in seconds.

    The clock of the database is shared by all.
    """
    db = Database(cloud.url, clock=cloud.clock, new_id=cloud.db.new_id)
    db.clock = lambda: cloud.clock() + skew
    db.deliver = cloud.db.deliver
    process = Process(cloud.conf, db, rng=cloud.rng)
    return Registry(process).get(Snapshots), db


def test_snapshot_of_the_same_microsecond_is_a_microsecond_later(tmp_path):
    cloud = Cloud(tmp_path, backends=('alpha',))
    share_id = cloud.create_share(size=1)
    moment = cloud.clock.now
    times = []
    for _ in range(3):
        cloud.clock.now = moment
        snapshot_id = cloud_snapshots.create_available(cloud, share_id)
        times.append(
            datetime.datetime.fromisoformat(
                cloud_snapshots.show(cloud, snapshot_id)['created_at']
            )
        )
    assert times[1] > times[0]
    assert times[2] > times[1]
    cloud.db.dispose()


def test_revert_of_another_snapshot_than_the_newest_is_refused(tmp_path):
    """Not even while the newest one is being deleted."""
    cloud = Cloud(tmp_path, backends=('alpha',))
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=1)
    older, newest = (
        cloud_snapshots.create_available(cloud, share_id) for _ in range(2)
    )
    cloud_snapshots.revert(cloud, share_id, older, expect=409)
    cloud_snapshots.delete(cloud, newest)
    cloud_snapshots.revert(cloud, share_id, older, expect=409)
    cloud.settle()
    cloud_snapshots.revert(cloud, share_id, older, expect=202)
    cloud.settle()
    assert cloud.api.show(share_id)['status'] == 'available'
    cloud.check_invariants()
    cloud.db.dispose()


def test_force_delete_waits_for_a_running_revert(tmp_path):
    cloud = Cloud(tmp_path, backends=('alpha',))
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=1)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    seen = []

    def force():
        cloud_snapshots.act(cloud, snapshot_id, 'force_delete')
        for runner in cloud.competing_runners():
            while runner.step():
                pass
        seen.append(cloud.driver().snapshot_inventory())

    cloud.pause_at('before revert_to_snapshot', force)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert seen
    assert all(seen), 'the snapshot was deleted while it was being restored'
    assert cloud.api.show(share_id)['status'] == 'available'
    assert cloud.driver().snapshot_inventory() == {}
    assert cloud.api.get('/snapshots')['snapshots'] == []
    cloud.check_invariants()
    cloud.db.dispose()
