"""Copies of trees are synchronised, whatever changed on either side."""

import os
import pathlib
import random
import shutil
import time

import pytest

from manila_lite.share.drivers.local import tree_changes, tree_sync
from tests.drivers import content
from tests.support import sampling

LONG_AGO = 10**18


@pytest.fixture
def original(tmp_path):
    original = tmp_path / 'original'
    original.mkdir()
    return original


@pytest.fixture
def copy(tmp_path):
    copy = tmp_path / 'copy'
    copy.mkdir()
    return copy


class Follower:
    """A copy that can be synchronised repeatedly."""

    def __init__(self, original, copy, tmp_path):
        self.original, self.copy, self.tmp_path = original, copy, tmp_path
        self.known = {}
        self.rounds = 0

    def stage(self):
        self.rounds += 1
        self.staged = self.tmp_path / f'staged-{self.rounds}'
        staged = tree_sync.stage(
            self.original, self.copy, self.staged, self.known, time.time_ns()
        )
        self.known = staged.known
        return staged.changes

    def follow(self):
        """Synchronise the copy; return kind and path of the changes."""
        changes = self.stage()
        tree_changes.apply(self.copy, self.staged, changes)
        return {
            (kind, '/'.join((*parts, name or ''))) for kind, parts, name, _ in changes
        }


@pytest.fixture
def follower(original, copy, tmp_path):
    return Follower(original, copy, tmp_path)


def test_empty_copy_becomes_like_the_original(original, copy, follower):
    content.populate(original)
    follower.follow()
    assert content.describe(copy) == content.describe(original)


def test_damaged_tree_is_synchronised(original, copy, follower):
    content.populate(original)
    follower.follow()
    content.damage(original)
    follower.follow()
    assert content.describe(copy) == content.describe(original)


def test_changed_copy_matches_the_original_again(original, copy, follower):
    content.populate(original)
    follower.follow()
    content.damage(copy)
    follower.known = {}
    follower.follow()
    assert content.describe(copy) == content.describe(original)


def test_unchanged_original_needs_no_changes(original, copy, follower):
    content.populate(original)
    follower.follow()
    assert follower.follow() == set()


def test_only_what_has_changed_is_copied(original, copy, follower):
    content.populate(original)
    follower.follow()
    kept = (copy / 'one' / 'two' / 'three' / 'file').stat().st_ino
    (original / 'closed').chmod(0o700)
    (original / 'closed' / 'inside').write_text('changed')
    (original / 'pipe').unlink()
    assert follower.follow() >= {('put', 'closed/inside'), ('remove', 'pipe')}
    assert (copy / 'one' / 'two' / 'three' / 'file').stat().st_ino == kept
    assert content.describe(copy) == content.describe(original)


def test_touching_attributes_copies_no_content(original, copy, follower):
    (original / 'file').write_text('the same')
    follower.follow()
    (original / 'file').chmod(0o604)
    assert follower.follow() == {('set', 'file')}
    assert content.describe(copy) == content.describe(original)


def test_content_changed_without_its_times_is_copied(original, copy, follower):
    file = original / 'file'
    file.write_text('one')
    os.utime(file, ns=(LONG_AGO, LONG_AGO))
    follower.follow()
    file.write_text('two')
    os.utime(file, ns=(LONG_AGO, LONG_AGO))
    follower.follow()
    assert (copy / 'file').read_text() == 'two'


def test_directory_replaced_with_the_same_times_is_copied(
    original, copy, follower, monkeypatch
):
    for name in ('shown', 'hidden'):
        (original / name).mkdir()
        (original / name / 'file').write_text(name[:5])
        os.utime(original / name / 'file', ns=(LONG_AGO, LONG_AGO))
    # Everything is old enough to be among the known inodes.
    now = time.time_ns()
    monkeypatch.setattr(time, 'time_ns', lambda: now + 10**12)
    follower.follow()
    assert set(follower.known) == {'shown', 'hidden'}
    (original / 'shown').rename(original / 'other')
    (original / 'hidden').rename(original / 'shown')
    (original / 'other').rename(original / 'hidden')
    follower.follow()
    assert (copy / 'shown' / 'file').read_text() == 'hidde'
    assert (copy / 'hidden' / 'file').read_text() == 'shown'


def test_known_files_are_not_read_again(original, copy, follower, monkeypatch):
    (original / 'file').write_text('x')
    now = time.time_ns()
    monkeypatch.setattr(time, 'time_ns', lambda: now + 10**12)
    follower.follow()
    monkeypatch.setattr(os, 'pread', None)
    assert follower.follow() == set()


def test_recently_written_files_are_read_again(original, copy, follower):
    (original / 'file').write_text('x')
    follower.follow()
    assert follower.known == {}


@pytest.mark.parametrize(
    'before, after',
    [
        ([('a', 'b')], [('a',), ('b',)]),
        ([('a',), ('b',)], [('a', 'b')]),
        ([('a', 'b'), ('c', 'd')], [('a', 'c'), ('b', 'd')]),
        ([('a', 'b', 'c')], [('b', 'c', 'd/e')]),
        ([('a', 'd/b')], [('d/b', 'd/c'), ('a',)]),
        ([('a', 'b')], [('x/y/a', 'x/z', 'a')]),
    ],
)
def test_hard_links_are_synchronised(original, copy, follower, before, after):
    def write(groups, where):
        shutil.rmtree(where)
        where.mkdir()
        for names in groups:
            first, *others = (where / name for name in names)
            for path in (first, *others):
                path.parent.mkdir(parents=True, exist_ok=True)
            first.write_text('all the same')
            os.utime(first, ns=(LONG_AGO, LONG_AGO))
            for other in others:
                os.link(first, other)

    write(before, original)
    follower.follow()
    assert content.describe(copy) == content.describe(original)
    write(after, original)
    follower.follow()
    assert content.describe(copy) == content.describe(original)


def test_links_are_never_followed(original, copy, follower, tmp_path):
    """Neither in the original nor in a copy that users have changed."""
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'secret').write_text('secret')
    (original / 'way').mkdir()
    (original / 'way' / 'secret').write_text('mine')
    os.symlink(outside, copy / 'way')
    os.symlink(outside, original / 'out')
    follower.follow()
    assert (outside / 'secret').read_text() == 'secret'
    assert (copy / 'way' / 'secret').read_text() == 'mine'
    assert os.readlink(copy / 'out') == str(outside)


def test_holes_stay_holes_and_are_not_read(original, copy, follower):
    with (original / 'huge').open('wb') as file:
        file.truncate(1 << 43)
        file.seek(1 << 42)
        file.write(b'in the midst')
    follower.follow()
    follower.known = {}
    assert follower.follow() == set()
    assert (copy / 'huge').stat().st_size == 1 << 43
    assert (copy / 'huge').stat().st_blocks < 100


def test_deep_trees_are_synchronised(original, copy, follower):
    here = os.open(original, os.O_RDONLY)
    for _ in range(60):
        os.mkdir('n' * 200, dir_fd=here)
        below = os.open('n' * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open('end', os.O_CREAT, dir_fd=here))
    follower.follow()
    os.unlink('end', dir_fd=here)
    os.close(os.open('new end', os.O_CREAT, dir_fd=here))
    os.close(here)
    changed = follower.follow()
    assert {kind for kind, _ in changed} == {'put', 'remove', 'set'}
    assert follower.follow() == set()


def test_changes_can_be_applied_twice(original, copy, follower):
    content.populate(original)
    follower.follow()
    content.damage(original)
    changes = follower.stage()
    for end in range(len(changes) + 1):
        tree_changes.apply(copy, follower.staged, changes[:end])
    tree_changes.apply(copy, follower.staged, changes)
    assert content.describe(copy) == content.describe(original)


def test_copy_is_untouched_until_changes_are_applied(original, copy, follower):
    content.populate(original)
    follower.follow()
    before = content.describe(copy)
    content.damage(original)
    follower.stage()
    assert content.describe(copy) == before


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(200, 6))
def test_any_changes_are_synchronised(original, copy, follower, seed):
    rng = random.Random(seed)
    for _ in range(6):
        for _ in range(rng.randint(1, 12)):
            mess_about(original, rng)
        follower.follow()
        assert content.describe(copy) == content.describe(original)
        assert follower.follow() == set()


def mess_about(top: pathlib.Path, rng: random.Random) -> None:
    """Make one change of any kind, anywhere."""
    paths = sorted(top.rglob('*'))
    directories = [
        top,
        *(path for path in paths if path.is_dir() and not path.is_symlink()),
    ]
    place = rng.choice(directories) / rng.choice('abcdef')
    some = rng.choice(paths) if paths else None
    act = rng.randrange(9)
    if act == 0 and not os.path.lexists(place):
        place.mkdir()
    elif act in (1, 2) and not place.is_dir():
        place.unlink(missing_ok=True)
        place.write_bytes(rng.randbytes(rng.choice((3, 3, 5000))))
        os.utime(place, ns=(LONG_AGO, LONG_AGO + rng.randrange(2)))
    elif act == 3 and not os.path.lexists(place):
        os.symlink(rng.choice(('a', '..', '/etc')), place)
    elif act == 4 and not os.path.lexists(place):
        os.mkfifo(place)
    elif some is None:
        return
    elif act == 5:
        shutil.rmtree(some) if some in directories else some.unlink()
    elif act == 6 and not some.is_symlink():
        some.chmod(rng.choice((0o700, 0o755)))
    elif act == 7 and not os.path.lexists(place):
        if not place.is_relative_to(some):
            some.rename(place)
    elif act == 8 and not os.path.lexists(place) and some.is_file():
        os.link(some, place, follow_symlinks=False)
