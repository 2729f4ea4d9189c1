"""Transports over `memory://`, with one exchange per test."""

import threading
import uuid

import pytest

from manila_lite.context import RequestContext
from tests.support.rpc_servers import running_servers, transport_to


@pytest.fixture
def exchange():
    return f'memory://{uuid.uuid4().hex}'


@pytest.fixture
def rpc_transport(exchange):
    return transport_to(exchange)


@pytest.fixture
def serving():
    """Start servers that are stopped after the test."""
    with running_servers() as start:
        yield start


@pytest.fixture
def ctx():
    return RequestContext(
        user_id='u1',
        project_id='p1',
        roles=['member'],
        auth_token='secret',
        request_id='req-1',
    )


class Received:
    """A list of received items that a test can wait for."""

    def __init__(self):
        self.items = []
        self._changed = threading.Condition()

    def add(self, item):
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()

    def wait(self, count, timeout=10):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.items) >= count, timeout), (
                self.items
            )
            return list(self.items)


@pytest.fixture
def received():
    return Received()


def exposed(function):
    function.exposed = True
    return function
