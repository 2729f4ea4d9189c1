"""Replication with btrfs beyond the contract that all drivers have."""

import contextlib
import os
import shutil
import subprocess

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken, fenced
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves import copies
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from tests.drivers import content
from tests.drivers.cifs_replication_sites import CifsSites
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_backends import (
    BACKEND_OPTIONS,
    COMMON_OPTIONS,
    NAMES,
    new_ports,
)
from tests.drivers.replication_sites import CLIENT, PASSIVE_LEVELS, Sites, btrfs_sites
from tests.support import sampling, storage
from tests.support.failing_disk import FailingDisk
from tests.support.nfs_client import NfsClient
from tests.support.processes import wait_until
from tests.support.record_writer import Writer
from tests.unit.share.drivers.btrfs.driver_site import fill
from tests.unit.share.drivers.btrfs.nfs_site import eventually

pytestmark = storage.beside_daemons

MIB = 1 << 20
WRITER = '127.0.0.2'
_SAMPLED = sampling.suite('details of replicated CIFS shares', 2)


def _name_of(values):
    style, with_servers, *kind = values
    words = [style, *['servers'] * with_servers, *['CIFS'] * len(kind)]
    return '-'.join(words)


@pytest.fixture(
    params=[
        ('readable', False),
        ('dr', False),
        ('dr', True),
        pytest.param(('readable', False, CifsSites), marks=_SAMPLED),
        pytest.param(('dr', True, CifsSites), marks=_SAMPLED),
    ],
    ids=_name_of,
)
def sites(request):
    with btrfs_sites(*request.param) as sites:
        yield sites


def volume(site, share):
    pool, record = site.driver.backend.get_share(share.name)
    return pool.path(Kind.SHARE, record['volume'])


def folder_of(sites, site):
    return volume(site, sites.share_for(site))


def test_all_kinds_of_files_are_replicated_and_their_changes(sites, tmp_path):
    content.populate(folder_of(sites, sites.here))
    content.set_traps(folder_of(sites, sites.here), tmp_path)
    sites.create_in_sync()
    for change in (content.damage, lambda top: None):
        source = folder_of(sites, sites.here)
        replica = content.describe(folder_of(sites, sites.there))
        assert replica == content.describe(source)
        change(source)
        assert sites.update() == 'in_sync'
    assert list(tmp_path.iterdir()) == []


def test_passive_replica_is_read_only(sites):
    sites.create_in_sync()
    with pytest.raises(OSError, match='Read-only'):
        (folder_of(sites, sites.there) / 'file').write_text('no')


def test_each_side_keeps_one_copy_and_only_changes_are_sent(sites):
    sites.create_in_sync()
    large = folder_of(sites, sites.here) / 'large'
    large.write_bytes(os.urandom(20 * MIB))
    sites.update()
    inode = folder_of(sites, sites.there).stat().st_dev
    assert sites.update() == 'in_sync'
    # Readers keep what they have mounted if there is nothing new.
    assert folder_of(sites, sites.there).stat().st_dev == inode
    for site in (sites.there, sites.here) * 2:
        sites.promote(site)
        sites.write(f'from {site.name}')
        other = sites.here if site is sites.there else sites.there
        assert sites.update(other) == 'in_sync'
        for each in sites.sites:
            top = each.driver.backend.pools['pool'].top
            assert len(copies.Copies(top, f'share-{each.id}').whole()) == 1
        # What was sent once is still shared with the copies.
        assert _exclusive(folder_of(sites, other)) < MIB


def _exclusive(path):
    text = subprocess.run(
        ['btrfs', 'filesystem', 'du', '-s', '--raw', str(path)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return int(text.splitlines()[1].split()[1])


def test_full_pool_is_an_error_until_there_is_space(sites):
    sites.write('one')
    sites.create_in_sync()
    with too_much_is_written(sites):
        sites.write('two')
        assert sites.update() == 'error'
        assert sites.read() == 'one'
        assert sites.read(sites.here) == 'two'
    assert sites.update() == 'in_sync'
    assert sites.read() == 'two'


@contextlib.contextmanager
def too_much_is_written(sites):
    """Write what the pool of the replica has no space for in the block."""
    pool = sites.there.driver.backend.pools['pool']
    filling = pool.top / 'filling'
    with filling.open('wb') as file:
        _, free = pool.capacity_bytes()
        os.posix_fallocate(file.fileno(), 0, free - 40 * MIB)
    large = folder_of(sites, sites.here) / 'large'
    large.write_bytes(os.urandom(200 * MIB))
    yield
    filling.unlink()
    kernel.flush(pool.top)


def test_clients_are_back_when_a_promotion_fails(sites):
    sites.write('one')
    sites.create_in_sync()
    with too_much_is_written(sites):
        with pytest.raises(exception.ShareBackendException):
            sites.promote()
        assert sites.levels(sites.here) == {'rw'}
        assert 'rw' not in sites.levels()
    sites.promote()
    assert sites.levels() == {'rw'}
    assert sites.read() == 'one'


def test_every_acknowledged_record_of_a_writer_is_promoted():
    with btrfs_sites('readable') as sites:
        sites.rules.append(sites.rule(WRITER))
        sites.apply_rules(sites.here)
        sites.create_in_sync()
        writer = Writer(client(sites.here), f'/shares/share-{sites.here.id}')
        wait_until(lambda: writer.acknowledged > 200, 'it has written')
        sites.promote()
        writer.join()
        there = f'/shares/share-{sites.there.id}'
        data = client(sites.there).read(there, 'records')
        assert writer.read_back(data) == list(range(writer.acknowledged))


def client(site):
    port = site.driver.configuration.btrfs_nfs_port
    return NfsClient('127.0.0.1', port, WRITER)


def test_replica_cannot_be_in_the_pool_of_the_active_one(sites):
    sites.there.driver = sites.here.driver
    sites.there.host = sites.here.host
    with pytest.raises(exception.ShareBackendException, match='has a replica'):
        sites.create()
    sites.there.state = None


def test_refused_replica_leaves_nothing_behind():
    with btrfs_sites('readable') as sites:
        sites.share_proto = 'CIFS'
        with pytest.raises(exception.ShareRefused, match='no CIFS shares'):
            sites.create()
        sites.there.state, sites.share_proto = None, 'NFS'
        name = f'share-{sites.there.id}'
        assert not [
            path
            for path in sites.there.driver.backend.root.rglob(f'*{name}*')
            if 'locks' not in path.parts
        ]


def test_pool_that_has_become_read_only_is_replaced(sites):
    sites.write('one')
    sites.create_in_sync()
    top = sites.here.driver.backend.pools['pool'].top
    subprocess.run(['mount', '-o', 'remount,ro', str(top)], check=True)
    sites.promote()
    assert sites.read() == 'one'
    assert sites.levels() == {'rw'}
    assert 'rw' not in sites.levels(sites.here)
    subprocess.run(['mount', '-o', 'remount,rw', str(top)], check=True)
    sites.here.restart()
    assert sites.update(sites.here) == 'in_sync'


def test_deleted_replica_leaves_no_copies(sites):
    sites.create_in_sync()
    sites.update()
    sites.delete()
    sites.there.state = None
    for site in sites.sites:
        assert not copies.owners(site.driver.backend.pools['pool'].top)


@pytest.mark.parametrize('sites', [('dr', False)], indirect=True)
def test_late_update_removes_no_copies_that_others_need(sites):
    """Its list of replicas is that of before."""
    sites.create_in_sync()
    backend = sites.here.driver.backend
    peers = BtrfsPeers(backend)
    active = peers.own_replica(sites.share_for(sites.here))
    sent = active.copies.whole()
    assert sent
    resource = f'share_instance:{sites.here.id}'
    with fenced(FencingToken(resource, 2)):
        sites.apply_rules(sites.here)
    with fenced(FencingToken(resource, 1)), pytest.raises(exception.StaleFencingToken):
        BtrfsSyncing(backend, peers).forget_others(active, active, [])
    assert active.copies.whole() == sent


def test_replication_needs_a_domain(sites):
    configuration = sites.here.driver.configuration
    configuration.override({'replication_domain': None})
    driver = type(sites.here.driver)(configuration=configuration)
    with pytest.raises(exception.BadConfiguration, match='needs a repl'):
        driver.check_for_setup_error()


def test_export_of_a_lost_pool_ends_with_the_promotion(sites):
    sites.write('one')
    sites.create_in_sync()
    assert sites.levels(sites.here) == {'rw'}
    top = sites.here.driver.backend.pools['pool'].top
    kernel.unmount(top)
    sites.promote()
    assert sites.read() == 'one'
    assert sites.levels() == {'rw'}
    root = sites.here.driver.backend.root
    assert not list(root.rglob(f'shares.share-{sites.here.id}.conf'))
    sites.here.restart()
    assert 'rw' not in sites.levels(sites.here)
    assert sites.update(sites.here) == 'in_sync'


def test_snapshots_of_a_lost_pool_are_exported_as_those_of_other_replicas(sites):
    """Those of a replica are not exported with `dr`, and readable else."""
    sites.create_in_sync()
    copied = sites.snapshot()
    sites.update_snapshot(copied)
    snapshots = [sites.instance(id, sites.here) for id in (copied, sites.snapshot())]
    bystander = sites.here.harness.share(
        share_proto=sites.share_proto, host=sites.here.host
    )
    sites.here.driver.create_share(CTX, bystander, sites.here.server)
    other = sites.here.harness.snapshot(bystander)
    sites.here.driver.create_snapshot(CTX, other, sites.here.server)
    for snapshot in (*snapshots, other):
        allow_snapshot(sites, snapshot)
    kernel.unmount(sites.here.driver.backend.pools['pool'].top)
    sites.promote()
    assert has_clients(sites.here, other)
    for snapshot in snapshots:
        is_readable = sites.style == 'readable'
        assert has_clients(sites.here, snapshot) == is_readable
    sites.here.restart()
    sites.here.driver.delete_snapshot(CTX, other, sites.here.server)
    sites.here.driver.delete_share(CTX, bystander, sites.here.server)
    assert sites.update(sites.here) == 'in_sync'


def allow_snapshot(sites, snapshot):
    rule = sites.rule(CLIENT, 'ro')
    sites.here.driver.snapshot_update_access(
        CTX, snapshot, [rule], [rule], [], share_server=sites.here.server
    )
    assert has_clients(sites.here, snapshot)


def has_clients(site, item):
    """Return whether a server lets clients in, or will after a restart."""
    return bool(site.harness.clients(site.driver, item))


@pytest.fixture
def pools_of_one():
    """Provide a back end whose two pools replicate to each other."""
    storage.require()
    with storage.folder() as folder:
        pools = [
            f'{name}:{storage.create_pool(folder / name, 1 << 30)}'
            for name in ('first', 'second')
        ]
        file = folder / 'site.conf'
        file.write_text(
            '[both]\n'
            'share_driver = btrfs\n'
            'driver_handles_share_servers = false\n'
            'replication_domain = domain\n'
            'btrfs_replication_type = readable\n'
            f'btrfs_root = {folder / "root"}\n'
            f'btrfs_pools = {",".join(pools)}\n'
            f'btrfs_nfs_port = {storage.free_port()}\n'
        )
        sites = Sites.of_file('btrfs', file, ['both', 'both'])
        sites.there.host = 'host@both#second'
        sites.folder = folder
        yield sites
        sites.clean_up()
        for pool in sites.here.driver.backend.pools.values():
            assert not copies.owners(pool.top)


def test_two_pools_of_one_back_end_replicate_to_each_other(pools_of_one):
    sites = pools_of_one
    sites.write('one')
    sites.create_in_sync()
    for site, other in ((sites.there, sites.here), (sites.here, sites.there)):
        sites.write(f'for {site.name}')
        sites.promote(site)
        assert sites.read(site) == f'for {site.name}'
        assert sites.levels(site) == {'rw'}
        assert sites.levels(other) == {'ro'}
        assert sites.update(other) == 'in_sync'
        for each in sites.sites:
            each.restart()


def test_pool_takes_over_from_a_failing_one_of_the_same_back_end(pools_of_one):
    sites = pools_of_one
    sites.write('one')
    sites.create_in_sync()
    disk = FailingDisk(sites.folder / 'first')
    disk.fail_and_forget(sites.here.driver.backend.pools['first'].top)
    try:
        sites.promote()
        assert sites.read() == 'one'
        sites.write('two')
        assert sites.levels() == {'rw'}
        assert 'rw' not in sites.levels(sites.here)
    finally:
        replace_disk(sites.here, disk)
        sites.there.restart()
    assert sites.update(sites.here) == 'in_sync'
    assert sites.read(sites.here) == 'two'


def fail_in_memory_too(site, disk):
    disk.fail_and_forget(site.driver.backend.pools['pool'].top)


def fail_with_the_next_write(site, disk):
    disk.break_file_system(site.driver.backend.pools['pool'].top)


def replace_disk(site, disk):
    """Let the disk work, and the back end start with the machine."""
    disk.heal()
    root = site.driver.backend.root
    storage.stop(root)
    kernel.unmount_below(root)

    def has_restarted():
        try:
            site.restart()
        except exception.StorageUnavailable:
            return False  # daemons that were killed still have it mounted
        return True

    eventually(has_restarted)


@pytest.mark.parametrize('fail', [fail_in_memory_too, fail_with_the_next_write])
def test_disk_that_fails_does_not_keep_another_replica_from_taking_over(sites, fail):
    sites.write('one')
    sites.create_in_sync()
    disk = FailingDisk(sites.folder / 'here.img')
    fail(sites.here, disk)
    try:
        sites.there.restart()
        assert sites.update() == 'out_of_sync'
        sites.promote()
        assert sites.read() == 'one'
        sites.write('two')
        assert sites.levels() == {'rw'}
        assert sites.levels(sites.here) <= PASSIVE_LEVELS[sites.style]
        sites.there.restart()
        assert sites.levels() == {'rw'}
        sites.promote()
        assert sites.read() == 'two'
    finally:
        replace_disk(sites.here, disk)
    assert sites.levels(sites.here) <= PASSIVE_LEVELS[sites.style]
    assert sites.update(sites.here) == 'in_sync'
    assert sites.read(sites.here) == 'two'


def test_replica_is_deleted_while_the_disk_of_the_active_one_fails(sites):
    sites.create_in_sync()
    disk = FailingDisk(sites.folder / 'here.img')
    fail_in_memory_too(sites.here, disk)
    try:
        sites.delete()
        sites.there.state = None
        assert not copies.owners(sites.there.driver.backend.pools['pool'].top)
    finally:
        replace_disk(sites.here, disk)


@pytest.fixture
def small_sites():
    """Provide two back ends whose pools are soon full of metadata."""
    storage.require()
    with storage.folder() as folder:
        file = folder / 'sites.conf'
        for name in NAMES[:2]:
            storage.create_pool(folder / f'{name}.img', 128 * MIB)
        file.write_text(
            ''.join(
                (COMMON_OPTIONS + BACKEND_OPTIONS['btrfs']).format(
                    name=name,
                    driver='btrfs',
                    servers=False,
                    style='readable',
                    folder=folder,
                    cifs=False,
                    **new_ports('btrfs'),
                    more='',
                )
                for name in NAMES[:2]
            )
        )
        sites = Sites.of_file('btrfs', file, NAMES[:2])
        yield sites
        sites.clean_up()


def test_replica_without_space_for_metadata_is_in_error_and_kept(small_sites):
    sites = small_sites
    sites.write('one')
    sites.create_in_sync()
    sites.write('two')
    pool = sites.there.driver.backend.pools['pool']
    filling = pool.top / 'filling'
    filling.mkdir()
    fill(filling)
    assert sites.update() == 'error'
    assert sites.read() == 'one'
    with pytest.raises(exception.ShareBackendException, match='No space'):
        sites.promote()
    assert sites.levels(sites.here) == {'rw'}
    assert sites.levels() == {'ro'}
    shutil.rmtree(filling)
    kernel.flush(pool.top)
    assert sites.update() == 'in_sync'
    assert sites.read() == 'two'


def test_replica_takes_over_from_a_pool_without_space_for_metadata(small_sites):
    sites = small_sites
    sites.write('one')
    sites.create_in_sync()
    top = sites.here.driver.backend.pools['pool'].top
    filling = top / 'filling'
    filling.mkdir()
    fill(filling)
    sites.promote()
    assert sites.read() == 'one'
    assert sites.levels() == {'rw'}
    assert 'rw' not in sites.levels(sites.here)
    shutil.rmtree(filling)
    kernel.flush(top)
    assert sites.update(sites.here) == 'in_sync'
