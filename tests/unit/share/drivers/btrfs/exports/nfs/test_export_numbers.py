import pytest

from manila_lite.share.drivers.btrfs.exports.nfs.export_numbers import ExportNumbers
from manila_lite.share.drivers.file_locks import Locks


@pytest.fixture
def numbers(tmp_path):
    (tmp_path / 'locks').mkdir()
    return ExportNumbers(tmp_path / 'table', Locks(tmp_path / 'locks'))


def test_number_of_an_export_remains(numbers):
    assert numbers.allocate('one') == numbers.allocate('one') == 1
    assert numbers.allocate('two') == 2
    assert numbers.all() == {'one': 1, 'two': 2}


def test_released_number_is_used_again_last(numbers):
    assert numbers.allocate('one') == 1
    numbers.release('one')
    numbers.release('one')
    assert numbers.find('one') is None
    assert numbers.allocate('one') == 2


def test_numbers_begin_again_after_the_highest(numbers, monkeypatch):
    module = 'manila_lite.share.drivers.btrfs.exports.nfs.export_numbers._HIGHEST'
    monkeypatch.setattr(module, 3)
    for name in ('one', 'two', 'three'):
        numbers.allocate(name)
    numbers.release('two')
    assert numbers.allocate('four') == 2
    with pytest.raises(Exception, match='no export number is free'):
        numbers.allocate('five')


def test_numbers_survive_a_power_failure(numbers, flushes, tmp_path):
    """The files of exports have them as well."""
    numbers.allocate('one')
    assert flushes.include(tmp_path / 'table', tmp_path)
    inode = (tmp_path / 'table').stat().st_ino
    numbers.release('one')
    assert (tmp_path / 'table').stat().st_ino != inode
    assert flushes.include(tmp_path / 'table', tmp_path)


def test_numbers_are_those_that_another_process_has_written(numbers, tmp_path):
    other = ExportNumbers(tmp_path / 'table', Locks(tmp_path / 'locks'))
    for round in range(20):
        assert numbers.allocate(f'one-{round}') == 2 * round + 1
        assert other.find(f'one-{round}') == 2 * round + 1
        assert other.allocate(f'two-{round}') == 2 * round + 2
        assert numbers.all() == other.all()
    other.release('one-7')
    assert numbers.find('one-7') is None
