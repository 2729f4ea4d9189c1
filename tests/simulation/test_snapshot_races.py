"""Requests about snapshots that meet each other, in every order."""

import datetime

import pytest

from manila_lite.cmd import build
from manila_lite.context import RequestContext
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Database
from tests.support import cloud_snapshots as album
from tests.support.cloud import Cloud
from tests.support.cloud import Crash
from tests.support.rewind import rewindable
from tests.support.seeds import seeds

VERBS = (
    'take',
    'take',
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
# Not to available: that may be a lie about the back end, by decree.
RESETS = ('error', 'error_deleting', 'manage_error')
HOUR = 3600
SEEDS = seeds(20)


def ask(cloud, share_id, known):
    """One random request; what is refused is refused with a reason."""
    verb = cloud.rng.choice(VERBS)
    snapshot_id = cloud.rng.choice(known)
    size = cloud.rng.randrange(1, 9)
    if verb == 'take':
        taken = album.create(cloud, share_id, expect=None)
        known.extend([taken] if taken else [])
        return
    answer = {
        'revert': lambda: album.revert(cloud, share_id, snapshot_id, None),
        'delete': lambda: album.delete(cloud, snapshot_id, None),
        'delete_share': lambda: cloud.api.delete(share_id, None),
        'force_delete': lambda: album.act(
            cloud, snapshot_id, 'force_delete', expect=None
        ),
        'reset': lambda: album.act(
            cloud,
            snapshot_id,
            'reset_status',
            {'status': cloud.rng.choice(RESETS)},
            None,
        ),
        'extend': lambda: cloud.api.act(
            share_id, 'extend', {'new_size': size}, None
        ),
        'shrink': lambda: cloud.api.act(
            share_id, 'shrink', {'new_size': size}, None
        ),
    }.get(verb, lambda: cloud.api.act(share_id, verb, None, None))()
    assert answer.status_int < 500, (verb, answer.text)


def disturb(cloud):
    """Let some work run, fail, or be lost with its process."""
    rng = cloud.rng.random()
    if rng < 0.1:
        cloud.crash_at(cloud.rng.randrange(15))
    elif rng < 0.2:
        cloud.driver().fail_next(
            cloud.rng.choice(
                ('create_snapshot', 'revert_to_snapshot', 'extend_share')
            )
        )
    elif rng < 0.3:
        cloud.driver().lose_reply_next(
            cloud.rng.choice(('create_snapshot', 'delete_snapshot'))
        )
    for _ in range(cloud.rng.randrange(4)):
        cloud.step()


def prepare(cloud):
    album.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=3)
    return share_id, album.create_available(cloud, share_id)


def test_any_order_of_requests_and_faults_keeps_the_books(tmp_path):
    with rewindable(tmp_path, prepare, backends=('alpha',)) as begin:
        for seed in SEEDS:
            cloud, (share_id, snapshot_id) = begin(seed)
            cloud.loss_rate = cloud.duplicate_rate = 0.2
            try:
                mix(cloud, share_id, [snapshot_id])
            except AssertionError as error:
                pytest.fail(f'seed {seed}: {error}')


def mix(cloud, share_id, known):
    """Requests and faults in an order of chance, to a quiet end."""
    for _ in range(14):
        try:
            ask(cloud, share_id, known)
            disturb(cloud)
        except Crash:
            cloud.restart()
    cloud.restart()
    cloud.settle()
    cloud.check_invariants()


def test_clocks_apart_keep_the_order_of_snapshots(tmp_path):
    """Whichever service accepts, the later snapshot is the later one."""
    cloud = Cloud(tmp_path, backends=('alpha',))
    share_id = cloud.create_share(size=1)
    made = []
    for late in (0, -HOUR, HOUR, 0, -HOUR, 0):
        operations, db = other_service(cloud, late)
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
    times = [
        datetime.datetime.fromisoformat(one['created_at']) for one in listed
    ]
    assert times == sorted(set(times))
    cloud.check_invariants()
    cloud.db.dispose()


def other_service(cloud, late):
    """The operations of a service whose clock goes so many seconds wrong.

    That of the database is one for all.
    """
    db = Database(cloud.url, clock=cloud.clock, new_id=cloud.db.new_id)
    db.clock = lambda: cloud.clock() + late
    db.deliver = cloud.db.deliver
    process = build.Process(cloud.conf, db, rng=cloud.rng)
    return build.snapshot_operations(process), db


def test_snapshot_of_the_same_microsecond_is_a_microsecond_later(tmp_path):
    cloud = Cloud(tmp_path, backends=('alpha',))
    share_id = cloud.create_share(size=1)
    moment = cloud.clock.now
    times = []
    for _ in range(3):
        cloud.clock.now = moment
        snapshot_id = album.create_available(cloud, share_id)
        times.append(
            datetime.datetime.fromisoformat(
                album.show(cloud, snapshot_id)['created_at']
            )
        )
    assert times[1] > times[0]
    assert times[2] > times[1]
    cloud.db.dispose()


def test_revert_of_another_snapshot_than_the_newest_is_refused(tmp_path):
    """Not even while the newest one is on its way out."""
    cloud = Cloud(tmp_path, backends=('alpha',))
    album.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=1)
    older, newest = (album.create_available(cloud, share_id) for _ in range(2))
    album.revert(cloud, share_id, older, expect=409)
    album.delete(cloud, newest)
    album.revert(cloud, share_id, older, expect=409)
    cloud.settle()
    album.revert(cloud, share_id, older, expect=202)
    cloud.settle()
    assert cloud.api.show(share_id)['status'] == 'available'
    cloud.check_invariants()
    cloud.db.dispose()


def test_forced_deletion_waits_for_the_revert_it_meets(tmp_path):
    cloud = Cloud(tmp_path, backends=('alpha',))
    album.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=1)
    snapshot_id = album.create_available(cloud, share_id)
    seen = []

    def force():
        album.act(cloud, snapshot_id, 'force_delete')
        for runner in cloud.competing_runners():
            while runner.step():
                pass
        seen.append(cloud.driver().snapshot_inventory())

    cloud.pause_at('before revert_to_snapshot', force)
    album.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert seen
    assert all(seen), 'the snapshot went while it was being restored'
    assert cloud.api.show(share_id)['status'] == 'available'
    assert cloud.driver().snapshot_inventory() == {}
    assert cloud.api.get('/snapshots')['snapshots'] == []
    cloud.check_invariants()
    cloud.db.dispose()
