"""Limits for sign-ins by password."""

import contextlib
import threading

import pytest

from manila_lite import exception
from manila_lite.api.auth.throttle import HashSlots, SignInThrottle
from tests.support.clock import ManualClock

HOME, AWAY = '192.0.2.1', '198.51.100.7'
PATIENCE = 20.0


@pytest.fixture
def clock():
    return ManualClock(1000.0)


@pytest.fixture
def throttle(clock):
    return SignInThrottle(clock)


def delay(throttle, name, address):
    """Return the seconds that the caller is asked to wait."""
    try:
        throttle.check(name, address)
    except exception.TooManySignIns as error:
        return error.retry_after
    return 0


def fail(throttle, name, address, times=1):
    for _ in range(times):
        throttle.failed(name, address)


def test_delay_doubles_with_each_failure_up_to_a_minute(throttle):
    delays = []
    for _ in range(11):
        throttle.failed('alice', HOME)
        delays.append(delay(throttle, 'alice', HOME))
    assert delays == [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_delay_ends_after_its_time(throttle, clock):
    fail(throttle, 'alice', HOME, 6)
    clock.now += 3.5
    assert delay(throttle, 'alice', HOME) == 1
    clock.now += 0.5
    assert delay(throttle, 'alice', HOME) == 0
    throttle.failed('alice', HOME)
    assert delay(throttle, 'alice', HOME) == 8


def test_failures_are_forgotten_after_a_quiet_quarter_of_an_hour(throttle, clock):
    fail(throttle, 'alice', HOME, 30)
    clock.now += 900
    throttle.failed('alice', HOME)
    assert delay(throttle, 'alice', HOME) == 0


def test_sign_in_ends_the_delay(throttle):
    fail(throttle, 'alice', HOME, 4)
    throttle.succeeded('alice', HOME)
    assert delay(throttle, 'alice', HOME) == 0


def test_many_failures_of_a_name_delay_it_at_every_address(throttle):
    for number in range(12):
        throttle.failed('alice', f'192.0.2.{number}')
    assert delay(throttle, 'alice', AWAY) == 2
    assert delay(throttle, 'bob', AWAY) == 0


def test_many_failures_at_an_address_delay_every_name(throttle):
    for number in range(40):
        throttle.failed(f'stranger-{number}', HOME)
    assert delay(throttle, 'stranger-40', HOME) == 4
    assert delay(throttle, 'stranger-40', AWAY) == 0


def test_delayed_address_is_logged_once(throttle, caplog):
    for number in range(40):
        throttle.failed(f'stranger-{number}', HOME)
    assert caplog.text.count(HOME) == 1
    assert 'stranger' not in caplog.text


def test_known_user_is_not_delayed_by_the_failures_of_others(throttle):
    throttle.succeeded('alice', HOME)
    for number in range(40):
        throttle.failed(f'stranger-{number}', HOME)
        throttle.failed('alice', f'198.51.100.{number}')
    assert delay(throttle, 'alice', HOME) == 0
    assert delay(throttle, 'alice', AWAY) > 0
    fail(throttle, 'alice', HOME, 4)
    assert delay(throttle, 'alice', HOME) == 1


@pytest.mark.parametrize(
    'first, second, same',
    [
        ('2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6', True),
        ('2001:db8:1:2::1', '2001:db8:1:3::1', False),
        ('192.0.2.1', '192.0.2.2', False),
        ('::ffff:192.0.2.1', '::ffff:192.0.2.2', False),
        ('203.0.113.9, 192.0.2.1', '203.0.113.10, 192.0.2.1', True),
        ('192.0.2.1, 203.0.113.9', '192.0.2.1, 203.0.113.10', False),
        ('unix:', 'unix:', True),
    ],
)
def test_an_address_is_that_of_one_caller(throttle, first, second, same):
    fail(throttle, 'alice', first, 4)
    assert (delay(throttle, 'alice', second) > 0) is same


def test_only_the_latest_failures_are_kept(clock):
    throttle = SignInThrottle(clock, size=100)
    fail(throttle, 'alice', HOME, 50)
    for number in range(100):
        throttle.failed(f'stranger-{number}', f'2001:db8:0:{number:x}::1')
    assert delay(throttle, 'alice', HOME) == 0
    assert delay(throttle, 'stranger-99', '2001:db8:0:63::1') == 0
    fail(throttle, 'stranger-99', '2001:db8:0:63::1', 3)
    assert delay(throttle, 'stranger-99', '2001:db8:0:63::1') == 1


class Holder:
    """A thread that occupies a slot until `may_leave` is set."""

    def __init__(self, slots, address=HOME):
        self._slots, self._address = slots, address
        self.has_slot, self.may_leave = threading.Event(), threading.Event()
        self.refused = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            with self._slots.slot(self._address):
                self.has_slot.set()
                self.may_leave.wait(PATIENCE)
        except exception.TooManySignIns:
            self.refused = True

    def leave(self):
        self.may_leave.set()
        self.thread.join(PATIENCE)


def test_a_third_hash_waits_for_a_slot():
    slots = HashSlots(timeout=PATIENCE)
    first, second = Holder(slots), Holder(slots)
    assert first.has_slot.wait(PATIENCE)
    assert second.has_slot.wait(PATIENCE)
    third = Holder(slots)
    assert not third.has_slot.wait(0.1)
    first.leave()
    assert third.has_slot.wait(PATIENCE)
    second.leave()
    third.leave()


def test_the_wait_for_a_slot_is_limited():
    slots = HashSlots(running=1, waiting=1, timeout=0.05)
    holder = Holder(slots)
    assert holder.has_slot.wait(PATIENCE)
    late = Holder(slots)
    late.thread.join(PATIENCE)
    assert late.refused
    holder.leave()
    with slots.slot():
        pass


def test_only_a_few_callers_wait_and_others_are_refused_at_once():
    slots = HashSlots(running=1, waiting=0, timeout=PATIENCE)
    holder = Holder(slots)
    assert holder.has_slot.wait(PATIENCE)
    with pytest.raises(exception.TooManySignIns) as caught, slots.slot():
        pass
    assert caught.value.retry_after >= 1
    holder.leave()


def test_an_error_frees_the_slot():
    slots = HashSlots(running=1, waiting=0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), slots.slot():
            raise ZeroDivisionError


@pytest.mark.parametrize('kind', ['slot', 'place'])
def test_a_flood_from_one_network_leaves_places_to_others(kind):
    slots = HashSlots(running=1, waiting=3, sharing=0, kept=1)
    with contextlib.ExitStack() as flood:
        flood.enter_context(slots.slot(HOME))
        for _ in range(2):
            flood.enter_context(slots.place(HOME))
        with pytest.raises(exception.TooManySignIns), getattr(slots, kind)(HOME):
            pass
        with slots.place(AWAY):
            pass
    with slots.slot(HOME), slots.place(HOME), slots.place(HOME):
        pass


def test_hashes_for_one_network_leave_some_to_others():
    slots = HashSlots(running=2, waiting=0, sharing=5, kept=1)
    holder = Holder(slots)
    assert holder.has_slot.wait(PATIENCE)
    with pytest.raises(exception.TooManySignIns), slots.slot(HOME):
        pass
    with slots.slot(AWAY):
        pass
    holder.leave()
