"""A lease ends by a clock that runs while the machine sleeps."""

import time

from manila_lite.work.lease import Lease, boot_time
from tests.support.clock import ManualClock


def test_a_lease_is_valid_until_its_deadline():
    clock = ManualClock(100.0)
    lease = Lease(130.0, clock)
    clock.now = 129.9
    assert lease.is_valid
    clock.now = 130.0
    assert not lease.is_valid


def test_a_renewed_lease_is_valid_longer():
    clock = ManualClock(100.0)
    lease = Lease(130.0, clock)
    lease.extend(140.0)
    lease.extend(135.0)  # a renewal that was answered late
    clock.now = 139.9
    assert lease.is_valid


def test_a_lost_lease_is_not_valid():
    lease = Lease(130.0, ManualClock(100.0))
    lease.lose()
    assert not lease.is_valid


def test_the_clock_counts_the_time_of_a_suspended_machine():
    assert abs(boot_time() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 5
