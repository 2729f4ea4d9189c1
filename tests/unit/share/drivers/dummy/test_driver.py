import concurrent.futures

import pytest

from manila_lite import exception
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.drivers.dummy.driver import DummyDriver
from tests.drivers.driver_harness import CTX
from tests.drivers.driver_harness import DriverHarness


@pytest.fixture
def start(tmp_path):
    """Return a function that starts drivers on one shared state."""

    def start(sleep=None, **options):
        values = {
            'driver_handles_share_servers': False,
            'dummy_driver_state_path': str(tmp_path / 'state'),
            'dummy_driver_default_driver_method_delay': 0.0,
            'dummy_driver_driver_methods_delays': {},
            **options,
        }
        driver = DummyDriver(
            configuration=Configuration.from_values(values),
            **({'sleep': sleep} if sleep else {}),
        )
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    return start


make = DriverHarness('dummy', configure=lambda: None)


def test_inventory_matches_the_state(start, tmp_path):
    driver = start()
    kept, deleted = make.share(size=2), make.share()
    for share in (kept, deleted):
        driver.create_share(CTX, share)
    driver.delete_share(CTX, deleted)
    driver.extend_share(kept, 3)
    assert driver.inventory() == {kept.id: 3}
    assert start().inventory() == {kept.id: 3}
    assert dummy.inventory(tmp_path / 'state') == {kept.id: 3}


def test_inventory_of_a_missing_state_is_empty(tmp_path):
    assert dummy.inventory(tmp_path / 'nowhere') == {}


def test_both_server_modes_are_supported(start):
    driver = start(driver_handles_share_servers=True)
    share = make.share()
    server = make.set_up_server(driver)
    driver.create_share(CTX, share, share_server=server)
    assert dummy.servers_of_shares(
        driver.configuration.dummy_driver_state_path
    ) == {share.id: server.id}
    assert driver.get_share_stats()['driver_handles_share_servers'] is True


class TestFaults:
    def test_failed_create_leaves_nothing(self, start):
        driver = start()
        driver.fail_next('create_share')
        with pytest.raises(exception.ShareBackendException):
            driver.create_share(CTX, make.share())
        assert driver.inventory() == {}

    def test_lost_reply_leaves_the_share(self, start):
        driver, share = start(), make.share()
        driver.lose_reply_next('create_share')
        with pytest.raises(exception.ShareBackendException):
            driver.create_share(CTX, share)
        assert driver.get_share_status(share)['status'] == 'available'

    @pytest.mark.parametrize(
        'repair, left', [('create_share', 1), ('delete_share', 0)]
    )
    def test_half_made_share_is_an_error_until_repaired(
        self, start, repair, left
    ):
        driver, share = start(), make.share()
        driver.half_fail_next('create_share')
        with pytest.raises(exception.ShareBackendException):
            driver.create_share(CTX, share)
        assert start().get_share_status(share)['status'] == 'error'
        getattr(driver, repair)(CTX, share)
        assert len(driver.inventory()) == left

    def test_half_deleted_share_is_an_error_until_it_is_gone(self, start):
        driver, share = start(), make.share()
        driver.create_share(CTX, share)
        driver.half_fail_next('delete_share')
        with pytest.raises(exception.ShareBackendException):
            driver.delete_share(CTX, share)
        assert driver.get_share_status(share)['status'] == 'error'
        driver.delete_share(CTX, share)
        assert driver.inventory() == {}

    def test_other_calls_work_while_one_hangs(self, start):
        driver, share = start(), make.share()
        hang = driver.hang_next('create_share')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            call = pool.submit(driver.create_share, CTX, make.share())
            assert hang.wait_reached()
            driver.create_share(CTX, share)
            assert driver.inventory() == {share.id: 1}
            hang.release()
            call.result(timeout=30)
        assert len(driver.inventory()) == 2

    def test_calls_are_recorded_with_ids(self, start):
        driver, share = start(), make.share()
        driver.create_share(CTX, share)
        driver.extend_share(share, 2)
        assert driver.calls[-2:] == [
            ('create_share', share.id),
            ('extend_share', share.id),
        ]

    def test_options_inject_faults(self, start):
        driver, share = (
            start(
                dummy_driver_fail_methods={
                    'create_share': '1',
                    'extend_share': 'always',
                },
                dummy_driver_answer_lost_methods=['delete_share'],
            ),
            make.share(),
        )
        with pytest.raises(exception.ShareBackendException):
            driver.create_share(CTX, share)
        driver.create_share(CTX, share)
        for _ in range(2):
            with pytest.raises(exception.ShareBackendException):
                driver.extend_share(share, 2)
        with pytest.raises(exception.ShareBackendException):
            driver.delete_share(CTX, share)
        assert driver.inventory() == {}

    def test_option_makes_methods_hang(self, start):
        driver = start(dummy_driver_hang_methods=['create_share'])
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            call = pool.submit(driver.create_share, CTX, make.share())
            with pytest.raises(concurrent.futures.TimeoutError):
                call.result(timeout=0.05)
            driver.faults.clear()
            call.result(timeout=30)

    @pytest.mark.parametrize(
        'options',
        [
            {'dummy_driver_fail_methods': {'creat_share': '1'}},
            {'dummy_driver_fail_methods': {'create_share': 'often'}},
            {'dummy_driver_hang_methods': ['creat_share']},
            {'dummy_driver_answer_lost_methods': ['creat_share']},
        ],
    )
    def test_invalid_options_are_refused(self, start, options):
        with pytest.raises(exception.BadConfiguration, match='dummy_driver_'):
            start(**options)

    def test_published_delay_options_apply(self, start):
        slept = []
        driver = start(
            sleep=slept.append,
            dummy_driver_default_driver_method_delay=2.0,
            dummy_driver_driver_methods_delays={
                'create_share': '3.98',
                'create_replica': '3.99',
            },
        )
        slept.clear()
        driver.create_share(CTX, make.share())
        driver.delete_share(CTX, make.share())
        assert slept == [3.98, 2.0]


class TestShares:
    def test_metadata_sets_how_full_a_share_is(self, start):
        driver = start()
        share = make.share(size=5, metadata={dummy.USED_GB_KEY: '2.5'})
        driver.create_share(CTX, share)
        with pytest.raises(exception.ShareShrinkingPossibleDataLoss):
            driver.shrink_share(share, 2)
        driver.shrink_share(share, 3)
        assert driver.inventory() == {share.id: 3}

    @pytest.mark.parametrize(
        'proto, path',
        [('NFS', '10.0.0.10:/shares/{}'), ('CIFS', r'\\10.0.0.10\{}')],
    )
    def test_one_export_is_for_users_and_one_for_admins(
        self, start, proto, path
    ):
        share = make.share(share_proto=proto)
        users, admins = start().create_share(CTX, share)
        assert users == {
            'path': path.format(share.name),
            'is_admin_only': False,
            'metadata': {'preferred': 'True'},
        }
        assert admins['is_admin_only'] is True
        assert admins['metadata'] == {'preferred': 'False'}

    def test_unsafe_id_is_refused(self, start):
        with pytest.raises(exception.ShareBackendException):
            start().create_share(CTX, make.share(id='../../escape'))


class TestAccess:
    @pytest.fixture
    def driver(self, start):
        return start()

    @pytest.fixture
    def share(self, driver):
        share = make.share()
        driver.create_share(CTX, share)
        return share

    def test_changes_apply_to_existing_clients(
        self, start, driver, share, tmp_path
    ):
        one, two = make.rule(share, '10.0.0.1'), make.rule(share, '10.0.0.2')
        driver.update_access(CTX, share, [one], [one], [], [])
        driver.update_access(CTX, share, [two], [two], [], [])
        assert driver.access_inventory() == {
            share.id: {('ip', '10.0.0.1', 'rw'), ('ip', '10.0.0.2', 'rw')}
        }
        driver.update_access(CTX, share, [two], [], [], [])
        assert start().access_inventory() == {
            share.id: {('ip', '10.0.0.2', 'rw')}
        }
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
        assert driver.update_access(
            CTX, share, [good, bad], [good, bad], [], []
        ) == {good.id: {'state': 'active'}, bad.id: {'state': 'error'}}
        assert driver.access_inventory() == {
            share.id: {('ip', '10.0.0.1', 'rw')}
        }
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
        assert [reply[rule.id]['state'] for rule in rules] == [
            'error',
            'active',
        ]

    def test_half_of_the_rules_are_applied_before_it_fails(
        self, driver, share
    ):
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


class TestSnapshots:
    @pytest.fixture
    def driver(self, start):
        return start()

    @pytest.fixture
    def snapshot(self, driver):
        share = make.share(size=2)
        driver.create_share(CTX, share)
        snapshot = make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        return snapshot

    def test_inventory_matches_the_state(self, driver, snapshot, tmp_path):
        assert driver.snapshot_inventory() == {snapshot.id: 2}
        driver.delete_snapshot(CTX, snapshot)
        assert dummy.snapshot_inventory(tmp_path / 'state') == {}

    @pytest.mark.parametrize(
        'repair, left',
        [('create_snapshot', 'available'), ('delete_snapshot', None)],
    )
    def test_half_made_snapshot_is_an_error_until_repaired(
        self, driver, snapshot, repair, left
    ):
        other = make.snapshot(snapshot.share)
        driver.half_fail_next('create_snapshot')
        with pytest.raises(exception.ShareBackendException):
            driver.create_snapshot(CTX, other)
        assert driver.get_snapshot_status(other)['status'] == 'error'
        getattr(driver, repair)(CTX, other)
        assert (other.id in driver.snapshot_inventory()) == bool(left)

    def test_revert_ends_with_the_given_size(self, driver, snapshot):
        driver.revert_to_size_next(7)
        assert driver.revert_to_snapshot(CTX, snapshot, [], []) == 7
        assert driver.inventory() == {snapshot.share.id: 7}
        assert driver.revert_to_snapshot(CTX, snapshot, [], []) == 2

    def test_clients_of_snapshots_are_separate(
        self, driver, snapshot, tmp_path
    ):
        rule = make.rule(snapshot.share, '10.0.0.1', access_level='ro')
        driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
        assert driver.snapshot_access_inventory() == {
            snapshot.id: {('ip', '10.0.0.1', 'ro')}
        }
        assert driver.access_inventory() == {}
        driver.delete_snapshot(CTX, snapshot)
        assert dummy.snapshot_access_inventory(tmp_path / 'state') == {}

    def test_share_from_snapshot_takes_configured_steps(self, start, snapshot):
        driver = start(dummy_driver_from_snapshot_steps=3)
        clone = make.share(size=2)
        for _ in range(2):
            reply = driver.create_share_from_snapshot(CTX, clone, snapshot)
            assert reply['status'] == 'creating_from_snapshot'
        replies = [driver.get_share_status(clone) for _ in range(4)]
        assert [
            (reply['status'], reply.get('progress')) for reply in replies
        ] == [
            ('creating_from_snapshot', '33%'),
            ('creating_from_snapshot', '66%'),
            ('available', None),
            ('available', None),
        ]

    def test_share_failing_during_creation_is_an_error(self, start, snapshot):
        driver = start(dummy_driver_from_snapshot_steps=3)
        clone = make.share(size=2)
        driver.create_share_from_snapshot(CTX, clone, snapshot)
        driver.set_error(clone.id)
        assert driver.get_share_status(clone)['status'] == 'error'


class TestManaging:
    @pytest.fixture
    def driver(self, start):
        return start()

    def found_at(self, path, **values):
        return make.share(
            export_locations=[
                {'path': path, 'is_admin_only': False, 'metadata': {}}
            ],
            **values,
        )

    def test_unmanaged_share_is_managed(self, start, driver):
        path = driver.add_unmanaged_share('old', size=3, content='theirs')
        share = self.found_at(path)
        assert driver.inventory() == {}
        for process in (driver, start()):
            reply = process.manage_existing(share, {})
            assert reply['size'] == 3
            assert reply['export_locations'][0]['path'] == path
        assert driver.inventory() == {share.id: 3}
        assert driver.unmanaged_shares() == {}
        assert driver.read(share.id) == 'theirs'

    def test_unmanaged_share_stays_and_can_be_managed(self, start, driver):
        share = make.share(size=2)
        exports = driver.create_share(CTX, share)
        for _ in range(2):
            driver.unmanage(share)
        assert driver.inventory() == {}
        assert driver.unmanaged_shares() == {exports[0]['path']: 2}
        again = self.found_at(exports[0]['path'])
        reply = start().manage_existing(again, {})
        assert reply == {'size': 2, 'export_locations': exports}
        assert driver.inventory() == {again.id: 2}

    def test_unknown_path_and_other_protocol_are_refused(self, driver):
        path = driver.add_unmanaged_share('old')
        for share in (
            self.found_at('10.0.0.10:/shares/none'),
            self.found_at(path, share_proto='CIFS'),
        ):
            with pytest.raises(exception.ManageInvalidShare):
                driver.manage_existing(share, {})
        assert driver.inventory() == {}

    def test_managed_share_cannot_be_taken_from_its_owner(self, driver):
        share = make.share()
        exports = driver.create_share(CTX, share)
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(self.found_at(exports[0]['path']), {})

    def test_size_may_be_missing(self, driver):
        path = driver.add_unmanaged_share('old', size=None)
        assert driver.manage_existing(self.found_at(path), {}) == {}

    def test_snapshot_is_unmanaged_and_managed(self, start, driver):
        share = make.share(size=2)
        driver.create_share(CTX, share)
        taken = make.snapshot(share)
        location = driver.create_snapshot(CTX, taken)['provider_location']
        for _ in range(2):
            driver.unmanage_snapshot(taken)
        assert driver.snapshot_inventory() == {}
        again = make.snapshot(share, provider_location=location)
        for process in (driver, start()):
            reply = process.manage_existing_snapshot(again, {})
            assert reply['size'] == 2
        assert driver.snapshot_inventory() == {again.id: 2}

    def test_snapshot_of_another_share_is_refused(self, driver):
        one, other = make.share(), make.share()
        for share in (one, other):
            driver.create_share(CTX, share)
        location = driver.add_unmanaged_snapshot(one.id, 'theirs')
        with pytest.raises(exception.ManageInvalidShareSnapshot):
            driver.manage_existing_snapshot(
                make.snapshot(other, provider_location=location), {}
            )
        snapshot = make.snapshot(one, provider_location=location)
        assert driver.manage_existing_snapshot(snapshot, {})['size'] == 1

    @pytest.mark.parametrize('kind', ['', '_snapshot'])
    def test_share_servers_make_no_difference(self, start, kind):
        driver = start(driver_handles_share_servers=True)
        share = make.share()
        server = make.set_up_server(driver)
        path = driver.create_share(CTX, share, share_server=server)[0]['path']
        old, new = share, self.found_at(path)
        if kind:
            old = make.snapshot(share)
            location = driver.create_snapshot(CTX, old)['provider_location']
            new = make.snapshot(share, provider_location=location)
        getattr(driver, f'unmanage{kind}_with_server')(
            old, share_server=server
        )
        manage = getattr(driver, f'manage_existing{kind}_with_server')
        assert manage(new, {}, share_server=server)['size'] == 1


class TestPools:
    def test_shares_use_capacity_of_their_pool(self, start):
        driver = start(
            dummy_driver_pools=['fast', 'slow'], dummy_driver_capacity_gb=10.0
        )
        share = make.share(size=4, host='host@backend#slow')
        driver.create_share(CTX, share)
        driver.create_share(CTX, make.share(size=1, host='host@backend'))
        pools = driver.get_share_stats(refresh=True)['pools']
        assert [
            (
                pool['pool_name'],
                pool['total_capacity_gb'],
                pool['free_capacity_gb'],
                pool['allocated_capacity_gb'],
                pool['provisioned_capacity_gb'],
            )
            for pool in pools
        ] == [('fast', 10, 9, 1, 1), ('slow', 10, 6, 4, 4)]
        assert driver.get_pool(share) == 'slow'

    def test_full_pool_has_nothing_left(self, start):
        driver = start(dummy_driver_capacity_gb=1.0)
        driver.create_share(CTX, make.share(size=4))
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['free_capacity_gb'] == 0

    def test_free_capacity_can_be_configured(self, start):
        driver = start(dummy_driver_free_gb=0.5)
        driver.create_share(CTX, make.share(size=4))
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['free_capacity_gb'] == 0.5

    def test_removed_pool_causes_no_error(self, start):
        share = make.share(host='host@backend#old')
        start(dummy_driver_pools=['old']).create_share(CTX, share)
        driver = start(dummy_driver_pools=['new'])
        assert driver.get_pool(share) == 'old'
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['pool_name'] == 'new'
        assert pool['allocated_capacity_gb'] == 0

    def test_a_back_end_has_a_pool(self, start):
        with pytest.raises(exception.BadConfiguration, match='pools'):
            start(dummy_driver_pools=[])
