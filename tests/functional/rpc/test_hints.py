"""Hints over a real broker, past oslo.messaging, whatever becomes of either."""

import logging
import os
import queue
import re
import ssl
import subprocess
import sys
import threading
import time

import kombu
import pytest

from manila_lite.rpc import hints, rabbit, receiving
from tests.functional.rpc.conftest import HOST, PORT, RABBIT_URL, transport_to
from tests.support import broker as brokers, certificates, rpc_servers
from tests.support.broker_proxy import BrokerProxy
from tests.support.processes import wait_until

# A wait in the library for TLS cannot be interrupted by a signal.
pytestmark = pytest.mark.timeout(method='thread')

URL = RABBIT_URL.format(host=HOST, port=PORT)


@pytest.fixture
def bodies():
    return queue.Queue()


@pytest.fixture
def receive(bodies, topic):
    """Receive the hints for a server, without oslo.messaging."""
    made = []

    def start(server='one', transport=None, found=None):
        one = (transport or transport_to()).receiver.subscribe(
            topic, server, (found or bodies).put
        )
        made.append(one)
        wait_until(one.is_active.is_set, 'it receives', interval=0.005)
        return one

    yield start
    for one in made:
        one.cancel()


@pytest.fixture
def make_sender():
    made = []

    def make(transport=None, **options):
        made.append(hints.HintSender(transport or transport_to(), **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


_PAUSE = re.compile(r'up to ([\d.]+) s')


@pytest.fixture
def sender(make_sender):
    return make_sender()


def ids(bodies):
    return hints._from_body(bodies.get(timeout=10))


def all_ids(bodies, number):
    """Return so many ids, in however many messages they come."""
    found = []
    while len(found) < number:
        found += ids(bodies)
    return sorted(found)


def test_hint_goes_past_oslo_messaging(receive, sender, topic, bodies):
    receive()
    sender.send(topic, 'one', 'w1')
    assert ids(bodies) == ['w1']
    sender.stop()
    assert (sender.sent, sender.failed, sender.dropped) == (1, 0, 0)


def test_hints_of_one_transaction_leave_together(receive, sender, topic, bodies):
    receive()
    others = queue.Queue()
    receive('two', found=others)
    sender.send_all(
        [
            *((topic, 'one', f'w{n}') for n in range(20)),
            (topic, 'two', 'other'),
            (topic, 'one', 'w0'),
        ]
    )
    assert ids(bodies) == [f'w{n}' for n in range(20)]
    assert ids(others) == ['other']
    assert bodies.empty()


def test_hint_for_a_topic_reaches_one_of_its_servers(receive, sender, topic, bodies):
    receive('one')
    receive('two')
    for n in range(10):
        sender.send(topic, topic, f'w{n}')
    assert all_ids(bodies, 10) == [f'w{n}' for n in range(10)]
    sender.stop()
    assert bodies.empty()


def test_ended_server_takes_no_hint_of_the_others(receive, sender, topic, bodies):
    ended, process = queue.Queue(), transport_to()
    first = receive('one', process, ended)
    receive('two', process)
    first.cancel()
    for n in range(10):
        sender.send(topic, topic, f'w{n}')
    assert all_ids(bodies, 10) == [f'w{n}' for n in range(10)]
    assert ended.empty()


def old_listener(rpc_transport, topic, woken):
    """Listen as a service of the previous release does."""
    return rpc_transport.serve(topic, 'one', [hints._HintEndpoint(woken.put)])


@pytest.mark.parametrize('to_topic', [False, True])
def test_service_of_the_previous_release_gets_hints(
    rpc_transport, serving, make_sender, topic, to_topic
):
    woken = queue.Queue()
    serving(old_listener(rpc_transport, topic, woken))
    sender = make_sender(oldest_release=lambda *of: 1)
    queue_ = topic if to_topic else 'one'
    sender.send_all([(topic, queue_, f'w{n}') for n in range(3)])
    assert {woken.get(timeout=10) for _ in range(3)} == {'w0', 'w1', 'w2'}
    sender.send(topic, queue_, 'w3')
    assert woken.get(timeout=10) == 'w3'
    sender.stop()
    assert (sender.sent, sender.failed) == (4, 0)


def test_process_of_the_previous_release_is_heard(
    rpc_transport, serving, topic, receive
):
    woken = queue.Queue()
    serving(hints.HintListener(rpc_transport, topic, 'one', woken.put))
    rpc_transport.client(topic).to('one').cast(None, 'hint', {'work_id': 'w1'})
    assert woken.get(timeout=10) == 'w1'


def test_service_that_starts_later_gets_hints_past_oslo(
    receive, make_sender, topic, bodies
):
    now = 0.0
    sender = make_sender(clock=lambda: now)
    sender.send(topic, 'one', 'lost')
    wait_until(lambda: sender.failed, 'nobody has it')
    receive()
    now = hints.UNSERVED_KEPT
    sender.send(topic, 'one', 'w1')
    assert ids(bodies) == ['w1']


def test_lost_connections_are_made_again(proxy, receive, make_sender, topic, bodies):
    far = transport_to(port=proxy.port)
    receive(transport=far)
    sender = make_sender(far)
    sender.send(topic, 'one', 'before')
    assert ids(bodies) == ['before']
    proxy.cut()

    def is_noticed():
        # What is written before the end of the connection is seen is lost
        # without an error.
        sender.send(topic, 'one', 'during')
        return sender.failed

    wait_until(is_noticed, 'it is noticed')
    proxy.restore()

    def is_sent():
        sender.send(topic, 'one', 'after')
        return not bodies.empty()

    wait_until(is_sent, 'it is connected again')
    assert ids(bodies) == ['after']


def test_pauses_begin_again_after_a_connection_that_held(
    proxy, topic, caplog, monkeypatch
):
    caplog.set_level(logging.DEBUG, 'manila_lite.rpc.receiving')
    monkeypatch.setattr(rabbit, 'FIRST_PAUSE', 0.01)
    far, now = transport_to(port=proxy.port), 0.0
    receiver = receiving.Receiver(far._brokers, clock=lambda: now)
    one = receiver.subscribe(topic, 'one', print)

    def pauses():
        # Handlers that earlier tests have set up may have formatted a record.
        texts = (record.getMessage() for record in list(caplog.records))
        return [float(found[1]) for found in map(_PAUSE.search, texts) if found]

    def lose():
        wait_until(one.is_active.is_set, 'it receives', interval=0.005)
        caplog.clear()
        proxy.cut()
        wait_until(pauses, 'it waits', interval=0.005)
        first = pauses()[0]
        proxy.restore()
        return first

    assert (lose(), lose() > 0.01) == (0.01, True)
    wait_until(one.is_active.is_set, 'it receives', interval=0.005)
    now = rabbit.LONGEST_PAUSE
    assert lose() == 0.01
    one.cancel()


def test_another_host_is_used_when_one_is_down(receive, make_sender, topic, bodies):
    for n, near in enumerate(([1, PORT], [PORT, 1])):
        hosts = ','.join(f'guest:guest@{HOST}:{port}' for port in near)
        far = rpc_servers.transport_to(f'rabbit://{hosts}//')
        one = receive(transport=far)
        make_sender(far).send(topic, 'one', f'w{n}')
        assert ids(bodies) == [f'w{n}']
        one.cancel()


def test_silent_connection_is_given_up(proxy, receive, topic, bodies, sender):
    """Neither end is told when the network drops a connection."""
    far = transport_to(port=proxy.port)
    far._conf.set_override('heartbeat_timeout_threshold', 1, 'oslo_messaging_rabbit')
    one = receive(transport=far)
    proxy.freeze()
    wait_until(lambda: not one.is_active.is_set(), 'it is noticed')
    proxy.thaw()
    wait_until(one.is_active.is_set, 'it is connected again')
    sender.send(topic, 'one', 'w1')
    assert ids(bodies) == ['w1']


def test_blocked_broker_costs_hints_and_no_time(
    proxy, receive, make_sender, topic, bodies, caplog
):
    receive()
    sender = make_sender(transport_to(port=proxy.port))
    sender.send(topic, 'one', 'before')
    assert ids(bodies) == ['before']
    proxy.say(60, b'\x03low')  # connection.blocked
    wait_until(lambda: 'takes no hints' in caplog.text, 'it is heard')
    sender.send(topic, 'one', 'during')
    wait_until(lambda: sender.failed, 'it is dropped')
    proxy.cut()  # which such a broker may do, too
    proxy.restore()

    def arrives():
        # What was sent before the cut is noticed is lost.
        sender.send(topic, 'one', 'after')
        return not bodies.empty()

    wait_until(arrives, 'hints are taken again')
    assert set(ids(bodies)) == {'after'}


def test_blocked_broker_may_be_unblocked(
    proxy, receive, make_sender, topic, bodies, caplog
):
    caplog.set_level(logging.INFO, 'manila_lite')
    receive()
    sender = make_sender(transport_to(port=proxy.port))
    sender.send(topic, 'one', 'before')
    assert ids(bodies) == ['before']
    proxy.say(60, b'\x03low')
    proxy.say(61)  # connection.unblocked
    wait_until(lambda: 'takes hints again' in caplog.text, 'it is heard')
    sender.send(topic, 'one', 'after')
    assert ids(bodies) == ['after']


def test_deleted_queue_is_made_again(receive, sender, topic, bodies):
    one = receive()
    with kombu.Connection(URL.replace('rabbit:', 'amqp:')) as link:
        link.default_channel.queue_delete(f'manila-lite-hints.{topic}')
    wait_until(lambda: not one.is_active.is_set(), 'it is noticed', interval=0.001)
    wait_until(one.is_active.is_set, 'it receives again')
    sender.send(topic, topic, 'w1')
    assert ids(bodies) == ['w1']


def test_queue_that_cannot_be_shared_is_done_without(receive, sender, topic, bodies):
    """As when the broker that has it is down."""
    name = f'manila-lite-hints.{topic}'
    with kombu.Connection(URL.replace('rabbit:', 'amqp:')) as link:
        channel = link.default_channel
        channel.queue_declare(name, durable=False, exclusive=True)
        receive()
        sender.send(topic, topic, 'w1')
        sender.send(topic, 'one', 'w2')
        assert all_ids(bodies, 2) == ['w1', 'w2']


def test_nothing_of_a_service_is_left_on_the_broker(receive, topic, make_sender):
    receive().cancel()
    with (
        kombu.Connection(URL.replace('rabbit:', 'amqp:')) as link,
        pytest.raises(link.channel_errors),
    ):
        link.channel().queue_declare(f'manila-lite-hints.{topic}', passive=True)


def test_account_without_permission_sends_hints_the_way_of_calls(
    broker, serving, make_sender, topic, caplog
):
    with brokers.account(URL, '^(?!manila-lite-hints).*') as url:
        far = rpc_servers.transport_to(url)
        woken = queue.Queue()
        serving(hints.HintListener(far, topic, 'one', woken.put))
        sender = make_sender(far)
        for n in range(3):
            sender.send(topic, 'one', f'w{n}')
            assert woken.get(timeout=10) == f'w{n}'
        sender.stop()
        assert (sender.sent, sender.failed) == (3, 0)
        said = [one.message for one in caplog.records if 'may not' in one.message]
        assert len(said) == 2  # sender and receiver, once each
        assert far.refusals.reason is None
        assert 'secret' not in caplog.text


def test_refused_password_is_in_no_log(broker, make_sender, topic, caplog):
    caplog.set_level(logging.DEBUG, 'manila_lite')
    far = rpc_servers.transport_to(URL.replace('guest:guest', 'guest:wrong-secret'))
    one = far.receiver.subscribe(topic, 'one', print)
    sender = make_sender(far)
    sender.send(topic, 'one', 'w1')
    wait_until(lambda: sender.failed, 'it is refused')
    one.cancel()
    assert 'ACCESS_REFUSED' in caplog.text
    assert 'wrong-secret' not in caplog.text


@pytest.mark.parametrize('address, is_trusted', [(HOST, True), ('127.0.0.9', False)])
def test_broker_is_verified_by_the_ca_and_its_name(
    broker, tmp_path, receive, make_sender, topic, bodies, address, is_trusted
):
    certificates.make(tmp_path, address)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / 'server.pem')
    proxy = BrokerProxy(HOST, PORT, tls)
    far = transport_to(port=proxy.port)
    for name, value in {'ssl': True, 'ssl_ca_file': str(tmp_path / 'ca.pem')}.items():
        far._conf.set_override(name, value, 'oslo_messaging_rabbit')
    sender = make_sender(far)
    if is_trusted:
        receive(transport=far)
        sender.send_all([(topic, 'one', 'w1')])
        assert ids(bodies) == ['w1']
    else:
        receive()
        sender.send(topic, 'one', 'w1')
        wait_until(lambda: sender.failed, 'it is refused')
        assert bodies.empty()
    sender.stop()
    proxy.cut()


def switches(name):
    """Return how often a thread of this process has begun to wait."""
    thread = [one for one in threading.enumerate() if one.name == name][-1]
    with open(f'/proc/self/task/{thread.native_id}/status') as lines:
        found = dict(line.split(':', 1) for line in lines)
    return int(found['voluntary_ctxt_switches'])


def test_nothing_polls(receive, sender, topic, bodies):
    receive()
    receive('two')
    sender.send(topic, 'one', 'w1')
    assert ids(bodies) == ['w1']
    seen = []

    def waits():
        """Whether neither thread has run during the last 20 looks, a second."""
        seen.append((switches('hints-in'), switches('hints')))
        return seen[-20:] == [seen[-1]] * 20

    wait_until(waits, 'both threads wait', timeout=10)


def test_stop_is_prompt_while_the_broker_hangs(proxy, receive, make_sender, topic):
    far = transport_to(port=proxy.port)
    one = receive(transport=far)
    sender = make_sender(far)
    sender.send(topic, 'one', 'w1')
    wait_until(lambda: sender.sent, 'it is connected')
    proxy.freeze()
    began = time.monotonic()
    sender.stop(timeout=0.3)
    one.cancel()
    assert time.monotonic() - began < 2


def test_forked_process_has_a_connection_of_its_own(receive, sender, topic, bodies):
    receive()
    sender.send(topic, 'one', 'parent')
    assert ids(bodies) == ['parent']
    child = os.fork()
    if child == 0:
        try:
            sender.send(topic, 'one', 'child')
            sender.stop(timeout=10)
        finally:
            os._exit(0)
    assert ids(bodies) == ['child']
    os.waitpid(child, 0)
    sender.send(topic, 'one', 'parent again')
    assert ids(bodies) == ['parent again']


EVENTLET = """
import eventlet
eventlet.monkey_patch()
import sys, queue
from manila_lite import conf as options
from manila_lite.rpc import hints, transport
transport.init_backend(threading=False)
import oslo_messaging
conf = options.new()
oslo_messaging.TransportURL(conf)
conf.set_override('transport_url', sys.argv[1])
rpc_transport = transport.Transport(conf)
woken = queue.Queue()
one = rpc_transport.receiver.subscribe(
    sys.argv[2], 'one', lambda body: woken.put(hints._from_body(body)))
while not one.is_active.is_set():
    eventlet.sleep(0.01)
sender = hints.HintSender(rpc_transport)
for n in range(3):
    sender.send(sys.argv[2], 'one', f'w{n}')
    print(*woken.get(timeout=10))
sender.stop()
one.cancel()
print(sender.sent, sender.failed)
"""


def test_hints_work_under_eventlet(broker, topic):
    done = subprocess.run(
        [sys.executable, '-c', EVENTLET, URL, topic],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.stdout.split() == ['w0', 'w1', 'w2', '3', '0'], done.stderr
