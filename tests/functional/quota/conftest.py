import pytest

from manila_lite.db.session import Database
from tests.functional.quota import quota_rows
from tests.support.databases import share_statements


@pytest.fixture
def db(database_url):
    database = share_statements(Database(database_url))
    yield database
    database.dispose()


@pytest.fixture
def types(db):
    db.write(quota_rows.add_types)
