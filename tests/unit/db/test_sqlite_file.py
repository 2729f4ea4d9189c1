"""Files that are not our database are recognized without being changed."""

import contextlib
import shutil
import sqlite3

import pytest
import sqlalchemy as sa

from manila_lite.db import schema, sqlite_file
from manila_lite.db.session import Database


@pytest.fixture
def file(tmp_path):
    return tmp_path / 'files' / 'manila_lite.sqlite'


@pytest.fixture(autouse=True)
def folder(file):
    file.parent.mkdir()
    return file.parent


@contextlib.contextmanager
def our_database(file):
    db = Database(f'sqlite:///{file}')
    schema.sync(db)
    yield db
    db.dispose()


def foreign_database(file, journal_mode='delete'):
    connection = sqlite3.connect(file)
    connection.execute(f'PRAGMA journal_mode = {journal_mode}')
    connection.execute('CREATE TABLE songs (title TEXT)')
    connection.execute('CREATE TABLE alembic_version (version_num TEXT)')
    connection.executemany('INSERT INTO songs VALUES (?)', [('la' * 500,)] * 100)
    connection.commit()
    return connection


def content(folder):
    """Return the content of all files but the locks of those that read."""
    return {
        path.name: path.suffix.endswith('-shm') or path.read_bytes()
        for path in folder.iterdir()
    }


def refuse(file):
    before = content(file.parent)
    with pytest.raises(sqlite_file.UnusableFile) as raised:
        sqlite_file.check(str(file))
    assert content(file.parent) == before
    assert str(file) in str(raised.value)
    return str(raised.value)


def test_absent_and_empty_files_are_accepted(file):
    sqlite_file.check(str(file))
    file.touch()
    sqlite_file.check(str(file))
    assert file.read_bytes() == b''


def test_our_database_is_accepted_while_it_is_used(file):
    with our_database(file) as db:
        db.write(lambda session: session.value(sa.select(1)))
        sqlite_file.check(str(file))
    sqlite_file.check(str(file))


def test_our_database_is_accepted_after_a_crash(file, tmp_path):
    """Everything may still be in the write-ahead log."""
    with our_database(file):
        assert file.with_name(f'{file.name}-wal').stat().st_size
        copy = shutil.copytree(file.parent, tmp_path / 'copy')
    sqlite_file.check(str(copy / file.name))


def test_our_database_is_accepted_after_a_crash_in_a_checkpoint(file, tmp_path):
    """The write-ahead log still has what is torn in the file."""
    with our_database(file):
        copy = shutil.copytree(file.parent, tmp_path / 'copy') / file.name
    shutil.copy(file, copy)
    whole = copy.read_bytes()
    copy.write_bytes(whole[:100] + b'\xff' * 3996 + whole[4096:])
    sqlite_file.check(str(copy))


@pytest.mark.parametrize(
    'text', [b'x', b'notes to myself\n' * 99, b'SQLite format 3\0', bytes(512)]
)
def test_rubbish_is_refused(file, text):
    file.write_bytes(text)
    assert 'is not a database' in refuse(file)


@pytest.mark.parametrize('part', [0.01, 0.5, 0.99])
def test_a_file_that_was_cut_is_refused(file, part):
    with our_database(file):
        pass
    whole = file.read_bytes()
    file.write_bytes(whole[: int(part * len(whole))])
    assert 'damaged' in refuse(file)


def test_a_damaged_schema_is_refused(file):
    with our_database(file):
        pass
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + b'\xff' * 4000 + whole[4100:])
    assert 'damaged' in refuse(file)


@pytest.mark.parametrize('journal_mode', ['delete', 'wal'])
@pytest.mark.parametrize('is_open', [True, False])
def test_a_database_of_another_program_is_refused(file, journal_mode, is_open):
    connection = foreign_database(file, journal_mode)
    if not is_open:
        connection.close()
    assert 'alembic_version, songs' in refuse(file)
    connection.close()
