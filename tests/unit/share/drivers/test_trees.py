import os
import pathlib
import tempfile

import pytest

from manila_lite.share.drivers import tree_removal, trees
from tests.drivers import content, swapping
from tests.support import sampling


@pytest.fixture
def source(tmp_path):
    source = tmp_path / 'source'
    source.mkdir()
    return source


@pytest.fixture
def target(tmp_path):
    return tmp_path / 'target'


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
            with pytest.raises(trees.EntryReplaced), trees.opened_file(name, top):
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
        assert (target / 'holes').read_bytes() == (source / 'holes').read_bytes()

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
        content.dig(source, content.DEPTH, content.LONG_NAME)
        before = open_files()
        trees.copy_tree(source, target)
        assert trees.used_bytes(target) == trees.used_bytes(source) > 0
        assert open_files() == before
        tree_removal.remove_tree(target)  # pytest could not
        tree_removal.remove_tree(source)

    @sampling.enumeration
    def test_links_that_users_put_into_the_copy_are_not_followed(
        self, source, tmp_path
    ):
        swapping.fill(source)
        swapper = swapping.Swapper(tmp_path)
        for step in swapping.swapped_at_steps(
            lambda: pathlib.Path(tempfile.mkdtemp(dir=tmp_path)),
            lambda target: trees.fill_tree(source, target),
            swapper,
        ):
            assert swapper.is_unharmed(), f'at step {step}'
        assert step > 20


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
