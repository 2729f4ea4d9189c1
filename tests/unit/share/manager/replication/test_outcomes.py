"""Outcomes of driver replies about replicas, case by case."""

import pytest

from manila_lite import exception
from manila_lite.share.manager.replication.outcomes import (
    FAILED,
    DriverReply,
    Transitions,
    claims_active_role,
    denies_active_role,
    reported_state,
    snapshot_outcome,
    transitions_for,
)

IN, OUT, ERROR, ACTIVE = 'in_sync', 'out_of_sync', 'error', 'active'
GONE = exception.SnapshotResourceNotFound(snapshot_id='id')
BROKEN = exception.ShareBackendException(msg='it is on fire')


@pytest.mark.parametrize(
    'state, answer, event',
    [
        (IN, IN, None),
        (IN, OUT, 'fell_behind'),
        (IN, ERROR, 'failed'),
        (IN, None, None),
        (OUT, IN, 'caught_up'),
        (OUT, OUT, None),
        (OUT, ERROR, 'failed'),
        (OUT, None, None),
        (ERROR, IN, 'caught_up'),
        (ERROR, OUT, 'fell_behind'),
        (ERROR, ERROR, None),
        (ERROR, None, None),
        (OUT, ACTIVE, 'activated'),
    ],
)
def test_state_is_as_reported(state, answer, event):
    assert transitions_for('available', state, answer, ()) == Transitions(None, event)


@pytest.mark.parametrize(
    'state, answer, event',
    [
        (IN, IN, 'fell_behind'),
        (IN, None, 'fell_behind'),
        (OUT, IN, None),
        (OUT, None, None),
        (ERROR, IN, 'fell_behind'),
        (ERROR, None, None),
        (OUT, ACTIVE, None),
        (IN, ERROR, 'failed'),
    ],
)
def test_replica_that_lacks_a_snapshot_is_not_in_sync(state, answer, event):
    assert transitions_for('available', state, answer, {'snapshot'}) == Transitions(
        None, event
    )


@pytest.mark.parametrize(
    'answer, status',
    [
        (IN, 'replica_healed'),
        (OUT, 'replica_healed'),
        (ERROR, None),
        (None, None),
        (FAILED, None),
    ],
)
def test_replica_in_error_is_healed_by_a_healthy_report(answer, status):
    assert transitions_for('error', ERROR, answer, ()).status == status


@pytest.mark.parametrize(
    'status, state, expected',
    [
        ('available', IN, Transitions('replica_failed', 'failed')),
        ('available', OUT, Transitions('replica_failed', 'failed')),
        ('available', ERROR, Transitions('replica_failed', None)),
        ('error', IN, Transitions(None, 'failed')),
        ('error', ERROR, Transitions()),
    ],
)
def test_failure_sets_status_and_state_once(status, state, expected):
    assert transitions_for(status, state, FAILED, ()) == expected
    assert expected.failed == (expected != Transitions())


@pytest.mark.parametrize(
    'said, style, state',
    [
        (DriverReply(IN), 'dr', IN),
        (DriverReply(None), 'dr', None),
        (DriverReply('splendid'), 'dr', None),
        (DriverReply(['in_sync']), 'dr', None),
        (DriverReply({'replica_state': IN}), 'readable', None),
        (DriverReply(ACTIVE), 'dr', ERROR),
        (DriverReply(ACTIVE), 'writable', ACTIVE),
        (DriverReply(error=BROKEN), 'writable', FAILED),
        (DriverReply(error=NotImplementedError()), 'readable', FAILED),
        (DriverReply(error=NotImplementedError()), 'writable', None),
    ],
)
def test_invalid_reply_is_no_news(said, style, state):
    assert reported_state(said, style) is state


@pytest.mark.parametrize(
    'said, style, claims',
    [
        (DriverReply(ACTIVE), 'dr', True),
        (DriverReply(ACTIVE), 'readable', True),
        (DriverReply(ACTIVE), 'writable', False),
        (DriverReply(IN), 'dr', False),
        (DriverReply([ACTIVE]), 'dr', False),
        (DriverReply(error=BROKEN), 'dr', False),
    ],
)
def test_passive_replica_claims_the_active_role(said, style, claims):
    assert claims_active_role(said, style) is claims


@pytest.mark.parametrize(
    'said, denies',
    [
        ({'status': 'available', 'replica_state': ACTIVE}, False),
        ({'status': 'available', 'replica_state': OUT}, True),
        ({'status': 'error', 'replica_state': IN}, True),
        ({'status': 'error', 'replica_state': ERROR}, False),
        ({'status': 'error', 'replica_state': [OUT]}, False),
        ({'status': 'error'}, False),
        (OUT, False),
        (None, False),
    ],
)
def test_active_replica_denies_its_role(said, denies):
    assert denies_active_role(DriverReply(said)) is denies


@pytest.mark.parametrize(
    'status, said, event',
    [
        ('creating', DriverReply({'status': 'available'}), 'created'),
        ('creating', DriverReply({'status': 'creating'}), None),
        ('creating', DriverReply({'status': 'error'}), 'create_failed'),
        ('creating', DriverReply({'status': 'deleted'}), 'create_failed'),
        ('creating', DriverReply({'progress': '50%'}), None),
        ('creating', DriverReply(None), None),
        ('creating', DriverReply({'status': []}), None),
        ('creating', DriverReply('available'), 'create_failed'),
        ('creating', DriverReply(error=GONE), 'create_failed'),
        ('creating', DriverReply(error=BROKEN), 'create_failed'),
        ('deleting', DriverReply(error=GONE), 'deleted'),
        ('deleting', DriverReply({'status': 'deleted'}), 'deleted'),
        ('deleting', DriverReply({'status': 'deleting'}), None),
        ('deleting', DriverReply({'status': 'available'}), None),
        ('deleting', DriverReply(None), None),
        ('deleting', DriverReply({'status': 'error_deleting'}), 'delete_failed'),
        ('deleting', DriverReply(error=BROKEN), 'delete_failed'),
        ('deleting', DriverReply(7), 'delete_failed'),
    ],
)
def test_snapshot_outcome_is_as_reported(status, said, event):
    assert snapshot_outcome(status, said, 'dr').event == event


def test_writable_driver_may_lack_snapshot_updates():
    said = DriverReply(error=NotImplementedError())
    assert snapshot_outcome('creating', said, 'writable').event is None
    assert snapshot_outcome('creating', said, 'dr').event == 'create_failed'
