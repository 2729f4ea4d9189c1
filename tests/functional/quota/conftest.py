import pytest

from manila_lite.db.session import Database
from tests.support.databases import database_url
from tests.support.databases import kept_database

__all__ = ['database_url', 'kept_database']


@pytest.fixture
def db(database_url):
    database = Database(database_url)
    yield database
    database.dispose()
