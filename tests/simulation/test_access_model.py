"""Access rules of a share against a model, in random order (hypothesis).

The model knows the allowed clients and the expected results; the cloud loses
and duplicates messages, fails calls and crashes.
"""

import contextlib
import pathlib
import shutil
import tempfile

import hypothesis
from hypothesis import stateful, strategies as st

from manila_lite import exception
from tests.support import sampling
from tests.support.access import ShareRules
from tests.support.cloud import Cloud, Crash

CLIENTS = st.sampled_from([f'10.0.0.{number}' for number in range(1, 5)])
LEVELS = st.sampled_from(['rw', 'ro'])


class AccessMachine(stateful.RuleBasedStateMachine):
    """`wanted` has the level requested last, by client; none if denied.

    A client is in `faulted` if a fault may have affected its last request:
    its rule may be in error, and only then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.cloud = Cloud(self.folder, backends=['alpha'])
        self.rules = ShareRules(self.cloud, self.cloud.create_share())
        self.wanted: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.faulted: set[str] = set()
        self.faulty = False

    def teardown(self) -> None:
        self.cloud.db.dispose()
        shutil.rmtree(self.folder)

    # Requests

    @stateful.rule(to=CLIENTS, level=LEVELS)
    def allow(self, to, level):
        if to in self.rules.states:
            with contextlib.suppress(exception.ShareAccessExists):
                self.rules.allow(to, level)
                raise AssertionError(f'{to} has two rules')
            return
        self.ids[to] = self.rules.allow(to, level)
        self.note_request(to)
        self.wanted[to] = level

    @stateful.rule(to=CLIENTS)
    def deny(self, to):
        if to not in self.rules.states:
            return
        self.rules.deny(self.ids[to])
        self.note_request(to)
        self.wanted.pop(to, None)

    @stateful.rule(to=CLIENTS, level=LEVELS)
    def change(self, to, level):
        state = self.rules.states.get(to)
        if state is None:
            return
        if to not in self.wanted:  # its deny is pending, or failed
            with contextlib.suppress(exception.InvalidShareAccess):
                self.rules.change(self.ids[to], level)
                if self.rules.states[to] != state:
                    self.note_request(to)
                    self.wanted[to] = level
            return
        if self.wanted[to] != level:
            self.rules.change(self.ids[to], level)
            self.note_request(to)
            self.wanted[to] = level

    def note_request(self, to):
        """Forget earlier faults of a client; note a possible new one."""
        self.faulted.discard(to)
        if self.faulty:
            self.faulted.add(to)

    # Faults

    @stateful.rule(
        method=st.sampled_from(['fail_next', 'half_fail_next', 'lose_reply_next']),
        times=st.integers(1, 2),
    )
    def fail(self, method, times):
        getattr(self.rules.driver, method)('update_access', times)
        self.note_fault()

    @stateful.rule(bad=st.none() | CLIENTS)
    def refuse(self, bad):
        self.rules.driver.refuse_rules(
            bad and (lambda verb, rule: rule['access_to'] == bad)
        )
        self.note_fault()

    def note_fault(self):
        """Pending requests may fail from here on, until all is idle."""
        self.faulty = True
        self.faulted |= set(self.rules.states)

    @stateful.rule(loss_rate=st.booleans(), duplicate_rate=st.booleans())
    def lose_and_duplicate_messages(self, loss_rate, duplicate_rate):
        self.cloud.loss_rate, self.cloud.duplicate_rate = (
            0.5 * loss_rate,
            0.5 * duplicate_rate,
        )

    @stateful.rule()
    def restart(self):
        self.cloud.restart()

    @stateful.rule(place=st.integers(0, 40))
    def crash(self, place):
        self.cloud.crash_at(place)
        with contextlib.suppress(Crash):
            self.cloud.settle()
        self.cloud.restart()

    @stateful.rule(times=st.integers(1, 3))
    def step(self, times):
        for _ in range(times):
            self.cloud.step()

    # Invariants

    @stateful.rule()
    def settle(self):
        self.cloud.settle()
        self.cloud.check_invariants()
        self.compare()
        if self.faulty:
            for backend in self.cloud.share.backends:
                backend.driver.faults.clear()
                backend.driver.refuse_rules(None)
            self.faulty = False

    def compare(self):
        states, clients = self.rules.states, self.rules.clients
        failed = {to for to, state in states.items() if state == 'error'}
        assert failed <= self.faulted, (failed, self.faulted)
        for to, level in self.wanted.items():
            assert to in states
            if to not in failed:
                assert clients[to] == level
        for to in states.keys() - self.wanted.keys():
            assert to in failed, f'{to} was denied and is {states[to]}'
        assert clients.keys() <= self.wanted.keys()

    @stateful.invariant()
    def only_requested_clients_are_allowed(self):
        requested = set(self.rules.states)
        assert self.rules.clients.keys() <= requested


AccessMachine.TestCase.settings = hypothesis.settings(
    max_examples=sampling.examples(100, 6),
    stateful_step_count=25,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
test_rules_against_a_model = sampling.enumeration(AccessMachine.TestCase)
