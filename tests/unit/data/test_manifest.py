"""A manifest tells whether anything below a directory has changed."""

import os
import shutil

import pytest

from manila_lite.data import manifest
from manila_lite.data.gate import Copying
from manila_lite.share.drivers import trees
from tests.drivers import content


class Stopped(Exception):
    """The reading ends here."""


def read(folder, check=lambda: None, add=lambda count: None):
    with trees.opened_directory(folder) as directory:
        return manifest.read(directory, Copying(add, check, lambda: None, token=1))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    return folder


def test_manifest_counts_names_and_the_bytes_of_inodes(folder):
    (folder / 'sub').mkdir()
    (folder / 'sub' / 'file').write_text('12345')
    os.link(folder / 'sub' / 'file', folder / 'linked')
    (folder / 'link').symlink_to('linked')
    assert read(folder)[:2] == (4, 5)


def test_manifest_of_a_copy_is_the_same(folder, tmp_path):
    content.populate(folder)
    trees.copy_tree(folder, tmp_path / 'copy')
    assert read(tmp_path / 'copy') == read(folder)


def test_two_files_are_not_two_names_of_one(folder):
    (folder / 'one').write_text('same')
    os.link(folder / 'one', folder / 'two')
    before = read(folder)
    (folder / 'two').unlink()
    shutil.copy2(folder / 'one', folder / 'two')
    assert read(folder).digest != before.digest


@pytest.mark.parametrize('offset', [0, 1 << 20, (5 << 20) - 1])
def test_every_byte_of_a_large_file_counts(folder, offset):
    large = folder / 'large'
    large.write_bytes(os.urandom(5 << 20))
    before = read(folder)
    with large.open('r+b') as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))
    assert read(folder)[:2] == before[:2]
    assert read(folder).digest != before.digest


def test_where_holes_are_makes_no_difference(folder):
    sparse = folder / 'sparse'
    with sparse.open('wb') as file:
        file.truncate(5 << 20)
        file.seek(3 << 20)
        file.write(b'x')
    before = read(folder)
    sparse.write_bytes(sparse.read_bytes())
    assert read(folder) == before


def test_reading_can_be_ended_in_a_large_file(folder):
    (folder / 'large').write_bytes(os.urandom(5 << 20))
    left = iter(range(3))

    def check():
        if next(left, None) is None:
            raise Stopped

    with pytest.raises(Stopped):
        read(folder, check)
