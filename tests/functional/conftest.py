"""Simulated clouds, and service processes in threads."""

from collections.abc import Callable, Iterator
import contextlib
import typing

import pytest

from tests.support.cloud import Cloud
from tests.support.service_process import ServiceProcess

_OWN = {'url', 'initialize', 'start'}
"""With one of these options, a cloud cannot be a copy of another."""


@pytest.fixture
def copies_clouds():
    """Whether clouds are copies, whose services start when needed."""
    return False


@pytest.fixture
def build_cloud(tmp_path, copies_clouds) -> Iterator[Callable[..., typing.Any]]:
    """`build_cloud(extra_conf, kind=Cloud, **options)` builds a cloud.

    All clouds of one test share a folder.
    """
    with contextlib.ExitStack() as stack:

        def build(extra_conf='', *, kind=Cloud, **options):
            options.setdefault('prepared', copies_clouds and _OWN.isdisjoint(options))
            cloud = kind(tmp_path, extra_conf=extra_conf, **options)
            stack.callback(cloud.db.dispose)
            return cloud

        yield build


@pytest.fixture
def build_node(database_url, tmp_path):
    """`build_node(**given)` adds a process on the same database."""
    built = []

    def build(**given):
        node = ServiceProcess(tmp_path, database_url, fill=not built, **given)
        built.append(node)
        for one in built:
            one.nodes = built
        return node

    yield build
    for node in built:
        node.stop()


@pytest.fixture
def node(build_node):
    """A process of one back end that the test steps itself."""
    node = build_node(backends=['alpha'])
    node.register()
    node.run()
    return node


@pytest.fixture
def two_nodes(build_node):
    """Two processes of one back end that the test steps itself.

    Each gets hints of its own work only.
    """
    nodes = [build_node(backends=['alpha']) for _ in range(2)]
    for node in nodes:
        node.nodes = [node]
        node.register()
        node.run()
    return nodes
