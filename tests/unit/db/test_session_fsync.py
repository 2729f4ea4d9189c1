"""Which commits wait for the disk on SQLite."""

import pytest
import sqlalchemy as sa

FULL, NORMAL = 2, 1

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


def mode(session):
    return session.value(sa.text('PRAGMA synchronous'))


@on_sqlite
def test_commit_waits_for_the_disk_by_default(db):
    modes = [db.write(mode), db.write(mode, fsync=False), db.write(mode)]
    assert modes == [FULL, NORMAL, FULL]


def test_commit_without_fsync_is_visible_at_once(db, new_database, add_share):
    add_share('s', fsync=False)
    found = new_database().read(
        lambda session: session.value(sa.text('SELECT id FROM shares'))
    )
    assert found == 's'
