"""A process that the test steps, and a share on it."""

import pytest


@pytest.fixture
def node(build_node):
    node = build_node(backends=['alpha'])
    node.register()
    node.run()
    return node


@pytest.fixture
def share(node):
    """A share of 3 GiB."""
    share = node.create(3)
    node.run()
    return share
