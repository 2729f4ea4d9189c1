import concurrent.futures
import os

import pytest

from manila_lite import exception
from manila_lite.share.drivers import file_locks
from manila_lite.share.drivers.file_locks import Locks

KINDS = {file_locks.opened_file: os.unlink, file_locks.opened_directory: os.rmdir}


@pytest.mark.parametrize('opened', KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize('is_removed', [True, False])
def test_only_one_has_a_lock_even_if_it_is_removed(tmp_path, opened, is_removed):
    inside, most = [], []

    def enter(number):
        with file_locks.locked(tmp_path / 'lock', opened):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)
            if is_removed:
                KINDS[opened](tmp_path / 'lock')

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(enter, range(200)))
    assert max(most) == 1
    assert len(most) == 200


@pytest.mark.parametrize('opened', KINDS, ids=lambda kind: kind.__name__)
def test_lock_that_another_has_is_not_waited_for(tmp_path, opened):
    with file_locks.locked(tmp_path / 'lock', opened):
        assert file_locks.open_locked(tmp_path / 'lock', opened, wait=False) is None
    descriptor = file_locks.open_locked(tmp_path / 'lock', opened, wait=False)
    assert descriptor is not None
    os.close(descriptor)


@pytest.mark.parametrize('opened', KINDS, ids=lambda kind: kind.__name__)
def test_missing_folder_is_an_error(tmp_path, opened):
    with (
        pytest.raises(FileNotFoundError),
        file_locks.locked(tmp_path / 'nothing' / 'lock', opened),
    ):
        pass


# Locks by name


def test_only_one_has_a_lock(tmp_path):
    locks, inside, most = Locks(tmp_path), [], []

    def enter(number):
        with locks.locked('name'):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(enter, range(200)))
    assert max(most) == 1
    assert list(tmp_path.iterdir()) == []


def test_lock_that_is_taken_is_not_waited_for(tmp_path):
    locks = Locks(tmp_path)
    with locks.locked('name'):
        with locks.try_locked('name') as is_locked:
            assert not is_locked
        with locks.try_locked('other') as is_locked:
            assert is_locked
    with locks.try_locked('name') as is_locked:
        assert is_locked


def test_name_is_not_a_path(tmp_path):
    with (
        pytest.raises(exception.ShareBackendException),
        Locks(tmp_path).locked('../name'),
    ):
        pass
