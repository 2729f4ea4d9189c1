import pytest

from tests.support.replicated import ReplicatedCloud


@pytest.fixture
def build_cloud(build_cloud):
    """`build_cloud(style='readable', **options)` builds a replicated cloud."""

    def build(style='readable', *, kind=ReplicatedCloud, **options):
        return build_cloud(kind=kind, style=style, **options)

    return build


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()


@pytest.fixture
def share_id(cloud):
    """A share on alpha, without other replicas."""
    return cloud.create_share_on('alpha', size=2)
