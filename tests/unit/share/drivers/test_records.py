import threading

import pytest

from manila_lite import exception
from manila_lite.share.drivers import records


@pytest.fixture
def folder(tmp_path):
    return records.RecordFolder(tmp_path / 'not' / 'yet' / 'there')


def test_record_is_found_until_dropped(folder):
    folder.put('one', {'size': 1})
    assert folder.find('one') == {'size': 1}
    folder.put('one', {'size': 2})
    assert folder.find('one') == {'size': 2}
    folder.drop('one')
    folder.drop('one')
    assert folder.find('one') is None


def test_records_are_listed_by_name(folder):
    assert list(folder.records()) == []
    folder.put('b', {'size': 2})
    folder.put('a.json', {'size': 1})
    assert list(folder.records()) == [('a.json', {'size': 1}), ('b', {'size': 2})]


def test_record_is_found_once_its_block_has_succeeded(folder, tmp_path):
    with pytest.raises(ValueError, match='broken'), folder.putting('one', {'size': 1}):
        raise ValueError('broken')
    assert list(folder.records()) == []
    with folder.putting('one', {'size': 1}):
        assert folder.find('one') is None
    assert folder.find('one') == {'size': 1}
    assert len(list(tmp_path.rglob('one*'))) == 1


def test_file_of_a_killed_writer_is_not_a_record(folder, tmp_path):
    folder.put('one', {'size': 1})
    torn = tmp_path / 'not' / 'yet' / 'there' / 'one.json.0123'
    torn.write_text('{"size"')
    assert list(folder.records()) == [('one', {'size': 1})]


@pytest.mark.parametrize(
    'name',
    [
        '',
        '.',
        '..',
        '../up',
        'a/b',
        '/etc/passwd',
        '.hidden',
        'a\0b',
        'a\nb',
        'ä',
        'a' * 201,
    ],
)
def test_names_that_could_lead_elsewhere_are_refused(folder, name):
    with pytest.raises(exception.ShareBackendException):
        folder.put(name, {})


def test_reader_never_sees_half_a_record(tmp_path):
    path = tmp_path / 'record.json'
    long, short = {'filling': 'x' * 100_000}, {'filling': ''}
    records.write(path, short)
    done = threading.Event()

    def keep_writing():
        while not done.is_set():
            records.write(path, long)
            records.write(path, short)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        assert all(records.find(path) in (long, short) for _ in range(500))
    finally:
        done.set()
        writer.join()


def test_durable_record_is_written_like_any_other(tmp_path):
    records.write(tmp_path / 'record', {'size': 1}, durable=True)
    assert records.find(tmp_path / 'record') == {'size': 1}
    assert [path.name for path in tmp_path.iterdir()] == ['record']
