import concurrent.futures

import pytest

from manila_lite import exception
from manila_lite.share.drivers.dummy import driver as dummy
from tests.drivers.driver_harness import CTX, DriverHarness

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
    assert dummy.servers_of_shares(driver.configuration.dummy_driver_state_path) == {
        share.id: server.id
    }
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

    @pytest.mark.parametrize('repair, left', [('create_share', 1), ('delete_share', 0)])
    def test_half_made_share_is_an_error_until_repaired(self, start, repair, left):
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
        share = make.share()
        driver.create_share(CTX, share)
        driver.delete_share(CTX, share)
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
        'proto, path', [('NFS', '10.0.0.10:/shares/{}'), ('CIFS', r'\\10.0.0.10\{}')]
    )
    def test_one_export_is_for_users_and_one_for_admins(self, start, proto, path):
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
