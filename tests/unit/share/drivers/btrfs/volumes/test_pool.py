"""Volumes of a real btrfs."""

import concurrent.futures
import contextlib
import errno
import itertools
import os
import subprocess
import uuid

import pytest

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.volumes.pool import Pool, mounted_pool
from manila_lite.share.drivers.btrfs.volumes.trash import Trash
from tests.support import storage

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture
def volume(pool):
    """Create a volume of 1 GiB; return its name."""
    name = f'share-{uuid.uuid4()}'
    pool.create(name, 1)
    yield name
    pool.discard(Kind.SHARE, name)
    Trash(pool.folders).empty()


@pytest.fixture
def path(pool, volume):
    return pool.path(Kind.SHARE, volume)


def limit(pool, path, size):
    kernel.set_limit(pool.top, kernel.subvolume_id(path), size)


def write(path, name, size):
    with (path / name).open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, size)


def snapshot_of(pool, volume):
    name = f'snapshot-{uuid.uuid4()}'
    pool.take_snapshot(volume, name)
    return name


def test_users_cannot_exceed_the_size(pool, path):
    limit(pool, path, 8 * MIB)
    write(path, 'fits', 4 * MIB)
    with pytest.raises(OSError, match='quota') as refused:
        write(path, 'does not', 8 * MIB)
    assert refused.value.errno == errno.EDQUOT


def test_full_volume_can_be_extended(pool, volume, path):
    limit(pool, path, 8 * MIB)
    with pytest.raises(OSError, match='quota'):
        write(path, 'filling', 9 * MIB)
    pool.resize(volume, 1)
    write(path, 'more', 9 * MIB)


def test_recent_writes_are_counted(pool, volume, path):
    (path / 'new').write_bytes(os.urandom(3 * MIB))
    used = pool.used_bytes(Kind.SHARE, volume)
    assert 3 * MIB <= used < 4 * MIB


def test_deleted_files_no_longer_count_although_a_snapshot_has_them(pool, volume, path):
    (path / 'old').write_bytes(os.urandom(3 * MIB))
    snapshot = snapshot_of(pool, volume)
    (path / 'old').unlink()
    assert pool.used_bytes(Kind.SHARE, volume) < MIB
    assert pool.used_bytes(Kind.SNAPSHOT, snapshot) > 3 * MIB


def test_snapshot_is_read_only_and_has_the_size_of_its_time(pool, volume):
    snapshot = snapshot_of(pool, volume)
    pool.resize(volume, 5)
    assert pool.size_gib(Kind.SNAPSHOT, snapshot) == 1
    with pytest.raises(OSError, match='Read-only'):
        (pool.path(Kind.SNAPSHOT, snapshot) / 'new').touch()


def test_clone_has_a_size_of_its_own(pool, volume, path):
    limit(pool, path, 8 * MIB)
    snapshot = snapshot_of(pool, volume)
    clone = f'share-{uuid.uuid4()}'
    pool.clone(snapshot, clone, 2)
    write(pool.path(Kind.SHARE, clone), 'large', 16 * MIB)
    assert pool.size_gib(Kind.SHARE, clone) == 2


def test_replaced_volume_is_that_of_the_snapshot(pool, volume, path):
    (path / 'notes').write_text('then')
    snapshot = snapshot_of(pool, volume)
    (path / 'notes').write_text('now')
    pool.resize(volume, 3)
    pool.replace(volume, snapshot)
    assert (path / 'notes').read_text() == 'then'
    assert pool.size_gib(Kind.SHARE, volume) == 1
    (path / 'notes').write_text('writable')


def test_volume_that_exists_is_kept(pool, volume, path):
    (path / 'notes').write_text('precious')
    pool.create(volume, 7)
    assert (path / 'notes').read_text() == 'precious'
    assert pool.size_gib(Kind.SHARE, volume) == 1


def test_what_a_killed_creation_has_left_is_not_used(pool):
    name = f'share-{uuid.uuid4()}'
    left = pool.path(Kind.SHARE, f'.new-{name}')
    kernel.create_subvolume(left)
    (left / 'rubbish').touch()
    assert pool.unfinished() == [(Kind.SHARE, name)]
    pool.create(name, 1)
    assert list(pool.path(Kind.SHARE, name).iterdir()) == []
    assert pool.unfinished() == []


def test_discarded_volume_is_gone_at_once_and_its_space_soon(pool, volume):
    snapshot = snapshot_of(pool, volume)
    for kind, name in ((Kind.SHARE, volume), (Kind.SNAPSHOT, snapshot)):
        pool.discard(kind, name)
        pool.discard(kind, name)
        assert not pool.has(kind, name)
        assert os.listdir(pool.top / kind) != []
        Trash(pool.folders).empty()
        assert not any(each.startswith('.') for each in os.listdir(pool.top / kind))


def test_trash_is_removed_with_subvolumes_in_it(pool, volume, path):
    """An administrator may have created them; space would never be free."""
    for inner in ('inner', 'other', 'inner/below', 'inner/below/deep'):
        kernel.create_subvolume(path / inner)
    (path / 'inner' / 'below' / 'deep' / 'file').write_text('text')
    (path / 'outside').symlink_to(pool.top / Kind.SNAPSHOT)
    kept = snapshot_of(pool, volume)
    kernel.set_read_only(path, True)
    pool.discard(Kind.SHARE, volume)
    Trash(pool.folders).empty()
    assert not list((pool.top / Kind.SHARE).glob('.trash-*'))
    assert pool.has(Kind.SNAPSHOT, kept)
    pool.discard(Kind.SNAPSHOT, kept)


def test_trash_of_a_pool_that_is_not_mounted_is_nothing(tmp_path):
    Trash([tmp_path / 'missing']).empty()


def test_trash_that_cannot_be_removed_is_tried_and_logged_rarely(pool, caplog):
    """The supervisor empties the trash every second for months."""
    seconds = itertools.count()
    left = pool.top / Kind.SHARE / '.trash-left'
    left.mkdir()
    trash = Trash(pool.folders, lambda: next(seconds))
    for _ in range(3600):
        trash.empty()
    assert 1 < len(caplog.records) < 10
    left.rmdir()
    kernel.create_subvolume(left)
    for _ in range(61):
        trash.empty()
    assert not left.exists()


def test_link_in_the_place_of_a_volume_is_no_volume(pool, tmp_path):
    link = pool.path(Kind.SHARE, 'link')
    link.symlink_to(pool.top)
    assert not pool.has(Kind.SHARE, 'link')
    link.unlink()


def test_sizes_of_all_shares_are_found_at_once(pool):
    names = {f'share-{uuid.uuid4()}' for _ in range(300)}
    for name in names:
        pool.create(name, 2)
        pool.catalog.put(Kind.SHARE, name, {'volume': name})
    sizes = pool.share_sizes()
    assert sizes.keys() == names
    assert {size.limit for size in sizes.values()} == {2 * GIB}
    for name in names:
        pool.catalog.drop(Kind.SHARE, name)
        pool.discard(Kind.SHARE, name)
    Trash(pool.folders).empty()


def test_pool_keeps_its_volumes_when_it_is_prepared_again(pool, volume, path):
    limit(pool, path, 8 * MIB)
    pool.prepare()
    assert pool.has(Kind.SHARE, volume)
    with pytest.raises(OSError, match='quota'):
        write(path, 'filling', 9 * MIB)


def test_image_that_is_mounted_elsewhere_is_the_same_file_system(
    pool, volume, tmp_path
):
    """Two file systems on the same blocks would destroy each other."""
    (image,) = pool.top.parent.glob('*.img')
    again = mounted_pool(image, tmp_path / 'again')
    try:
        assert os.path.samestat(again.stat(), pool.top.stat())
        assert (again / 'shares' / volume).is_dir()
    finally:
        kernel.unmount(again)


def test_images_attached_at_the_same_time_have_their_own_devices(tmp_path):
    storage.require()
    images = [tmp_path / str(number) for number in range(8)]
    for image in images:
        image.write_bytes(bytes(MIB))

    def attach(image):
        for _ in range(10):
            with kernel.loop_device(image) as device:
                backing = f'/sys/block/{device.name}/loop/backing_file'
                with open(backing) as file:
                    assert file.read().rstrip() == str(image)

    with concurrent.futures.ThreadPoolExecutor(len(images)) as pool:
        list(pool.map(attach, images))


@contextlib.contextmanager
def small_pool():
    """Provide a pool on which nothing else happens, and its image."""
    storage.require()
    with storage.folder() as folder:
        image = storage.create_pool(folder / 'pool.img', 256 * MIB)
        pool = Pool('pool', mounted_pool(image, folder / 'top'))
        pool.prepare()
        yield pool, image


def copy_of(image, name):
    """Return a copy of the blocks: what the disk has at that moment."""
    copy = image.with_name(f'{name}.img')
    subprocess.run(['cp', '--sparse=always', image, copy], check=True)
    return copy


def test_records_survive_a_power_failure():
    with small_pool() as (pool, image):
        pool.create('old', 1)
        pool.catalog.put(Kind.SHARE, 'old', {'volume': 'old'})
        with pool.catalog.putting(Kind.SHARE, 'share', {'volume': 'share'}):
            pool.create('share', 1)
        pool.commit()
        copy = copy_of(image, 'copy')
        kernel.unmount(pool.top)
        other = Pool('copy', mounted_pool(copy, pool.top))
        for name in ('old', 'share'):
            assert other.catalog.find(Kind.SHARE, name) == {'volume': name}
        assert other.size_gib(Kind.SHARE, 'share') == 1


@pytest.mark.parametrize('is_committed_between', [False, True])
def test_new_volumes_survive_a_power_failure(is_committed_between):
    new = {Kind.SHARE: 'share', Kind.SNAPSHOT: 'snapshot'}
    copies = []
    with small_pool() as (pool, image):
        for kind, name in new.items():
            with pool.catalog.putting(kind, name, {'volume': name}):
                if kind is Kind.SHARE:
                    pool.create(name, 1)
                else:
                    pool.take_snapshot('share', name)
                if is_committed_between:
                    kernel.commit(pool.top)
            pool.commit_new(kind)
            copies.append(copy_of(image, name))
        for (kind, name), copy in zip(new.items(), copies, strict=True):
            kernel.unmount(pool.top)
            other = Pool('copy', mounted_pool(copy, pool.top))
            assert other.catalog.find(kind, name) == {'volume': name}
            assert other.has(kind, name)
            assert other.size_gib(kind, name) == 1
