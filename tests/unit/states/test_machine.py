"""A machine rejects inconsistent tables and answers questions about moves."""

import pytest

from manila_lite.states.machine import GONE, Ask, GiveUp, Machine

VALID = {
    'initial': {'create': 'making'},
    'moves': [
        ('made', {'making'}, 'ready'),
        ('lost', {'making'}, 'ready'),
        ('remove', {'ready', 'hidden'}, GONE),
        ('hide', {'ready'}, 'hidden'),
    ],
    'at_rest': {'ready', 'hidden'},
    'in_flight': {'making': Ask('is_it_there', 'made', 'lost')},
    'resets': {'making', 'ready'},
    'final': {'hidden'},
}


def machine(**changes):
    return Machine('thing', 'things', **(VALID | changes))


def with_move(*move):
    return {'moves': [*VALID['moves'], move]}


@pytest.mark.parametrize(
    'changes, complaint',
    [
        (with_move('made', {'making'}, 'ready'), 'made is declared twice'),
        (with_move('create', {'ready'}, 'ready'), 'create is declared twice'),
        (with_move('reset_ready', {'ready'}, 'ready'), 'declared twice'),
        (with_move('spoil', {'ready'}, 'spoiled'), 'spoiled'),
        (with_move('mend', {'spoiled'}, 'ready'), 'spoiled'),
        ({'initial': {'create': 'nowhere'}}, 'nowhere'),
        ({'at_rest': {'ready', 'hidden', 'unused'}, 'resets': ()}, 'unused'),
        ({'at_rest': {'ready', 'hidden', 'making'}}, 'at rest and in flight'),
        ({'in_flight': {'making': GiveUp('vanish')}}, 'cannot fire vanish'),
        ({'in_flight': {'making': GiveUp('remove')}}, 'cannot fire remove'),
        ({'in_flight': {'making': Ask('q', 'made', 'hide')}}, 'fire hide'),
        ({'stamps': {'vanish': 'made_at'}}, 'stamps without a move'),
    ],
)
def test_broken_table_is_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        machine(**changes)


def test_resets_may_leave_every_status_except_final_ones():
    assert machine()[machine().reset_event('ready')].sources == {'making', 'ready'}


def test_other_statuses_cannot_be_reset_to():
    with pytest.raises(KeyError):
        machine().reset_event('hidden')


def test_moves_from_leaves_out_resets():
    assert [move.event for move in machine().moves_from('ready')] == ['remove', 'hide']


def test_unknown_event_is_no_move():
    assert 'made' in machine()
    assert 'fly' not in machine()
    with pytest.raises(KeyError):
        machine()['fly']
