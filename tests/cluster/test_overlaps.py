"""Only processes that could not renew a lease explain overlapping calls."""

import os
import time

from manila_lite.context import FencingToken
from manila_lite.share.drivers.dummy.fencing import FencingGate
from tests.cluster.overlaps import LostLease, OverlapWatch
from tests.support.processes import wait_until

NOBODY = 0
OWN = os.getpid()


def overlap(gate):
    """Run two calls of this process for different work at once."""
    value = time.time_ns()
    first, second = (FencingToken('share:1', number) for number in (value, value + 1))
    with gate.admitted('extend_share', first), gate.admitted('other', second):
        pass


def test_overlap_is_explained_by_its_process_and_its_time(tmp_path):
    gate = FencingGate(tmp_path)
    reads = []

    def gates():
        reads.append(True)
        return {'alpha': gate}

    watch = OverlapWatch(gates)
    with watch.watching():
        wait_until(lambda: reads, 'records are read without a call of take')
        began = time.monotonic()
        for explained, number in (
            ([], 1),
            ([LostLease(frozenset({NOBODY}), began, began + 60)], 1),
            ([LostLease(frozenset({OWN}), began - 60, began - 30)], 1),
            ([LostLease(frozenset({OWN}), began + 60, began + 90)], 1),
            ([LostLease(frozenset({OWN}), began, began + 60)], 0),
        ):
            overlap(gate)
            found = watch.take(explained)
            assert [one.overlap.during for one in found] == (['extend_share'] * number)
        assert watch.take([]) == []
