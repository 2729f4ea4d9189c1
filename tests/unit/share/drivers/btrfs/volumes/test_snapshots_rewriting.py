"""A volume is rewritten while its users change it."""

import contextlib
import errno
import pathlib
import tempfile
import uuid

import pytest

from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.volumes import snapshots
from tests.drivers import content, swapping
from tests.drivers.crashes import changes, failed_at, killed_at
from tests.support import sampling

GIB = 1 << 30


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
    snapshots.rewrite(pool, volume, volume, GIB)
    assert content.describe(top) == then
    assert top.stat().st_ino == inode
    assert pool.size_gib(Kind.SHARE, volume) == 1


@sampling.enumeration
def test_volume_has_a_limit_whatever_interrupts_the_rewrite(pool, volume):
    """Its clients could fill the pool."""

    def rewrite():
        with contextlib.suppress(OSError):
            snapshots.rewrite(pool, volume, volume, GIB)

    def limit():
        return pool.limit_bytes(Kind.SHARE, volume)

    for step in sampling.steps():
        has_ended = not killed_at(step, rewrite, changes)
        assert GIB <= limit() < 3 * GIB
        failed_at(step, rewrite, OSError(errno.EIO, 'a broken disk'))
        assert limit() == GIB
        if has_ended:
            break
    assert step > 20


@sampling.enumeration
def test_links_that_users_put_into_the_volume_are_not_followed(pool, volume):
    """The driver is root: it would remove or change files of the machine."""

    def build():
        top = pool.path(Kind.SHARE, volume)
        for entry in top.iterdir():
            if entry.is_symlink():
                entry.unlink()
        snapshots.rewrite(pool, volume, volume, GIB)
        return top

    with tempfile.TemporaryDirectory(dir=pool.top) as folder:
        swapper = swapping.Swapper(pathlib.Path(folder))
        for step in swapping.swapped_at_steps(
            build, lambda _: snapshots.rewrite(pool, volume, volume, GIB), swapper
        ):
            assert swapper.is_unharmed(), f'at step {step}'
    assert step > 20
