"""Whether messages can be sent."""

from manila_lite.rpc import listening
from tests.support.processes import free_port
from tests.support.rpc_servers import transport_to


def test_bus_that_accepts_messages_works(rpc_transport, serving):
    assert listening.send_ping(rpc_transport, 'topic') is None


def test_broker_that_cannot_be_reached_is_noticed():
    transport = transport_to(f'rabbit://me:pw@127.0.0.1:{free_port()}/')
    assert listening.send_ping(transport, 'topic') == listening.SILENT
