"""Fixtures for clouds with share servers on one back end."""

import pytest

from tests.support.dhss import ShareServersCloud


@pytest.fixture
def build_cloud(build_cloud):
    """Build a cloud with one back end, and check its invariants at the end.

    A test that asks for another kind of cloud gets just that.
    """
    built = []

    def build(*args, **options):
        if 'kind' in options:
            return build_cloud(*args, **options)
        built.append(
            build_cloud(*args, kind=ShareServersCloud, backends=['alpha'], **options)
        )
        return built[-1]

    yield build
    for cloud in built:
        cloud.check_invariants()


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()
