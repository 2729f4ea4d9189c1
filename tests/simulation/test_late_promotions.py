"""A worker is paused in a promotion, until another replica is active.

Another worker takes over and completes the promotion; an administrator
promotes a third replica, and clients write to it. The paused worker then
calls the driver, unless the back end refuses it. In the end exactly the
replica that is active in the database is active on the back ends.
"""

import pytest

from manila_lite.db.queries.recovery import recovery
from tests.simulation.late_replicas import on, write
from tests.simulation.pausing import Another
from tests.support import sampling
from tests.support.cloud import Crash
from tests.support.replicated import ReplicatedCloud

CALLS = ('promote_replica', 'apply_access')
POINTS = [
    'committed',  # when it has claimed the work
    *(f'{when} {call}' for call in CALLS for when in ('before', 'after')),
]

pytestmark = sampling.combinations('database_url', 'style', 'cloud')


@pytest.fixture(params=['readable', 'dr'])
def style(request):
    return request.param


@pytest.fixture(params=[True, False], ids=['fencing', 'no_fencing'])
def cloud(request, style, tmp_path, database_url):
    cloud = ReplicatedCloud(
        tmp_path,
        url=database_url,
        style=style,
        backend_conf=f'dummy_driver_fencing = {request.param}',
    )
    cloud.has_fencing = request.param
    cloud.share_id = cloud.create_share_on('alpha')
    cloud.allow(cloud.share_id)
    for name in ('beta', 'gamma'):
        cloud.replicate(cloud.share_id, name)
    cloud.update()
    yield cloud
    cloud.db.dispose()


def pause_at(cloud, point, to):
    """Pause the next worker there until `to` is active and written to."""
    another = Another(cloud)

    def meanwhile():
        another.take_over()
        cloud.ask('promote', on(cloud, to))
        another.run()
        write(cloud, to, 'written after the promotion')

    cloud.pause_at(point, meanwhile)


def corrections(cloud):
    return [
        (one.resource_id, one.action)
        for one in cloud.db.read(recovery.list_log, limit=99)
        if one.resource == 'share_replica'
    ]


def check_active(cloud, name):
    """Only this one is active; the others follow it, once they can."""
    assert cloud.active(cloud.share_id).id == on(cloud, name)
    cloud.check_invariants()
    write(cloud, name, 'written in the end')
    cloud.update()
    cloud.check_invariants()
    assert cloud.states(cloud.share_id) == {
        each: ('available', 'active' if each == name else 'in_sync')
        for each in ('alpha', 'beta', 'gamma')
    }
    for each in ('alpha', 'beta', 'gamma'):
        found = cloud.driver(each).read(on(cloud, each))
        assert found == 'written in the end'


@sampling.enumeration
@pytest.mark.parametrize('point', sampling.sample(POINTS, 1))
def test_the_last_promotion_holds_whenever_a_worker_resumes(cloud, point):
    cloud.ask('promote', on(cloud, 'beta'))
    pause_at(cloud, point, to='gamma')
    cloud.settle()
    check_active(cloud, 'gamma')


@pytest.mark.parametrize('cloud', [True], ids=['fencing'], indirect=True)
def test_these_are_all_driver_calls_of_a_promotion(cloud):
    cloud.crash_at(None)
    cloud.ask('promote', on(cloud, 'beta'))
    cloud.settle()
    made = {name for name in cloud.crash_points if name.startswith('before ')}
    assert made == {f'before {call}' for call in CALLS}


def test_a_late_promotion_is_refused_or_corrected(cloud):
    cloud.ask('promote', on(cloud, 'beta'))
    pause_at(cloud, 'before promote_replica', to='gamma')
    cloud.settle()
    gamma = on(cloud, 'gamma')
    refused = [name for name, _ in cloud.driver('beta').refused_calls]
    if cloud.has_fencing:
        assert 'promote_replica' in refused
        assert corrections(cloud) == []
    else:
        assert corrections(cloud) == [(gamma, 'corrected')]
        assert (cloud.share_id, '004') in [
            (message['resource_id'], message['action_id'])
            for message in cloud.api.get('/messages')['messages']
        ]


@pytest.mark.parametrize('cloud', [False], ids=['no_fencing'], indirect=True)
def test_a_late_promotion_is_found_by_the_timer(cloud):
    """The worker died after its call, so it submits no recheck."""
    cloud.ask('promote', on(cloud, 'beta'))
    pause_at(cloud, 'before promote_replica', to='gamma')
    cloud.pause_at('after promote_replica', lambda: cloud.crash_at(0))
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.settle()
    cloud.update()
    check_active(cloud, 'gamma')


@pytest.mark.parametrize('when', ['before', 'after'])
def test_a_late_correction_undoes_no_promotion(cloud, when):
    """A worker is paused while it makes the back end follow the rows."""
    cloud.promote_on_backend(on(cloud, 'beta'))
    pause_at(cloud, f'{when} promote_replica', to='gamma')
    cloud.update()
    check_active(cloud, 'gamma')
