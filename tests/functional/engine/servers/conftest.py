"""Fixtures for clouds with share servers on one back end."""

import pytest

from tests.support.dhss import ShareServersCloud


@pytest.fixture
def build_cloud(build_cloud):
    """Build a cloud with one back end, whose invariants are checked."""
    built = []

    def build(*args, **options):
        built.append(
            build_cloud(
                *args, kind=ShareServersCloud, backends=['alpha'], **options
            )
        )
        return built[-1]

    yield build
    for cloud in built:
        cloud.check_invariants()


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()
