import pytest


@pytest.fixture(scope='module')
def stage(request, tmp_path_factory):
    """A scene, which is the parameter, that can be begun again and again."""
    with request.param.opened(tmp_path_factory.mktemp('stage')) as stage:
        yield stage
