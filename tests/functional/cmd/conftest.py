"""A state directory, its database, and configuration files."""

import pytest
import sqlalchemy as sa

from manila_lite.db import models
from manila_lite.db.session import Database
from tests.support import databases
from tests.support.manage_command import manage


@pytest.fixture
def state(tmp_path):
    """A state directory with a database of our schema."""
    manage('db', 'sync', '--state-dir', str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def db(state):
    database = Database(f'sqlite:///{state}/manila_lite.sqlite')
    yield database
    database.dispose()


@pytest.fixture
def configured(tmp_path):
    """`configured(text)`: arguments that name a file with this text."""

    def write(text):
        path = tmp_path / 'manila.conf'
        path.write_text(text)
        return '--config-file', str(path)

    return write


@pytest.fixture(scope='module', params=databases.EACH)
def installed(request, tmp_path_factory):
    """The URL of a database of each kind, with our schema.

    The tests of a module share it.
    """
    folder = tmp_path_factory.mktemp('database')
    with databases.temporary_database(request.param, folder) as url:
        file = folder / 'sync.conf'
        file.write_text(f'[database]\nconnection = {url}\n')
        if request.param == 'sqlite':
            (folder / url.rpartition('/')[2]).touch()
        manage('db', 'sync', '--config-file', str(file))
        yield url


@pytest.fixture
def installed_db(installed):
    """That database, without rows."""
    database = Database(installed)
    database.write(_empty)
    yield database
    database.dispose()


def _empty(session):
    for table in reversed(models.metadata.sorted_tables):
        session.run(sa.delete(table))
