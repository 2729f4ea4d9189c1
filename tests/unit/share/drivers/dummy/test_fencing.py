"""Calls of several processes on one dummy back end."""

import multiprocessing
import os

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken
from manila_lite.share.drivers.dummy.fencing import FencingGate, Overlap

SHARE = 'share_instance:1'
_context = multiprocessing.get_context('forkserver')


def call_until_told(path, value, told):
    with FencingGate(path).admitted('create_share', FencingToken(SHARE, value)):
        told.send('begun')
        told.recv()


@pytest.fixture
def other(tmp_path):
    """Another process that is in a call with token 3."""
    # A pipe, since an event whose waiter was killed is never set.
    here, there = _context.Pipe()
    process = _context.Process(target=call_until_told, args=(tmp_path, 3, there))
    process.start()
    there.close()
    assert here.poll(60)
    assert here.recv() == 'begun'
    yield process
    if process.is_alive():
        here.send('end')
    process.join()


def admit(gate, value, resource=SHARE):
    with gate.admitted('extend_share', FencingToken(resource, value)):
        pass


def test_call_beside_one_of_another_process_is_an_overlap(tmp_path, other):
    gate = FencingGate(tmp_path)
    admit(gate, 3)  # the same work
    admit(gate, 1, resource='share_instance:2')
    assert gate.overlaps == []
    admit(gate, 4)
    assert gate.overlaps == [
        Overlap(SHARE, 'extend_share', 'create_share', os.getpid(), other.pid)
    ]


def test_call_of_a_killed_process_has_ended(tmp_path, other):
    other.kill()
    other.join()
    gate = FencingGate(tmp_path)
    admit(gate, 4)
    assert gate.overlaps == []


def test_running_calls_are_those_of_all_living_processes(tmp_path, other):
    gate = FencingGate(tmp_path)
    with gate.admitted('extend_share', FencingToken(SHARE, 3)):
        assert sorted(gate.running()) == [
            ('create_share', other.pid),
            ('extend_share', os.getpid()),
        ]
    assert gate.running() == [('create_share', other.pid)]
    other.kill()
    other.join()
    assert gate.running() == []


def test_call_overtaken_by_a_later_one_is_refused_before_its_effect(tmp_path):
    gate = FencingGate(tmp_path)
    token = FencingToken(SHARE, 5)
    with gate.admitted('create_share', token):
        gate.check('create_share', token)
        admit(FencingGate(tmp_path), 6)
        with pytest.raises(exception.StaleFencingToken):
            gate.check('create_share', token)
