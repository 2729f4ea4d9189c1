"""A worker is paused in a call about a replica, until all has changed.

As in `test_late_calls`: another worker takes over and completes the work,
then the user asks for something else, and the paused worker's call reaches
the back end last, unless it is refused.
"""

import pytest

from manila_lite.share.drivers.dummy import driver as dummy
from tests.simulation.late_replicas import on, write
from tests.simulation.pausing import Another, pause_in
from tests.support import sampling
from tests.support.access import ShareRules
from tests.support.replicated import ReplicatedCloud

pytestmark = sampling.combinations('database_url', 'cloud')


@pytest.fixture(params=[True, False], ids=['fencing', 'no_fencing'])
def cloud(request, tmp_path, database_url):
    cloud = ReplicatedCloud(
        tmp_path,
        url=database_url,
        backend_conf=f'dummy_driver_fencing = {request.param}',
    )
    cloud.has_fencing = request.param
    cloud.share_id = cloud.create_share_on('alpha')
    cloud.allow(cloud.share_id)
    cloud.replicate(cloud.share_id, 'beta')
    cloud.update()
    yield cloud
    cloud.db.dispose()


def check_late_call(cloud, method, name):
    """The late call was made; in the end nothing is left of it."""
    cloud.settle()
    assert not cloud.pending_pauses
    refused = [called for called, _ in cloud.driver(name).refused_calls]
    assert (method in refused) == cloud.has_fencing
    for _ in range(2):
        cloud.update()
    cloud.check_invariants()


def snapshots_on_backends(cloud):
    return [
        set(dummy.snapshot_inventory(cloud.folder / 'dummy' / name))
        for name in cloud.backend_names
    ]


# Replicas


def test_a_replica_deleted_meanwhile_is_not_left_behind(cloud):
    replica_id = cloud.request_replica(cloud.share_id, 'gamma')
    pause_in(cloud, 'create_replica', lambda: cloud.ask('delete', replica_id))
    check_late_call(cloud, 'create_replica', 'gamma')
    assert cloud.driver('gamma').inventory() == {}
    assert cloud.driver('gamma').replica_inventory() == {}


def test_a_replica_that_was_given_up_is_made_after_all_or_in_error(cloud):
    replica_id = cloud.request_replica(cloud.share_id, 'gamma')
    pause_in(cloud, 'create_replica')
    check_late_call(cloud, 'create_replica', 'gamma')
    assert cloud.states(cloud.share_id)['gamma'] == (
        ('error', 'error') if cloud.has_fencing else ('available', 'in_sync')
    )
    cloud.ask('delete', replica_id)
    cloud.settle()
    assert cloud.driver('gamma').inventory() == {}


def test_a_replica_created_again_survives_the_deletion_before(cloud):
    pause_in(
        cloud, 'delete_replica', lambda: cloud.request_replica(cloud.share_id, 'beta')
    )
    cloud.ask('delete', on(cloud, 'beta'))
    check_late_call(cloud, 'delete_replica', 'beta')
    assert cloud.states(cloud.share_id)['beta'] == ('available', 'in_sync')


def test_a_replica_that_a_late_deletion_removes_is_in_error(cloud):
    """The back end could not be reached by the worker that took over."""
    beta = on(cloud, 'beta')
    another = Another(cloud)

    def meanwhile():
        cloud.driver('beta').make_unreachable()
        another.take_over()
        cloud.driver('beta').make_reachable()
        assert cloud.replica(beta).status == 'error_deleting'
        cloud.ask('reset_status', beta, 'available')
        cloud.ask('reset_replica_state', beta, 'in_sync')
        another.run()

    cloud.pause_at('before delete_replica', meanwhile)
    cloud.ask('delete', beta)
    cloud.settle()
    assert not cloud.pending_pauses
    cloud.update()
    assert cloud.states(cloud.share_id)['beta'] == ('error', 'error')
    cloud.check_invariants()


@pytest.mark.parametrize('way', ['pass', 'resync'])
def test_an_update_of_a_replica_promoted_meanwhile_changes_nothing(cloud, way):
    pause_in(
        cloud, 'update_replica_state', lambda: cloud.ask('promote', on(cloud, 'beta'))
    )
    if way == 'pass':
        for backend in cloud.share.backends:
            backend.endpoints.replica_updates.request_pass()
    else:
        cloud.ask('resync', on(cloud, 'beta'))
    cloud.settle()
    write(cloud, 'beta', 'written after the promotion')
    cloud.update()
    cloud.check_invariants()
    assert cloud.states(cloud.share_id) == {
        'alpha': ('available', 'in_sync'),
        'beta': ('available', 'active'),
    }
    assert cloud.api.get('/messages')['messages'] == []


# Snapshots


def test_a_snapshot_deleted_meanwhile_is_on_no_replica(cloud):
    answer = cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': cloud.share_id}}, expect=202
    )
    path = f'/snapshots/{answer.json["snapshot"]["id"]}'
    pause_in(
        cloud,
        'create_replicated_snapshot',
        lambda: cloud.api.request('DELETE', path, expect=202),
    )
    check_late_call(cloud, 'create_replicated_snapshot', 'alpha')
    assert snapshots_on_backends(cloud) == [set(), set(), set()]


def test_a_snapshot_taken_meanwhile_survives_the_deletion_before(cloud):
    snapshot_id = cloud.snapshot(cloud.share_id)
    cloud.update()
    body = {'snapshot': {'share_id': cloud.share_id}}
    pause_in(
        cloud,
        'delete_replicated_snapshot',
        lambda: cloud.api.request('POST', '/snapshots', body, expect=202),
    )
    cloud.api.request('DELETE', f'/snapshots/{snapshot_id}', expect=202)
    check_late_call(cloud, 'delete_replicated_snapshot', 'alpha')
    (new,) = cloud.api.get('/snapshots/detail')['snapshots']
    assert new['status'] == 'available'
    assert list(map(len, snapshots_on_backends(cloud))) == [1, 1, 0]


def test_replicas_follow_a_late_revert(cloud):
    """It was given up; what clients wrote since is lost without fencing.

    The back end has a later token from the rules.
    """
    write(cloud, 'alpha', 'in the snapshot')
    snapshot_id = cloud.snapshot(cloud.share_id)
    cloud.update()

    def bring_back():
        cloud.ask('reset_status', on(cloud, 'alpha'), 'available')
        write(cloud, 'alpha', 'written since')
        ShareRules(cloud, cloud.share_id).allow('10.0.0.2')

    pause_in(cloud, 'revert_to_replicated_snapshot', bring_back)
    cloud.api.act(cloud.share_id, 'revert', {'snapshot_id': snapshot_id})
    check_late_call(cloud, 'revert_to_replicated_snapshot', 'alpha')
    content = 'written since' if cloud.has_fencing else 'in the snapshot'
    for name in ('alpha', 'beta'):
        assert cloud.driver(name).read(on(cloud, name)) == content
    assert cloud.states(cloud.share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'in_sync'),
    }
