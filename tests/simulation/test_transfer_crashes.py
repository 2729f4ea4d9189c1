"""Crashes at every point of share transfers.

As in `test_crashes`, for offers that are withdrawn, expire or are accepted.
"""

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import cloud_snapshots
from tests.support import sampling
from tests.support import share_transfers
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(100, 8)


def accept_by_another(cloud, offered, **more):
    another = share_transfers.client_of(cloud, 'another')
    share_transfers.accept(another, offered, **more)


def offer_and_withdraw(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    share_transfers.withdraw(cloud.api, offered)
    cloud.settle()


def offer_and_expire(cloud, share_id):
    share_transfers.offer(cloud.api, share_id)
    cloud.clock.advance(301)
    cloud.beat()
    share_transfers.expire(cloud)
    cloud.settle()


def accept(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    accept_by_another(cloud, offered)
    cloud.settle()


def accept_without_rules(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    accept_by_another(cloud, offered, clear_access_rules=True)
    cloud.settle()


def accept_and_force_delete(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    accept_by_another(cloud, offered)
    for one in cloud.api.get('/snapshots')['snapshots']:
        cloud_snapshots.act(cloud, one['id'], 'force_delete')
    cloud.settle()
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (
        offer_and_withdraw,
        offer_and_expire,
        accept,
        accept_without_rules,
        accept_and_force_delete,
    )
}

CARRIED_OUT = [name for name in VERBS if name.startswith('accept')]


def prepare(cloud):
    """Create a share with a snapshot and two rules."""
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=2)
    cloud_snapshots.create_available(cloud, share_id)
    for client in ('10.0.0.1', '10.0.0.2'):
        rule = {'access_type': 'ip', 'access_to': client}
        cloud.api.act(share_id, 'allow_access', rule, expect=200)
    return share_id


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('transfers'),
        prepare,
        kind=crash_images.CrashableCloud,
        backends=['alpha'],
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(begin, name):
    crashing.crash_everywhere(begin, VERBS[name], name)


@sampling.enumeration
def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    crashing.crash_twice(begin, SEEDS, VERBS)


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', CARRIED_OUT)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    begin, name, fencing, shared_database
):
    pausing.pause_verb(begin, VERBS[name], name, fencing, shared_database)


@sampling.enumeration
@pytest.mark.parametrize('name', CARRIED_OUT[:2])
def test_a_crash_leaves_a_share_with_one_of_the_projects(begin, name):
    """Whatever was lost, it is available there or can still be accepted."""
    cloud, share_id = begin()
    points = crash_images.images_at_crash_points(
        cloud, lambda: VERBS[name](cloud, share_id)
    )
    for number, point, image in crash_images.to_try(
        crash_images.distinct_images(points), 6
    ):
        cloud, _ = begin(seed=3000 + number, image=image)
        shown = cloud.api.show(share_id)
        offers = cloud.api.get('/share-transfers?all_tenants=1')['transfers']
        if shown['project_id'] == 'another':
            assert (shown['status'], offers) == ('available', []), point
        else:
            assert (shown['status'] == 'awaiting_transfer') == bool(offers), (
                point
            )
            assert cloud.usage('gigabytes', 'another') == (0, 0), point
