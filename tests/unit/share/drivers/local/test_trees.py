import os
import pathlib

import pytest

from manila_lite.share.drivers.local import trees
from tests.drivers import content

# Together far longer than the longest path of a system call.
DEPTH, LONG_NAME = 50, 'n' * 200


@pytest.fixture
def source(tmp_path):
    source = tmp_path / 'source'
    source.mkdir()
    return source


@pytest.fixture
def target(tmp_path):
    return tmp_path / 'target'


def dig(top, depth, name):
    """Create a chain of directories with a file at its end."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open('end', os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, b'the end')
    os.close(file)
    os.close(here)


def open_files():
    return len(os.listdir('/proc/self/fd'))


def test_replaced_entry_is_reported_and_not_followed(source):
    """It was a link or a file when it was listed."""
    (source / 'file').write_text('no link any more')
    os.symlink('file', source / 'link')
    os.mkfifo(source / 'pipe')
    top = os.open(source, os.O_RDONLY)
    try:
        with pytest.raises(trees.EntryReplaced):
            trees.read_link('file', top)
        for name in ('link', 'pipe'):
            with (
                pytest.raises(trees.EntryReplaced),
                trees.opened_file(name, top),
            ):
                pass
    finally:
        os.close(top)


class TestCopy:
    def test_copy_is_like_the_original(self, source, target):
        content.populate(source)
        original = content.describe(source)
        trees.copy_tree(source, target)
        assert content.describe(target) == original
        assert content.describe(source) == original

    def test_holes_stay_holes(self, source, target):
        content.populate(source)
        trees.copy_tree(source, target)
        assert (target / 'holes').stat().st_blocks * 512 < 1_000_000
        assert (target / 'holes').read_bytes() == (
            source / 'holes'
        ).read_bytes()

    def test_content_before_and_after_a_hole_is_copied(self, source, target):
        with (source / 'file').open('wb') as file:
            file.write(b'a' * 70_000)
            file.seek(3_000_000)
            file.write(b'b' * 70_000)
        trees.copy_tree(source, target)
        assert (target / 'file').read_bytes() == (source / 'file').read_bytes()

    def test_copy_does_not_share_files_with_the_original(self, source, target):
        (source / 'file').write_text('original')
        trees.copy_tree(source, target)
        (source / 'file').write_text('changed')
        assert (target / 'file').read_text() == 'original'

    def test_extended_attributes_are_kept(self, source, target):
        (source / 'file').write_text('')
        try:
            os.setxattr(source / 'file', 'user.colour', b'red')
            os.setxattr(source, 'user.colour', b'blue')
        except OSError:
            pytest.skip('the file system has no extended attributes')
        trees.copy_tree(source, target)
        assert os.getxattr(target / 'file', 'user.colour') == b'red'
        assert os.getxattr(target, 'user.colour') == b'blue'

    def test_links_are_not_followed(self, source, target, tmp_path):
        outside = tmp_path / 'outside'
        outside.mkdir()
        (outside / 'secret').write_text('not yours')
        (source / 'way-out').symlink_to(outside)
        trees.copy_tree(source, target)
        assert (target / 'way-out').is_symlink()
        assert os.listdir(target) == ['way-out']

    def test_top_that_is_a_link_is_refused(self, source, target, tmp_path):
        (tmp_path / 'link').symlink_to(source)
        with pytest.raises(NotADirectoryError):
            trees.copy_tree(tmp_path / 'link', target)

    def test_depth_is_unlimited(self, source, target):
        dig(source, DEPTH, LONG_NAME)
        before = open_files()
        trees.copy_tree(source, target)
        assert trees.used_bytes(target) == trees.used_bytes(source) > 0
        assert open_files() == before
        trees.remove_tree(target)  # pytest could not
        trees.remove_tree(source)


class TestUsedBytes:
    def test_each_file_counts_once(self, source):
        (source / 'file').write_bytes(b'x' * 1_000_000)
        alone = trees.used_bytes(source)
        assert 1_000_000 <= alone < 1_100_000
        os.link(source / 'file', source / 'same-file')
        (source / 'link').symlink_to('file')
        assert trees.used_bytes(source) - alone < 10_000

    def test_holes_do_not_count(self, source):
        with (source / 'file').open('wb') as file:
            file.truncate(10**9)
        assert trees.used_bytes(source) < 100_000


class TestRemove:
    def test_nothing_is_left(self, source):
        content.populate(source)
        trees.remove_tree(source)
        assert not source.exists()

    def test_removing_a_missing_tree_succeeds(self, tmp_path):
        trees.remove_tree(tmp_path / 'nothing')

    @pytest.mark.parametrize(
        'depth, name', [(DEPTH, LONG_NAME), (3000, 'down')]
    )
    def test_depth_is_unlimited(self, source, depth, name):
        dig(source, depth, name)
        trees.remove_tree(source)
        assert not source.exists()

    def test_link_targets_are_kept(self, source, tmp_path):
        outside = tmp_path / 'outside'
        outside.mkdir()
        (outside / 'file').write_text('stays')
        (source / 'way-out').symlink_to(outside)
        (source / 'directory').mkdir()
        (source / 'directory' / 'way-out').symlink_to(outside)
        trees.remove_tree(source)
        (tmp_path / 'top').symlink_to(outside)
        trees.remove_tree(tmp_path / 'top')
        assert not (tmp_path / 'top').is_symlink()
        assert (outside / 'file').read_text() == 'stays'


def test_content_is_moved_and_the_directory_stays(source, target):
    content.populate(source)
    target.mkdir()
    inode, original = target.stat().st_ino, content.describe(source)
    trees.move_content(source, target)
    trees.copy_attributes(source, target)
    moved = content.describe(target)
    assert {name: moved[name] for name in moved if name != '.'} == {
        name: original[name] for name in original if name != '.'
    }
    assert os.listdir(source) == []
    assert pathlib.Path(target).stat().st_ino == inode
