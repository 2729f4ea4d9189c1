import pytest

from manila_lite.db.session import Database


@pytest.fixture
def connect(database_url):
    """`connect()` returns the database of another process."""
    opened = []

    def connect():
        opened.append(Database(database_url))
        return opened[-1]

    yield connect
    for db in opened:
        db.dispose()
