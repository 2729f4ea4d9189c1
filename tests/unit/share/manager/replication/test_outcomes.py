"""What answers of drivers about replicas mean, case by case."""

import pytest

from manila_lite import exception
from manila_lite.share.manager.replication.outcomes import FAILED
from manila_lite.share.manager.replication.outcomes import Moves
from manila_lite.share.manager.replication.outcomes import Said
from manila_lite.share.manager.replication.outcomes import moves
from manila_lite.share.manager.replication.outcomes import news_of
from manila_lite.share.manager.replication.outcomes import state_of

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
def test_a_state_is_what_the_driver_says(state, answer, event):
    assert moves('available', state, answer, ()) == Moves(None, event)


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
def test_what_lacks_a_snapshot_is_not_in_sync(state, answer, event):
    assert moves('available', state, answer, {'snapshot'}) == Moves(
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
def test_what_was_in_error_is_healed_by_a_good_answer(answer, status):
    assert moves('error', ERROR, answer, ()).status == status


@pytest.mark.parametrize(
    'status, state, expected',
    [
        ('available', IN, Moves('replica_failed', 'failed')),
        ('available', OUT, Moves('replica_failed', 'failed')),
        ('available', ERROR, Moves('replica_failed', None)),
        ('error', IN, Moves(None, 'failed')),
        ('error', ERROR, Moves()),
    ],
)
def test_a_failure_is_shown_by_both_and_once(status, state, expected):
    assert moves(status, state, FAILED, ()) == expected
    assert expected.failed == (expected != Moves())


@pytest.mark.parametrize(
    'said, style, state',
    [
        (Said(IN), 'dr', IN),
        (Said(None), 'dr', None),
        (Said('splendid'), 'dr', None),
        (Said(['in_sync']), 'dr', None),
        (Said({'replica_state': IN}), 'readable', None),
        (Said(ACTIVE), 'dr', None),
        (Said(ACTIVE), 'writable', ACTIVE),
        (Said(error=BROKEN), 'writable', FAILED),
        (Said(error=NotImplementedError()), 'readable', FAILED),
        (Said(error=NotImplementedError()), 'writable', None),
    ],
)
def test_what_makes_no_sense_is_no_news(said, style, state):
    assert state_of(said, style) is state


@pytest.mark.parametrize(
    'status, said, event',
    [
        ('creating', Said({'status': 'available'}), 'created'),
        ('creating', Said({'status': 'creating'}), None),
        ('creating', Said({'status': 'error'}), 'create_failed'),
        ('creating', Said({'status': 'deleted'}), 'create_failed'),
        ('creating', Said({'progress': '50%'}), None),
        ('creating', Said(None), None),
        ('creating', Said({'status': []}), None),
        ('creating', Said('available'), 'create_failed'),
        ('creating', Said(error=GONE), 'create_failed'),
        ('creating', Said(error=BROKEN), 'create_failed'),
        ('deleting', Said(error=GONE), 'deleted'),
        ('deleting', Said({'status': 'deleted'}), 'deleted'),
        ('deleting', Said({'status': 'deleting'}), None),
        ('deleting', Said({'status': 'available'}), None),
        ('deleting', Said(None), None),
        ('deleting', Said({'status': 'error_deleting'}), 'delete_failed'),
        ('deleting', Said(error=BROKEN), 'delete_failed'),
        ('deleting', Said(7), 'delete_failed'),
    ],
)
def test_a_snapshot_is_what_the_driver_says(status, said, event):
    assert news_of(status, said, 'dr').event == event


def test_a_writable_style_need_not_tell_of_snapshots():
    said = Said(error=NotImplementedError())
    assert news_of('creating', said, 'writable').event is None
    assert news_of('creating', said, 'dr').event == 'create_failed'
