"""A real RabbitMQ; each test has its own topic, removed afterwards."""

import socket
import uuid

import pytest

from tests.support import requirements, rpc_servers
from tests.support.broker_proxy import BrokerProxy

HOST, PORT = '127.0.0.1', 5672
RABBIT_URL = 'rabbit://guest:guest@{host}:{port}//'


def transport_to(host=HOST, port=PORT):
    return rpc_servers.transport_to(RABBIT_URL.format(host=host, port=port))


@pytest.fixture(scope='session')
def broker():
    try:
        socket.create_connection((HOST, PORT), 2).close()
    except OSError as error:
        requirements.missing(f'no RabbitMQ at {HOST}:{PORT}: {error}')


@pytest.fixture
def topic(broker):
    """A topic for this test; its queues are deleted afterwards."""
    import kombu

    topic = f'test-{uuid.uuid4().hex}'
    yield topic
    with kombu.Connection(f'amqp://guest:guest@{HOST}:{PORT}//') as link:
        for queue in (topic, f'{topic}.one', f'{topic}.two'):
            link.default_channel.queue_delete(queue)
        link.default_channel.exchange_delete(f'{topic}_fanout')


@pytest.fixture
def rpc_transport(broker):
    rpc_transport = transport_to()
    yield rpc_transport
    rpc_transport.close()


@pytest.fixture
def serving(topic):
    """Start servers that are stopped before the topic is removed."""
    with rpc_servers.running_servers() as start:
        yield start


@pytest.fixture
def proxy(broker):
    proxy = BrokerProxy(HOST, PORT)
    yield proxy
    proxy.thaw()
    proxy.cut()
