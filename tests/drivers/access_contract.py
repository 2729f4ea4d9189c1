"""What any driver must do about access rules of shares and snapshots."""

import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.driver_harness import CTX

TARGETS = [f'10.{number}.0.0/16' for number in range(8)]


def client(rule):
    return rule['access_type'], rule['access_to'], rule['access_level']


class _Door:
    """A share or snapshot, and the clients it is told to let in."""

    def __init__(self, subject, driver, thing):
        self.subject = subject
        self.driver = driver
        self.thing = thing

    def tell(self, rules, *, add=(), delete=(), update=()):
        """Call the driver; skips where it knows no access rules."""
        try:
            return self.call(rules, add, delete, update)
        except NotImplementedError:
            pytest.skip('the driver has no update_access')

    def call(self, rules, add, delete, update):
        return self.driver.apply_access(
            CTX, self.thing, rules, add, delete, update
        )

    def clients(self):
        """Who is let in; skips where a test cannot tell."""
        clients = self.subject.clients(self.driver, self.thing)
        if clients is None:
            pytest.skip('no test can tell whom its shares let in')
        return clients

    def restart(self):
        self.driver = self.subject.start()

    def remove(self):
        self.driver.delete_share(CTX, self.thing)


class _SnapshotDoor(_Door):
    def call(self, rules, add, delete, update):
        # A snapshot has no levels: no rule of it is ever updated.
        assert not update
        return base.access_answers(
            self.driver.snapshot_update_access(
                CTX, self.thing, list(rules), list(add), list(delete)
            )
        )

    def remove(self):
        self.driver.delete_snapshot(CTX, self.thing)


class _Rules:
    level = 'rw'

    def rule(self, subject, door, access_to, **values):
        share = getattr(door.thing, 'share', door.thing)
        return subject.rule(
            share, access_to, **{'access_level': self.level, **values}
        )

    def rules(self, subject, door, count):
        return [self.rule(subject, door, to) for to in TARGETS[:count]]

    def test_added_client_is_let_in(self, subject, door):
        (rule,) = self.rules(subject, door, 1)
        answer = door.tell([rule], add=[rule])
        assert answer.get(rule.id, {}).get('state', 'active') == 'active'
        assert door.clients() == {client(rule)}
        door.restart()
        assert door.clients() == {client(rule)}

    def test_adding_again_changes_nothing(self, subject, door):
        one, two = self.rules(subject, door, 2)
        door.tell([one, two], add=[one, two])
        door.tell([one, two], add=[one, two])
        door.restart()
        door.tell([one, two], add=[two])
        assert door.clients() == {client(one), client(two)}

    def test_deleted_client_is_shut_out(self, subject, door):
        one, two = self.rules(subject, door, 2)
        door.tell([one, two], add=[one, two])
        for _ in range(2):
            door.tell([two], delete=[one])
            assert door.clients() == {client(two)}

    def test_deleting_what_never_was_is_success(self, subject, door):
        one, two = self.rules(subject, door, 2)
        answer = door.tell([one], add=[one], delete=[two])
        assert answer.get(two.id, {}).get('state') != 'error'
        assert door.clients() == {client(one)}

    def test_all_go_and_come_in_one_call(self, subject, door):
        one, two, three = self.rules(subject, door, 3)
        door.tell([one, two], add=[one, two])
        door.tell([three], add=[three], delete=[one, two])
        assert door.clients() == {client(three)}
        door.tell([], delete=[three])
        assert door.clients() == set()

    def test_without_changes_all_is_put_right(self, subject, door):
        one, two, three = self.rules(subject, door, 3)
        door.tell([one, two], add=[one, two])
        door.restart()
        for _ in range(2):
            door.tell([two, three])
            assert door.clients() == {client(two), client(three)}
        door.tell([])
        assert door.clients() == set()

    def test_client_denied_and_allowed_anew_is_let_in(self, subject, door):
        old, new = (self.rule(subject, door, TARGETS[0]) for _ in range(2))
        door.tell([old], add=[old])
        door.tell([new], add=[new], delete=[old])
        assert door.clients() == {client(new)}

    def test_rule_it_cannot_have_harms_no_other(self, subject, door):
        (good,) = self.rules(subject, door, 1)
        odd = self.rule(subject, door, 'nobody', access_type='unheard-of')
        answer = door.tell([good, odd], add=[good, odd])
        assert client(good) in door.clients()
        state = answer.get(odd.id, {}).get('state', 'active')
        assert (client(odd) in door.clients()) == (state == 'active')

    def test_nobody_is_let_in_once_it_is_gone(self, subject, door):
        (rule,) = self.rules(subject, door, 1)
        door.tell([rule], add=[rule])
        door.remove()
        assert door.clients() == set()
        door.tell([], delete=[rule])
        door.tell([])
        with pytest.raises(exception.DriverError):
            door.tell([rule], add=[rule])
        assert door.clients() == set()

    @pytest.mark.parametrize('seed', range(5))
    def test_any_order_ends_right(self, subject, door, seed):
        chance, rules = random.Random(seed), {}
        for _ in range(25):
            changes = {}
            for to in chance.sample(TARGETS, chance.randint(0, 3)):
                rule = rules.pop(to, None)
                if rule is None:
                    rules[to] = self.rule(subject, door, to)
                    changes.setdefault('add', []).append(rules[to])
                else:
                    changes.setdefault('delete', []).append(rule)
            for _ in range(chance.randint(1, 2)):
                door.tell(list(rules.values()), **changes)
            if chance.random() < 0.1:
                door.restart()
        assert door.clients() == {client(rule) for rule in rules.values()}


class AccessContract(_Rules):
    @pytest.fixture
    def door(self, subject, driver):
        share = subject.share()
        driver.create_share(CTX, share)
        return _Door(subject, driver, share)

    def test_level_is_changed(self, subject, door):
        write = self.rule(subject, door, TARGETS[0])
        read = self.rule(
            subject, door, TARGETS[0], id=write.id, access_level='ro'
        )
        door.tell([write], add=[write])
        for _ in range(2):
            door.tell([read], update=[read])
            assert door.clients() == {client(read)}

    def test_cast_to_read_only_needs_no_change(self, subject, door):
        write = self.rule(subject, door, TARGETS[0])
        read = self.rule(
            subject, door, TARGETS[0], id=write.id, access_level='ro'
        )
        door.tell([write], add=[write])
        door.tell([read])
        assert door.clients() == {client(read)}
        door.tell([write])
        assert door.clients() == {client(write)}

    def test_two_shares_let_in_their_own(self, subject, door):
        other = subject.share()
        door.driver.create_share(CTX, other)
        beside = _Door(subject, door.driver, other)
        one, two = self.rules(subject, door, 2)
        door.tell([one], add=[one])
        beside.tell([two], add=[two])
        assert door.clients() == {client(one)}
        assert beside.clients() == {client(two)}
        beside.remove()
        assert door.clients() == {client(one)}


class SnapshotAccessContract(_Rules):
    level = 'ro'

    @pytest.fixture
    def door(self, subject, driver):
        if not isinstance(driver, base.MountSnapshotSupport):
            pytest.skip('the driver does not offer MountSnapshotSupport')
        share = subject.share()
        driver.create_share(CTX, share)
        snapshot = subject.snapshot(share)
        self.answer = driver.create_snapshot(CTX, snapshot)
        return _SnapshotDoor(subject, driver, snapshot)

    def test_snapshot_can_be_reached(self, subject, door):
        locations = base.export_locations(self.answer['export_locations'])
        assert any(not location['is_admin_only'] for location in locations)
        share = base.export_locations(
            door.driver.create_share(CTX, door.thing.share)
        )
        assert {location['path'] for location in share}.isdisjoint(
            location['path'] for location in locations
        )
