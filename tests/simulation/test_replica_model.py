"""Replicas of a share against a model, in any order hypothesis can think of.

The model knows which rules and snapshots were promised, and whether any
fault may have struck since all was well; the cloud loses and doubles
messages, fails calls and dies.
"""

import contextlib
import pathlib
import shutil
import tempfile

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import access
from manila_lite.db.models import snapshots
from manila_lite.share.drivers.dummy import driver as dummy
from tests.support.access import ShareRules
from tests.support.cloud import Crash
from tests.support.replicated import ReplicatedCloud
from tests.support.replicated import backend_of

RULE = access.AccessRule.__table__
MAPPING = access.InstanceAccessRule.__table__
SNAPSHOT = snapshots.Snapshot.__table__

BACKENDS = ('alpha', 'beta', 'gamma')
CLIENTS = st.sampled_from([f'10.0.0.{number}' for number in range(1, 4)])
LEVELS = st.sampled_from(['rw', 'ro'])
PICKS = st.integers(0, 2)
FAULTS = st.sampled_from(['fail_next', 'half_fail_next', 'lose_reply_next'])
METHODS = st.sampled_from(
    [
        'create_replica',
        'delete_replica',
        'promote_replica',
        'update_replica_state',
        'create_replicated_snapshot',
        'delete_replicated_snapshot',
        'update_replicated_snapshot',
        'update_access',
        'extend_share',
        'shrink_share',
    ]
)

REFUSED = (
    exception.Invalid,
    exception.Conflict,
    exception.Forbidden,
    exception.NotFound,
)


class ReplicaMachine(stateful.RuleBasedStateMachine):
    """`rules` has who is to come in, by client: a level.

    `taken` are snapshots that were accepted, `dropped` those whose end
    was. What was begun since the first fault is `struck`: it may have
    failed, visibly.
    """

    style = 'readable'

    def __init__(self) -> None:
        super().__init__()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.cloud = ReplicatedCloud(self.folder, style=self.style)
        self.share_id = self.cloud.create_share_on('alpha', size=2)
        self.cloud.replicate(self.share_id, 'beta')
        self.access = ShareRules(self.cloud, self.share_id)
        self.access.allow('10.0.0.9')
        self.sizes = {2}
        self.rules = {'10.0.0.9': 'rw'}
        self.taken: set[str] = set()
        self.dropped: set[str] = set()
        self.struck = False

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.cloud.db.dispose()
            shutil.rmtree(self.folder)

    def ask(self, call, *args, **kwargs):
        """The answer of a request, or None where it is refused."""
        with contextlib.suppress(*REFUSED):
            answer = call(*args, **kwargs)
            return True if answer is None else answer
        return None

    def picked(self, number):
        found = self.cloud.replicas(self.share_id)
        return found[number % len(found)]

    def rule_ids(self):
        return {
            row.access_to: row.id for row in self.cloud.rows(sa.select(RULE))
        }

    # Replicas

    @stateful.rule(on=st.sampled_from(BACKENDS))
    def create(self, on):
        """Where there is one already, or may be soon, no place is found."""
        taken = {backend_of(row) for row in self.cloud.replicas(self.share_id)}
        self.struck |= bool(taken & {on, None})
        self.ask(self.cloud.request_replica, self.share_id, on)

    @stateful.rule(pick=PICKS)
    def delete(self, pick):
        self.ask(self.cloud.ask, 'delete', self.picked(pick).id)

    @stateful.rule(pick=PICKS)
    def promote(self, pick):
        found = [
            row
            for row in self.cloud.replicas(self.share_id)
            if row.replica_state != 'active'
        ]
        if found:
            self.ask(self.cloud.ask, 'promote', found[pick % len(found)].id)

    @stateful.rule(pick=PICKS)
    def resync(self, pick):
        self.ask(self.cloud.ask, 'resync', self.picked(pick).id)

    @stateful.rule(
        pick=PICKS, status=st.sampled_from(['error', 'creating', 'deleting'])
    )
    def reset_status(self, pick, status):
        """Not while one is promoted: which one is active is not known then."""
        row = self.picked(pick)
        if row.status != 'replication_change':
            self.struck = True
            self.ask(self.cloud.ask, 'reset_status', row.id, status)

    @stateful.rule(pick=PICKS, state=st.sampled_from(['out_of_sync', 'error']))
    def reset_state(self, pick, state):
        self.ask(
            self.cloud.ask, 'reset_replica_state', self.picked(pick).id, state
        )

    @stateful.rule()
    def update(self):
        for backend in self.cloud.share.backends:
            backend.replica_updates.request_pass()

    # The share

    @stateful.rule(size=st.integers(1, 5), force=st.booleans())
    def resize(self, size, force):
        action, args = 'extend', {'new_size': size, 'force': force}
        if size < self.cloud.api.show(self.share_id)['size']:
            action, args = 'shrink', {'new_size': size}
        answer = self.cloud.api.act(self.share_id, action, args, None)
        assert answer.status_int < 500, answer.text
        if answer.status_int == 202:
            self.sizes.add(size)

    @stateful.rule()
    def take(self):
        answer = self.cloud.api.request(
            'POST', '/snapshots', {'snapshot': {'share_id': self.share_id}}
        )
        assert answer.status_int < 500, answer.text
        if answer.status_int == 202:
            self.taken.add(answer.json['snapshot']['id'])

    @stateful.rule(pick=PICKS)
    def drop(self, pick):
        if not self.taken:
            return
        id = sorted(self.taken)[pick % len(self.taken)]
        answer = self.cloud.api.request('DELETE', f'/snapshots/{id}')
        assert answer.status_int < 500, answer.text
        if answer.status_int == 202:
            self.taken.remove(id)
            self.dropped.add(id)

    # Its rules

    @stateful.rule(to=CLIENTS, level=LEVELS)
    def allow(self, to, level):
        if self.ask(self.access.allow, to, level):
            self.rules[to] = level

    @stateful.rule(to=CLIENTS)
    def deny(self, to):
        access_id = self.rule_ids().get(to)
        if access_id and self.ask(self.access.deny, access_id):
            self.rules.pop(to, None)

    @stateful.rule(to=CLIENTS, level=LEVELS)
    def change(self, to, level):
        access_id = self.rule_ids().get(to)
        if (
            access_id
            and to in self.rules
            and self.ask(self.access.change, access_id, level)
        ):
            self.rules[to] = level

    # Faults

    @stateful.rule(on=st.sampled_from(BACKENDS), method=METHODS, how=FAULTS)
    def fail(self, on, method, how):
        self.struck = True
        with contextlib.suppress(ValueError):  # it cannot fail half-way
            getattr(self.cloud.driver(on), how)(method)

    @stateful.rule(loss_rate=st.booleans(), duplicate_rate=st.booleans())
    def spoil_messages(self, loss_rate, duplicate_rate):
        self.cloud.loss_rate, self.cloud.duplicate_rate = (
            0.5 * loss_rate,
            0.5 * duplicate_rate,
        )

    @stateful.rule()
    def restart(self):
        self.struck = True  # what was ordered is forgotten with it
        self.cloud.restart()

    @stateful.rule(place=st.integers(0, 60))
    def crash(self, place):
        self.struck = True
        self.cloud.crash_at(place)
        with contextlib.suppress(Crash):
            self.cloud.settle()
        self.cloud.restart()

    @stateful.rule(times=st.integers(1, 4))
    def step(self, times):
        for _ in range(times):
            self.cloud.step()

    # What holds

    @stateful.invariant()
    def one_replica_is_active(self):
        active = [
            row
            for row in self.cloud.replicas(self.share_id)
            if row.replica_state == 'active'
        ]
        assert active
        assert len(active) == 1 or self.style == 'writable'

    @stateful.rule()
    def settle(self):
        self.cloud.settle()
        if self.struck:
            self.mend()
        for _ in range(2):
            self.cloud.update()
        self.cloud.check_invariants()
        self.compare()
        self.struck = False

    def mend(self):
        """End all faults, and what they have left for users to see."""
        for name in BACKENDS:
            self.cloud.driver(name).faults.clear()
        for _ in range(2):
            self.cloud.update()
        for row in self.cloud.replicas(self.share_id):
            if row.status in ('error', 'error_deleting'):
                self.ask(self.cloud.ask, 'force_delete', row.id)
        self.cloud.settle()
        self.revive()
        for to, access_id in self.rule_ids().items():
            if to not in self.rules or 'error' in self.states(access_id):
                self.access.deny(access_id)
                self.rules.pop(to, None)
        self.cloud.settle()
        self.forget_snapshots()

    def revive(self):
        """What is left of the active replica may be used again."""
        for row in self.cloud.replicas(self.share_id):
            if row.status != 'available':
                self.cloud.ask('reset_status', row.id, 'available')
        self.cloud.settle()
        for _ in range(2):
            self.cloud.update()

    def states(self, access_id):
        return {
            row.state
            for row in self.cloud.rows(
                sa.select(MAPPING).where(MAPPING.c.access_id == access_id)
            )
        }

    def forget_snapshots(self):
        """Those that failed, to be taken or to be removed, go by force."""
        for row in self.cloud.rows(sa.select(SNAPSHOT.c.id)):
            shown = self.cloud.api.get(f'/snapshots/{row.id}')['snapshot']
            if shown['status'] != 'available' or row.id in self.dropped:
                self.cloud.api.request(
                    'POST',
                    f'/snapshots/{row.id}/action',
                    {'force_delete': None},
                    expect=202,
                )
                self.taken.discard(row.id)
                self.dropped.add(row.id)
        self.cloud.settle()

    def compare(self):
        rows = self.cloud.replicas(self.share_id)
        passive = 'active' if self.style == 'writable' else 'in_sync'
        for row in rows:
            assert row.status == 'available', (row.status, row.host)
            assert row.replica_state in ('active', passive)
        assert self.rule_ids().keys() == self.rules.keys()
        for row in rows:
            assert self.clients(row) == self.expected(row)
        there = {row.id for row in self.cloud.rows(sa.select(SNAPSHOT.c.id))}
        assert there == self.taken
        for row in rows:
            assert self.cloud.snapshots_on(row.id) == dict.fromkeys(
                there, 'available'
            )
        size = self.cloud.api.show(self.share_id)['size']
        assert size in self.sizes
        self.sizes = {size}

    def clients(self, row):
        """Whom a back end lets in to a replica, and how."""
        found = dummy.access_inventory(self.folder / 'dummy' / backend_of(row))
        return {to: level for _, to, level in found.get(row.id, ())}

    def expected(self, row):
        if row.replica_state == 'active':
            return self.rules
        if self.style == 'dr':
            return {}
        return dict.fromkeys(self.rules, 'ro')


class MirrorMachine(ReplicaMachine):
    style = 'dr'


class ClusterMachine(ReplicaMachine):
    style = 'writable'


def _test(machine, examples):
    machine.TestCase.settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    return machine.TestCase


test_readable_replicas_against_a_model = _test(ReplicaMachine, 6)
test_replicas_for_disasters_against_a_model = _test(MirrorMachine, 3)
test_writable_replicas_against_a_model = _test(ClusterMachine, 3)
