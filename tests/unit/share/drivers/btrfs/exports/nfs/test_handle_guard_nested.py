"""A subvolume in a share, as a program on this machine may create it."""

import pytest

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.nfs_site import WRITER


@pytest.fixture
def volume(nfs):
    """Export a volume with a file, a directory and a subvolume."""
    name = nfs.create((WRITER, 'rw'))
    path = nfs.pool.path(Kind.SHARE, name)
    (path / 'file').write_bytes(b'content')
    (path / 'folder').mkdir()
    kernel.create_subvolume(path / 'nested')
    (path / 'nested' / 'secret').touch()
    yield name
    nfs.pool.discard(Kind.SHARE, name)


def test_share_is_listed_without_the_subvolumes_in_it(nfs, volume):
    path = f'/shares/{volume}'
    with nfs.client(WRITER) as client:
        assert client.names_in(path) == {'file', 'folder'}
        client.write(path, 'new', b'new')
        assert client.names_in(path) == {'file', 'folder', 'new'}
        for name in ('nested', 'nested/secret'):
            with pytest.raises(NfsError):
                client.look_up(f'{path}/{name}')


def test_directory_with_many_subvolumes_is_listed_to_its_end(nfs, volume):
    """Among them are more entries than the server reads at a time."""
    top = nfs.pool.path(Kind.SHARE, volume)
    (top / 'many').mkdir()
    names = set()
    for number in range(400):
        kernel.create_subvolume(top / 'many' / f'{"n" * 200}{number}')
        if number % 100 == 99:
            names.add(f'file-{number}')
            (top / 'many' / f'file-{number}').touch()
    with nfs.client(WRITER) as client:
        assert client.names_in(f'/shares/{volume}/many') == names


def test_snapshot_is_listed_without_what_is_left_of_them(nfs, volume):
    nfs.pool.take_snapshot(volume, 'nested-snapshot')
    nfs.publish('nested-snapshot', (WRITER, 'ro'), kind=Kind.SNAPSHOT)
    with nfs.client(WRITER) as client:
        assert client.names_in('/snapshots/nested-snapshot') == {'file', 'folder'}
        assert client.read('/snapshots/nested-snapshot', 'file') == b'content'
