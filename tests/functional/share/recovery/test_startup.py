"""The pass at start-up: what it rescues, when, and at what cost."""

import collections
import threading

import pytest

from manila_lite.db.queries.recovery import recovery
from manila_lite.db.transitions import fire
from manila_lite.share.manager.backend import wait_until_up
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support.service_process import TIMEOUT

AT_ONCE = 'startup_reconciliation_wait_seconds = 0'
NEVER = 'startup_reconciliation_enabled = false'

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class Started:
    """A node whose back end starts as in a real service."""

    def __init__(self, node, stuck=()):
        self.node = node
        self.backend = node.backend()
        self.driver = node.driver()
        self.done = collections.Counter()
        self.all_looked = threading.Event()
        self.before = [call.method for call in self.driver.calls]
        node.db.on_step = self._probe

    def _probe(self, name):
        self.done[threading.current_thread().name, name] += 1
        with self.node.committed:
            self.node.committed.notify_all()

    def start(self):
        self.backend.start()
        assert wait_until_up([self.backend], TIMEOUT)
        return self

    def end(self):
        assert self.backend.stop(TIMEOUT)

    @property
    def pass_thread(self):
        """The thread of the pass, if it has not ended yet."""
        return next(
            (
                one
                for one in threading.enumerate()
                if one.name == f'{self.backend.host}-recovery'
            ),
            None,
        )

    def by(self, thread):
        return {
            name: count
            for (who, name), count in self.done.items()
            if who == f'{self.backend.host}-{thread}'
        }


@pytest.fixture
def start(build_node):
    """`start(options, *events)` starts a service again, in threads."""
    ended = []

    def begin(options, *events):
        first = build_node(backends=['alpha'])
        first.register()
        shares = [first.create(2) for _ in events]
        first.run()
        for share, event in zip(shares, events, strict=True):
            first.db.write(fire, SHARE_INSTANCE, first.target(share).instance_id, event)
        node = build_node(backends=['alpha'], default=options)
        made = Started(node)
        made.shares = shares
        ended.append(made)
        return made.start()

    yield begin
    for made in ended:
        made.end()


def test_start_rescues_what_was_in_flight_before(start):
    made = start(AT_ONCE, 'reset_migrating', 'extend', 'reset_deleting')
    node = made.node
    node.until(
        lambda: (
            [
                node.db.read(
                    recovery.list_stuck, 'share_instance', 'node@alpha', most=9
                ),
                node.owed(),
            ]
            == [[], []]
        )
    )
    assert [node.status(share) for share in made.shares[:2]] == ['error', 'available']
    assert len(node.rows(recovery.LOG.select())) == 3


def test_start_rescues_nothing_if_disabled(start):
    made = start(NEVER, 'reset_migrating')
    assert made.pass_thread is None
    assert made.by('recovery') == {}
    assert made.node.status(made.shares[0]) == 'migrating'


def test_start_waits_before_its_pass(start):
    made = start('startup_reconciliation_wait_seconds = 3600', 'reset_migrating')
    waiting = made.pass_thread
    assert waiting.is_alive()
    assert made.by('recovery') == {}
    assert made.node.status(made.shares[0]) == 'migrating'
    made.end()
    waiting.join(TIMEOUT)
    assert not waiting.is_alive()


def test_start_pass_without_stuck_rows_only_reads(start):
    """It costs nothing before the back end is up, and then only reads."""
    without, with_it = start(NEVER), start(AT_ONCE)
    thread = with_it.pass_thread
    if thread is not None:
        thread.join(TIMEOUT)
    assert with_it.by('start') == without.by('start') != {}
    assert with_it.by('start')['commit'] > 0
    steps = with_it.by('recovery')
    assert 0 < steps['statement'] <= len(recovery.KINDS)
    assert 'commit' not in steps
    calls = [
        [call.method for call in made.driver.calls][len(made.before) :]
        for made in (without, with_it)
    ]
    assert calls[0] == calls[1] != []
    assert 'get_share_status' not in calls[1]
