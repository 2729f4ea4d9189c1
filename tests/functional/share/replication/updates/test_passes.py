"""Passes over replicas: the timer, and slow drivers."""

import threading

import pytest

from manila_lite.coordination import Coordinator
from manila_lite.db.queries.replicas import replicas
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.replication import roles
from manila_lite.share.manager.replication.probe import ReplicaProbe

# The timer


def test_pass_polls_each_replica_once(cloud):
    wanted = {cloud.replica_id}
    for _ in range(4):
        wanted.add(cloud.replicate(cloud.create_share_on('alpha'), 'beta'))
    # Groups and pages of one, as with a slow driver.
    cloud.endpoint().yield_after = cloud.endpoint().lock_seconds = 0.0
    for page in (1, 2, 5, 1000):
        cloud.endpoint().page = page
        driver = cloud.stub_driver(update_replica_state='in_sync')
        cloud.update()
        asked = [args[2]['id'] for _, args in driver.asked]
        assert asked == sorted(wanted)


def test_pass_under_way_is_not_restarted(cloud):
    driver = cloud.stub_driver(update_replica_state=None)
    assert cloud.endpoint().request_pass()
    assert not cloud.endpoint().request_pass()
    cloud.settle()
    assert len(driver.asked) == 1
    assert cloud.endpoint().request_pass()


def test_no_pass_without_shares_of_several_replicas(cloud):
    assert cloud.endpoint('alpha').request_pass()
    cloud.settle()
    cloud.ask('delete', cloud.replica_id)
    cloud.settle()
    for name in ('alpha', 'beta'):
        assert not cloud.endpoint(name).request_pass()


def test_no_pass_if_the_driver_does_not_support_replication(cloud):
    cloud.stub_driver(get_share_stats={'pools': [{'pool_name': 'pool'}]})
    assert not cloud.endpoint().request_pass()
    cloud.stub_driver(
        get_share_stats={'pools': [{'pool_name': 'pool', 'replication_type': 'dr'}]}
    )
    assert cloud.endpoint().request_pass()


def test_timer_uses_the_configured_interval(cloud):
    cloud.configure(extra_conf='replica_state_update_interval = 17')
    cloud.restart()
    tasks = cloud.share.periodic._threads
    assert [task._args[0].interval for task in tasks if task.name == 'replicas'] == [
        17,
        17,
    ]


# Drivers that do not reply


@pytest.fixture
def hanging(cloud):
    """Three more replicas, and a driver that hangs on the first of all."""
    ids = sorted(
        [
            cloud.replica_id,
            *(
                cloud.replicate(cloud.create_share_on('alpha'), 'beta')
                for _ in range(3)
            ),
        ]
    )
    cloud.release, cloud.hangs = threading.Event(), threading.Event()
    cloud.hangs_on = ids[0]

    def update_replica_state(context, replica_list, replica, *args):
        if replica['id'] == cloud.hangs_on:
            cloud.hangs.set()
            cloud.release.wait()
            return 'in_sync'
        return 'out_of_sync'

    cloud.asked = cloud.stub_driver(update_replica_state=update_replica_state)
    limit(cloud, 1.0, 8)
    yield ids
    cloud.release.set()


def limit(cloud, timeout, most):
    cloud.endpoint().probe = ReplicaProbe(DriverProbe(timeout, most))


def is_answered(cloud, replica_id):
    call = cloud.endpoint().probe._calls[replica_id]
    while call.reply is None:
        threading.Event().wait(0.001)


def test_hanging_driver_call_delays_no_other_replica(cloud, hanging):
    first, *others = hanging
    cloud.update()
    assert {cloud.show(id) for id in others} == {('available', 'out_of_sync')}
    assert cloud.show(first) == ('available', 'in_sync')
    assert len(cloud.asked.asked) == 4


def test_replica_on_which_the_driver_hangs_becomes_out_of_sync(cloud, hanging):
    first = hanging[0]
    for _ in range(3):
        cloud.update()
    assert cloud.show(first) == ('available', 'out_of_sync')
    # It was polled once, and costs one thread.
    assert [args[2]['id'] for _, args in cloud.asked.asked].count(first) == 1
    cloud.release.set()
    is_answered(cloud, first)
    cloud.update()  # collects the late reply
    assert cloud.show(first) == ('available', 'in_sync')


def test_late_reply_of_an_earlier_generation_is_dropped(cloud, hanging):
    first = hanging[0]
    cloud.force_status('available', 'out_of_sync', first)
    cloud.update()
    cloud.db.write(replicas.advance_generation, cloud.replica(first).share_id)
    cloud.release.set()
    is_answered(cloud, first)
    cloud.hangs_on = None
    cloud.update()
    assert cloud.show(first) == ('available', 'out_of_sync')


def test_unresponsive_back_end_is_left_alone(cloud, hanging):
    first, second, *others = hanging
    limit(cloud, 1.0, 1)
    cloud.update()
    assert cloud.show(second) == ('available', 'in_sync')
    cloud.ask('resync', second)
    while cloud.step():
        pass
    cloud.release.set()
    is_answered(cloud, first)
    cloud.settle()
    cloud.update()
    assert {cloud.show(id) for id in (second, *others)} == {
        ('available', 'out_of_sync')
    }


def test_hanging_driver_call_keeps_the_lock_of_one_share(cloud, hanging):
    first = hanging[0]
    locks, elsewhere = (Coordinator(cloud.conf, name) for name in ('here', 'there'))
    cloud.endpoint().locks = locks
    limit(cloud, 30.0, 8)
    names = {id: roles.replica_lock_name(cloud.replica(id).share_id) for id in hanging}
    cloud.endpoint().request_pass()
    thread = threading.Thread(target=cloud.settle, daemon=True)
    thread.start()
    assert cloud.hangs.wait(20)
    for id in hanging[1:]:  # held until the driver is known to be slow
        with elsewhere.lock(names[id]):
            assert thread.is_alive()
    with elsewhere.try_lock(names[first]) as free:
        assert not free
    cloud.release.set()
    thread.join(20)
    assert {cloud.show(id) for id in hanging[1:]} == {('available', 'out_of_sync')}
    for one in (locks, elsewhere):
        one.stop()


def test_hanging_snapshot_poll_is_given_up_too(cloud):
    cloud.create_pending_snapshot()
    limit(cloud, 1.0, 8)
    release = threading.Event()
    cloud.stub_driver(
        update_replicated_snapshot=lambda *args: release.wait(),
        update_replica_state='in_sync',
    )
    cloud.update()
    assert cloud.show() == ('available', 'in_sync')
    cloud.update()
    assert cloud.show() == ('available', 'out_of_sync')
    release.set()
