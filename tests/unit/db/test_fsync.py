"""Which commits wait for the disk; on servers that is their business."""

import pytest
import sqlalchemy as sa

FULL, NORMAL = 2, 1

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


def mode(session):
    return session.value(sa.text('PRAGMA synchronous'))


@on_sqlite
def test_a_commit_waits_unless_told_otherwise(db):
    modes = [db.write(mode), db.write(mode, fsync=False), db.write(mode)]
    assert modes == [FULL, NORMAL, FULL]


def test_what_does_not_wait_is_seen_at_once(db, new_database, add_share):
    add_share('s', fsync=False)
    found = new_database().read(
        lambda session: session.value(sa.text('SELECT id FROM shares'))
    )
    assert found == 's'
