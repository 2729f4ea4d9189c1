import pytest

from manila_lite import conf as configuration
from manila_lite.db.session import Database
from manila_lite.policies.enforcer import Enforcer
from tests.functional.api.plain import client
from tests.support.databases import empty_tables
from tests.support.databases import share_statements

DEFAULT_TYPE = 'default'


class Clock:
    """A clock that only the test advances."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope='session')
def conf(tmp_path_factory):
    file = tmp_path_factory.mktemp('conf') / 'manila_lite.conf'
    file.write_text(f'[DEFAULT]\ndefault_share_type = {DEFAULT_TYPE}\n')
    return configuration.new(files=[str(file)])


@pytest.fixture(scope='session')
def enforcer(tmp_path_factory):
    folder = tmp_path_factory.mktemp('policy')
    return Enforcer(configuration.new(['--config-dir', str(folder)]))


@pytest.fixture
def api(shared_database, conf, enforcer, clock):
    """Return a client of the application on SQLite with empty tables."""
    url = shared_database('sqlite')
    empty_tables(url)
    db = share_statements(Database(url, clock=clock))
    yield client.Api(db, conf, enforcer)
    db.dispose()


@pytest.fixture
def api_on_every_database(database_url, conf, enforcer):
    """Return a client of the application, on each database in turn."""
    db = share_statements(Database(database_url))
    yield client.Api(db, conf, enforcer)
    db.dispose()
