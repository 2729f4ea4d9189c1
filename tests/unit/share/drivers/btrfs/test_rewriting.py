"""A volume is rewritten while its users change it."""

import pathlib
import tempfile
import uuid

import pytest

from manila_lite.share.drivers.btrfs import rewriting
from manila_lite.share.drivers.btrfs.catalog import Kind
from tests.drivers import content
from tests.drivers import swapping


@pytest.fixture
def volume(pool):
    """Create a volume with a snapshot of the same name."""
    volume = f'share-{uuid.uuid4()}'
    pool.create(volume, 1)
    swapping.fill(pool.path(Kind.SHARE, volume))
    pool.take_snapshot(volume, volume)
    return volume


def test_content_is_that_of_the_snapshot(pool, volume):
    top = pool.path(Kind.SHARE, volume)
    then, inode = content.describe(top), top.stat().st_ino
    for path in (top / 'new' / 'directory', top / 'below' / 'new'):
        path.mkdir(parents=True)
    (top / 'file').write_text('now')
    rewriting.rewrite(pool, volume, volume)
    assert content.describe(top) == then
    assert top.stat().st_ino == inode
    assert pool.size_gib(Kind.SHARE, volume) == 1


def test_links_that_users_put_into_the_volume_are_not_followed(pool, volume):
    """The driver is root: it would remove or change files of the machine."""

    def build():
        top = pool.path(Kind.SHARE, volume)
        for entry in top.iterdir():
            if entry.is_symlink():
                entry.unlink()
        rewriting.rewrite(pool, volume, volume)
        return top

    with tempfile.TemporaryDirectory(dir=pool.top) as folder:
        swapper = swapping.Swapper(pathlib.Path(folder))
        for step in swapping.swapped_at_steps(
            build, lambda _: rewriting.rewrite(pool, volume, volume), swapper
        ):
            assert swapper.is_unharmed(), f'at step {step}'
    assert step > 20
