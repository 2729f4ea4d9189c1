"""A real RabbitMQ; each test has its own topic, removed afterwards."""

import os
import socket
import uuid
import warnings

import pytest

from manila_lite import conf as options
from manila_lite.rpc import transport

transport.init_backend(threading=True)

HOST, PORT = '127.0.0.1', 5672
RABBIT_URL = 'rabbit://guest:guest@{host}:{port}//'


def transport_to(host=HOST, port=PORT):
    import oslo_messaging

    conf = options.new()
    oslo_messaging.TransportURL(conf)
    conf.set_override('transport_url', RABBIT_URL.format(host=host, port=port))
    return transport.Transport(conf)


@pytest.fixture(scope='session')
def broker():
    try:
        socket.create_connection((HOST, PORT), 2).close()
    except OSError as error:
        missing = f'no RabbitMQ at {HOST}:{PORT}: {error}'
        if os.environ.get('CI'):
            pytest.fail(missing)
        warnings.warn(f'{missing}; not tested', stacklevel=1)
        pytest.skip(missing)


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
    servers = []

    def start(server):
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
