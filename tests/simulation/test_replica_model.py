"""Replicas of a share against a model, in random order (hypothesis).

The model knows the expected rules and snapshots, and whether a fault may
have occurred since the last healthy state; the cloud loses and duplicates
messages, fails calls and crashes.
"""

import contextlib
import pathlib
import shutil
import tempfile

import hypothesis
from hypothesis import stateful, strategies as st
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import access, snapshots
from manila_lite.share.drivers.dummy import driver as dummy
from tests.support import sampling
from tests.support.access import ShareRules
from tests.support.cloud import Crash
from tests.support.replicated import ReplicatedCloud, backend_of

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
    """`rules` has the expected access level by client.

    `snapshots` are those accepted, `deleted` those whose deletion was
    accepted. If `faulted`, requests since the last check may have failed,
    visibly.
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
        self.snapshots: set[str] = set()
        self.deleted: set[str] = set()
        self.faulted = False

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.cloud.db.dispose()
            shutil.rmtree(self.folder)

    def ask(self, call, *args, **kwargs):
        """Return the result of a request, or None when it is refused."""
        with contextlib.suppress(*REFUSED):
            answer = call(*args, **kwargs)
            return True if answer is None else answer
        return None

    def pick_replica(self, number):
        found = self.cloud.replicas(self.share_id)
        return found[number % len(found)]

    def rule_ids(self):
        return {row.access_to: row.id for row in self.cloud.rows(sa.select(RULE))}

    # Replicas

    @stateful.rule(backend=st.sampled_from(BACKENDS))
    def create(self, backend):
        """No host is found where a replica is, or may be soon."""
        taken = {backend_of(row) for row in self.cloud.replicas(self.share_id)}
        self.faulted |= bool(taken & {backend, None})
        self.ask(self.cloud.request_replica, self.share_id, backend)

    @stateful.rule(pick=PICKS)
    def delete(self, pick):
        self.ask(self.cloud.ask, 'delete', self.pick_replica(pick).id)

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
        self.ask(self.cloud.ask, 'resync', self.pick_replica(pick).id)

    @stateful.rule(
        pick=PICKS, status=st.sampled_from(['error', 'creating', 'deleting'])
    )
    def reset_status(self, pick, status):
        """Not while one is promoted: which one is active is not known then."""
        row = self.pick_replica(pick)
        if row.status != 'replication_change':
            self.faulted = True
            self.ask(self.cloud.ask, 'reset_status', row.id, status)

    @stateful.rule(pick=PICKS, state=st.sampled_from(['out_of_sync', 'error']))
    def reset_state(self, pick, state):
        self.ask(
            self.cloud.ask, 'reset_replica_state', self.pick_replica(pick).id, state
        )

    @stateful.rule()
    def update(self):
        for backend in self.cloud.share.backends:
            backend.endpoints.replica_updates.request_pass()

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
    def create_snapshot(self):
        answer = self.cloud.api.request(
            'POST', '/snapshots', {'snapshot': {'share_id': self.share_id}}
        )
        assert answer.status_int < 500, answer.text
        if answer.status_int == 202:
            self.snapshots.add(answer.json['snapshot']['id'])

    @stateful.rule(pick=PICKS)
    def delete_snapshot(self, pick):
        if not self.snapshots:
            return
        id = sorted(self.snapshots)[pick % len(self.snapshots)]
        answer = self.cloud.api.request('DELETE', f'/snapshots/{id}')
        assert answer.status_int < 500, answer.text
        if answer.status_int == 202:
            self.snapshots.remove(id)
            self.deleted.add(id)

    # Access rules

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

    @stateful.rule(backend=st.sampled_from(BACKENDS), method=METHODS, kind=FAULTS)
    def fail(self, backend, method, kind):
        self.faulted = True
        with contextlib.suppress(ValueError):  # it has no half-way point
            getattr(self.cloud.driver(backend), kind)(method)

    @stateful.rule(loss_rate=st.booleans(), duplicate_rate=st.booleans())
    def lose_and_duplicate_messages(self, loss_rate, duplicate_rate):
        self.cloud.loss_rate, self.cloud.duplicate_rate = (
            0.5 * loss_rate,
            0.5 * duplicate_rate,
        )

    @stateful.rule()
    def restart(self):
        self.faulted = True  # requested faults are lost with the process
        self.cloud.restart()

    @stateful.rule(place=st.integers(0, 60))
    def crash(self, place):
        self.faulted = True
        self.cloud.crash_at(place)
        with contextlib.suppress(Crash):
            self.cloud.settle()
        self.cloud.restart()

    @stateful.rule(times=st.integers(1, 4))
    def step(self, times):
        for _ in range(times):
            self.cloud.step()

    # Invariants

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
        if self.faulted:
            self.clean_up()
        for _ in range(2):
            self.cloud.update()
        self.cloud.check_invariants()
        self.compare()
        self.faulted = False

    def clean_up(self):
        """End all faults, and clean up the visible failures they left."""
        for name in BACKENDS:
            self.cloud.driver(name).faults.clear()
        for _ in range(2):
            self.cloud.update()
        for row in self.cloud.replicas(self.share_id):
            if row.status in ('error', 'error_deleting'):
                self.ask(self.cloud.ask, 'force_delete', row.id)
        self.cloud.settle()
        self.reset_replicas()
        for to, access_id in self.rule_ids().items():
            if to not in self.rules or 'error' in self.states(access_id):
                self.access.deny(access_id)
                self.rules.pop(to, None)
        self.cloud.settle()
        self.clean_up_snapshots()

    def reset_replicas(self):
        """Reset the remaining replicas to available."""
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

    def clean_up_snapshots(self):
        """Force-delete snapshots whose creation or deletion failed."""
        for row in self.cloud.rows(sa.select(SNAPSHOT.c.id)):
            shown = self.cloud.api.get(f'/snapshots/{row.id}')['snapshot']
            if shown['status'] != 'available' or row.id in self.deleted:
                self.cloud.api.request(
                    'POST',
                    f'/snapshots/{row.id}/action',
                    {'force_delete': None},
                    expect=202,
                )
                self.snapshots.discard(row.id)
                self.deleted.add(row.id)
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
        assert there == self.snapshots
        for row in rows:
            assert self.cloud.snapshots_on(row.id) == dict.fromkeys(there, 'available')
        size = self.cloud.api.show(self.share_id)['size']
        assert size in self.sizes
        self.sizes = {size}

    def clients(self, row):
        """Return the levels of the clients that a back end allows."""
        found = dummy.access_inventory(self.folder / 'dummy' / backend_of(row))
        return {to: level for _, to, level in found.get(row.id, ())}

    def expected(self, row):
        if row.replica_state == 'active':
            return self.rules
        if self.style == 'dr':
            return {}
        return dict.fromkeys(self.rules, 'ro')


class DrReplicaMachine(ReplicaMachine):
    style = 'dr'


class WritableReplicaMachine(ReplicaMachine):
    style = 'writable'


def _test(machine, examples):
    machine.TestCase.settings = hypothesis.settings(
        max_examples=sampling.examples(30, examples),
        stateful_step_count=25,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    return sampling.enumeration(machine.TestCase)


test_readable_replicas_against_a_model = _test(ReplicaMachine, 3)
test_dr_replicas_against_a_model = _test(DrReplicaMachine, 2)
test_writable_replicas_against_a_model = _test(WritableReplicaMachine, 2)
