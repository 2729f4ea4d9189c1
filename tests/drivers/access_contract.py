"""Contract for access rules of shares and snapshots."""

import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.driver_harness import CTX

TARGETS = [f'10.{number}.0.0/16' for number in range(8)]


def client(rule):
    return rule['access_type'], rule['access_to'], rule['access_level']


class _AccessClient:
    """Applies access rules to a share or snapshot and reads the result."""

    def __init__(self, harness, driver, item):
        self.harness = harness
        self.driver = driver
        self.item = item

    def apply(self, rules, *, add=(), delete=(), update=()):
        """Call the driver; skip if it does not support access rules."""
        try:
            return self.call(rules, add, delete, update)
        except NotImplementedError:
            pytest.skip('the driver has no update_access')

    def call(self, rules, add, delete, update):
        return self.driver.apply_access(CTX, self.item, rules, add, delete, update)

    def clients(self):
        """Return the clients with access; skip if a test cannot see them."""
        clients = self.harness.clients(self.driver, self.item)
        if clients is None:
            pytest.skip('tests cannot see the clients of its shares')
        return clients

    def restart(self):
        self.driver = self.harness.start()

    def remove(self):
        self.driver.delete_share(CTX, self.item)


class _SnapshotAccessClient(_AccessClient):
    def call(self, rules, add, delete, update):
        # Snapshot rules have no level and so are never updated.
        assert not update
        return base.normalise_access_replies(
            self.driver.snapshot_update_access(
                CTX, self.item, list(rules), list(add), list(delete)
            )
        )

    def remove(self):
        self.driver.delete_snapshot(CTX, self.item)


class _AccessRulesContract:
    level = 'rw'
    changes = 25

    def rule(self, harness, access_client, access_to, **values):
        share = getattr(access_client.item, 'share', access_client.item)
        return harness.rule(share, access_to, **{'access_level': self.level, **values})

    def rules(self, harness, access_client, count):
        return [self.rule(harness, access_client, to) for to in TARGETS[:count]]

    def test_added_client_has_access(self, harness, access_client):
        (rule,) = self.rules(harness, access_client, 1)
        reply = access_client.apply([rule], add=[rule])
        assert reply.get(rule.id, {}).get('state', 'active') == 'active'
        assert access_client.clients() == {client(rule)}
        access_client.restart()
        assert access_client.clients() == {client(rule)}

    def test_adding_again_changes_nothing(self, harness, access_client):
        one, two = self.rules(harness, access_client, 2)
        access_client.apply([one, two], add=[one, two])
        access_client.apply([one, two], add=[one, two])
        access_client.restart()
        access_client.apply([one, two], add=[two])
        assert access_client.clients() == {client(one), client(two)}

    def test_deleted_client_has_no_access(self, harness, access_client):
        one, two = self.rules(harness, access_client, 2)
        access_client.apply([one, two], add=[one, two])
        for _ in range(2):
            access_client.apply([two], delete=[one])
            assert access_client.clients() == {client(two)}

    def test_deleting_a_missing_one_is_success(self, harness, access_client):
        one, two = self.rules(harness, access_client, 2)
        reply = access_client.apply([one], add=[one], delete=[two])
        assert reply.get(two.id, {}).get('state') != 'error'
        assert access_client.clients() == {client(one)}

    def test_all_rules_are_replaced_in_one_call(self, harness, access_client):
        one, two, three = self.rules(harness, access_client, 3)
        access_client.apply([one, two], add=[one, two])
        access_client.apply([three], add=[three], delete=[one, two])
        assert access_client.clients() == {client(three)}
        access_client.apply([], delete=[three])
        assert access_client.clients() == set()

    def test_without_changes_exactly_the_rules_apply(self, harness, access_client):
        one, two, three = self.rules(harness, access_client, 3)
        access_client.apply([one, two], add=[one, two])
        access_client.restart()
        for _ in range(2):
            access_client.apply([two, three])
            assert access_client.clients() == {client(two), client(three)}
        access_client.apply([])
        assert access_client.clients() == set()

    def test_client_denied_and_allowed_again_has_access(self, harness, access_client):
        old, new = (self.rule(harness, access_client, TARGETS[0]) for _ in range(2))
        access_client.apply([old], add=[old])
        access_client.apply([new], add=[new], delete=[old])
        assert access_client.clients() == {client(new)}

    def test_unsupported_rule_does_not_affect_others(self, harness, access_client):
        (good,) = self.rules(harness, access_client, 1)
        odd = self.rule(harness, access_client, 'nobody', access_type='unheard-of')
        reply = access_client.apply([good, odd], add=[good, odd])
        assert client(good) in access_client.clients()
        state = reply.get(odd.id, {}).get('state', 'active')
        assert (client(odd) in access_client.clients()) == (state == 'active')

    def test_access_ends_when_it_is_deleted(self, harness, access_client):
        (rule,) = self.rules(harness, access_client, 1)
        access_client.apply([rule], add=[rule])
        access_client.remove()
        assert access_client.clients() == set()
        for rules, changes in (
            ([], {'delete': [rule]}),
            ([], {}),
            ([rule], {'add': [rule]}),
        ):
            with pytest.raises(exception.DriverError):
                access_client.apply(rules, **changes)
        assert access_client.clients() == set()

    @pytest.mark.parametrize('seed', range(5))
    def test_rules_apply_after_changes_in_any_order(self, harness, access_client, seed):
        rng, rules = random.Random(seed), {}
        for _ in range(self.changes):
            changes = {}
            for to in rng.sample(TARGETS, rng.randint(0, 3)):
                rule = rules.pop(to, None)
                if rule is None:
                    rules[to] = self.rule(harness, access_client, to)
                    changes.setdefault('add', []).append(rules[to])
                else:
                    changes.setdefault('delete', []).append(rule)
            for _ in range(rng.randint(1, 2)):
                access_client.apply(list(rules.values()), **changes)
            if rng.random() < 0.1:
                access_client.restart()
        assert access_client.clients() == {client(rule) for rule in rules.values()}


class AccessContract(_AccessRulesContract):
    @pytest.fixture
    def access_client(self, harness, driver):
        share = harness.share()
        driver.create_share(CTX, share)
        return _AccessClient(harness, driver, share)

    def test_level_is_changed(self, harness, access_client):
        write = self.rule(harness, access_client, TARGETS[0])
        read = self.rule(
            harness, access_client, TARGETS[0], id=write.id, access_level='ro'
        )
        access_client.apply([write], add=[write])
        for _ in range(2):
            access_client.apply([read], update=[read])
            assert access_client.clients() == {client(read)}

    def test_cast_to_read_only_needs_no_change(self, harness, access_client):
        write = self.rule(harness, access_client, TARGETS[0])
        read = self.rule(
            harness, access_client, TARGETS[0], id=write.id, access_level='ro'
        )
        access_client.apply([write], add=[write])
        access_client.apply([read])
        assert access_client.clients() == {client(read)}
        access_client.apply([write])
        assert access_client.clients() == {client(write)}

    def test_shares_have_separate_clients(self, harness, access_client):
        other = harness.share()
        access_client.driver.create_share(CTX, other)
        beside = _AccessClient(harness, access_client.driver, other)
        one, two = self.rules(harness, access_client, 2)
        access_client.apply([one], add=[one])
        beside.apply([two], add=[two])
        assert access_client.clients() == {client(one)}
        assert beside.clients() == {client(two)}
        beside.remove()
        assert access_client.clients() == {client(one)}


class SnapshotAccessContract(_AccessRulesContract):
    level = 'ro'

    @pytest.fixture
    def access_client(self, harness, driver):
        if not isinstance(driver, base.MountSnapshotSupport):
            pytest.skip('the driver does not offer MountSnapshotSupport')
        share = harness.share()
        driver.create_share(CTX, share)
        snapshot = harness.snapshot(share)
        self.reply = driver.create_snapshot(CTX, snapshot)
        return _SnapshotAccessClient(harness, driver, snapshot)

    def test_snapshot_can_be_reached(self, harness, access_client):
        locations = base.normalise_export_locations(self.reply['export_locations'])
        assert any(not location['is_admin_only'] for location in locations)
        share = base.normalise_export_locations(
            access_client.driver.create_share(CTX, access_client.item.share)
        )
        assert {location['path'] for location in share}.isdisjoint(
            location['path'] for location in locations
        )
