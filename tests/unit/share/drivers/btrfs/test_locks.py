import concurrent.futures

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs.locks import Locks


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
