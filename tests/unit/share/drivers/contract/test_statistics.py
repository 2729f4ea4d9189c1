import pytest

from manila_lite.share.drivers import base
from tests.drivers.plain_driver import PlainDriver, configuration


class PortedDriver(PlainDriver):
    """A driver that implements methods without inheriting interfaces."""

    def create_snapshot(self, context, snapshot, share_server=None):
        return None

    def delete_snapshot(self, context, snapshot, share_server=None):
        return None

    def revert_to_snapshot(
        self,
        context,
        snapshot,
        share_access_rules,
        snapshot_access_rules,
        share_server=None,
    ):
        return None


def stats_of(driver_class, **values):
    driver = driver_class(configuration=configuration(**values))
    return driver.get_share_stats(refresh=True)


class TestCapabilities:
    @pytest.mark.parametrize('name', base.CAPABILITIES)
    def test_plain_driver_offers_nothing(self, name):
        assert stats_of(PlainDriver)[name] is False

    def test_methods_alone_make_an_interface(self):
        driver = PortedDriver(configuration=configuration())
        assert driver.snapshots_are_supported
        assert not driver.creating_shares_from_snapshots_is_supported
        stats = driver.get_share_stats()
        assert stats['snapshot_support'] is True
        assert stats['revert_to_snapshot_support'] is True
        assert stats['create_share_from_snapshot_support'] is False
        assert stats['mount_snapshot_support'] is False

    def test_stats_narrow_what_is_offered(self):
        class Driver(PortedDriver):
            def _update_share_stats(self, data=None):
                super()._update_share_stats(
                    {
                        'revert_to_snapshot_support': False,
                        'pools': [
                            {'pool_name': 'a', 'snapshot_support': False},
                            {'pool_name': 'b'},
                        ],
                    }
                )

        stats = stats_of(Driver)
        assert stats['snapshot_support'] is True
        assert stats['revert_to_snapshot_support'] is False
        assert stats['pools'] == [
            {'pool_name': 'a', 'snapshot_support': False},
            {'pool_name': 'b'},
        ]

    def test_stats_cannot_offer_what_is_not_there(self):
        class Driver(PlainDriver):
            def _update_share_stats(self, data=None):
                super()._update_share_stats(
                    {
                        'snapshot_support': True,
                        'pools': [{'pool_name': 'a', 'snapshot_support': True}],
                    }
                )

        stats = stats_of(Driver)
        assert stats['snapshot_support'] is False
        assert stats['pools'][0]['snapshot_support'] is False


class TestStatistics:
    def test_back_end_has_its_configured_name(self):
        assert stats_of(PlainDriver)['share_backend_name'] == 'section'
        named = stats_of(PlainDriver, share_backend_name='named')
        assert named['share_backend_name'] == 'named'

    def test_reserves_fall_back_to_the_general_one(self):
        stats = stats_of(
            PlainDriver,
            reserved_share_percentage=10,
            reserved_share_extend_percentage=5,
        )
        assert stats['reserved_percentage'] == 10
        assert stats['reserved_snapshot_percentage'] == 10
        assert stats['reserved_share_extend_percentage'] == 5
        assert stats['max_over_subscription_ratio'] == 20.0

    def test_configured_expression_goes_before_the_drivers_own(self):
        class Driver(PlainDriver):
            def get_default_filter_function(self, pool=None):
                return 'own filter'

            def get_default_goodness_function(self):
                return 'own goodness'

        own = stats_of(Driver)
        assert own['filter_function'] == 'own filter'
        assert own['goodness_function'] == 'own goodness'
        given = stats_of(Driver, filter_function='a', goodness_function='b')
        assert given['filter_function'] == 'a'
        assert given['goodness_function'] == 'b'

    @pytest.mark.parametrize('versions', [[4], [6], [4, 6]])
    def test_ip_versions_are_those_of_the_exports(self, versions):
        class Driver(PlainDriver):
            ipv6_implemented = True

            def get_configured_ip_versions(self):
                return versions

        stats = stats_of(Driver)
        assert stats['ipv4_support'] is (4 in versions)
        assert stats['ipv6_support'] is (6 in versions)

    def test_driver_with_ipv6_must_report_its_versions(self):
        class Driver(PlainDriver):
            ipv6_implemented = True

        with pytest.raises(NotImplementedError):
            stats_of(Driver)

    def test_stats_are_collected_again_only_on_refresh(self):
        class Driver(PlainDriver):
            made = 0

            def _update_share_stats(self, data=None):
                self.made += 1
                super()._update_share_stats({'qos': self.made})

        driver = Driver(configuration=configuration())
        assert driver.get_share_stats()['qos'] == 1
        assert driver.get_share_stats()['qos'] == 1
        assert driver.get_share_stats(refresh=True)['qos'] == 2
