"""Migration of shares between the pools of two back ends."""

import os
import sys

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.moves import migration, migration_copy
from tests.drivers import content
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.support.nfs_client import NfsError
from tests.support.processes import wait_until
from tests.support.record_writer import Writer
from tests.unit.share.drivers.btrfs.migration_sites import MIB, Site

pytestmark = storage.beside_daemons


@pytest.fixture(scope='module')
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


@pytest.fixture(autouse=True)
def no_traces(site):
    yield
    assert not site.traces()


@pytest.mark.parametrize('to', ['near#large', 'near#small', 'far#spare'])
def test_moved_share_has_the_same_content_and_size(site, to):
    share, moved = site.create(size=2), site.share(f'host@{to}', size=2)
    content.populate(site.volume(site.near, share))
    before = content.describe(site.volume(site.near, share))
    site.copy(share, moved)
    (location,) = site.complete(share, moved)
    driver = site.near if 'near' in to else site.far
    assert location['path'] == f'127.0.0.1:/shares/{moved.name}'
    assert content.describe(site.volume(driver, moved)) == before
    assert driver.get_share_status(moved)['size'] == 2
    with pytest.raises(exception.ShareResourceNotFound):
        site.near.get_share_status(share)
    driver.delete_share(CTX, moved)


def test_every_acknowledged_record_of_a_writer_is_moved(site):
    share, moved = site.create(), site.share('host@far#spare')
    writer = Writer(site.client(), f'/shares/{share.name}')
    site.copy(share, moved)
    wait_until(lambda: writer.acknowledged > 200, 'it has written')
    site.complete(share, moved)
    writer.join()
    assert writer.error
    site.allow(site.far, moved)
    client, path = site.client('far'), f'/shares/{moved.name}'
    data = client.read(path, 'records')
    assert writer.read_back(data) == list(range(writer.acknowledged))
    client.write(path, 'records', b'it can be written to')
    site.far.delete_share(CTX, moved)


def test_copy_that_takes_long_can_be_cancelled(site, monkeypatch):
    monkeypatch.setattr(migration, 'PATIENCE', 0)
    share, moved = site.create(), site.share('host@far#spare')
    volume = site.volume(site.near, share)
    (volume / 'large').write_bytes(os.urandom(400 * MIB))
    site.call('start', share, moved)
    assert not site.call('continue', share, moved)
    progress = site.call('get_progress', share, moved)['total_progress']
    assert 0 <= progress < 100
    site.call('cancel', share, moved)
    assert not site.traces()
    with pytest.raises(exception.ShareResourceNotFound):
        site.call('continue', share, moved)
    assert (volume / 'large').stat().st_size == 400 * MIB
    site.near.delete_share(CTX, share)


def test_restart_between_the_phases_keeps_what_was_sent(site, monkeypatch):
    share, moved = site.create(), site.share('host@far#spare')
    volume = site.volume(site.near, share)
    (volume / 'large').write_bytes(os.urandom(64 * MIB))
    site.copy(share, moved)
    site.start()
    assert site.call('get_progress', share, moved)['total_progress'] == 99
    assert site.call('continue', share, moved)
    assert site.call('get_progress', share, moved)['sent_bytes'] < MIB
    (volume / 'small').write_text('later')
    site.complete(share, moved)
    there = site.volume(site.far, moved)
    assert (there / 'small').read_text() == 'later'
    assert (there / 'large').stat().st_size == 64 * MIB
    site.far.delete_share(CTX, moved)


def test_pool_without_space_for_the_share_is_refused_at_the_start(site):
    share, moved = site.create(), site.share('host@near#small')
    (site.volume(site.near, share) / 'large').write_bytes(os.urandom(200 * MIB))
    with pytest.raises(
        exception.ShareBackendException, match=r'pool small has \d+ MiB left'
    ):
        site.call('start', share, moved)
    site.call('cancel', share, moved)
    site.near.delete_share(CTX, share)


@pytest.mark.usefixtures('space_is_freed_in_time')
def test_space_of_a_share_that_was_just_deleted_is_used(site):
    pool = site.near.backend.pools['small']
    share, moved = site.create(), site.share('host@near#small')
    filled = site.create(host='host@near#small')
    size = pool.capacity_bytes()[1] * 2 // 3
    for each in (share, filled):
        (site.volume(site.near, each) / 'large').write_bytes(os.urandom(size))
    kernel.flush(pool.top)
    assert pool.capacity_bytes()[1] < size
    site.near.delete_share(CTX, filled)
    site.copy(share, moved)
    site.complete(share, moved)
    assert (site.volume(site.near, moved) / 'large').stat().st_size == size
    site.near.delete_share(CTX, moved)


@pytest.mark.usefixtures('space_is_freed_in_time')
def test_share_that_stays_in_its_pool_needs_no_space_there(site):
    pool = site.near.backend.pools['small']
    share, moved = site.create(host='host@near#small'), site.share('host@near#small')
    size = pool.capacity_bytes()[1] * 2 // 3
    (site.volume(site.near, share) / 'large').write_bytes(os.urandom(size))
    kernel.flush(pool.top)
    assert pool.capacity_bytes()[1] < size
    site.copy(share, moved)
    site.complete(share, moved)
    assert (site.volume(site.near, moved) / 'large').stat().st_size == size
    site.near.delete_share(CTX, moved)


def test_pool_that_becomes_full_ends_the_migration_with_a_message(site):
    share, moved = site.create(), site.share('host@near#small')
    volume = site.volume(site.near, share)
    site.copy(share, moved)
    (volume / 'large').write_bytes(os.urandom(200 * MIB))
    client, path = site.client(), f'/shares/{share.name}'
    with pytest.raises(
        exception.ShareBackendException, match='pool small has no space left'
    ):
        site.call('complete', share, moved)
    client.write(path, 'notes', b'still here')
    site.call('cancel', share, moved)
    assert client.read(path, 'notes') == b'still here'
    site.near.delete_share(CTX, share)


def test_clients_are_back_when_the_last_changes_cannot_be_sent(site, monkeypatch):
    share, moved = site.create(), site.share('host@near#small')
    volume = site.volume(site.near, share)
    site.copy(share, moved)
    client, path = site.client(), f'/shares/{share.name}'
    file = client.open(path, 'notes', create=True)
    # Nothing is sent before clients have lost the share.
    monkeypatch.setattr(migration_copy, '_MOST_ROUNDS', 0)
    (volume / 'large').write_bytes(os.urandom(200 * MIB))
    with pytest.raises(
        exception.ShareBackendException, match='pool small has no space left'
    ):
        site.call('complete', share, moved)
    with pytest.raises(NfsError):
        client.write_at(file, 0, b'lost')
    client.write(path, 'notes', b'still here')
    site.call('cancel', share, moved)
    assert client.read(path, 'notes') == b'still here'
    site.near.delete_share(CTX, share)


def test_source_that_goes_on_changing_is_not_replaced(site):
    """Somebody on this machine writes to it without the NFS server."""
    share, moved = site.create(), site.share('host@far#spare')
    file = site.volume(site.near, share) / 'log'
    site.copy(share, moved)
    with file.open('ab', buffering=0) as log:
        is_changing = True

        def write(event, _):
            if is_changing and event == 'fcntl.ioctl':
                log.write(b'x')  # before each snapshot, however fast

        sys.addaudithook(write)
        try:
            with pytest.raises(
                exception.ShareBackendException, match='goes on changing'
            ):
                site.call('complete', share, moved)
        finally:
            is_changing = False
    client, path = site.client(), f'/shares/{share.name}'
    client.write(path, 'notes', b'still here')
    written = file.stat().st_size
    site.complete(share, moved)
    assert (site.volume(site.far, moved) / 'log').stat().st_size == written
    site.far.delete_share(CTX, moved)


def test_lost_destination_ends_the_migration_and_nothing_else(site):
    share, moved = site.create(), site.share('host@far#spare')
    site.copy(share, moved)
    (pool,) = site.far.backend.pools.values()
    kernel.unmount(pool.top)
    for operation in ('complete', 'cancel'):
        with pytest.raises(exception.ShareBackendException, match='no pool spare'):
            site.call(operation, share, moved)
    client, path = site.client(), f'/shares/{share.name}'
    client.write(path, 'notes', b'still here')
    site.start()
    site.far.delete_share(CTX, moved)
    assert not site.traces()
    site.near.delete_share(CTX, share)


def test_copy_deleted_at_the_destination_is_forgotten_at_the_source(site):
    share, moved = site.create(), site.share('host@far#spare')
    site.copy(share, moved)
    site.far.delete_share(CTX, moved)
    assert site.traces()
    site.start()
    assert not site.traces()
    site.near.delete_share(CTX, share)


def test_rules_reach_no_closed_source_until_its_migration_has_ended(site):
    share, moved = site.create(), site.share('host@far#spare')
    site.copy(share, moved)
    pool, record = site.near.backend.get_share(share.name)
    leaving = pool.catalog.leaving.find(share.name)
    pool.catalog.leaving.put(share.name, leaving | {'closed': None})
    site.allow(site.near, share)
    path = f'/shares/{share.name}'
    with pytest.raises(NfsError):
        site.client().look_up(path)
    ended = site.share(
        id=share.id, name=share.name, status='available', host=share.host
    )
    site.allow(site.near, ended)
    site.client().look_up(path)
    site.call('cancel', share, moved)
    site.near.delete_share(CTX, share)


def test_back_ends_elsewhere_and_servers_without_one_are_out_of_reach(site):
    share = site.create()
    for host in (
        'stranger@near#large',
        'stranger@far#spare',
        'host@served#other',
        'host@far#large',
        'host@nowhere#pool',
    ):
        reply = site.near.migration_check_compatibility(CTX, share, site.share(host))
        assert not any(reply.values()), host
        with pytest.raises(exception.ShareBackendException):
            site.call('start', share, site.share(host))
    site.near.delete_share(CTX, share)


def test_share_that_is_not_there_is_not_migrated(site):
    share, moved = site.share(), site.share('host@far#spare')
    reply = site.near.migration_check_compatibility(CTX, share, moved)
    assert not any(reply.values())
    with pytest.raises(exception.ShareResourceNotFound):
        site.call('complete', share, moved)
