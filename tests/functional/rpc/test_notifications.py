"""Events over a real broker, whose sender is killed at every line."""

import json
import os
import signal
import sys
import uuid

import pytest
import sqlalchemy as sa

from manila_lite import conf as options, exception
from manila_lite.db.models import engine
from manila_lite.db.queries.work import events as queries
from manila_lite.db.session import Database
from manila_lite.rpc import notifications
from manila_lite.scheduler import events
from tests.functional.rpc.conftest import HOST, PORT, RABBIT_URL
from tests.support import databases, sampling
from tests.support.processes import free_port

JOURNAL = engine.Transition.__table__
TASK = engine.ClusterTask.__table__
MOVES = 3
TRACED = {events.__file__, queries.__file__, notifications.__file__}


def conf_of(topic, port=PORT):
    conf = options.new()
    import oslo_messaging

    oslo_messaging.TransportURL(conf)
    conf.register_opts(
        oslo_messaging.notify.notifier._notifier_opts, notifications.SECTION
    )
    url = RABBIT_URL.format(host=HOST, port=port)
    conf.set_override('transport_url', url, notifications.SECTION)
    conf.set_override('topics', [topic], notifications.SECTION)
    return conf


class Consumer:
    """Reads the queue of notifications."""

    def __init__(self, topic):
        import kombu

        self.queue = f'{topic}.info'
        self._link = kombu.Connection(f'amqp://guest:guest@{HOST}:{PORT}//')

    def take_all(self):
        """Return the notifications that are in the queue, oldest first."""
        channel, found = self._link.default_channel, []
        while (message := channel.basic_get(self.queue)) is not None:
            channel.basic_ack(message.delivery_tag)
            found.append(json.loads(json.loads(message.body)['oslo.message']))
        return found

    def close(self):
        self._link.default_channel.queue_delete(self.queue)
        self._link.release()


@pytest.fixture
def topic(broker):
    return f'test-{uuid.uuid4().hex}'


@pytest.fixture
def consumer(topic):
    consumer = Consumer(topic)
    yield consumer
    consumer.close()


@pytest.fixture
def bus(topic):
    bus = notifications.Notifications(conf_of(topic), 'manila_lite.node')
    yield bus
    bus.close()


def test_notification_arrives_in_the_published_envelope(bus, consumer):
    bus.send('share_instance.created', {'id': 'i1', 'version': '1.0'})
    (message,) = consumer.take_all()
    assert message['event_type'] == 'share_instance.created'
    assert message['publisher_id'] == 'manila_lite.node'
    assert message['priority'] == 'INFO'
    assert message['payload'] == {'id': 'i1', 'version': '1.0'}


def test_broker_that_does_not_answer_is_an_error(topic):
    bus = notifications.Notifications(conf_of(topic, free_port()), 'manila_lite.node')
    with pytest.raises(exception.ServiceUnavailable, match='was not sent'):
        bus.send('share_instance.created', {})
    bus.close()


def test_events_need_a_broker(topic):
    conf = conf_of(topic)
    conf.set_override('transport_url', 'memory://', notifications.SECTION)
    with pytest.raises(options.BadConfiguration, match='message broker'):
        notifications.Notifications(conf, 'manila_lite.node')


# Crashes


def send_all(url, topic):
    """Send like a process of its own, with connections of its own."""
    db = Database(url)
    bus = notifications.Notifications(conf_of(topic), 'manila_lite.node')
    events.EventSender(db, f'{os.getpid()}', bus.send).run_pass()


def in_process(function, *args, die_at=None):
    """Run in a fork that is killed at a line; return how many it reached.

    None means that it was killed before the end.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            lines = 0

            def trace(frame, event, arg):
                nonlocal lines
                if frame.f_code.co_filename not in TRACED:
                    return None
                if event == 'line':
                    lines += 1
                    if lines == die_at:
                        os.kill(os.getpid(), signal.SIGKILL)
                return trace

            sys.settrace(trace)
            function(*args)
            sys.settrace(None)
            os.write(write, str(lines).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        reached = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.waitstatus_to_exitcode(status) == 0
    return int(reached)


def add_moves(session):
    session.run_many(
        sa.insert(JOURNAL),
        [
            {
                'resource': 'share_instance',
                'resource_id': 'i1',
                'event': f'move {number}',
                'made_at': session.now,
            }
            for number in range(MOVES)
        ],
    )


def begin(session):
    """Let events begin with an empty journal."""
    session.run(sa.insert(TASK), name=queries.TASK_NAME, due_at=0.0, position=0)


def expire_lease(session):
    session.run(sa.update(TASK).values(lease_until=0.0))


@pytest.fixture
def url(tmp_path):
    with databases.temporary_database('sqlite', tmp_path) as url:
        databases.create_tables(url)
        yield url


LINES = 240
"""More lines than one pass has; the test says if it has more."""


@sampling.enumeration
@pytest.mark.parametrize('line', sampling.sample(range(1, LINES), 12))
def test_sender_killed_at_any_line_loses_nothing(url, topic, consumer, line):
    db = Database(url)
    db.write(begin)
    db.write(add_moves)
    db.dispose()
    reached = in_process(send_all, url, topic, die_at=line)
    if reached is not None:  # it has fewer lines
        assert reached < line
    db = Database(url)
    db.write(expire_lease)
    db.dispose()
    assert in_process(send_all, url, topic) < LINES
    received = [message['payload']['event'] for message in consumer.take_all()]
    # Whatever came twice was sent again in order.
    assert list(dict.fromkeys(received)) == [
        f'move {number}' for number in range(MOVES)
    ]
    assert len(received) <= 2 * MOVES
    if reached is not None:
        assert len(received) == MOVES
    db = Database(url)
    assert db.read(queries.list_unsent, 0, 10) == []
    db.dispose()
