import inspect

from oslo_config import cfg
import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.driver_harness import CTX
from tests.drivers.plain_driver import PlainDriver, configuration
from tests.support import reference


class ServersDriver(PlainDriver):
    """A driver that also creates share servers."""

    def _setup_server(self, network_info, metadata=None):
        return {}

    def _teardown_server(self, server_details, security_services=None):
        return None

    def get_network_allocations_number(self):
        return 1


class TestModes:
    @pytest.mark.parametrize('mode', [None, 'yes', 1])
    def test_mode_must_be_set_to_a_bool(self, mode):
        with pytest.raises(exception.BadConfiguration, match='section'):
            PlainDriver(configuration=configuration(driver_handles_share_servers=mode))

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
        with pytest.raises(exception.BadConfiguration, match='ShareServerSupport'):
            PlainDriver(configuration=configuration(driver_handles_share_servers=True))

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
                    *args, config_opts=[[cfg.StrOpt('colour', default='red')]], **kwargs
                )

        driver = Driver(configuration=configuration(), private_storage='kept')
        assert driver.configuration.colour == 'red'
        assert driver.private_storage == 'kept'
        assert driver.initialized is False


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
        self, context, replica_list, replica_snapshots, replica, share_server=None
    ):
        return None


class TestDefaultedInterfaces:
    INTERFACES = (
        base.BackupSupport,
        base.ConnectionSupport,
        base.ManageSupport,
        base.ManageWithServerSupport,
        base.ReplicationSupport,
        base.ServerMigrationSupport,
        base.ShareGroupFromSnapshotSupport,
        base.ShareGroupSnapshotSupport,
        base.ShareGroupSupport,
        base.ShareMigrationSupport,
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

    def test_interface_inherited_must_be_filled_in(self):
        class Driver(PlainDriver, base.SnapshotSupport):
            """It inherits an interface without implementing it."""

        with pytest.raises(TypeError, match='create_snapshot'):
            Driver(configuration=configuration())

    def test_driver_that_inherits_one_is_no_interface(self):
        class Driver(ReplicatingDriver, base.ReplicationSupport):
            """A driver, with all methods."""

        assert isinstance(
            Driver(configuration=configuration()), base.ReplicationSupport
        )
        assert not issubclass(ReplicatingDriver, Driver)


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
        assert list(inspect.signature(method).parameters) == ['self', *given], name


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
    driver.transfer_accept(CTX, None, 'user', 'project')
