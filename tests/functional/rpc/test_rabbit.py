"""Hints and calls over a real broker, and when the broker is lost."""

import queue
import threading
import time

import kombu
import pytest

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.rpc import hints, listening
from tests.functional.rpc.conftest import HOST, PORT, transport_to
from tests.support import rpc_servers
from tests.support.processes import wait_until


@pytest.fixture
def ctx():
    return RequestContext(user_id='u1', project_id='p1', auth_token='secret')


class Endpoint:
    """Answers, refuses, or waits until the test opens the gate."""

    def __init__(self):
        self.gate = threading.Event()

    def who(self, ctx, question):
        return [ctx.user_id, ctx.project_id, ctx.auth_token, question]

    def refuse(self, ctx):
        raise exception.ShareNotFound(share_id='s1')

    def wait(self, ctx):
        self.gate.wait(10)

    for method in (who, refuse, wait):
        method.exposed = True


@pytest.fixture
def endpoint():
    endpoint = Endpoint()
    yield endpoint
    endpoint.gate.set()


@pytest.fixture
def woken():
    return queue.Queue()


@pytest.fixture
def listener(rpc_transport, serving, topic, woken, endpoint):
    return serving(
        hints.HintListener(rpc_transport, topic, 'one', woken.put, [endpoint])
    )


def test_hints_reach_the_queue_and_calls_are_answered(
    rpc_transport, listener, topic, woken, ctx
):
    sender = hints.HintSender(rpc_transport)
    sender.send(topic, 'one', 'w1')
    sender.send(topic, topic, 'w2')
    assert {woken.get(timeout=10), woken.get(timeout=10)} == {'w1', 'w2'}
    answer = rpc_transport.client(topic, 'one').call(
        ctx, 'who', {'question': {'n': 1}}, timeout=10
    )
    assert answer == ['u1', 'p1', None, {'n': 1}]
    sender.stop()
    assert (sender.sent, sender.failed) == (2, 0)


def test_errors_come_back_as_they_were_raised(rpc_transport, listener, topic, ctx):
    with pytest.raises(exception.ShareNotFound) as caught:
        rpc_transport.client(topic).call(ctx, 'refuse', {}, timeout=10)
    assert str(caught.value) == 'Share s1 could not be found.'


def test_call_without_a_reply_times_out(rpc_transport, listener, topic, ctx):
    with pytest.raises(exception.ServiceUnavailable):
        rpc_transport.client(topic, 'one').call(ctx, 'wait', {}, timeout=0.3)


def test_messages_without_a_listener_fail_at_once(rpc_transport, listener, topic, ctx):
    begin = time.monotonic()
    with pytest.raises(exception.ServiceUnavailable):
        rpc_transport.client(topic, 'two').call(ctx, 'who', {'question': 1}, timeout=60)
    sender = hints.HintSender(rpc_transport)
    sender.send(topic, 'two', 'w1')
    sender.stop(timeout=10)
    assert (sender.sent, sender.failed) == (0, 1)
    assert time.monotonic() - begin < 20


def test_hint_waits_for_a_service_that_is_down(rpc_transport, topic, woken, serving):
    first = hints.HintListener(rpc_transport, topic, 'one', woken.put)
    first.start()
    first.stop()
    sender = hints.HintSender(rpc_transport)
    sender.send(topic, 'one', 'w1')
    sender.stop(timeout=10)
    assert sender.sent == 1
    serving(hints.HintListener(rpc_transport, topic, 'one', woken.put))
    assert woken.get(timeout=10) == 'w1'


def test_a_lost_connection_loses_only_hints(proxy, listener, topic, woken):
    far = transport_to(port=proxy.port)

    def send(work_id):
        sender = hints.HintSender(far)
        sender.send(topic, 'one', work_id)
        sender.stop(timeout=20)
        return sender.sent, sender.failed

    assert send('before') == (1, 0)
    assert woken.get(timeout=10) == 'before'
    proxy.cut()
    assert send('during') == (0, 1)
    proxy.restore()
    assert send('after') == (1, 0)
    assert woken.get(timeout=10) == 'after'
    far.close()


def test_service_starts_without_its_broker_and_listens_later(
    proxy, rpc_transport, topic, woken, monkeypatch, caplog
):
    monkeypatch.setattr(listening, 'BROKER_TIMEOUT', 0.2)
    proxy.cut()
    listener = hints.HintListener(
        transport_to(port=proxy.port), topic, 'one', woken.put
    )
    listener.start()
    assert 'does not answer' in caplog.text
    proxy.restore()
    listener._server._starter.join(20)
    sender = hints.HintSender(rpc_transport)
    sender.send(topic, 'one', 'w1')
    assert woken.get(timeout=10) == 'w1'
    sender.stop()
    listener.stop()


WORDS = {
    'password': listening.REASONS[403],
    'virtual host': listening.REASONS[530],
    'queue': listening.REASONS[406],
    'exchange': listening.REASONS[406],
}
"""What a broker may refuse at the start, and what is said about it."""


@pytest.fixture(params=WORDS)
def refusal(request, topic):
    """A URL or topic that the broker refuses, and what undoes that."""
    near = f'{HOST}:{PORT}'
    url = f'rabbit://guest:guest@{near}//'
    if request.param == 'password':
        url = f'rabbit://guest:wrong-secret@{near}//'
    elif request.param == 'virtual host':
        url = f'rabbit://guest:guest@{near}/missing-{topic}'
    with kombu.Connection(f'amqp://guest:guest@{near}//') as link:
        channel = link.default_channel
        if request.param == 'queue':
            channel.queue_declare(topic, durable=True, auto_delete=False)
        elif request.param == 'exchange':
            channel.exchange_declare(f'{topic}_fanout', 'direct')

        def undo():
            channel.queue_delete(topic)
            channel.exchange_delete(f'{topic}_fanout')

        yield request.param, url, undo


def test_service_starts_while_its_broker_refuses_it(
    refusal, topic, woken, monkeypatch, caplog, serving
):
    """It says why, once a minute, and listens when it is accepted."""
    monkeypatch.setattr(listening, 'PAUSE', 0.05)
    kind, url, undo = refusal
    far = rpc_servers.transport_to(url)
    for server in ('one', 'two'):
        serving(hints.HintListener(far, topic, server, woken.put))
    wait_until(lambda: listening.send_ping(far, topic) is not None, 'it is known')
    assert listening.send_ping(far, topic) == f'the broker {WORDS[kind]}'
    sender = hints.HintSender(far)
    sender.send(topic, 'one', 'w1')
    sender.stop(timeout=20)
    assert (sender.sent, sender.failed) in ((0, 1), (1, 0))
    said = [one for one in caplog.records if WORDS[kind] in one.message]
    assert len(said) == 1
    assert 'wrong-secret' not in caplog.text
    threads = [one.threadName for one in caplog.records]
    assert sum(name.startswith(listening.THREAD) for name in threads) == 1
    if kind in ('queue', 'exchange'):
        undo()
        wait_until(lambda: far.refusals.reason is None, 'it listens')
        sender = hints.HintSender(far)
        sender.send(topic, 'one', 'w2')
        while woken.get(timeout=10) != 'w2':
            pass  # the exchange kind has accepted the first one
        sender.stop()
