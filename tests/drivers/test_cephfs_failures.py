"""CephFS while parts of the cluster fail: calls end in time, and go on after."""

import contextlib
import json
import signal
import threading
import time

import pytest

from manila_lite import exception
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.ceph_harness import CephHarness
from tests.drivers.crashes import interrupted_at
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support, sampling, tenant_network
from tests.support.ceph_supervisor import DAEMONS
from tests.support.processes import wait_until

pytestmark = [ceph_support.limited, sampling.suite('failures of a Ceph cluster', 1)]

LIMIT = 4
# A new manager waits up to a minute (session_timeout of the file system) for the
# sessions of one that was killed before the monitors knew of them, and starts.
PATIENT_LIMIT = 150
UNRESPONSIVE = exception.FileServerUnresponsive
BACK_SECONDS = 90
MACHINE, NODE = '198.18.99.1', '198.18.99.2'


@pytest.fixture
def harness(ceph_alone):
    """Provide a back end whose calls may take a few seconds."""
    configuration = Configuration.from_values(
        ceph_alone.options(cephfs_command_timeout=LIMIT)
    )
    return CephHarness('cephfs', lambda: configuration)


@pytest.fixture
def driver(harness):
    driver = harness.start()
    yield driver
    driver.backend.cluster.close()


@pytest.fixture
def share(harness, driver):
    share = harness.share()
    driver.create_share(CTX, share)
    return share


def ends_in_time(call, *args):
    """Call something; return its result, or the error of a silent cluster."""
    began = time.monotonic()
    try:
        return call(*args)
    except UNRESPONSIVE as error:
        return error
    finally:
        # A call of the driver is one to six of the cluster; the first that
        # gets no reply ends it.
        assert time.monotonic() - began < LIMIT + 25


def is_served(call, *args):
    try:
        call(*args)
    except UNRESPONSIVE:
        return False
    return True


FAILURES = [
    (daemon, number)
    for daemon in DAEMONS
    for number in (signal.SIGKILL, signal.SIGSTOP)
]


@pytest.mark.parametrize('daemon, number', FAILURES)
def test_calls_end_in_time_and_succeed_later(
    daemon, number, ceph_alone, harness, driver, share
):
    """The driver repeats nothing: its caller does."""
    new, rule = harness.share(), harness.rule(share, '10.0.0.1')
    ceph_alone.kill(daemon, number)
    created = ends_in_time(driver.create_share, CTX, new)
    ends_in_time(driver.apply_access, CTX, share, [rule], [rule])
    ends_in_time(driver.get_share_stats, True)
    if daemon != 'mon':  # others do without it for a while
        assert isinstance(created, UNRESPONSIVE)
        assert isinstance(ends_in_time(driver.check_health), UNRESPONSIVE)
    ceph_alone.start(daemon)
    wait_until(lambda: is_served(driver.check_health), 'it is back', BACK_SECONDS)
    wait_until(
        lambda: is_served(driver.create_share, CTX, new), 'it is created', BACK_SECONDS
    )
    assert driver.get_share_status(new)['status'] == 'available'
    (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
    assert reply['state'] == 'active'
    found = {one['name'] for one in driver.backend.ask('subvolume ls')}
    assert found == {share.name, new.name}
    harness.clean_up()


@pytest.mark.parametrize('daemon', ['osd', 'mds'])
def test_revert_that_gets_no_answer_ends_in_time_and_is_completed_later(
    daemon, ceph_alone, ceph_root, harness, driver, share
):
    """The daemon is stopped when some of the files are as they were."""
    folder = driver.backend.get_share(share)['path'].lstrip('/')
    write = f'cd {folder}; for i in $(seq 40); do echo {{}} > $i; done; sync -f .'
    show = f'cd {folder}; cat * | sort -u'
    ceph_root.run(write.format('then'))
    snapshot = harness.snapshot(share)
    driver.create_snapshot(CTX, snapshot)
    ceph_root.run(write.format('now'))
    driver.copies.step_seconds = 0

    def act():
        error = ends_in_time(driver.revert_to_snapshot, CTX, snapshot, [], [])
        assert isinstance(error, UNRESPONSIVE)

    assert interrupted_at(
        100,
        act,
        lambda: ceph_alone.kill(daemon, signal.SIGSTOP),
        lambda _, args: args == ('copy',),
    )
    ceph_alone.start(daemon)
    wait_until(lambda: is_served(driver.check_health), 'it is back', BACK_SECONDS)
    assert driver.get_share_status(share)['status'] == 'error'
    # Clients wait for what the process held that was ended, until it is evicted.
    driver.copies.step_seconds = 1
    wait_until(
        lambda: is_served(driver.revert_to_snapshot, CTX, snapshot, [], []),
        'it is reverted',
        BACK_SECONDS,
    )
    assert ceph_root.run(show) == b'then\n'
    assert driver.get_share_status(share)['status'] == 'available'


def test_calls_end_in_time_and_succeed_after_the_network_was_cut(installed_ceph):
    """What is sent is lost, as behind a broken switch: no error says so."""
    with (
        tenant_network.bridge() as bridge,
        tenant_network.client_on(bridge, f'{NODE}/24') as network,
    ):
        tenant_network.add_address(bridge, f'{MACHINE}/24')
        with ceph_support.another_cluster(NODE, network.namespace) as cluster:
            options = cluster.options(cephfs_command_timeout=LIMIT)
            harness = CephHarness('cephfs', lambda: Configuration.from_values(options))
            driver, (share, new) = harness.start(), (harness.share(), harness.share())
            driver.create_share(CTX, share)
            snapshot = harness.snapshot(share)
            driver.create_snapshot(CTX, snapshot)
            with tenant_network.cut(bridge, NODE):
                for call in (
                    (driver.create_share, CTX, new),
                    (driver.revert_to_snapshot, CTX, snapshot, [], []),
                    (driver.check_health,),
                ):
                    assert isinstance(ends_in_time(*call), UNRESPONSIVE)
            wait_until(lambda: is_served(driver.check_health), 'it is back', 60)
            driver.create_share(CTX, new)
            driver.revert_to_snapshot(CTX, snapshot, [], [])
            found = {one['name'] for one in driver.backend.ask('subvolume ls')}
            assert found == {share.name, new.name}
            driver.backend.cluster.close()


def test_call_waits_for_a_manager_that_is_restarted(ceph_alone, harness):
    patient = Configuration.from_values(
        harness.configure()._overrides | {'cephfs_command_timeout': PATIENT_LIMIT}
    )
    driver = CephHarness('cephfs', lambda: patient).start()
    ceph_alone.kill('mgr')
    restart = threading.Timer(3, ceph_alone.start, ['mgr'])
    restart.start()
    share = harness.share()
    driver.create_share(CTX, share)
    restart.join()
    assert driver.get_share_status(share)['status'] == 'available'
    driver.delete_share(CTX, share)
    driver.backend.cluster.close()


def test_full_cluster_refuses_shares_and_lets_them_be_deleted(
    ceph_alone, harness, driver, share
):
    def set_ratios(*ratios):
        kinds = ('nearfull', 'backfillfull', 'full')
        for kind, ratio in zip(kinds, ratios, strict=True):
            with contextlib.suppress(json.JSONDecodeError):  # it says nothing
                ceph_alone.admin.mon(f'osd set-{kind}-ratio', ratio=ratio)

    def is_full():
        details = ceph_alone.admin.mon('health')['checks']
        return 'OSD_FULL' in details or 'POOL_FULL' in details

    new = harness.share()
    set_ratios(0.001, 0.001, 0.001)
    try:
        wait_until(is_full, 'the cluster is full')
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['free_capacity_gb'] == 0
        with pytest.raises(exception.StorageUnavailable, match='full'):
            driver.create_share(CTX, new)
        driver.delete_share(CTX, share)
        driver.delete_share(CTX, new)
    finally:
        set_ratios(0.85, 0.9, 0.95)
        wait_until(lambda: not is_full(), 'there is space again')
    driver.create_share(CTX, new)
    driver.delete_share(CTX, new)


def test_clone_that_fails_is_an_error_and_another_succeeds(
    ceph_alone, ceph_root, harness, driver, share
):
    """Its snapshot is removed behind the back of Ceph's manager."""

    def delay_clones(seconds):
        with contextlib.suppress(json.JSONDecodeError):  # it says nothing
            ceph_alone.admin.mon(
                'config set',
                who='mgr',
                name='mgr/volumes/snapshot_clone_delay',
                value=str(seconds),
            )

    def status(item):
        return driver.get_share_status(item)['status']

    snapshot, clone = harness.snapshot(share), harness.share()
    driver.create_snapshot(CTX, snapshot)
    delay_clones(3)
    try:
        driver.create_share_from_snapshot(CTX, clone, snapshot)
        name = f'{driver.backend.group}/{share.name}/.snap/{snapshot["name"]}'
        ceph_root.run(f'rmdir volumes/{name}')
        wait_until(
            lambda: status(clone) != 'creating_from_snapshot', 'the clone has ended', 60
        )
    finally:
        delay_clones(0)
    assert status(clone) == 'error'
    driver.delete_share(CTX, clone)
    snapshot, again = harness.snapshot(share), harness.share()
    driver.create_snapshot(CTX, snapshot)
    driver.create_share_from_snapshot(CTX, again, snapshot)
    wait_until(lambda: status(again) == 'available', 'the clone is complete', 60)
    assert {one['name'] for one in driver.backend.ask('subvolume ls')} == {
        share.name,
        again.name,
    }
