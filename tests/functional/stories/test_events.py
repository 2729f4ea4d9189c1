"""Events of real processes over a real broker that comes and goes."""

import json

import kombu
import pytest

from manila_lite.db.queries.work import events
from tests.support import broker
from tests.support.processes import wait_until
from tests.support.relay import Relay

QUEUE = 'notifications.info'
SECTIONS = """
[events]
enabled = true
interval = 0.1
[oslo_messaging_notifications]
transport_url = {url}
"""


class Received:
    """The events in the queue, each read once."""

    def __init__(self, url):
        self.link = kombu.Connection(url.replace('rabbit:', 'amqp:'))
        self.payloads = []

    def of(self, share_id):
        """Return the moves of the instance of a share, without repeats."""
        channel = self.link.default_channel
        channel.queue_declare(QUEUE, passive=True)
        while (message := channel.basic_get(QUEUE)) is not None:
            channel.basic_ack(message.delivery_tag)
            envelope = json.loads(json.loads(message.body)['oslo.message'])
            self.payloads.append(envelope['payload'])
        return list(
            dict.fromkeys(
                payload['event']
                for payload in self.payloads
                if payload.get('share_id') == share_id
                and payload['resource'] == 'share_instance'
            )
        )


@pytest.fixture
def relay():
    with Relay(*broker.address()) as relay:
        yield relay


@pytest.fixture
def service(install, broker_url, relay):
    host, port = broker.address()
    url = broker_url.replace(f'{host}:{port}', f'127.0.0.1:{relay.port}')
    one = install(
        options='default_share_type = default\n', sections=SECTIONS.format(url=url)
    ).start()
    one.rest().make_default_type()
    # What happens before the first pass of the sender is not sent.
    wait_until(lambda: one.db.read(events.find_start) is not None, 'events begin')
    return one


def wait_for(received, share_id, *moves):
    def has_arrived():
        try:
            return received.of(share_id) == list(moves)
        except (*received.link.channel_errors, *received.link.connection_errors):
            # There is no such queue yet, or the broker is just making it.
            received.link.close()
            return False

    # The lease of a killed sender ends before the next one connects.
    wait_until(has_arrived, f'{moves} of {share_id} have arrived', 120)


def test_events_survive_the_loss_of_broker_and_process(service, broker_url, relay):
    received = Received(broker_url)
    first = service.rest().create_available()['id']
    wait_for(received, first, 'create', 'created')
    relay.cut()
    second = service.rest().create_available()['id']
    service.kill_and_restart('serve')
    assert received.of(second) == []
    relay.mend()
    wait_for(received, second, 'create', 'created')
    service.rest().request('DELETE', f'/shares/{second}', expect=202)
    wait_for(received, second, 'create', 'created', 'delete', 'deleted')
    received.link.release()


def test_events_without_a_broker_are_refused_at_the_start(install):
    one = install(
        options='default_share_type = default\n', sections='[events]\nenabled = true\n'
    )
    with pytest.raises(AssertionError, match='events need a message broker'):
        one.start()
