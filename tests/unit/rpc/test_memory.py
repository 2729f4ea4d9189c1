"""The driver of memory:// behaves like a broker, only faster."""

import datetime
import pathlib
import statistics
import subprocess
import sys
import threading
import time

from oslo_db import exception as db_exc
import oslo_messaging
import pytest

from manila_lite import conf as options, exception
from manila_lite.db import errors
from tests.support.rpc_servers import transport_to
from tests.unit.rpc.conftest import Received, exposed


class Fault(Exception):
    pass


DATABASE_OUTAGES = {
    one.__name__: one
    for one in (
        db_exc.DBConnectionError,
        db_exc.DBDeadlock,
        errors.StaleConnection,
        errors.ReadOnlyServer,
    )
}


class Recorder:
    """Records casts, and answers calls in several ways."""

    def __init__(self, received=None):
        self.received = received or Received()
        self.gate = threading.Event()

    @exposed
    def note(self, ctx, **args):
        self.received.add((ctx, args))

    @exposed
    def echo(self, ctx, value):
        return value

    @exposed
    def wait(self, ctx):
        self.received.add('waiting')
        self.gate.wait(10)
        return 'late'

    @exposed
    def refuse(self, ctx):
        raise exception.ShareNotFound(share_id='s1')

    @exposed
    def break_down(self, ctx):
        raise Fault('a fault of the other side')

    @exposed
    def lose_database(self, ctx, error):
        raise DATABASE_OUTAGES[error]()

    def secret(self, ctx):
        self.received.add('secret')


@pytest.fixture
def recorder(rpc_transport, serving):
    recorder = Recorder()
    serving(rpc_transport.serve('topic', 'one', [recorder]))
    yield recorder
    recorder.gate.set()


def test_cast_arrives_as_a_copy(rpc_transport, recorder, ctx):
    sent = {'rows': [{'id': 1}], 'pair': (1, 2)}
    rpc_transport.client('topic').cast(ctx, 'note', sent)
    sent['rows'][0]['id'] = 2
    ((_, args),) = recorder.received.wait(1)
    assert args == {'rows': [{'id': 1}], 'pair': [1, 2]}


def test_caller_is_sent_without_the_token(rpc_transport, recorder, ctx):
    rpc_transport.client('topic').cast(ctx, 'note', {})
    ((arrived, _),) = recorder.received.wait(1)
    assert arrived is not ctx
    assert (arrived.user_id, arrived.project_id, arrived.roles, arrived.request_id) == (
        'u1',
        'p1',
        ['member'],
        'req-1',
    )
    assert arrived.auth_token is None
    assert ctx.auth_token == 'secret'


def test_call_returns_the_reply_as_json(rpc_transport, recorder, ctx):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5)
    answer = rpc_transport.client('topic', 'one').call(
        ctx, 'echo', {'value': {'at': moment, 'pair': (1, 2)}}, timeout=5
    )
    assert answer == {'at': '2026-01-02T03:04:05.000000', 'pair': [1, 2]}


def test_call_raises_our_error_as_the_server_raised_it(rpc_transport, recorder, ctx):
    with pytest.raises(exception.ShareNotFound) as caught:
        rpc_transport.client('topic').call(ctx, 'refuse', {}, timeout=5)
    assert type(caught.value) is exception.ShareNotFound
    assert str(caught.value) == 'Share s1 could not be found.'


def test_call_raises_remote_error_for_a_fault_of_the_server(
    rpc_transport, recorder, ctx
):
    with pytest.raises(oslo_messaging.RemoteError, match='fault of the'):
        rpc_transport.client('topic').call(ctx, 'break_down', {}, timeout=5)


@pytest.mark.parametrize('error', DATABASE_OUTAGES)
def test_call_of_a_server_without_its_database_may_be_repeated(
    rpc_transport, recorder, ctx, error
):
    with pytest.raises(exception.ServiceUnavailable, match=error):
        rpc_transport.client('topic').call(
            ctx, 'lose_database', {'error': error}, timeout=5
        )


def test_call_times_out_and_a_late_reply_is_ignored(rpc_transport, recorder, ctx):
    client = rpc_transport.client('topic')
    with pytest.raises(exception.ServiceUnavailable, match='wait'):
        client.call(ctx, 'wait', {}, timeout=0.05)
    recorder.gate.set()
    assert client.call(ctx, 'echo', {'value': 1}, timeout=5) == 1


def test_call_and_cast_without_a_listener_fail_at_once(rpc_transport, ctx):
    client = rpc_transport.client('topic', 'nobody')
    begin = time.monotonic()
    with pytest.raises(exception.ServiceUnavailable):
        client.call(ctx, 'echo', {'value': 1}, timeout=60)
    with pytest.raises(exception.ServiceUnavailable):
        client.cast(ctx, 'note', {})
    assert time.monotonic() - begin < 5


def test_only_exposed_methods_can_be_called(rpc_transport, recorder, ctx):
    with pytest.raises(exception.NewerReleaseNeeded):
        rpc_transport.client('topic').call(ctx, 'secret', {}, timeout=5)
    assert recorder.received.items == []


@pytest.mark.parametrize(
    'namespace, version', [(None, '1.0'), ('other', '1.0'), (None, '2.0')]
)
def test_unknown_methods_are_logged_once_and_without_a_stack(
    rpc_transport, recorder, ctx, caplog, namespace, version
):
    caplog.set_level('INFO')
    client = rpc_transport.client('topic', namespace=namespace, version=version)
    for _ in range(10):
        client.cast(ctx, 'later', {'work_id': 'w'})
    for _ in range(2):
        with pytest.raises(exception.NewerReleaseNeeded, match='later'):
            client.call(ctx, 'later', {'work_id': 'w'}, timeout=5)
    logged = [one for one in caplog.records if 'later' in one.getMessage()]
    assert [one.levelname for one in logged] == ['INFO']
    assert logged[0].exc_info is None
    assert not [one for one in caplog.records if one.levelname == 'ERROR']


def test_servers_of_one_topic_take_turns(rpc_transport, serving, ctx):
    recorders = [Recorder(), Recorder(), Recorder()]
    for number, recorder in enumerate(recorders):
        serving(rpc_transport.serve('topic', f'server{number}', [recorder]))
    client = rpc_transport.client('topic')
    for _ in range(6):
        client.cast(ctx, 'note', {})
    for recorder in recorders:
        assert len(recorder.received.wait(2)) == 2


def test_a_named_server_alone_gets_its_messages(rpc_transport, serving, ctx):
    recorders = {name: Recorder() for name in ('one', 'two')}
    for name, recorder in recorders.items():
        serving(rpc_transport.serve('topic', name, [recorder]))
    for _ in range(4):
        rpc_transport.client('topic').to('two').call(ctx, 'note', {}, timeout=5)
    assert len(recorders['two'].received.items) == 4
    assert recorders['one'].received.items == []


def test_fanout_reaches_every_server(rpc_transport, serving, ctx):
    recorders = [Recorder(), Recorder()]
    for number, recorder in enumerate(recorders):
        serving(rpc_transport.serve('topic', f'server{number}', [recorder]))
    target = oslo_messaging.Target(topic='topic', fanout=True)
    oslo_messaging.get_rpc_client(rpc_transport._transport, target).cast(
        {}, 'note', value=[1]
    )
    values = [recorder.received.wait(1)[0][1]['value'] for recorder in recorders]
    assert values == [[1], [1]]
    assert values[0] is not values[1]


def test_virtual_hosts_are_separate(exchange, rpc_transport, recorder, ctx):
    other, same = transport_to(exchange + 'x'), transport_to(exchange)
    with pytest.raises(exception.ServiceUnavailable):
        other.client('topic').call(ctx, 'echo', {'value': 1}, timeout=60)
    assert same.client('topic').call(ctx, 'echo', {'value': 1}, 5) == 1


def test_stop_handles_received_messages_and_gets_no_more(rpc_transport, serving, ctx):
    recorder = Recorder()
    server = rpc_transport.serve('topic', 'one', [recorder])
    server.start()
    client = rpc_transport.client('topic')
    client.cast(ctx, 'wait', {})
    client.cast(ctx, 'wait', {})
    client.cast(ctx, 'note', {'behind': 'both threads'})
    recorder.received.wait(2)
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    recorder.gate.set()
    stopper.join(10)
    assert recorder.received.items[2][1] == {'behind': 'both threads'}
    with pytest.raises(exception.ServiceUnavailable):
        client.cast(ctx, 'note', {})


def test_unknown_driver_is_reported_as_a_bad_option():
    with pytest.raises(options.BadConfiguration, match='transport_url'):
        transport_to('nosuch://')


def test_cast_arrives_within_half_a_millisecond(rpc_transport, recorder):
    client = rpc_transport.client('topic', 'one')
    taken = []
    for number in range(200):
        begin = time.perf_counter()
        client.cast(None, 'note', {})
        recorder.received.wait(number + 1)
        taken.append(time.perf_counter() - begin)
    # The lowest decile, as other processes disturb the machine.
    assert statistics.quantiles(taken, n=10)[0] < 0.0005


IDLE = """
import resource, threading
from tests.support import rpc_servers
from tests.unit.rpc import test_memory
rpc_transport = rpc_servers.transport_to('memory://')
recorder = test_memory.Recorder()
servers = [rpc_transport.serve('topic', f'server{n}', [recorder])
           for n in range(10)]
for server in servers:
    server.start()
    rpc_transport.client('topic').cast(None, 'note', {})
recorder.received.wait(10)
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
threading.Event().wait(1.5)
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""

EVENTLET = """
import eventlet
eventlet.monkey_patch()
from manila_lite import conf as options
from manila_lite.rpc import hints, transport
transport.init_backend(threading=False)
import oslo_messaging, threading
conf = options.new()
oslo_messaging.TransportURL(conf)
conf.set_override('transport_url', 'memory://')
rpc_transport = transport.Transport(conf)
received = threading.Event()

class Endpoint:
    def slow(self, ctx, value):
        received.wait(5)
        return value
    slow.exposed = True

listener = hints.HintListener(
    rpc_transport, 'topic', 'one', lambda work_id: received.set(),
    [Endpoint()])
listener.start()
sender = hints.HintSender(rpc_transport)
green = eventlet.spawn(rpc_transport.client('topic', 'one').call,
                       None, 'slow', {'value': 7}, 5)
eventlet.sleep(0)
sender.send('topic', 'one', 'w1')
print(listener._server._server.executor_type, green.wait(), received.is_set())
sender.stop()
listener.stop()
"""


def output_of(script):
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=pathlib.Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_idle_servers_do_not_wake():
    assert int(output_of(IDLE)[0]) <= 5


def test_works_with_eventlet_monkey_patching():
    assert output_of(EVENTLET) == ['eventlet', '7', 'True']
