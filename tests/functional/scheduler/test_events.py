"""Events: every committed move is sent, in the order of its resource."""

import concurrent.futures
import datetime
import itertools
import pathlib
import re
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import models
from manila_lite.db.dialects import db_now
from manila_lite.db.models import engine
from manila_lite.db.queries.work import events, retention
from manila_lite.scheduler import events as sender
from manila_lite.scheduler.event_kinds import KINDS
from manila_lite.scheduler.events import EventSender
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import cloud_snapshots, sampling
from tests.unit.states.test_states import MACHINES

ROOT = pathlib.Path(__file__).parents[3]
JOURNAL = engine.Transition.__table__
TASK = engine.ClusterTask.__table__


class Bus:
    """What consumers have received; refuses to accept when it is down."""

    def __init__(self):
        self.events = []
        self.is_down = False
        self.on_send = lambda: None

    def send(self, event_type, payload):
        self.on_send()
        if self.is_down:
            raise exception.ServiceUnavailable('the bus is down')
        self.events.append((event_type, payload))

    def sequences(self):
        return [payload['sequence'] for _, payload in self.events]


@pytest.fixture
def bus():
    return Bus()


@pytest.fixture
def db(connect):
    return connect()


@pytest.fixture
def started(db, bus):
    """A sender that has begun, on an empty journal."""
    started = EventSender(db, 'one', bus.send, longest_pause=0)
    assert started.run_pass() == 0
    return started


def insert(connection, **values):
    connection.execute(
        sa.insert(JOURNAL),
        {
            'resource': 'share_instance',
            'resource_id': 'i1',
            'event': 'created',
            'made_at': datetime.datetime(2026, 1, 1),
            **values,
        },
    )


def add(db, count=1, **values):
    db.write(
        lambda session: [insert(session.connection, **values) for _ in range(count)]
    )


def unsent(db):
    return db.read(
        lambda session: session.value(
            sa.select(sa.func.count())
            .select_from(JOURNAL)
            .where(JOURNAL.c.is_sent.is_(None))
        )
    )


# What is sent


def test_every_move_of_a_share_is_sent_once(build_node, bus):
    node = build_node(backends=['alpha'])
    node.register()
    events_of = EventSender(node.db, 'one', bus.send)
    events_of.run_pass()
    share = node.create(2)
    node.run()
    target = node.target(share)
    events_of.run_pass()
    node.ask('delete', share)
    node.run()
    events_of.run_pass()
    journal = node.rows(sa.select(JOURNAL).order_by(JOURNAL.c.id))
    assert bus.sequences() == [row.id for row in journal]
    assert all(row.is_sent for row in journal)
    assert events_of.run_pass() == 0
    own = [
        payload for _, payload in bus.events if payload['resource'] == 'share_instance'
    ]
    assert [
        (each['event'], each['old_status'], each['new_status']) for each in own
    ] == [
        ('create', None, 'creating'),
        ('created', 'creating', 'available'),
        ('delete', 'available', 'deleting'),
        ('deleted', 'deleting', None),
    ]
    for each in own:
        assert each['id'] == target.instance_id
        assert each['share_id'] == share
        assert each['project_id'] == target.project_id
        assert each['request_id'].startswith('req-')
        assert each['version'] == '1.0'
        assert each['time'].endswith('+00:00')


def test_share_that_is_gone_when_its_events_are_sent_is_known(build_node, bus):
    node = build_node(backends=['alpha'])
    node.register()
    events_of = EventSender(node.db, 'one', bus.send)
    events_of.run_pass()
    share = node.create(2)
    node.run()
    project = node.target(share).project_id
    node.ask('delete', share)
    node.run()
    events_of.run_pass()
    assert len(bus.events) == 4
    for _, payload in bus.events:
        if KINDS[payload['resource']].parent == 'share_id':
            assert payload['share_id'] == share
            assert payload['project_id'] == project


def test_event_of_a_failure_has_its_reason(build_node, bus):
    node = build_node(backends=['alpha'], capacity=10)
    node.register()
    node.run()
    events_of = EventSender(node.db, 'one', bus.send)
    events_of.run_pass()
    node.create(5000)
    node.run()
    events_of.run_pass()
    (failure,) = [
        payload
        for event_type, payload in bus.events
        if event_type == 'share_instance.create_failed'
    ]
    assert failure['new_status'] == 'error'
    assert 'CapacityFilter left 0, rejected node@alpha' in failure['reason']


def test_secrets_are_masked_in_reasons(db, started, bus):
    add(db, reason='the password=hunter2 was refused')
    assert started.run_pass() == 1
    assert 'hunter2' not in bus.events[0][1]['reason']


def test_events_of_everything_know_their_project(build_cloud, bus):
    """Rules, snapshots and their states, also after their deletion."""
    cloud = build_cloud()
    cloud_snapshots.enable_snapshot_features(cloud)
    events_of = EventSender(cloud.db, 'one', bus.send)
    events_of.run_pass()
    share = cloud.create_share()
    rule = cloud.api.act(
        share,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=200,
    ).json['access']['id']
    cloud.settle()
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud.api.act(share, 'deny_access', {'access_id': rule})
    cloud_snapshots.delete(cloud, snapshot)
    cloud.settle()
    while events_of.run_pass():
        pass
    found = {}
    for event_type, payload in bus.events:
        kind = KINDS[payload['resource']]
        assert payload['project_id'] == 'project', event_type
        found.setdefault(payload['resource'], set()).add(payload[kind.parent])
    assert found == {
        'share_instance': {share},
        'share_instance_access': {share},
        'access_rule': {rule},
        'snapshot_instance': {snapshot},
    }


def test_every_state_machine_has_a_kind_of_event():
    assert {machine.resource for machine in MACHINES.values()} == set(KINDS)
    for kind in KINDS.values():
        assert kind.table in models.metadata.tables


def test_parent_and_project_of_every_kind_can_be_read(db):
    for kind in KINDS.values():
        assert (
            db.read(events.find_owners, kind.table, [kind.machine.resource], ['x'])
            == {}
        )


def test_move_of_a_newer_release_is_sent_without_a_parent(db, started, bus):
    add(db, resource='share_teapot')
    assert started.run_pass() == 1
    ((event_type, payload),) = bus.events
    assert event_type == 'share_teapot.created'
    assert payload['project_id'] is None


def test_moves_before_the_first_sender_are_not_sent(db, bus):
    add(db, 3)
    first = EventSender(db, 'one', bus.send)
    assert first.run_pass() == 0
    add(db, 2)
    assert first.run_pass() == 2


# Nothing is lost


@sampling.dialects
def test_transaction_that_commits_late_is_not_skipped(database_url, db, started, bus):
    """Its row has a smaller id than rows that were sent before."""
    if database_url.startswith('sqlite'):
        # Writers have their turns, so no id is given before a commit.
        add(db, id=2)
        assert started.run_pass() == 1
        add(db, id=1, resource_id='late')
    else:
        with db.engine.connect() as slow:
            insert(slow, resource_id='late')
            add(db)
            assert started.run_pass() == 1
            assert started.run_pass() == 0
            slow.commit()
    assert started.run_pass() == 1
    first, second = bus.sequences()
    assert second < first
    assert bus.events[1][1]['id'] == 'late'
    assert unsent(db) == 0


@sampling.dialects
def test_late_transaction_is_not_purged_unsent(db, started):
    add(db, id=20)
    add(db, id=21)
    started.run_pass()
    add(db, id=10)
    until = datetime.datetime(2026, 2, 1)
    assert db.write(retention.delete_sent_moves, until) == 1
    assert unsent(db) == 1


def test_bus_that_is_down_delays_events(db, started, bus):
    add(db, 5)
    bus.is_down = True
    assert started.run_pass() == 0
    assert unsent(db) == 5
    bus.is_down = False
    assert started.run_pass() == 5
    assert bus.sequences() == sorted(bus.sequences())


def test_bus_that_goes_down_in_a_batch_gets_each_event_once(db, started, bus):
    add(db, 5)

    def fail_after_two():
        bus.is_down = len(bus.events) == 2

    bus.on_send = fail_after_two
    assert started.run_pass() == 2
    bus.on_send = lambda: None
    bus.is_down = False
    assert started.run_pass() == 3
    assert len(set(bus.sequences())) == 5 == len(bus.events)


def test_pause_of_a_bus_that_is_down_grows_up_to_a_limit(db, started, bus):
    add(db, 5)
    one = EventSender(db, 'one', bus.send)
    bus.is_down = True
    for pause in (1, 2, 4, 8, 16, 30, 30):
        before = set_due(db, 0)
        one.run_pass()
        now, due_at = db.read(
            lambda session: session.first(sa.select(db_now(), TASK.c.due_at))
        )
        assert before <= due_at - pause <= now
    bus.is_down = False
    set_due(db, 0)
    assert one.run_pass() == 5
    add(db)
    assert one.run_pass() == 1


def test_no_scheduler_sends_during_the_pause(db, connect, started, bus):
    add(db)
    now = set_due(db, 0)
    set_due(db, now + 3600)
    assert started.run_pass() == 0
    assert EventSender(connect(), 'other', bus.send).run_pass() == 0
    assert bus.events == []


def set_due(db, due_at):
    """Set the end of the pause; return the time of the database."""

    def write(session):
        session.run(sa.update(TASK).values(due_at=due_at))
        return session.value(sa.select(db_now()))

    return db.write(write)


def test_slow_sends_keep_the_lease(db, bus):
    """What was sent is marked, and the lease renewed, after some time."""
    seconds = [0.0]
    slow = EventSender(db, 'one', bus.send, clock=lambda: seconds[0])
    slow.run_pass()
    add(db, 10)
    left, leases = [], []

    def send():
        seconds[0] += sender.SENDING_TIME / 2
        left.append(unsent(db))
        leases.append(
            db.read(lambda session: session.value(sa.select(TASK.c.lease_until)))
        )

    bus.on_send = send
    assert slow.run_pass() == 10
    assert left == [10] * 3 + [7] * 3 + [4] * 3 + [1]
    assert len(set(leases)) == 4
    assert leases == sorted(leases)
    assert unsent(db) == 0


@sampling.dialects
def test_racing_senders_and_writers_lose_nothing(connect, started, bus):
    done = threading.Event()
    dbs = [connect() for _ in range(4)]

    def write(number):
        for _ in range(40):
            add(dbs[number], resource_id=f'i{number}')

    def send(number):
        one = EventSender(dbs[number], f'sender {number}', bus.send)
        while not done.is_set():
            one.run_pass()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        senders = [pool.submit(send, number) for number in (2, 3)]
        try:
            for writer in [pool.submit(write, number) for number in (0, 1)]:
                writer.result()
        finally:
            done.set()
        for one in senders:
            one.result()
    started.run_pass()
    assert unsent(dbs[0]) == 0
    assert len(set(bus.sequences())) == 80
    for number in (0, 1):
        own = [
            payload['sequence']
            for _, payload in bus.events
            if payload['id'] == f'i{number}'
        ]
        assert own == sorted(own)


@sampling.dialects
def test_sender_that_was_paused_too_long_does_not_stop_the_next(
    db, connect, started, bus
):
    """It finds its lease expired; both have sent the batch."""
    add(db, 3)
    other = EventSender(connect(), 'other', bus.send)

    def overtake():
        bus.on_send = lambda: None
        db.write(lambda session: session.run(sa.update(TASK).values(lease_until=0)))
        assert other.run_pass() == 3

    bus.on_send = overtake
    started.run_pass()
    assert set(bus.sequences()) == set(bus.sequences()[:3])
    assert unsent(db) == 0
    add(db)
    assert started.run_pass() == 1


# Cost


def test_pass_without_moves_only_reads(db, started):
    steps = []
    db.on_step = steps.append
    assert started.run_pass() == 0
    assert steps == ['statement'] * 2


def test_statements_of_a_batch_are_bounded(db, started, bus):
    for resource, _ in itertools.product(KINDS, range(4)):
        add(db, resource=resource)
    steps = []
    db.on_step = steps.append
    assert started.run_pass() == 4 * len(KINDS) < sender.BATCH
    tables = {kind.table for kind in KINDS.values()}
    # Start, look, ask, claim; batch, rows, rows that are gone; mark, finish.
    assert steps.count('statement') <= 5 + 1 + 2 * len(tables) + 3


def test_many_moves_are_sent_in_batches(db, started, bus):
    add(db, 2 * sender.BATCH + 1)
    assert started.run_pass() == 2 * sender.BATCH + 1
    assert unsent(db) == 0


# The purge


def purge(db, batch=10):
    count = 0
    until = datetime.datetime(2026, 2, 1)
    while deleted := db.write(retention.delete_sent_moves, until, batch):
        count += deleted
    return count


def test_purge_waits_for_what_has_not_been_sent(db, started, bus):
    add(db, 15)
    started.run_pass()
    add(db, 25)
    assert purge(db) == 15
    bus.is_down = True
    started.run_pass()
    assert purge(db) == 0
    bus.is_down = False
    started.run_pass()
    assert purge(db) == 24  # the newest is left


def test_move_after_a_purge_of_all_others_is_sent(db, bus):
    """SQLite uses the ids of an empty table again."""
    events_of = EventSender(db, 'one', bus.send)
    add(db, 3)
    events_of.run_pass()
    purge(db)
    add(db)
    assert events_of.run_pass() == 1


def test_purge_deletes_what_was_made_before_the_first_sender(db, bus):
    add(db, 15)
    EventSender(db, 'one', bus.send).run_pass()
    add(db, 3)
    assert purge(db) == 15


def test_purge_waits_for_the_first_sender(db):
    add(db)
    assert purge(db) == 0


def test_events_for_billing_are_those_of_the_page():
    page = (ROOT / 'doc/source/events.rst').read_text()
    billing = page.partition('\nBilling\n')[2].partition('The messages\n')[0]
    named = re.findall(r'``share_instance\.(\w+)``', billing)
    assert len(named) > 8
    moves = {move.event for move in SHARE_INSTANCE.moves}
    assert set(named) <= moves | set(SHARE_INSTANCE.initial)
