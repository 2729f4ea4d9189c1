"""Hints never block or break their sender."""

import itertools
import logging
import threading

from oslo_db import exception as db_exc
import pytest

from manila_lite import metrics
from manila_lite.rpc import hints
from tests.unit.rpc.conftest import exposed


class GatedTransport:
    """A transport whose messages leave when the test opens the gate."""

    def __init__(self, rpc_transport):
        self.gate = threading.Event()
        self.reached = threading.Event()
        self._transport = rpc_transport

    def publisher(self, returned):
        return self._transport.publisher(returned)

    def client(self, topic):
        self.reached.set()
        assert self.gate.wait(10)
        return self._transport.client(topic)


@pytest.fixture
def listener(rpc_transport, serving, received):
    return serving(
        hints.HintListener(rpc_transport, 'manila-share', 'host@one', received.add)
    )


@pytest.fixture
def gated(rpc_transport):
    gated = GatedTransport(rpc_transport)
    yield gated
    gated.gate.set()


def test_hint_wakes_the_service_of_the_queue(
    rpc_transport, listener, received, serving
):
    others = []
    serving(
        hints.HintListener(rpc_transport, 'manila-share', 'host@two', others.append)
    )
    sender = hints.HintSender(rpc_transport)
    for work_id in ('w1', 'w2'):
        sender.send('manila-share', 'host@one', work_id)
    sender.stop()
    assert sorted(received.wait(2)) == ['w1', 'w2']
    assert others == []
    assert (sender.sent, sender.failed, sender.dropped) == (2, 0, 0)


def test_hint_to_the_queue_of_a_topic_wakes_any_service(
    rpc_transport, serving, received
):
    for server in ('here', 'there'):
        serving(
            hints.HintListener(rpc_transport, 'manila-scheduler', server, received.add)
        )
    sender = hints.HintSender(rpc_transport)
    for number in range(4):
        sender.send('manila-scheduler', 'manila-scheduler', f'w{number}')
    assert sorted(received.wait(4)) == ['w0', 'w1', 'w2', 'w3']
    sender.stop()
    assert sender.sent == 4


def test_hints_and_calls_share_one_server(rpc_transport, serving, received, ctx):
    class Endpoint:
        @exposed
        def ask(self, ctx):
            return 'answer'

    serving(
        hints.HintListener(
            rpc_transport, 'manila-share', 'host@one', received.add, [Endpoint()]
        )
    )
    sender = hints.HintSender(rpc_transport)
    client = rpc_transport.client('manila-share', 'host@one')
    for number in range(5):
        sender.send('manila-share', 'host@one', f'w{number}')
        assert client.call(ctx, 'ask', {}, 5) == 'answer'
    received.wait(5)
    sender.stop()


def test_duplicate_hints_are_sent_once(gated, listener, received):
    sender = hints.HintSender(gated)
    sender.send('manila-share', 'host@one', 'first')
    assert gated.reached.wait(10)
    for _ in range(50):
        sender.send('manila-share', 'host@one', 'again')
    gated.gate.set()
    sender.stop()
    assert sorted(received.wait(2)) == ['again', 'first']
    assert (sender.sent, sender.dropped) == (2, 0)


class CountingTransport(GatedTransport):
    """Notes the messages that leave: a server handles several at once."""

    def __init__(self, rpc_transport):
        super().__init__(rpc_transport)
        self.sent = []

    def client(self, topic):
        return CountingClient(super().client(topic), self.sent)

    @property
    def hints(self):
        return list(itertools.chain.from_iterable(self.sent))


class CountingClient:
    def __init__(self, client, sent):
        self._client, self._sent = client, sent

    def to(self, server):
        return CountingClient(self._client.to(server), self._sent)

    def cast(self, ctx, method, args):
        self._sent.append([args['work_id'], *args.get('more', ())])
        self._client.cast(ctx, method, args)


def send_while_one_is_sent(transport_, sender, number):
    """Send a hint, and others while the broker has not confirmed it."""
    sender.send('manila-share', 'host@one', 'first')
    assert transport_.reached.wait(10)
    for n in range(number):
        sender.send('manila-share', 'host@one', f'w{n}')
    transport_.gate.set()
    sender.stop(timeout=10)
    return ['first', *(f'w{n}' for n in range(number))]


def test_hints_that_wait_leave_in_few_messages(rpc_transport, listener, received):
    counting = CountingTransport(rpc_transport)
    sender = hints.HintSender(counting)
    number = 2 * hints.BATCH + 1
    sent = send_while_one_is_sent(counting, sender, number)
    assert counting.hints == sent
    assert sorted(received.wait(len(sent))) == sorted(sent)
    assert len(counting.sent) == 1 + 3
    assert (sender.sent, sender.failed) == (len(sent), 0)


@pytest.mark.parametrize('oldest, messages', [(1, 6), (2, 2), (3, 2), (None, 2)])
def test_services_of_the_previous_release_get_single_hints(
    rpc_transport, listener, received, oldest, messages
):
    asked = []

    def oldest_release(topic, host):
        asked.append((topic, host))
        return oldest

    counting = CountingTransport(rpc_transport)
    sender = hints.HintSender(counting, oldest_release=oldest_release)
    sent = send_while_one_is_sent(counting, sender, 5)
    assert counting.hints == sent
    assert sorted(received.wait(len(sent))) == sorted(sent)
    assert len(counting.sent) == messages
    assert asked == [('manila-share', None)]


def test_hints_leave_one_by_one_while_the_database_is_away(
    rpc_transport, listener, received
):
    def oldest_release(topic, host):
        raise db_exc.DBConnectionError

    counting = CountingTransport(rpc_transport)
    sender = hints.HintSender(counting, oldest_release=oldest_release)
    sent = send_while_one_is_sent(counting, sender, 5)
    assert counting.hints == sent
    assert sorted(received.wait(len(sent))) == sorted(sent)
    assert len(counting.sent) == 6


def test_many_hints_for_one_queue_do_not_delay_those_for_another(
    rpc_transport, listener, received, serving
):
    serving(hints.HintListener(rpc_transport, 'manila-share', 'host@two', received.add))
    counting = CountingTransport(rpc_transport)
    sender = hints.HintSender(counting)
    sender.send('manila-share', 'host@one', 'first')
    assert counting.reached.wait(10)
    for n in range(3 * hints.BATCH):
        sender.send('manila-share', 'host@one', f'w{n}')
    sender.send('manila-share', 'host@two', 'other')
    counting.gate.set()
    sender.stop(timeout=10)
    assert counting.sent.index(['other']) <= 3
    assert 'other' in received.wait(2 + 3 * hints.BATCH)


def test_hint_beyond_the_capacity_is_dropped_and_never_waits(gated, listener):
    sender = hints.HintSender(gated, capacity=3)
    sender.send('manila-share', 'host@one', 'in hand')
    assert gated.reached.wait(10)
    for number in range(10):
        sender.send('manila-share', 'host@one', f'w{number}')
    assert sender.dropped == 7
    gated.gate.set()
    sender.stop()
    assert sender.sent == 4


def test_sent_and_lost_hints_are_counted(gated, listener):
    counters = metrics.HINTS_SENT, metrics.HINTS_LOST
    before = [one.family().samples[()] for one in counters]
    sender = hints.HintSender(gated, capacity=1)
    for work_id in ('in hand', 'waiting', 'beyond'):
        sender.send('manila-share', 'host@one', work_id)
        assert gated.reached.wait(10)
    gated.gate.set()
    sender.stop()
    assert [one.family().samples[()] for one in counters] == [
        before[0] + 2,
        before[1] + 1,
    ]


def test_stop_drops_hints_that_cannot_be_sent_in_time(gated, listener, received):
    sender = hints.HintSender(gated)
    sender.send('manila-share', 'host@one', 'in hand')
    assert gated.reached.wait(10)
    sender.send('manila-share', 'host@one', 'left')
    sender.stop(timeout=0.05)
    sender.send('manila-share', 'host@one', 'too late')
    assert (sender.sent, sender.dropped) == (0, 2)
    gated.gate.set()
    sender.stop(timeout=10)
    assert received.wait(1) == ['in hand']
    assert (sender.sent, sender.dropped) == (1, 2)


def test_lost_hints_are_counted_and_logged_now_and_then(rpc_transport, caplog):
    sender = hints.HintSender(rpc_transport, clock=lambda: 1000.0)
    with caplog.at_level(logging.WARNING, hints.__name__):
        for number in range(20):
            sender.send('manila-share', f'host@nobody{number}', 'w')
        sender.stop()
    assert (sender.sent, sender.failed) == (0, 20)
    assert len(caplog.records) == 1
    assert '1 since the start' in caplog.text


def test_lost_hints_are_logged_again_after_a_minute(rpc_transport, caplog):
    minutes = itertools.count(step=60)
    sender = hints.HintSender(rpc_transport, clock=lambda: next(minutes))
    with caplog.at_level(logging.WARNING, hints.__name__):
        for number in range(3):
            sender.send('manila-share', f'host@nobody{number}', 'w')
        sender.stop()
    assert len(caplog.records) == 3
    for number, record in enumerate(caplog.records, 1):
        # Handlers that earlier tests have set up may have formatted it.
        assert f'({number} since the start)' in record.getMessage()
