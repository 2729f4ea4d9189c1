"""Whether messages can be sent is known without waiting for the answer."""

import pytest

from manila_lite.rpc import bus_probe
from tests.support.clock import ManualClock
from tests.support.processes import free_port
from tests.support.processes import wait_until
from tests.support.rpc_servers import transport_to


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def asked(clock):
    """`asked(transport)`: the probe, after its first answer."""

    def asked(transport):
        probe = bus_probe.BusProbe(transport, 'topic', clock)
        probe()
        wait_until(lambda: probe.has_answer, 'an answer')
        return probe

    return asked


def test_bus_that_accepts_messages_works(asked, rpc_transport, serving):
    assert asked(rpc_transport)() is None


def test_broker_that_cannot_be_reached_is_noticed(asked):
    probe = asked(transport_to(f'rabbit://me:pw@127.0.0.1:{free_port()}/'))
    assert probe() == 'does not accept messages'


def test_message_is_sent_at_most_every_ten_seconds(clock, exchange):
    sent = []

    class Transport:
        def client(self, topic):
            sent.append(topic)
            return transport_to(exchange).client(topic)

    probe = bus_probe.BusProbe(Transport(), 'topic', clock)
    for number in range(1, 3):
        for _ in range(5):
            probe()
            wait_until(lambda: probe.has_answer, 'an answer')
        assert len(sent) == number
        clock.now += bus_probe.INTERVAL
