import pytest

from tests.functional.engine.service_process import ServiceProcess


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
    """A process with services that run in threads."""
    return build_node().start()


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
