"""How the data service is given access to the content of shares."""

import pytest

from manila_lite import exception
from manila_lite.context import RequestContext

CTX = RequestContext()


@pytest.fixture
def node(build_node):
    node = build_node(backends=['alpha'])
    node.nodes = [node]
    node.register()
    node.run()
    return node


def test_late_call_of_a_data_service_is_refused_and_other_work_goes_on(node):
    share_id = node.create(1)
    node.run()
    instance = node.target(share_id).instance_id
    connections = node.backend().endpoints.connections
    found = connections.get_connection(CTX, instance_id=instance, fence=1 << 60)
    assert 'directory' in found
    with pytest.raises(exception.StaleFencingToken) as refused:
        connections.get_connection(CTX, instance_id=instance, fence=7)
    assert refused.value.seen == 1 << 60
    # Work on the share itself has a token of its own.
    node.ask('extend', share_id, 2)
    node.run()
    assert node.outcome(share_id) == ('available', 2)
    connections.end_connection(CTX, instance_id=instance, fence=1 << 60)
