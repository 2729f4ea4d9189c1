import contextlib
import os
import pathlib
import stat
import tempfile

import pytest

from manila_lite.data import copying
from manila_lite.data.gate import Copying
from manila_lite.share.drivers import tree_removal
from tests.drivers import content, swapping
from tests.support import sampling


class Stopped(Exception):
    """The copy ends here."""


class Watch:
    """Counts what a copy reports; stops it at the n-th check."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.checks = self.done = 0
        self.reports = []

    def check(self):
        self.checks += 1
        if self.checks == self.stop_at:
            raise Stopped

    def add(self, count):
        assert count >= 0
        self.reports.append(count)
        self.done += count


@contextlib.contextmanager
def opened(*paths):
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(_closing(os.open(path, os.O_RDONLY))) for path in paths
        ]


@contextlib.contextmanager
def _closing(file):
    try:
        yield file
    finally:
        os.close(file)


def copy(source, target, watch=None, ignored=(), **options):
    watch = watch or Watch()
    with opened(source, target) as (origin, into):
        how = Copying(watch.add, watch.check, lambda: None, 1, ignored)
        copying.copy_tree(origin, into, how, **options)
    return watch


def size_of(path):
    with opened(path) as (directory,):
        return copying.size_of(directory)


@pytest.fixture
def source(tmp_path):
    source = tmp_path / 'source'
    source.mkdir()
    return source


@pytest.fixture
def target(tmp_path):
    target = tmp_path / 'target'
    target.mkdir()
    return target


def test_copy_equals_the_source(source, target):
    content.populate(source)
    original = content.describe(source)
    copy(source, target)
    assert content.describe(target) == original
    assert content.describe(source) == original


def test_what_does_not_belong_is_removed(source, target):
    content.populate(source)
    (target / 'stranger').mkdir(mode=0)
    (target / 'old').mkdir()
    content.populate(target / 'old')
    for name in content.describe(source):
        if name and '/' not in name:  # entries of other kinds in the way
            with contextlib.suppress(FileExistsError):
                (target / name).mkdir()
                (target / name / 'inside').write_text('old')
    copy(source, target)
    assert content.describe(target) == content.describe(source)


@pytest.mark.parametrize('is_resumed', [False, True])
def test_copy_stopped_anywhere_is_completed_later(source, target, tmp_path, is_resumed):
    content.populate(source)
    original = content.describe(source)
    total = copy(source, target).checks
    assert total > 10
    for point in range(1, total + 1):
        partial = tmp_path / f'partial-{point}'
        partial.mkdir()
        with pytest.raises(Stopped):
            copy(source, partial, Watch(stop_at=point))
        again = copy(source, partial, is_resumed=is_resumed)
        assert content.describe(partial) == original, point
        assert again.done == size_of(source)


def test_completed_files_are_kept_when_resumed(source, target):
    content.populate(source)
    copy(source, target)
    files = {
        path: path.stat().st_ino
        for path in target.rglob('*')
        if path.is_file() and not path.is_symlink()
    }
    copy(source, target, is_resumed=True)
    assert {path: path.stat().st_ino for path in files} == files
    copy(source, target)
    assert {path: path.stat().st_ino for path in files} != files


def test_a_partial_file_is_copied_again_when_resumed(source, target):
    (source / 'file').write_bytes(b'new' * 1000)
    (target / 'file').write_bytes(b'new' * 10)
    copy(source, target, is_resumed=True)
    assert (target / 'file').read_bytes() == b'new' * 1000


def test_unlinked_copies_are_not_one_file_after_a_resumption(source, target):
    """Names of one inode in the copy were separated in the source."""
    (source / 'one').write_text('same')
    os.link(source / 'one', source / 'two')
    copy(source, target)
    (source / 'two').unlink()
    (source / 'two').write_text('SAME')
    times = (source / 'one').stat()
    os.utime(source / 'two', ns=(times.st_atime_ns, times.st_mtime_ns))
    copy(source, target, is_resumed=True)
    assert (target / 'one').read_text() == 'same'
    assert (target / 'two').read_text() == 'SAME'


def test_progress_is_the_size_of_the_source(source, target):
    content.populate(source)
    (source / 'large').write_bytes(os.urandom(20 << 20))
    os.link(source / 'large', source / 'linked')
    watch = copy(source, target)
    assert watch.done == size_of(source) >= 20 << 20
    assert len([one for one in watch.reports if one]) >= 3


def test_large_files_are_checked_between_pieces(source, target):
    (source / 'large').write_bytes(os.urandom(20 << 20))
    watch = Watch(stop_at=5)
    with pytest.raises(Stopped):
        copy(source, target, watch)
    assert 0 < watch.done < size_of(source)


def test_ignored_names_are_left_alone_at_the_top_only(source, target):
    for folder in (source, target):
        (folder / 'lost+found').mkdir()
        (folder / 'lost+found' / folder.name).write_text('')
    (source / 'sub' / 'lost+found').mkdir(parents=True)
    copy(source, target, ignored=['lost+found'])
    assert (target / 'lost+found' / 'target').exists()
    assert not (target / 'lost+found' / 'source').exists()
    assert (target / 'sub' / 'lost+found').is_dir()


def test_links_in_the_target_are_not_followed(source, target, tmp_path):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'file').write_text('theirs')
    (source / 'folder').mkdir()
    (source / 'folder' / 'file').write_text('ours')
    (source / 'file').write_text('ours')
    (target / 'folder').symlink_to(outside)
    (target / 'file').symlink_to(outside / 'file')
    copy(source, target)
    assert (outside / 'file').read_text() == 'theirs'
    assert (target / 'folder' / 'file').read_text() == 'ours'
    assert not (target / 'file').is_symlink()


def test_modes_that_forbid_access_are_no_obstacle(source, target):
    folder = source / 'folder'
    folder.mkdir()
    (folder / 'file').write_text('x')
    folder.chmod(0o500)
    copy(source, target)
    copy(source, target)
    assert stat.S_IMODE((target / 'folder').stat().st_mode) == 0o500
    folder.chmod(0o700)


def test_deep_trees_are_copied_and_removed(source, target):
    content.dig(source, content.DEPTH, content.LONG_NAME)
    copy(source, target)
    assert size_of(target) == size_of(source)
    tree_removal.remove_tree(source)  # pytest could not
    source.mkdir()
    copy(source, target)
    assert list(target.iterdir()) == []


@sampling.enumeration
def test_links_that_users_put_into_the_target_are_not_followed(source, tmp_path):
    swapping.fill(source)
    swapper = swapping.Swapper(tmp_path)
    for step in swapping.swapped_at_steps(
        lambda: pathlib.Path(tempfile.mkdtemp(dir=tmp_path)),
        lambda target: copy(source, target),
        swapper,
    ):
        assert swapper.is_unharmed(), f'at step {step}'
    assert step > 20


@sampling.enumeration
def test_links_that_users_put_into_the_source_are_not_followed(target, tmp_path):
    swapper = swapping.Swapper(tmp_path)
    secret = (swapper.outside / 'file').read_bytes()
    (swapper.outside / 'file').write_bytes(secret + b' of others')

    def build():
        tree = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
        swapping.fill(tree)
        return tree

    for step in swapping.swapped_at_steps(
        build, lambda tree: copy(tree, target), swapper
    ):
        assert b'of others' not in b''.join(
            path.read_bytes()
            for path in target.rglob('*')
            if path.is_file() and not path.is_symlink()
        ), f'at step {step}'
    assert step > 20
