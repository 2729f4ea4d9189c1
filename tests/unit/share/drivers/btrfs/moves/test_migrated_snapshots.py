"""Snapshots that migrate with their share."""

import os

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs.moves import migration_copy
from tests.drivers import content
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.migration_sites import MIB, WRITER, Site


@pytest.fixture(scope='module')
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


@pytest.fixture(autouse=True)
def no_traces(site):
    yield
    assert not site.traces()
    for driver in (site.near, site.far):
        for pool in driver.backend.pools.values():
            assert not [*pool.top.glob('records/s*/*')]


def clean_up(driver, share, pairs):
    for _, copy in pairs:
        driver.delete_snapshot(CTX, copy)
    driver.delete_share(CTX, share)


@pytest.mark.parametrize('to', ['near#small', 'far#spare'])
def test_snapshots_have_the_same_content_and_size(site, to):
    share, moved = site.create(size=2), site.share(f'host@{to}', size=3)
    volume = site.volume(site.near, share)
    pairs, before = [], []
    content.populate(volume)
    for number in range(3):
        (volume / 'number').write_text(str(number))
        pairs.append(site.take(share, moved))
        before.append(content.describe(site.snapshot_volume(site.near, pairs[-1][0])))
    site.near.extend_share(share, 3)
    (volume / 'number').write_text('last')
    site.copy(share, moved, pairs)
    reply = site.call('complete', share, moved, pairs)
    assert site.call('complete', share, moved, pairs) == reply
    driver = site.near if 'near' in to else site.far
    assert (site.volume(driver, moved) / 'number').read_text() == 'last'
    for (source, copy), described in zip(pairs, before, strict=True):
        path = site.snapshot_volume(driver, copy)
        assert content.describe(path) == described
        assert driver.get_snapshot_status(copy)['size'] == 2
        update = reply['snapshot_updates'][copy.id]
        assert update['provider_location'] == copy.name
        (location,) = update['export_locations']
        assert location['path'] == f'127.0.0.1:/snapshots/{copy.name}'
        with pytest.raises(exception.SnapshotResourceNotFound):
            site.near.get_snapshot_status(source)
    clean_up(driver, moved, pairs)


def test_moved_snapshots_are_mounted_reverted_to_and_cloned(site):
    share, moved = site.create(), site.share('host@far#spare')
    volume = site.volume(site.near, share)
    (volume / 'notes').write_text('before')
    pair = site.take(share, moved)
    rule = site.made['near'].rule(share, WRITER)
    site.near.snapshot_update_access(CTX, pair[0], [rule], [], [])
    (volume / 'notes').write_text('after')
    site.copy(share, moved, [pair])
    mounted = f'/snapshots/{pair[0].name}'
    assert site.client().read(mounted, 'notes') == b'before'
    site.call('complete', share, moved, [pair])
    with pytest.raises(NfsError):
        site.client().look_up(mounted)
    far = site.far
    far.snapshot_update_access(CTX, pair[1], [rule], [], [])
    site.allow(far, moved)
    client = site.client('far')
    assert client.read(f'/snapshots/{pair[1].name}', 'notes') == b'before'
    with pytest.raises(NfsError):
        client.write(f'/snapshots/{pair[1].name}', 'notes', b'changed')
    clone = site.made['far'].share(host='host@far#spare')
    far.create_share_from_snapshot(CTX, clone, pair[1])
    assert (site.volume(far, clone) / 'notes').read_text() == 'before'
    path = f'/shares/{moved.name}'
    assert client.read(path, 'notes') == b'after'
    far.revert_to_snapshot(CTX, pair[1], [rule], [])
    assert site.client('far').read(path, 'notes') == b'before'
    far.delete_share(CTX, clone)
    clean_up(far, moved, [pair])


def test_what_snapshots_have_in_common_is_sent_once(site):
    share, moved = site.create(), site.share('host@far#spare')
    volume = site.volume(site.near, share)
    (volume / 'large').write_bytes(os.urandom(64 * MIB))
    pairs = []
    for number in range(3):
        (volume / f'small-{number}').write_bytes(os.urandom(MIB))
        pairs.append(site.take(share, moved))
    site.copy(share, moved, pairs)
    progress = site.call('get_progress', share, moved, pairs)
    assert 66 * MIB < progress['sent_bytes'] < 72 * MIB
    site.call('complete', share, moved, pairs)
    clean_up(site.far, moved, pairs)


def test_snapshots_without_a_difference_are_moved(site):
    share, moved = site.create(), site.share('host@far#spare')
    volume = site.volume(site.near, share)
    (volume / 'notes').write_text('the same')
    pairs = [site.take(share, moved) for _ in range(3)]
    site.copy(share, moved, pairs)
    site.start()
    site.call('complete', share, moved, pairs)
    assert (site.volume(site.far, moved) / 'notes').read_text() == 'the same'
    for _, copy in pairs:
        path = site.snapshot_volume(site.far, copy)
        assert (path / 'notes').read_text() == 'the same'
    clean_up(site.far, moved, pairs)


def test_cancelled_migration_leaves_the_snapshots_as_they_were(site):
    share, moved = site.create(), site.share('host@far#spare')
    (site.volume(site.near, share) / 'notes').write_text('before')
    pair = site.take(share, moved)
    site.copy(share, moved, [pair])
    for _ in range(2):
        site.call('cancel', share, moved, [pair])
    with pytest.raises(exception.SnapshotResourceNotFound):
        site.far.get_snapshot_status(pair[1])
    path = site.snapshot_volume(site.near, pair[0])
    assert (path / 'notes').read_text() == 'before'
    site.near.delete_snapshot(CTX, pair[0])
    site.near.delete_share(CTX, share)


def test_missing_snapshot_ends_the_migration(site):
    share, moved = site.create(), site.share('host@far#spare')
    pair = site.take(share, moved)
    site.near.delete_snapshot(CTX, pair[0])
    with pytest.raises(
        exception.ShareBackendException, match=f'{pair[0].name} does not exist'
    ):
        site.call('start', share, moved, [pair])
    site.call('cancel', share, moved, [pair])
    site.near.delete_share(CTX, share)


def test_snapshots_of_a_failed_second_phase_go_with_the_copy(site, monkeypatch):
    share, moved = site.create(), site.share('host@near#small')
    volume = site.volume(site.near, share)
    pair = site.take(share, moved)
    site.copy(share, moved, [pair])
    # Nothing is sent before the snapshots are created.
    monkeypatch.setattr(migration_copy, '_MOST_ROUNDS', 0)
    (volume / 'large').write_bytes(os.urandom(200 * MIB))
    with pytest.raises(
        exception.ShareBackendException, match='pool small has no space left'
    ):
        site.call('complete', share, moved, [pair])
    assert site.near.get_snapshot_status(pair[1])['status'] == 'available'
    site.near.delete_share(CTX, moved)
    with pytest.raises(exception.SnapshotResourceNotFound):
        site.near.get_snapshot_status(pair[1])
    assert site.near.get_snapshot_status(pair[0])['status'] == 'available'
    site.start()  # it forgets a copy that is gone
    site.near.delete_snapshot(CTX, pair[0])
    site.near.delete_share(CTX, share)
