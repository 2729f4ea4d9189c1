"""The pass of the start: what it sees to, when, and what it costs."""

import collections
import threading

import pytest

from manila_lite.db.queries.admin import recovery
from manila_lite.db.transitions import fire
from manila_lite.share.manager.backend import wait_until_up
from manila_lite.states.share_instance import MACHINE
from tests.functional.engine.service_process import PATIENCE

AT_ONCE = 'startup_reconciliation_wait_seconds = 0'
NEVER = 'startup_reconciliation_enabled = false'

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class Started:
    """A house whose back end comes up as in a real service."""

    def __init__(self, house, stuck=()):
        self.house = house
        self.backend = house.backend()
        self.driver = house.driver()
        self.done = collections.Counter()
        self.all_looked = threading.Event()
        self.before = [call.method for call in self.driver.calls]
        house.db.probe = self._probe

    def _probe(self, name):
        self.done[threading.current_thread().name, name] += 1
        with self.house.committed:
            self.house.committed.notify_all()

    def start(self):
        self.backend.start()
        assert wait_until_up([self.backend], PATIENCE)
        return self

    def end(self):
        assert self.backend.stop(PATIENCE)

    @property
    def pass_thread(self):
        """The one that makes the pass, if it has not ended yet."""
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
def start(build_house):
    """`start(options, stuck)`: a second start of a service, in threads."""
    ended = []

    def begin(options, *events):
        first = build_house(backends=['alpha'])
        first.register()
        shares = [first.create(2) for _ in events]
        first.run()
        for share, event in zip(shares, events, strict=True):
            first.db.write(
                fire, MACHINE, first.target(share).instance_id, event
            )
        house = build_house(backends=['alpha'], default=options)
        made = Started(house)
        made.shares = shares
        ended.append(made)
        return made.start()

    yield begin
    for made in ended:
        made.end()


def test_the_start_rescues_what_was_in_flight_before(start):
    made = start(AT_ONCE, 'reset_migrating', 'extend', 'reset_deleting')
    house = made.house
    house.until(
        lambda: (
            [
                house.db.read(
                    recovery.stuck, 'share_instance', 'node@alpha', most=9
                ),
                house.owed(),
            ]
            == [[], []]
        )
    )
    assert [house.status(share) for share in made.shares[:2]] == [
        'error',
        'available',
    ]
    assert len(house.rows(recovery.LOG.select())) == 3


def test_the_start_rescues_nothing_where_it_is_told_so(start):
    made = start(NEVER, 'reset_migrating')
    assert made.pass_thread is None
    assert made.by('recovery') == {}
    assert made.house.status(made.shares[0]) == 'migrating'


def test_the_start_waits_before_it_looks(start):
    made = start(
        'startup_reconciliation_wait_seconds = 3600', 'reset_migrating'
    )
    waiting = made.pass_thread
    assert waiting.is_alive()
    assert made.by('recovery') == {}
    assert made.house.status(made.shares[0]) == 'migrating'
    made.end()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_where_nothing_is_stuck_the_start_is_as_before(start):
    """Nothing more before it is up; then a look, which only reads."""
    without, with_it = start(NEVER), start(AT_ONCE)
    looking = with_it.pass_thread
    if looking is not None:
        looking.join(PATIENCE)
    assert with_it.by('start') == without.by('start') != {}
    assert with_it.by('start')['commit'] > 0
    looked = with_it.by('recovery')
    assert 0 < looked['statement'] <= len(recovery.KINDS)
    assert 'commit' not in looked
    calls = [
        [call.method for call in made.driver.calls][len(made.before) :]
        for made in (without, with_it)
    ]
    assert calls[0] == calls[1] != []
    assert 'get_share_status' not in calls[1]
