"""Access rules of the dummy driver."""

import pytest

from manila_lite import exception
from manila_lite.share.drivers.dummy import driver as dummy
from tests.drivers.driver_harness import CTX, DriverHarness

make = DriverHarness('dummy', configure=lambda: None)


class TestAccess:
    @pytest.fixture
    def driver(self, start):
        return start()

    @pytest.fixture
    def share(self, driver):
        share = make.share()
        driver.create_share(CTX, share)
        return share

    def test_changes_apply_to_existing_clients(self, start, driver, share, tmp_path):
        one, two = make.rule(share, '10.0.0.1'), make.rule(share, '10.0.0.2')
        driver.update_access(CTX, share, [one], [one], [], [])
        driver.update_access(CTX, share, [two], [two], [], [])
        assert driver.access_inventory() == {
            share.id: {('ip', '10.0.0.1', 'rw'), ('ip', '10.0.0.2', 'rw')}
        }
        driver.update_access(CTX, share, [two], [], [], [])
        assert start().access_inventory() == {share.id: {('ip', '10.0.0.2', 'rw')}}
        assert dummy.access_inventory(tmp_path / 'state') == {
            share.id: {('ip', '10.0.0.2', 'rw')}
        }

    def test_access_calls_record_the_changes(self, driver, share):
        one, two = make.rule(share, '10.0.0.1'), make.rule(share, '10.0.0.2')
        driver.update_access(CTX, share, [one], [one], [], [])
        driver.update_access(CTX, share, [two], [two], [one], [])
        driver.update_access(CTX, share, [two], [], [], [two])
        assert [call[2:] for call in driver.access_calls] == [
            (1, [one.id], [], []),
            (1, [two.id], [one.id], []),
            (1, [], [], [two.id]),
        ]
        assert {call[:2] for call in driver.access_calls} == {
            ('update_access', share.id)
        }

    def test_refused_rules_are_reported_and_not_applied(self, driver, share):
        good, bad = make.rule(share, '10.0.0.1'), make.rule(share, '10.0.0.2')
        driver.refuse_rules(lambda verb, rule: rule is bad)
        assert driver.update_access(CTX, share, [good, bad], [good, bad], [], []) == {
            good.id: {'state': 'active'},
            bad.id: {'state': 'error'},
        }
        assert driver.access_inventory() == {share.id: {('ip', '10.0.0.1', 'rw')}}
        driver.refuse_rules(None)
        driver.update_access(CTX, share, [good, bad], [bad], [], [])
        assert len(driver.access_inventory()[share.id]) == 2

    def test_client_that_cannot_be_denied_stays(self, driver, share):
        rule = make.rule(share, '10.0.0.1')
        driver.update_access(CTX, share, [rule], [rule], [], [])
        driver.refuse_rules(lambda verb, _: verb == 'deny')
        assert driver.update_access(CTX, share, [], [], [rule], []) == {
            rule.id: {'state': 'error'}
        }
        assert len(driver.access_inventory()[share.id]) == 1

    def test_option_refuses_clients(self, start, share):
        driver = start(dummy_driver_refuse_clients=['10.6.*'])
        rules = [make.rule(share, to) for to in ('10.6.6.6', '10.7.0.1')]
        reply = driver.update_access(CTX, share, rules, rules, [], [])
        assert [reply[rule.id]['state'] for rule in rules] == ['error', 'active']

    def test_half_of_the_rules_are_applied_before_it_fails(self, driver, share):
        rules = [make.rule(share, f'10.0.0.{i}') for i in range(4)]
        driver.half_fail_next('update_access')
        with pytest.raises(exception.ShareBackendException):
            driver.update_access(CTX, share, rules, rules, [], [])
        assert len(driver.access_inventory()[share.id]) == 2

    def test_cephx_clients_get_keys(self, start, driver, share):
        rule = make.rule(share, 'alice', access_type='cephx')
        reply = driver.update_access(CTX, share, [rule], [rule], [], [])
        assert reply[rule.id]['access_key']
        assert start().update_access(CTX, share, [rule], [], [], []) == reply

    def test_access_ends_with_the_share(self, driver, share):
        rule = make.rule(share, '10.0.0.1')
        driver.update_access(CTX, share, [rule], [rule], [], [])
        driver.delete_share(CTX, share)
        assert driver.access_inventory() == {}
