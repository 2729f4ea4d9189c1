"""What any driver must do about access rules of shares and snapshots."""

import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.driver_harness import CTX

TARGETS = [f'10.{number}.0.0/16' for number in range(8)]


def client(rule):
    return rule['access_type'], rule['access_to'], rule['access_level']


class _AccessClient:
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


class _SnapshotAccessClient(_AccessClient):
    def call(self, rules, add, delete, update):
        # A snapshot has no levels: no rule of it is ever updated.
        assert not update
        return base.normalise_access_replies(
            self.driver.snapshot_update_access(
                CTX, self.thing, list(rules), list(add), list(delete)
            )
        )

    def remove(self):
        self.driver.delete_snapshot(CTX, self.thing)


class _Rules:
    level = 'rw'

    def rule(self, subject, access_client, access_to, **values):
        share = getattr(access_client.thing, 'share', access_client.thing)
        return subject.rule(
            share, access_to, **{'access_level': self.level, **values}
        )

    def rules(self, subject, access_client, count):
        return [
            self.rule(subject, access_client, to) for to in TARGETS[:count]
        ]

    def test_added_client_is_let_in(self, subject, access_client):
        (rule,) = self.rules(subject, access_client, 1)
        answer = access_client.tell([rule], add=[rule])
        assert answer.get(rule.id, {}).get('state', 'active') == 'active'
        assert access_client.clients() == {client(rule)}
        access_client.restart()
        assert access_client.clients() == {client(rule)}

    def test_adding_again_changes_nothing(self, subject, access_client):
        one, two = self.rules(subject, access_client, 2)
        access_client.tell([one, two], add=[one, two])
        access_client.tell([one, two], add=[one, two])
        access_client.restart()
        access_client.tell([one, two], add=[two])
        assert access_client.clients() == {client(one), client(two)}

    def test_deleted_client_is_shut_out(self, subject, access_client):
        one, two = self.rules(subject, access_client, 2)
        access_client.tell([one, two], add=[one, two])
        for _ in range(2):
            access_client.tell([two], delete=[one])
            assert access_client.clients() == {client(two)}

    def test_deleting_what_never_was_is_success(self, subject, access_client):
        one, two = self.rules(subject, access_client, 2)
        answer = access_client.tell([one], add=[one], delete=[two])
        assert answer.get(two.id, {}).get('state') != 'error'
        assert access_client.clients() == {client(one)}

    def test_all_go_and_come_in_one_call(self, subject, access_client):
        one, two, three = self.rules(subject, access_client, 3)
        access_client.tell([one, two], add=[one, two])
        access_client.tell([three], add=[three], delete=[one, two])
        assert access_client.clients() == {client(three)}
        access_client.tell([], delete=[three])
        assert access_client.clients() == set()

    def test_without_changes_all_is_put_right(self, subject, access_client):
        one, two, three = self.rules(subject, access_client, 3)
        access_client.tell([one, two], add=[one, two])
        access_client.restart()
        for _ in range(2):
            access_client.tell([two, three])
            assert access_client.clients() == {client(two), client(three)}
        access_client.tell([])
        assert access_client.clients() == set()

    def test_client_denied_and_allowed_anew_is_let_in(
        self, subject, access_client
    ):
        old, new = (
            self.rule(subject, access_client, TARGETS[0]) for _ in range(2)
        )
        access_client.tell([old], add=[old])
        access_client.tell([new], add=[new], delete=[old])
        assert access_client.clients() == {client(new)}

    def test_rule_it_cannot_have_harms_no_other(self, subject, access_client):
        (good,) = self.rules(subject, access_client, 1)
        odd = self.rule(
            subject, access_client, 'nobody', access_type='unheard-of'
        )
        answer = access_client.tell([good, odd], add=[good, odd])
        assert client(good) in access_client.clients()
        state = answer.get(odd.id, {}).get('state', 'active')
        assert (client(odd) in access_client.clients()) == (state == 'active')

    def test_nobody_is_let_in_once_it_is_gone(self, subject, access_client):
        (rule,) = self.rules(subject, access_client, 1)
        access_client.tell([rule], add=[rule])
        access_client.remove()
        assert access_client.clients() == set()
        access_client.tell([], delete=[rule])
        access_client.tell([])
        with pytest.raises(exception.DriverError):
            access_client.tell([rule], add=[rule])
        assert access_client.clients() == set()

    @pytest.mark.parametrize('seed', range(5))
    def test_any_order_ends_right(self, subject, access_client, seed):
        rng, rules = random.Random(seed), {}
        for _ in range(25):
            changes = {}
            for to in rng.sample(TARGETS, rng.randint(0, 3)):
                rule = rules.pop(to, None)
                if rule is None:
                    rules[to] = self.rule(subject, access_client, to)
                    changes.setdefault('add', []).append(rules[to])
                else:
                    changes.setdefault('delete', []).append(rule)
            for _ in range(rng.randint(1, 2)):
                access_client.tell(list(rules.values()), **changes)
            if rng.random() < 0.1:
                access_client.restart()
        assert access_client.clients() == {
            client(rule) for rule in rules.values()
        }


class AccessContract(_Rules):
    @pytest.fixture
    def access_client(self, subject, driver):
        share = subject.share()
        driver.create_share(CTX, share)
        return _AccessClient(subject, driver, share)

    def test_level_is_changed(self, subject, access_client):
        write = self.rule(subject, access_client, TARGETS[0])
        read = self.rule(
            subject, access_client, TARGETS[0], id=write.id, access_level='ro'
        )
        access_client.tell([write], add=[write])
        for _ in range(2):
            access_client.tell([read], update=[read])
            assert access_client.clients() == {client(read)}

    def test_cast_to_read_only_needs_no_change(self, subject, access_client):
        write = self.rule(subject, access_client, TARGETS[0])
        read = self.rule(
            subject, access_client, TARGETS[0], id=write.id, access_level='ro'
        )
        access_client.tell([write], add=[write])
        access_client.tell([read])
        assert access_client.clients() == {client(read)}
        access_client.tell([write])
        assert access_client.clients() == {client(write)}

    def test_two_shares_let_in_their_own(self, subject, access_client):
        other = subject.share()
        access_client.driver.create_share(CTX, other)
        beside = _AccessClient(subject, access_client.driver, other)
        one, two = self.rules(subject, access_client, 2)
        access_client.tell([one], add=[one])
        beside.tell([two], add=[two])
        assert access_client.clients() == {client(one)}
        assert beside.clients() == {client(two)}
        beside.remove()
        assert access_client.clients() == {client(one)}


class SnapshotAccessContract(_Rules):
    level = 'ro'

    @pytest.fixture
    def access_client(self, subject, driver):
        if not isinstance(driver, base.MountSnapshotSupport):
            pytest.skip('the driver does not offer MountSnapshotSupport')
        share = subject.share()
        driver.create_share(CTX, share)
        snapshot = subject.snapshot(share)
        self.answer = driver.create_snapshot(CTX, snapshot)
        return _SnapshotAccessClient(subject, driver, snapshot)

    def test_snapshot_can_be_reached(self, subject, access_client):
        locations = base.normalise_export_locations(
            self.answer['export_locations']
        )
        assert any(not location['is_admin_only'] for location in locations)
        share = base.normalise_export_locations(
            access_client.driver.create_share(CTX, access_client.thing.share)
        )
        assert {location['path'] for location in share}.isdisjoint(
            location['path'] for location in locations
        )
