"""Backups in a folder: complete or not there, whatever ends an attempt."""

import contextlib
import os
import types

import pytest

from manila_lite import exception
from manila_lite.data.backup_driver import Copying
from manila_lite.data.backup_driver import FolderBackups
from manila_lite.share.drivers import trees


class Killed(Exception):
    pass


@pytest.fixture
def backups(tmp_path):
    return FolderBackups(
        types.SimpleNamespace(backup_folder=tmp_path / 'kept')
    )


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


def copying(token=1, check=lambda: None, ignored=()):
    return Copying(lambda count: None, check, token, ignored)


def create(backups, share, **how):
    with trees.opened_directory(share) as directory:
        backups.create('b', directory, copying(**how))


def restore(backups, folder, **how):
    with trees.opened_directory(folder) as directory:
        backups.restore('b', directory, copying(**how))


def content(folder):
    return {
        path.relative_to(folder).as_posix(): (
            os.readlink(path) if path.is_symlink() else path.read_text()
        )
        for path in folder.rglob('*')
        if path.is_symlink() or path.is_file()
    }


def test_restored_share_equals_the_share_when_it_was_backed_up(backups, share):
    before = content(share)
    create(backups, share)
    (share / 'first').write_text('changed')
    (share / 'sub' / 'second').unlink()
    (share / 'more').write_text('more')
    restore(backups, share)
    assert content(share) == before


def test_ignored_names_are_neither_kept_nor_removed(backups, share):
    (share / 'lost+found').mkdir()
    (share / 'lost+found' / 'old').write_text('old')
    create(backups, share, ignored=['lost+found'])
    (share / 'lost+found' / 'old').write_text('new')
    restore(backups, share, ignored=['lost+found'])
    assert content(share)['lost+found/old'] == 'new'


def test_attempt_that_is_killed_leaves_no_backup_and_the_next_one_makes_it(
    backups, share, tmp_path
):
    before = content(share)
    for count in range(100):
        with killed_at(count) as check:
            try:
                create(backups, share, token=count, check=check)
            except Killed:
                with pytest.raises(exception.InvalidBackup):
                    backups.size_of('b')
            else:
                break
    assert count > 3
    assert [path.name for path in (tmp_path / 'kept').iterdir()] == ['b']
    target = tmp_path / 'target'
    target.mkdir()
    restore(backups, target)
    assert content(target) == before


def test_complete_backup_is_kept_when_its_creation_is_repeated(backups, share):
    create(backups, share)
    before = content(share)
    (share / 'first').write_text('changed')
    create(backups, share, token=2)
    restore(backups, share)
    assert content(share) == before


def test_restore_that_is_killed_is_completed_by_the_next_one(backups, share):
    before = content(share)
    create(backups, share)
    for count in range(100):
        (share / 'first').write_text('changed')
        with killed_at(count) as check:
            try:
                restore(backups, share, check=check)
            except Killed:
                continue
        break
    assert count > 3
    assert content(share) == before


def test_deleted_backup_is_gone_and_deleting_it_again_succeeds(
    backups, share, tmp_path
):
    create(backups, share)
    for token in (2, 3):
        backups.delete('b', token)
    assert list((tmp_path / 'kept').iterdir()) == []
    with pytest.raises(exception.InvalidBackup):
        restore(backups, share)


def test_size_of_a_backup_is_what_its_restore_reports(backups, share):
    (share / 'large').write_bytes(b'x' * 300_000)
    create(backups, share)
    done = []
    with trees.opened_directory(share) as directory:
        backups.restore('b', directory, Copying(done.append, lambda: None, 1))
    assert sum(done) == backups.size_of('b') >= 300_000
