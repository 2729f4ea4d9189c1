"""What is left after certain crashes, beyond what `test_crashes` checks."""

import pytest

from manila_lite.messages import Action
from tests.simulation import crash_images, crashing
from tests.simulation.scenes import replicas, snapshots, transfers
from tests.support import cloud_snapshots, sampling
from tests.support.cloud import Crash

REVERT = Action.REVERT_TO_SNAPSHOT


def on(scene):
    """Run the test on the stage of a scene."""
    return pytest.mark.parametrize('stage', [scene], ids=[scene.name], indirect=True)


@on(snapshots.SCENES[0])
def test_lost_revert_notifies_of_share_and_snapshot(stage):
    """One user message about the share, one about the snapshot."""
    cloud, found = stage.begin()
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


@sampling.enumeration
@on(transfers.SCENE)
@pytest.mark.parametrize('name', ['accept', 'accept_without_rules'])
def test_a_crash_leaves_a_share_with_one_of_the_projects(stage, name):
    """Whatever was lost, it is available there or can still be accepted."""
    cloud, share_id = stage.begin()
    points = crash_images.images_at_crash_points(
        cloud, lambda: transfers.VERBS[name](cloud, share_id)
    )
    for number, point, image in crash_images.to_try(
        crash_images.distinct_images(points), 3
    ):
        cloud, _ = stage.begin(seed=3000 + number, image=image)
        shown = cloud.api.show(share_id)
        offers = cloud.api.get('/share-transfers?all_tenants=1')['transfers']
        if shown['project_id'] == 'another':
            assert (shown['status'], offers) == ('available', []), point
        else:
            assert (shown['status'] == 'awaiting_transfer') == bool(offers), point
            assert cloud.usage('gigabytes', 'another') == (0, 0), point


@sampling.enumeration
@on(replicas.READABLE)
@pytest.mark.parametrize('name', ['promote', 'fail_to_promote'])
def test_two_crashes_of_a_promotion_break_no_invariant(stage, name):
    cloud, found = stage.begin(seed=2)
    points = crash_images.images_at_crash_points(
        cloud, lambda: stage.scene.verbs[name](cloud, found)
    )

    def crash_again(number, image):
        crash_images.restart_on(image, cloud, 1000 + number)
        second = crash_images.images_at_crash_points(cloud, cloud.settle)
        if second:
            *_, image = cloud.rng.choice(crash_images.distinct_images(second))
            crash_images.restart_on(image, cloud, 2000 + number)
            stage.scene.check(cloud)

    crashing.recover_from_each(points, crash_again, name)
