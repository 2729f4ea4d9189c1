import pytest

from tests.functional.api.world import World
from tests.support.cloud import Cloud


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A service with a share of a tenant, for all tests of a module."""
    world = World(tmp_path_factory.mktemp('world'))
    yield world
    world.cloud.db.dispose()


@pytest.fixture
def cloud(tmp_path):
    """A service with nothing but a share type."""
    cloud = Cloud(tmp_path)
    yield cloud
    cloud.db.dispose()
