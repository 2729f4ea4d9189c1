import pathlib
import tempfile

import pytest

from manila_lite.share.drivers import tree_removal
from tests.drivers import content, swapping
from tests.drivers.crashes import interrupted_at
from tests.support import sampling


@pytest.fixture
def source(tmp_path):
    source = tmp_path / 'source'
    source.mkdir()
    return source


def test_nothing_is_left(source):
    content.populate(source)
    tree_removal.remove_tree(source)
    assert not source.exists()


def test_removing_a_missing_tree_succeeds(tmp_path):
    tree_removal.remove_tree(tmp_path / 'nothing')


@pytest.mark.parametrize(
    'depth, name', [(content.DEPTH, content.LONG_NAME), (3000, 'down')]
)
def test_depth_is_unlimited(source, depth, name):
    content.dig(source, depth, name)
    tree_removal.remove_tree(source)
    assert not source.exists()


def test_link_targets_are_kept(source, tmp_path):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'file').write_text('stays')
    (source / 'way-out').symlink_to(outside)
    (source / 'directory').mkdir()
    (source / 'directory' / 'way-out').symlink_to(outside)
    tree_removal.remove_tree(source)
    (tmp_path / 'top').symlink_to(outside)
    tree_removal.remove_tree(tmp_path / 'top')
    assert not (tmp_path / 'top').is_symlink()
    assert (outside / 'file').read_text() == 'stays'


@sampling.enumeration
def test_links_that_users_put_into_the_tree_are_not_followed(tmp_path):
    def build():
        source = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
        swapping.fill(source)
        return source

    swapper = swapping.Swapper(tmp_path)
    for step in swapping.swapped_at_steps(build, tree_removal.remove_tree, swapper):
        assert swapper.is_unharmed(), f'at step {step}'
    assert step > 20


def test_what_users_create_meanwhile_is_removed_as_well(source):
    def create():
        (source / 'new').mkdir()
        (source / 'new' / 'file').touch()

    swapping.fill(source)
    assert interrupted_at(9, lambda: tree_removal.remove_tree(source), create)
    assert not source.exists()
