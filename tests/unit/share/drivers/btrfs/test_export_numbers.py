import pytest

from manila_lite.share.drivers.btrfs.export_numbers import ExportNumbers
from manila_lite.share.drivers.btrfs.locks import Locks


@pytest.fixture
def numbers(tmp_path):
    (tmp_path / 'locks').mkdir()
    return ExportNumbers(tmp_path / 'table', Locks(tmp_path / 'locks'))


def test_number_of_an_export_remains(numbers):
    assert numbers.allot('one') == numbers.allot('one') == 1
    assert numbers.allot('two') == 2
    assert numbers.all() == {'one': 1, 'two': 2}


def test_released_number_is_used_again_last(numbers):
    assert numbers.allot('one') == 1
    numbers.release('one')
    numbers.release('one')
    assert numbers.find('one') is None
    assert numbers.allot('one') == 2


def test_numbers_begin_again_after_the_highest(numbers, monkeypatch):
    module = 'manila_lite.share.drivers.btrfs.export_numbers._HIGHEST'
    monkeypatch.setattr(module, 3)
    for name in ('one', 'two', 'three'):
        numbers.allot(name)
    numbers.release('two')
    assert numbers.allot('four') == 2
    with pytest.raises(Exception, match='no export number is free'):
        numbers.allot('five')
