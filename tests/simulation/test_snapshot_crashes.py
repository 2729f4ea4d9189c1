"""A process that dies at any place leaves no snapshot and no share stuck.

As in `test_crashes`, of what is done to snapshots: every verb dies once at
every place there is, and afterwards all is quiet and every invariant holds.
"""

import functools

import pytest

from manila_lite.messages import Action
from tests.simulation import crash_images as death
from tests.simulation import crashing
from tests.support import cloud_snapshots as album
from tests.support.cloud import Crash
from tests.support.rewind import rewindable
from tests.support.seeds import seeds

REVERT = Action.REVERT_TO_SNAPSHOT
SEEDS = seeds(15)


def take(cloud, found):
    album.create(cloud, found['shrunk'][0], metadata={'key': 'value'})
    cloud.settle()


def delete(cloud, found):
    album.delete(cloud, found['shrunk'][1])
    cloud.settle()


def revert(cloud, found, which='grown'):
    album.revert(cloud, *found[which])
    cloud.settle()


def revert_in_vain(cloud, found):
    cloud.driver().half_fail_next('revert_to_snapshot')
    revert(cloud, found, 'shrunk')


def force_delete_what_is_taken(cloud, found):
    album.act(cloud, album.create(cloud, found['grown'][0]), 'force_delete')
    cloud.settle()


def force_delete_what_is_restored(cloud, found, which='grown'):
    album.revert(cloud, *found[which])
    album.act(cloud, found[which][1], 'force_delete')
    cloud.settle()


VERBS = {
    'take': take,
    'delete': delete,
    'revert what has grown': revert,
    'revert what was shrunk': functools.partial(revert, which='shrunk'),
    'revert in vain': revert_in_vain,
    'force-delete what is taken': force_delete_what_is_taken,
    'force-delete what is restored': force_delete_what_is_restored,
    'force-delete what is restored larger': functools.partial(
        force_delete_what_is_restored, which='shrunk'
    ),
}

# What became of shares of 3 GiB since their snapshots were taken.
CHANGES = {'grown': ('extend', 5), 'shrunk': ('shrink', 1)}


def prepare(cloud):
    """Shares that have changed, each with its snapshot."""
    album.enable_snapshot_features(cloud)
    found = {}
    for change, (action, size) in CHANGES.items():
        share_id = cloud.create_share(size=3)
        found[change] = share_id, album.create_available(cloud, share_id)
        cloud.api.act(share_id, action, {'new_size': size})
        cloud.settle()
    return found


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('album'),
        prepare,
        kind=death.CrashableCloud,
        backends=('alpha',),
    ) as begin:
        yield begin


@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(begin, name):
    crashing.crash_everywhere(begin, VERBS[name], name)


def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    deaths = [crashing.crash_twice(begin, seed, VERBS) for seed in SEEDS]
    assert deaths.count(2) > len(SEEDS) / 4
    print(f'{len(SEEDS)} seeds, {sum(deaths)} deaths, no invariant broken')


def test_whoever_owns_what_a_lost_revert_leaves_in_error_is_told(begin):
    """Of the share, and of the snapshot as well."""
    cloud, found = begin()
    share_id, snapshot_id = found['grown']
    album.revert(cloud, share_id, snapshot_id)
    cloud.pause_at('after revert_to_snapshot', die)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.clock.advance(60)
    cloud.settle()
    assert {
        cloud.api.show(share_id)['status'],
        album.show(cloud, snapshot_id)['status'],
    } == {'error'}
    assert {
        (one['resource_type'], one['resource_id'], one['action_id'])
        for one in cloud.api.get('/messages')['messages']
    } == {
        ('SHARE', share_id, REVERT.value),
        ('SHARE_SNAPSHOT', snapshot_id, REVERT.value),
    }


def die():
    raise Crash
