"""The rules that hold for every state machine."""

import importlib
import inspect
import pathlib
import pkgutil
import re

from hypothesis import given, strategies as st
import pytest

from manila_lite import states
from manila_lite.db import models
from manila_lite.rpc import contract, data as data_contracts, share as contracts
from manila_lite.share.drivers import base
from manila_lite.states import share_server, share_task
from manila_lite.states.machine import GONE, Ask, GiveUp, Machine, Repeat, Resume
from manila_lite.states.snapshot_instance import (
    INSTANCE_RESETS,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_RESETS,
)
from tests.functional.api import differences
from tests.support import reference


def _machines():
    for module in pkgutil.iter_modules(states.__path__, 'manila_lite.states.'):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Machine):
                yield value


MACHINES = {repr(machine): machine for machine in _machines()}

CONTRACTS = [
    found
    for module in (contracts, data_contracts)
    for _, found in inspect.getmembers(module, inspect.isclass)
    if issubclass(found, contract.Contract) and found is not contract.Contract
]

# The names of our resources in the published tables.
PUBLISHED = {
    ('share_instance', 'status'): 'share / share instance',
    ('share_instance_access', 'access_rules_status'): 'share / share instance',
    ('access_rule', 'state'): 'share access rule',
    ('snapshot_access_rule', 'state'): 'share access rule',
    ('snapshot_instance', 'status'): 'snapshot / snapshot instance',
    ('share_backup', 'status'): 'share backup',
    ('share_group', 'status'): 'share group',
    ('share_group_snapshot', 'status'): 'share group snapshot',
    ('share_network', 'status'): 'share network',
    ('share_replica', 'replica_state'): 'share replica',
    ('share_server', 'status'): 'share server',
    ('share_server_task', 'task_state'): 'share server',
    ('share_task', 'task_state'): 'share',
    ('share_transfer', 'status'): 'share transfer',
}

# Decision D1: the names of the designs, by those of the published tables.
TRANSLATED = {
    'share_server_task': {
        '(null)': share_server.TaskState.NONE,
        'migration_starting': share_server.TaskState.STARTING,
        # Only drivers migrate servers: one name stands for three.
        'migration_in_progress': share_server.TaskState.MIGRATING,
        'migration_driver_starting': share_server.TaskState.STARTING,
        'migration_driver_in_progress': share_server.TaskState.MIGRATING,
        'migration_driver_phase1_done': share_server.TaskState.PHASE1_DONE,
        'migration_completing': share_server.TaskState.COMPLETING,
        'migration_cancel_in_progress': share_server.TaskState.CANCELLING,
        'migration_success': share_server.TaskState.COMPLETED,
        'migration_cancelled': share_server.TaskState.CANCELLED,
        'migration_error': share_server.TaskState.ERROR,
    },
    'share_task': {'(null)': share_task.ShareTask.NONE},
}

# A copy by the data service ends at once, and with the migration.
NOT_SERVED = re.compile('data_copying_(completing|cancelled|error)')

# Statuses in which an administrator, not a service, owes the next move.
WAITING = {
    'share_server_task': {share_server.TaskState.PHASE1_DONE},
    'share_task': set(share_task.WAITING),
}

# Statuses of our own that clients do not see.
HIDDEN_STATUSES = {
    # In the database only, as designed; the API shows error.
    'share_replica': {'error_deleting'},
    # Users see only whether it exists.
    'share_transfer': {'pending', 'accepting'},
}

# The names in lists of differences, where two resources share a published table.
SHOWN = {'snapshot_access_rule': 'snapshot access rule'}

_HERE = pathlib.Path(__file__)
TESTS = ''.join(
    path.read_text() for path in _HERE.parents[2].rglob('test_*.py') if path != _HERE
)

every_machine = pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)


def reachable(machine, *, resets):
    """Return the statuses that a row can reach from an initial one."""
    reached, added = set(), set(machine.initial.values())
    while added:
        reached |= added
        moves = (
            machine.moves
            if resets
            else [move for status in reached for move in machine.moves_from(status)]
        )
        added = (
            {move.target for move in moves if move.sources & reached} - reached - {GONE}
        )
    return reached


def is_settled(machine, status):
    """Whether no move is owed, or submitted work makes it by itself."""
    rescue = machine.in_flight.get(status)
    return status in machine.at_rest | {GONE} or (
        isinstance(rescue, Resume) and not rescue.events
    )


def published(machine):
    name = PUBLISHED[machine.resource, machine.column]
    names = TRANSLATED.get(machine.resource, {})
    return [
        {**row, 'value': names.get(row['value'], row['value'])}
        for row in reference.table('statuses.csv')
        if row['resource'] == name
    ]


def test_machines_are_found():
    assert '<Machine share_instances.status>' in MACHINES


@every_machine
def test_statuses_are_at_rest_or_in_flight(machine):
    assert machine.at_rest.isdisjoint(machine.in_flight)
    used = {status for move in machine.moves for status in (*move.sources, move.target)}
    assert used - {GONE} <= machine.statuses


@every_machine
def test_every_rescue_ends_at_rest_or_gone(machine):
    for status, rescue in machine.in_flight.items():
        for event in rescue.events:
            assert machine[event].can_leave(status), (status, event)
            assert is_settled(machine, machine[event].target), (status, event)


@every_machine
def test_every_status_can_be_reached(machine):
    assert reachable(machine, resets=True) == machine.statuses


@every_machine
def test_statuses_set_only_by_reset_are_given_up(machine):
    # No work is in progress: there is nothing to ask about or to repeat.
    reset_only = machine.statuses - reachable(machine, resets=False)
    assert reset_only <= machine.resets
    for status in reset_only & set(machine.in_flight):
        assert isinstance(machine.in_flight[status], GiveUp), status


@every_machine
def test_every_status_has_a_way_out(machine):
    for status in machine.statuses:
        assert any(move.can_leave(status) for move in machine.moves), status


@every_machine
def test_column_exists_in_the_models(machine):
    assert machine.column in models.metadata.tables[machine.table].columns


@every_machine
def test_rescues_repeat_only_repeatable_work(machine):
    kinds = {
        kind: durable
        for one in CONTRACTS
        for kind, durable in contract.work_kinds(one).items()
    }
    for status, rescue in machine.in_flight.items():
        if isinstance(rescue, (Repeat, Resume)):
            assert kinds[rescue.kind].repeatable, status


@every_machine
def test_rescues_call_methods_of_the_driver_interface(machine):
    for status, rescue in machine.in_flight.items():
        if isinstance(rescue, Ask):
            assert callable(getattr(base.ShareDriver, rescue.driver_method)), status


@every_machine
def test_resets_are_the_published_ones(machine):
    rows = published(machine)
    lists = [
        row['value'] for row in rows if row['field'] == f'reset_{machine.column} list'
    ]
    marked = {
        row['value']
        for row in rows
        if row['field'] == machine.column
        and row['admin_reset'].partition(' ')[0] in ('yes', 'generic')
        and not NOT_SERVED.match(row['value'])
    }
    expected = set(lists[0].split(', ')) if lists else marked
    if machine is SNAPSHOT_INSTANCE:
        # Snapshots have their own list, their instances the general one.
        assert expected == SNAPSHOT_RESETS
        expected |= INSTANCE_RESETS
    assert machine.resets == expected


def listed(found, machine):
    """Return the statuses of a machine in a list of differences."""
    of = SHOWN.get(machine.resource, PUBLISHED[machine.resource, machine.column])
    return {
        status
        for resource, field, status in found
        if (resource, field) == (of, machine.column)
    }


@every_machine
def test_statuses_are_the_published_ones_or_listed(machine):
    known = {
        row['value'] for row in published(machine) if row['field'] == machine.column
    }
    own = machine.statuses - HIDDEN_STATUSES.get(machine.resource, set())
    assert own - known == listed(differences.ADDED_STATUSES, machine)
    assert known - machine.statuses - {'(null)'} == listed(
        differences.MISSING_STATUSES, machine
    )


def test_listed_statuses_are_those_of_a_machine():
    places = {
        (SHOWN.get(resource, of), column)
        for (resource, column), of in PUBLISHED.items()
    }
    for resource, field, _ in (
        *differences.ADDED_STATUSES,
        *differences.MISSING_STATUSES,
    ):
        assert (resource, field) in places


@every_machine
def test_each_status_is_reached_by_a_test(machine):
    """Those in flight are reached by the test of their rescue."""
    for status in machine.statuses - machine.in_flight.keys():
        assert f"'{status}'" in TESTS or f'.{status.upper()}' in TESTS, status


@every_machine
def test_published_transient_statuses_are_in_flight(machine):
    transient = {
        row['value']
        for row in published(machine)
        if row['field'] == machine.column and row['transient'] == 'yes'
    }
    assert (
        machine.statuses & transient - WAITING.get(machine.resource, set())
        <= machine.in_flight.keys()
    )


@every_machine
@given(data=st.data())
def test_after_any_moves_one_rescue_reaches_rest(machine, data):
    status = data.draw(st.sampled_from(sorted(machine.initial.values())))
    for _ in range(data.draw(st.integers(0, 20))):
        moves = sorted(move.event for move in machine.moves if move.can_leave(status))
        status = machine[data.draw(st.sampled_from(moves))].target
        if status is GONE:
            return
        assert status in machine.statuses
    if status in machine.in_flight:
        rescue = machine.in_flight[status]
        if not rescue.events:
            return  # it only waits for work that makes the next move
        event = data.draw(st.sampled_from(rescue.events))
        assert machine[event].can_leave(status)
        assert is_settled(machine, machine[event].target)
