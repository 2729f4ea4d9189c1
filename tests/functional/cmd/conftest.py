"""A state directory, its database, and configuration files."""

import pytest

from manila_lite.db.session import Database
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
