import pytest

from tests.support.replica_updates import rewindable_cloud


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    """Return a function that rewinds the cloud of a module."""
    with rewindable_cloud(tmp_path_factory.mktemp('updates')) as begin:
        yield begin


@pytest.fixture
def cloud(begin):
    return begin()
