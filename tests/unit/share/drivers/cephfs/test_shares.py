"""Subvolumes and clones, and what others do to them."""

import contextlib
import errno
import json
import types
import uuid

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken, fenced
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.cephfs import shares as cephfs_shares
from manila_lite.share.drivers.cephfs.cluster import ignoring
from manila_lite.share.drivers.cephfs.snapshots import list_snapshots
from manila_lite.share.drivers.cephfs.users import list_users
from manila_lite.share.manager.disks import DatabaseDisks
from tests.drivers.crashes import interrupted_at
from tests.drivers.driver_harness import CTX, GIB, private_storage
from tests.support import ceph as ceph_support
from tests.support.processes import wait_until

pytestmark = [ceph_support.limited, ceph_support.on_cluster]


def test_share_of_another_protocol_is_refused_and_leaves_nothing(harness, driver):
    share = harness.share(share_proto='NFS')
    with pytest.raises(exception.ShareRefused, match='CEPHFS, not of NFS'):
        driver.create_share(CTX, share)
    assert driver.backend.ask('subvolume ls') == []
    assert driver.backend.records.get_all('share:') == {}


def test_subvolume_has_size_mode_and_a_namespace(driver, share):
    info = driver.backend.get_info(share.id, share.name)
    assert info['bytes_quota'] == GIB
    assert info['mode'] & 0o7777 == 0o777
    assert info['pool_namespace'] == f'fsvolumens_{share.name}'


def test_subvolume_that_was_removed_is_noticed(harness, driver, share):
    driver.backend.run('subvolume rm', sub_name=share.name)
    with pytest.raises(exception.ShareResourceNotFound):
        driver.get_share_status(share)
    assert driver.ensure_shares(CTX, [share]) == {share.id: {'status': 'error'}}
    for size in (2, 1):
        with pytest.raises(exception.ShareResourceNotFound):
            driver.extend_share(share, size)
    driver.delete_share(CTX, share)
    assert driver.backend.records.get_all('share:') == {}


@pytest.mark.parametrize('found', [None, str(uuid.uuid4())], ids=['new', 'other'])
def test_nothing_is_done_on_another_cluster(harness, driver, share, found):
    """Its records lack the shares, which would pass for deleted."""
    backend = driver.backend
    name = f'{backend.filesystem}.{backend.group}'
    own = backend.cluster.read(name, ['identity'])
    if found is None:
        backend.cluster.write(name, own, {}, ['identity'])
    else:
        backend.cluster.write(name, own, {'identity': json.dumps(found)})
    for call in (
        lambda: driver.delete_share(CTX, share),
        lambda: driver.create_share(CTX, harness.share()),
        lambda: driver.update_access(CTX, share, [], [], [], []),
        lambda: driver.ensure_shares(CTX, [share]),
        lambda: driver.get_share_status(share),
        lambda: driver.extend_share(share, 2),
    ):
        with pytest.raises(exception.StorageUnavailable):
            call()
    assert [one['name'] for one in backend.ask('subvolume ls')] == [share.name]
    backend.cluster.write(name, {}, own)
    assert driver.get_share_status(share)['status'] == 'available'


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_cluster_of_a_back_end_is_recorded(harness, db):
    def start(host):
        driver = registry.load('cephfs')(
            configuration=harness.configure(), private_storage=private_storage()
        )
        driver.disks = DatabaseDisks(db, host, 'process', 60.0, 'share-%s')
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    driver = start('host@one')
    driver.check_health()
    start('host@one')
    with pytest.raises(exception.StorageUnavailable, match='belongs to host@one'):
        start('host@two')


def test_snapshot_that_is_not_ours_outlives_the_share(harness, driver, share):
    driver.backend.run(
        'subvolume snapshot create', sub_name=share.name, snap_name='precious'
    )
    driver.delete_share(CTX, share)
    with pytest.raises(exception.ShareResourceNotFound):
        driver.get_share_status(share)
    found = driver.backend.ask('subvolume snapshot ls', sub_name=share.name)
    assert [one['name'] for one in found] == ['precious']


def test_subvolume_of_another_is_not_used_for_a_new_share(harness, driver, share):
    """It was unmanaged, and is managed by another name."""
    path = driver.backend.get_share(share)['path']
    driver.unmanage(share)
    with pytest.raises(exception.ShareBackendException):
        driver.create_share(CTX, share)
    driver.manage_existing(harness.at(path), {})
    with pytest.raises(exception.ShareBackendException):
        driver.create_share(CTX, share)


@pytest.fixture
def slow_clones(monkeypatch):
    """Reply before the clone is complete."""
    monkeypatch.setattr(cephfs_shares, 'CLONE_SECONDS', 0)
    monkeypatch.setattr(cephfs_shares, '_CLONE_INTERVAL', 0)


def test_clone_is_polled_until_it_is_complete(harness, driver, share, slow_clones):
    snapshot, clone = harness.snapshot(share), harness.share(size=2)
    driver.create_snapshot(CTX, snapshot)
    reply = driver.create_share_from_snapshot(CTX, clone, snapshot)
    assert reply == {'status': 'creating_from_snapshot'}

    def status():
        return harness.start().get_share_status(clone)

    wait_until(lambda: status()['status'] == 'available', 'the clone is complete')
    assert status()['size'] == 2
    assert driver.create_share(CTX, clone) == status()['export_locations']


def test_clone_that_is_deleted_is_cancelled(harness, driver, share, slow_clones):
    snapshot, clone = harness.snapshot(share), harness.share()
    driver.create_snapshot(CTX, snapshot)
    driver.create_share_from_snapshot(CTX, clone, snapshot)
    driver.delete_share(CTX, clone)
    found = driver.backend.ask('subvolume ls')
    assert [one['name'] for one in found] == [share.name]
    driver.delete_snapshot(CTX, snapshot)


def test_cancelled_clone_is_an_error_and_can_be_deleted(
    harness, driver, share, slow_clones
):
    snapshot = harness.snapshot(share)
    driver.create_snapshot(CTX, snapshot)
    for _ in range(20):  # Ceph may complete one before it is cancelled
        clone = harness.share()
        driver.create_share_from_snapshot(CTX, clone, snapshot)
        with ignoring(errno.EINVAL):
            driver.backend.run('clone cancel', clone_name=clone.name)
        status = driver.get_share_status(clone)
        driver.delete_share(CTX, clone)
        if status['status'] == 'error':
            break
    assert status == {'status': 'error'}
    found = driver.backend.ask('subvolume ls')
    assert [one['name'] for one in found] == [share.name]


def test_space_is_that_of_the_pool_and_sizes_that_of_the_records(
    harness, driver, share, ceph
):
    (pool,) = driver.get_share_stats(refresh=True)['pools']
    stats = next(
        one['stats'] for one in ceph.admin.mon('df')['pools'] if one['name'] == 'data'
    )
    assert pool['free_capacity_gb'] == pytest.approx(stats['max_avail'] / GIB, abs=0.1)
    assert pool['free_capacity_gb'] <= pool['total_capacity_gb'] < 8
    other = harness.share(size=3)
    driver.create_share(CTX, other)
    driver.extend_share(other, 5)
    (pool,) = driver.get_share_stats(refresh=True)['pools']
    assert pool['provisioned_capacity_gb'] == 1 + 5
    driver.unmanage(other)
    (pool,) = driver.get_share_stats(refresh=True)['pools']
    assert pool['provisioned_capacity_gb'] == 1


@contextlib.contextmanager
def calls_of(driver):
    """Provide a list of the calls of the cluster that are made in the block."""
    calls, call = [], driver.backend.cluster._call
    driver.backend.cluster._call = lambda *args: calls.append(args[0]) or call(*args)
    try:
        yield calls
    finally:
        driver.backend.cluster._call = call


def test_statistics_need_no_call_for_each_share(harness, driver, share):
    with calls_of(driver) as calls:
        driver.get_share_stats(refresh=True)
        driver.ensure_shares(CTX, [harness.share() for _ in range(50)] + [share])
    assert len(calls) <= 7


def test_token_is_recorded_with_what_is_read_first(harness, driver, share):
    """Each call of the cluster takes longer than all the rest."""
    rule = harness.rule(share, '10.0.0.1')
    with fenced(FencingToken('share:new', 1)):
        with calls_of(driver) as of_create:
            driver.create_share(CTX, harness.share())
        with calls_of(driver) as of_rule:
            driver.apply_access(CTX, share, [rule], [rule])
    assert sum('subvolume' in call for call in of_create) == 2
    assert len(of_create) <= 4, of_create
    assert sum('subvolume' in call for call in of_rule) == 1
    assert len(of_rule) <= 3, of_rule


def test_late_call_does_nothing_whatever_it_is(harness, driver, share):
    snapshot, new = harness.snapshot(share), harness.share()
    rule = harness.rule(share, '10.0.0.1')
    driver.create_snapshot(CTX, snapshot)
    with fenced(FencingToken('share:busy', 2)):
        driver.extend_share(share, 2)
    before = driver.backend.records.get_all('')
    with fenced(FencingToken('share:busy', 1)):
        for late in (
            lambda: driver.create_share(CTX, new),
            lambda: driver.create_share_from_snapshot(CTX, new, snapshot),
            lambda: driver.delete_share(CTX, share),
            lambda: driver.extend_share(share, 3),
            lambda: driver.shrink_share(share, 1),
            lambda: driver.apply_access(CTX, share, [rule], [rule]),
            lambda: driver.create_snapshot(CTX, harness.snapshot(share)),
            lambda: driver.delete_snapshot(CTX, snapshot),
            lambda: driver.revert_to_snapshot(CTX, snapshot, [], []),
            lambda: driver.unmanage(share),
            lambda: driver.unmanage_snapshot(snapshot),
            lambda: driver.connection_get_info(CTX, share),
        ):
            with calls_of(driver) as calls, pytest.raises(exception.StaleFencingToken):
                late()
            assert not [call for call in calls if call.startswith('fs ')]
            assert len(calls) <= 2, calls
    assert driver.backend.records.get_all('') == before


COMMANDS = {
    'fs subvolume create': lambda s: s.driver.create_share(CTX, s.new),
    'fs subvolume rm': lambda s: s.driver.delete_share(CTX, s.share),
    'fs subvolume resize': lambda s: s.driver.extend_share(s.share, 2),
    'fs subvolume authorize': lambda s: s.driver.apply_access(
        CTX, s.share, [s.rule], [s.rule]
    ),
    'fs subvolume snapshot create': lambda s: s.driver.create_snapshot(
        CTX, s.new_snapshot
    ),
    'fs subvolume snapshot rm': lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
    'fs subvolume snapshot clone': lambda s: s.driver.create_share_from_snapshot(
        CTX, s.new, s.snapshot
    ),
}


@pytest.mark.parametrize('command', COMMANDS)
def test_command_is_not_sent_by_a_call_that_was_paused_just_before(
    harness, driver, share, command
):
    scene = types.SimpleNamespace(
        driver=driver,
        share=share,
        new=harness.share(),
        rule=harness.rule(share, '10.0.0.1'),
        new_snapshot=harness.snapshot(share),
        snapshot=harness.snapshot(share),
    )
    if command != 'fs subvolume rm':
        driver.create_snapshot(CTX, scene.snapshot)

    def state():
        backend = driver.backend
        return (
            backend.ask('subvolume ls'),
            backend.get_info(share.id, share.name)['bytes_quota'],
            list_users(backend, share.name),
            list_snapshots(backend, share.name),
        )

    def act():
        with (
            fenced(FencingToken('share:paused', 1)),
            pytest.raises(exception.StaleFencingToken),
        ):
            COMMANDS[command](scene)

    def succeed():
        with fenced(FencingToken('share:paused', 2)):
            driver.backend.records.admit_call()

    before = state()
    assert interrupted_at(1, act, succeed, lambda event, args: args[:1] == (command,))
    assert state() == before


def test_usage_is_what_clients_have_written(harness, driver, share, ceph_root):
    harness.client = ceph_root
    harness.users_of(driver, share).fill(0.5)
    found = driver.update_share_usage_size(CTX, [harness.share(), share])
    assert [(one['id'], one['used_size']) for one in found] == [(share.id, 0.5)]


def test_share_with_rules_is_not_transferred(harness, driver, share):
    rule = harness.rule(share, '10.0.0.1')
    with pytest.raises(exception.DriverCannotTransferShareWithRules):
        driver.transfer_accept(CTX, share, 'user', 'other', access_rules=[rule])
    driver.transfer_accept(CTX, share, 'user', 'other', access_rules=[])
