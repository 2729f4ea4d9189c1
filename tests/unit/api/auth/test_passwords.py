"""How often, how long and for whom passwords are verified."""

from concurrent import futures
import threading

import bcrypt
import pytest

from manila_lite import exception
from manila_lite.api.auth import users
from manila_lite.api.auth.passwords import PasswordVerifier
from manila_lite.api.auth.users import CurrentUsers
from tests.support.clock import ManualClock

CHEAP = 4  # the least cost bcrypt allows


def verifier(path, *clock):
    return PasswordVerifier(CurrentUsers(str(path)), *clock)


def test_right_password_is_verified_once_in_five_minutes(file, hash_checks):
    clock = ManualClock(1000.0)
    passwords = verifier(file, clock)
    for later in (0, 1, 298):
        clock.now += later
        assert passwords.user('alice', b'alice-secret')
    assert len(hash_checks) == 1
    clock.now += 1
    assert passwords.user('alice', b'alice-secret')
    assert len(hash_checks) == 2


def test_wrong_password_is_verified_every_time(file, hash_checks):
    passwords = verifier(file, ManualClock(1000.0))
    assert passwords.user('alice', b'alice-secret')
    for _ in range(2):
        assert passwords.user('alice', b'guess') is None
    assert len(hash_checks) == 3


def test_unknown_name_takes_as_long_as_a_known_one(file, hash_checks):
    passwords = verifier(file, ManualClock(1000.0))
    users.add(str(file), 'erin', 'secret', 'u', 'a1', ['reader'])
    assert passwords.user('erin', b'guess') is None
    assert passwords.user('nobody', b'guess') is None
    assert hash_checks == ['$2b$12$', '$2b$12$']


@pytest.mark.parametrize('name, extra', [('cheap', 4), ('alice', 0)])
def test_every_refusal_takes_as_long_as_the_highest_cost(
    tmp_path, hash_checks, name, extra
):
    path = str(tmp_path / 'mixed')
    for user, cost in (('cheap', 4), ('costly', 8)):
        users.add(path, user, 'secret', 'u', 'a1', ['reader'], cost=cost)
    passwords = verifier(path, ManualClock(1000.0))
    assert passwords.user(name, b'guess') is None
    rounds = [2 ** int(prefix[4:6]) for prefix in hash_checks]
    assert (sum(rounds), len(rounds)) == (2**8, 1 + extra)


class SlowHash:
    """Computes a hash once the test allows it."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, function, *args):
        self.begun.set()
        assert self.go_on.wait(60)
        return function(*args)


@pytest.fixture
def slow_hash():
    run = SlowHash()
    yield run
    run.go_on.set()


def sign_in(passwords, password=b'alice-secret', address=''):
    try:
        return passwords.user('alice', password, address)
    except exception.TooManySignIns:
        return 'too many'


def test_some_requests_of_a_user_share_one_hash_and_more_are_refused(
    file, hash_checks, slow_hash
):
    passwords = PasswordVerifier(CurrentUsers(str(file)), run=slow_hash)
    with futures.ThreadPoolExecutor(24) as threads:
        # There are 15 places, of which one network gets 12.
        answers = [
            threads.submit(sign_in, passwords, address=address)
            for address in ['192.0.2.1'] * 18 + ['2001:db8::1'] * 6
        ]
        done = futures.as_completed(answers, 60)
        refused = [next(done).result() for _ in range(9)]
        slow_hash.go_on.set()
    assert refused == ['too many'] * 9
    found = [answer.result() for answer in answers]
    assert found.count('too many') == 9
    assert found[:18].count('too many') >= 6
    assert len(hash_checks) == 1
    assert sign_in(passwords).name == 'alice'


def test_requests_with_a_known_password_do_not_wait_for_its_next_hash(file, slow_hash):
    clock = ManualClock(1000.0)
    passwords = PasswordVerifier(CurrentUsers(str(file)), clock, run=slow_hash)
    slow_hash.go_on.set()
    assert sign_in(passwords)
    clock.now += 300
    slow_hash.begun.clear()
    slow_hash.go_on.clear()
    with futures.ThreadPoolExecutor(2) as threads:
        again = threads.submit(sign_in, passwords)
        assert slow_hash.begun.wait(60)
        assert sign_in(passwords).name == 'alice'
        assert not again.done()
        slow_hash.go_on.set()
        assert again.result(60).name == 'alice'


def test_at_most_two_hashes_are_computed_at_once(file, monkeypatch):
    running, most = [], []
    work = bcrypt.checkpw

    def count(password, hashed):
        running.append(1)
        most.append(len(running))
        try:
            return work(password, hashed)
        finally:
            running.pop()

    monkeypatch.setattr(bcrypt, 'checkpw', count)
    users.add(str(file), 'erin', 'secret', 'u', 'a1', ['reader'])
    passwords = verifier(file)

    def outcome(number):
        try:
            return passwords.user(f'stranger-{number}', b'guess')
        except exception.TooManySignIns:
            return 'too many'

    with futures.ThreadPoolExecutor(24) as threads:
        outcomes = list(threads.map(outcome, range(24)))
    assert max(most) == 2
    assert set(outcomes) == {None, 'too many'}
    assert outcomes.count('too many') >= 24 - 2 - 8


def test_passwords_are_not_stored(file):
    passwords = verifier(file, ManualClock(1000.0))
    assert passwords.user('alice', b'alice-secret')
    assert b'alice-secret' not in repr(vars(passwords)).encode()
