"""A cloud with one back end that is at rest."""

import pytest


@pytest.fixture
def build_cloud(build_cloud):
    """Build a cloud with one back end that has started and is at rest."""

    def build(*args, backends=('alpha',), **options):
        cloud = build_cloud(*args, backends=backends, **options)
        cloud.settle()
        return cloud

    return build


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()
