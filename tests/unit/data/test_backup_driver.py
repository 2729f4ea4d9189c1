"""Backups in a folder: complete or not there, whatever ends an attempt."""

import contextlib
import os
import shutil
import types

import pytest

from manila_lite import exception
from manila_lite.data.backup_driver import FolderBackups
from manila_lite.data.gate import Copying
from manila_lite.data.progress import Position
from manila_lite.share.drivers import trees


class Killed(Exception):
    pass


@pytest.fixture
def backups(tmp_path):
    return FolderBackups(types.SimpleNamespace(backup_folder=tmp_path / 'kept'))


@pytest.fixture
def share(tmp_path):
    folder = tmp_path / 'share'
    (folder / 'sub').mkdir(parents=True)
    (folder / 'first').write_text('one')
    (folder / 'sub' / 'second').write_text('two')
    (folder / 'link').symlink_to('/etc/passwd')
    return folder


@contextlib.contextmanager
def killed_at(count):
    """A check that ends the attempt when it is called so often."""
    left = iter(range(count))

    def check():
        if next(left, None) is None:
            raise Killed

    yield check


def copying(token=1, check=lambda: None, ignored=(), add=lambda count: None):
    return Copying(add, check, lambda: None, token, ignored)


def create(backups, share, **how):
    """Return what was kept."""
    with trees.opened_directory(share) as directory:
        return backups.create('b', directory, copying(**how))


def restore(backups, kept, folder, position=None, **how):
    with trees.opened_directory(folder) as directory:
        backups.restore('b', kept, directory, copying(**how), position or Position())


def content(folder):
    return {
        path.relative_to(folder).as_posix(): (
            os.readlink(path) if path.is_symlink() else path.read_text()
        )
        for path in folder.rglob('*')
        if path.is_symlink() or path.is_file()
    }


def names(tmp_path):
    return [path.name for path in (tmp_path / 'kept').iterdir()]


def test_restored_share_equals_the_share_when_it_was_backed_up(backups, share):
    before = content(share)
    kept = create(backups, share)
    (share / 'first').write_text('changed')
    (share / 'sub' / 'second').unlink()
    (share / 'more').write_text('more')
    restore(backups, kept, share)
    assert content(share) == before


def test_ignored_names_are_neither_kept_nor_removed(backups, share):
    (share / 'lost+found').mkdir()
    (share / 'lost+found' / 'old').write_text('old')
    kept = create(backups, share, ignored=['lost+found'])
    (share / 'lost+found' / 'old').write_text('new')
    restore(backups, kept, share, ignored=['lost+found'])
    assert content(share)['lost+found/old'] == 'new'


def test_attempt_that_fails_leaves_nothing_and_the_next_one_makes_it(
    backups, share, tmp_path
):
    before = content(share)
    for count in range(100):
        with killed_at(count) as check:
            try:
                kept = create(backups, share, token=count + 1, check=check)
            except Killed:
                assert not (tmp_path / 'kept').exists() or not names(tmp_path)
            else:
                break
    assert count > 3
    assert names(tmp_path) == [f'b.{count + 1}']
    target = tmp_path / 'target'
    target.mkdir()
    restore(backups, kept, target)
    assert content(target) == before


def test_copies_of_earlier_attempts_are_removed_and_those_of_later_are_not(
    backups, share, tmp_path
):
    for token in (3, 4):
        create(backups, share, token=token)
        assert names(tmp_path) == [f'b.{token}']
    for late in (
        lambda: create(backups, share, token=3),
        lambda: backups.delete('b', copying(token=4)),
    ):
        with pytest.raises(exception.StaleFencingToken):
            late()
        assert names(tmp_path) == ['b.4']


@pytest.mark.parametrize(
    'spoil',
    [
        lambda copy: (copy / 'first').unlink(),
        lambda copy: (copy / 'first').write_text('two'),
        lambda copy: (copy / 'first').write_text(''),
        lambda copy: (copy / 'first').chmod(0o600),
        lambda copy: (copy / 'first').rename(copy / 'renamed'),
        lambda copy: (copy / 'more').write_text(''),
        lambda copy: (copy / 'sub').chmod(0o711),
        lambda copy: (
            (copy / 'link').unlink(),
            (copy / 'link').symlink_to('/etc/shadow'),
        ),
        shutil.rmtree,
    ],
    ids=[
        *('gone', 'changed', 'emptied', 'mode', 'renamed', 'more'),
        *('directory', 'link', 'all'),
    ],
)
def test_changed_content_is_no_backup(backups, share, tmp_path, spoil):
    kept = create(backups, share)
    backups.verify('b', kept, copying())
    spoil(tmp_path / 'kept' / 'b.1')
    with pytest.raises(exception.InvalidBackup):
        backups.verify('b', kept, copying())


def test_copy_that_is_emptied_while_it_is_made_is_no_backup(backups, share, tmp_path):
    copy = tmp_path / 'kept' / 'b.1'

    def empty(name):
        if name == 'after apply' and (copy / 'first').exists():
            shutil.rmtree(copy / 'sub')
            (copy / 'first').unlink()

    with (
        trees.opened_directory(share) as directory,
        pytest.raises(exception.InvalidBackup, match='were copied'),
    ):
        backups.create('b', directory, copying()._replace(on_step=empty))
    assert names(tmp_path) == []


def test_restore_that_is_stopped_is_continued_and_writes_nothing_twice(
    backups, share, tmp_path
):
    (share / 'sub' / 'linked').hardlink_to(share / 'first')
    kept = create(backups, share)
    before = content(share)
    for count in range(100):
        target = tmp_path / f'target-{count}'
        target.mkdir()
        (target / 'stranger').write_text('old')
        position = Position()
        with killed_at(count) as check, contextlib.suppress(Killed):
            restore(backups, kept, target, position, check=check)
            break
        written = content(target).keys() & before.keys() - {'link'}
        for name in written:
            (target / name).write_text(f'{before[name]} written since')
        restore(backups, kept, target, Position(position.done))
        assert content(target) == {
            name: f'{text} written since' if name in written else text
            for name, text in before.items()
        }, count
    assert count > 5


def test_deleted_backup_is_gone_and_deleting_it_again_succeeds(
    backups, share, tmp_path
):
    kept = create(backups, share)
    for token in (2, 3):
        backups.delete('b', copying(token=token))
    assert names(tmp_path) == []
    with pytest.raises(exception.InvalidBackup):
        restore(backups, kept, share)


def test_size_of_a_backup_is_what_its_check_and_its_restore_report(backups, share):
    (share / 'large').write_bytes(b'x' * 300_000)
    (share / 'linked').hardlink_to(share / 'large')
    kept = create(backups, share)
    size = backups.size_of('b', kept)
    assert size >= 300_000
    done = []
    backups.verify('b', kept, copying(add=done.append))
    assert sum(done) == size
    restore(backups, kept, share, add=done.append)
    assert sum(done) == 2 * size
