import inspect

from oslo_config import cfg
import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX
from tests.support import reference


class PlainDriver(base.ShareDriver):
    """A minimal driver."""

    def __init__(self, *args, **kwargs):
        super().__init__([True, False], *args, **kwargs)

    def create_share(self, context, share, share_server=None):
        return 'path'

    def delete_share(self, context, share, share_server=None):
        return None


class ServersDriver(PlainDriver):
    """A driver that also creates share servers."""

    def _setup_server(self, network_info, metadata=None):
        return {}

    def _teardown_server(self, server_details, security_services=None):
        return None

    def get_network_allocations_number(self):
        return 1


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


def configuration(**values):
    return Configuration.from_values(
        {'driver_handles_share_servers': False, **values}, group='section'
    )


def stats_of(driver_class, **values):
    driver = driver_class(configuration=configuration(**values))
    return driver.get_share_stats(refresh=True)


class TestModes:
    @pytest.mark.parametrize('mode', [None, 'yes', 1])
    def test_mode_must_be_set_to_a_bool(self, mode):
        with pytest.raises(exception.BadConfiguration, match='section'):
            PlainDriver(
                configuration=configuration(driver_handles_share_servers=mode)
            )

    @pytest.mark.parametrize(
        'offered, wanted',
        [(True, False), (False, True), ([True], False), ({False}, True)],
    )
    def test_mode_must_be_one_the_driver_has(self, offered, wanted):
        class Driver(PlainDriver):
            def __init__(self, **kwargs):
                base.ShareDriver.__init__(self, offered, **kwargs)

        values = {'driver_handles_share_servers': wanted}
        with pytest.raises(exception.BadConfiguration, match='Driver'):
            Driver(configuration=configuration(**values))

    def test_mode_with_servers_needs_the_methods_for_them(self):
        with pytest.raises(
            exception.BadConfiguration, match='ShareServerSupport'
        ):
            PlainDriver(
                configuration=configuration(driver_handles_share_servers=True)
            )

    def test_driver_reports_its_mode(self):
        driver = ServersDriver(
            configuration=configuration(driver_handles_share_servers=True)
        )
        assert driver.driver_handles_share_servers is True
        assert driver.get_share_stats()['max_share_server_size'] == -1


class TestOptions:
    def test_driver_brings_options_of_its_own(self):
        class Driver(PlainDriver):
            def __init__(self, *args, **kwargs):
                super().__init__(
                    *args,
                    config_opts=[[cfg.StrOpt('colour', default='red')]],
                    **kwargs,
                )

        driver = Driver(configuration=configuration(), private_storage='kept')
        assert driver.configuration.colour == 'red'
        assert driver.private_storage == 'kept'
        assert driver.initialized is False


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
                        'pools': [
                            {'pool_name': 'a', 'snapshot_support': True}
                        ],
                    }
                )

        stats = stats_of(Driver)
        assert stats['snapshot_support'] is False
        assert stats['pools'][0]['snapshot_support'] is False

    def test_interface_inherited_must_be_filled_in(self):
        class Driver(PlainDriver, base.SnapshotSupport):
            """It inherits an interface without implementing it."""

        with pytest.raises(TypeError, match='create_snapshot'):
            Driver(configuration=configuration())


class ReplicatingDriver(PlainDriver):
    """A driver that overrides methods without inheriting interfaces."""

    def create_replica(
        self,
        context,
        replica_list,
        new_replica,
        access_rules,
        replica_snapshots,
        share_server=None,
    ):
        return None

    def delete_replica(
        self,
        context,
        replica_list,
        replica_snapshots,
        replica,
        share_server=None,
    ):
        return None


class TestDefaultedInterfaces:
    INTERFACES = (
        base.ManageSupport,
        base.ManageWithServerSupport,
        base.ReplicationSupport,
        base.ServerMigrationSupport,
    )

    @pytest.mark.parametrize('interface', INTERFACES)
    def test_defaults_do_not_make_an_interface(self, interface):
        assert not issubclass(PlainDriver, interface)
        assert not issubclass(object, interface)

    def test_overridden_methods_make_an_interface(self):
        driver = ReplicatingDriver(configuration=configuration())
        assert isinstance(driver, base.ReplicationSupport)
        assert not isinstance(driver, base.ServerMigrationSupport)
        with pytest.raises(NotImplementedError):
            driver.promote_replica(CTX, [], None, [])

    def test_one_of_two_methods_does_not_make_an_interface(self):
        class Driver(PlainDriver):
            create_replica = ReplicatingDriver.create_replica

        assert not issubclass(Driver, base.ReplicationSupport)

    @pytest.mark.parametrize('interface', INTERFACES)
    def test_inherited_interface_must_be_implemented(self, interface):
        class Driver(PlainDriver, interface):
            """It inherits an interface without implementing it."""

        assert issubclass(Driver, interface)
        with pytest.raises(TypeError, match='abstract'):
            Driver(configuration=configuration())

    def test_driver_that_inherits_one_is_no_interface(self):
        class Driver(ReplicatingDriver, base.ReplicationSupport):
            """A driver, with all methods."""

        assert isinstance(
            Driver(configuration=configuration()), base.ReplicationSupport
        )
        assert not issubclass(ReplicatingDriver, Driver)


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


@pytest.mark.parametrize(
    'method, args',
    [
        ('extend_share', (None, 2)),
        ('shrink_share', (None, 1)),
        ('get_share_status', (None,)),
        ('get_snapshot_status', (None,)),
        ('get_replica_status', (None,)),
        ('get_share_group_status', (None,)),
        ('get_share_group_snapshot_status', (None,)),
        ('update_access', (CTX, None, [], [], [], [])),
        ('allow_access', (CTX, None, None)),
        ('deny_access', (CTX, None, None)),
        ('manage_existing', (None, {})),
        ('manage_existing_with_server', (None, {})),
        ('manage_existing_snapshot', (None, {})),
        ('manage_existing_snapshot_with_server', (None, {})),
        ('revert_to_replicated_snapshot', (CTX, None, [], None, [], [], [])),
        ('ensure_shares', (CTX, [])),
        ('get_backend_info', (CTX,)),
    ],
)
def test_method_a_driver_lacks_is_not_implemented(method, args):
    driver = PlainDriver(configuration=configuration())
    with pytest.raises(NotImplementedError):
        getattr(driver, method)(*args)


def test_methods_are_called_as_published():
    """Compare names and order of parameters, which are positional."""
    published = {
        row['name']: row['signature_or_type']
        for row in reference.table('driver-interface.csv')
        if row['kind'] == 'method'
    }
    ours = [
        item
        for each in (
            *base.ShareDriver.__mro__,
            *base.CAPABILITIES.values(),
            *TestDefaultedInterfaces.INTERFACES,
        )
        for item in vars(each).items()
    ]
    for name, method in ours:
        if not inspect.isfunction(method) or name not in published:
            continue
        given = [
            part.partition('=')[0].strip().lstrip('*')
            for part in published[name].split(',')
            if part.strip()
        ]
        if name == '__init__':  # its other parameters are passed by name
            continue
        assert list(inspect.signature(method).parameters) == [
            'self',
            *given,
        ], name


def test_optional_methods_have_defaults():
    driver = PlainDriver(configuration=configuration())
    driver.unmanage(None)
    driver.unmanage_with_server(None)
    driver.unmanage_snapshot(None)
    driver.unmanage_snapshot_with_server(None)
    driver.do_setup(CTX)
    driver.check_for_setup_error()
    assert driver.ensure_share(CTX, None) is None
    assert driver.get_pool(None) is None
