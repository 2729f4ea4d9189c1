import pytest

from manila_lite.db.session import Database
from tests.support.databases import database_url
from tests.support.databases import shared_database

__all__ = ['database_url', 'shared_database']


@pytest.fixture
def db(database_url):
    database = Database(database_url)
    yield database
    database.dispose()
