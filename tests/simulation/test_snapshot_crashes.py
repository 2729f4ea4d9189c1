"""A crash at any point leaves no snapshot and no share stuck.

As in `test_crashes`, for operations on snapshots: each crashes once at every
crash point; after recovery all is idle and every invariant holds.
"""

import functools

import pytest

from manila_lite.messages import Action
from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import cloud_snapshots
from tests.support import sampling
from tests.support.cloud import Crash
from tests.support.rewind import rewindable

REVERT = Action.REVERT_TO_SNAPSHOT
SEEDS = sampling.seeds(100, 8)


def create(cloud, found):
    cloud_snapshots.create(
        cloud, found['shrunk'][0], metadata={'key': 'value'}
    )
    cloud.settle()


def delete(cloud, found):
    cloud_snapshots.delete(cloud, found['shrunk'][1])
    cloud.settle()


def revert(cloud, found, which='extended'):
    cloud_snapshots.revert(cloud, *found[which])
    cloud.settle()


def fail_to_revert(cloud, found):
    cloud.driver().half_fail_next('revert_to_snapshot')
    revert(cloud, found, 'shrunk')


def force_delete_during_create(cloud, found):
    cloud_snapshots.act(
        cloud,
        cloud_snapshots.create(cloud, found['extended'][0]),
        'force_delete',
    )
    cloud.settle()


def force_delete_during_revert(cloud, found, which='extended'):
    cloud_snapshots.revert(cloud, *found[which])
    cloud_snapshots.act(cloud, found[which][1], 'force_delete')
    cloud.settle()


VERBS = {
    'create': create,
    'delete': delete,
    'revert extended share': revert,
    'revert shrunk share': functools.partial(revert, which='shrunk'),
    'revert fails': fail_to_revert,
    'force-delete during create': force_delete_during_create,
    'force-delete during revert': force_delete_during_revert,
    'force-delete during revert of shrunk share': functools.partial(
        force_delete_during_revert, which='shrunk'
    ),
}

# How shares of 3 GiB were resized after their snapshots.
CHANGES = {'extended': ('extend', 5), 'shrunk': ('shrink', 1)}


def prepare(cloud):
    """Create resized shares, each with a snapshot."""
    cloud_snapshots.enable_snapshot_features(cloud)
    found = {}
    for change, (action, size) in CHANGES.items():
        share_id = cloud.create_share(size=3)
        found[change] = (
            share_id,
            cloud_snapshots.create_available(cloud, share_id),
        )
        cloud.api.act(share_id, action, {'new_size': size})
        cloud.settle()
    return found


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('snapshots'),
        prepare,
        kind=crash_images.CrashableCloud,
        backends=('alpha',),
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(begin, name):
    crashing.crash_everywhere(begin, VERBS[name], name)


@sampling.enumeration
def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    crashing.crash_twice(begin, SEEDS, VERBS)


def test_lost_revert_notifies_of_share_and_snapshot(begin):
    """One user message about the share, one about the snapshot."""
    cloud, found = begin()
    share_id, snapshot_id = found['extended']
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.pause_at('after revert_to_snapshot', crash)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.clock.advance(60)
    cloud.settle()
    assert {
        cloud.api.show(share_id)['status'],
        cloud_snapshots.show(cloud, snapshot_id)['status'],
    } == {'error'}
    assert {
        (one['resource_type'], one['resource_id'], one['action_id'])
        for one in cloud.api.get('/messages')['messages']
    } == {
        ('SHARE', share_id, REVERT.value),
        ('SHARE_SNAPSHOT', snapshot_id, REVERT.value),
    }


def crash():
    raise Crash


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', VERBS)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    begin, name, fencing, shared_database
):
    pausing.pause_verb(begin, VERBS[name], name, fencing, shared_database)
