"""A share on a process that the test steps."""

import pytest


@pytest.fixture
def copies_clouds():
    return True


@pytest.fixture
def share(node):
    """A share of 3 GiB."""
    share = node.create(3)
    node.run()
    return share
