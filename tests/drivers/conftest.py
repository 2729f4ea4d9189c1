import pytest

import manila_lite.conf
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import driver_harness
from tests.drivers.ceph_harness import CephHarness, CephNfsHarness
from tests.drivers.ceph_replication_sites import CephSites
from tests.drivers.cifs_replication_sites import CifsSites
from tests.drivers.replication_backends import BACKENDS, Backends
from tests.drivers.replication_sites import Sites
from tests.drivers.share_migration_contract import KINDS, SharePair
from tests.support import ceph, sampling, storage, tenant_network

BTRFS = 'btrfs'
CEPHFS, CEPHFS_NFS = 'cephfs', 'cephfs-nfs'


def pytest_addoption(parser):
    group = parser.getgroup('share drivers')
    group.addoption('--driver', help='driver to test')
    group.addoption('--driver-config', help='configuration file with its options')
    group.addoption('--driver-section', default='backend', help='section of that file')
    group.addoption(
        '--driver-peers',
        default='',
        help='other sections of that file, separated by commas, '
        'of back ends that hold replicas of its shares',
    )


def pytest_ignore_collect(collection_path, config):
    """Run only the contract for third-party drivers."""
    name = collection_path.name
    is_ours = name.endswith('_crashes.py') or name.startswith(
        ('test_btrfs_', 'test_cephfs_')
    )
    if is_ours and config.getoption('driver', default=None):
        return True
    return None


def own_options(tmp_path):
    """Return the options that this package's drivers need in a test."""
    return {
        'driver_handles_share_servers': False,
        'local_root': str(tmp_path / 'local'),
        'dummy_driver_state_path': str(tmp_path / 'dummy'),
        'dummy_driver_default_driver_method_delay': 0.0,
        'dummy_driver_driver_methods_delays': {},
    }


def pytest_generate_tests(metafunc):
    has_own = hasattr(metafunc.cls, 'harness') or hasattr(metafunc.module, 'harness')
    if 'harness' in metafunc.fixturenames and not has_own:
        named = metafunc.config.getoption('driver', default=None)
        metafunc.parametrize(
            'harness',
            [named]
            if named
            else [
                'dummy',
                'local',
                pytest.param(BTRFS, marks=sampling.suite('the contract on btrfs', 15)),
                pytest.param(
                    CEPHFS,
                    marks=[sampling.suite('the contract on cephfs', 6), ceph.limited],
                ),
                pytest.param(
                    CEPHFS_NFS,
                    marks=[
                        sampling.suite('the contract on cephfs by NFS', 2),
                        ceph.limited,
                    ],
                ),
            ],
            indirect=True,
        )
    if 'share_pair' in metafunc.fixturenames:
        metafunc.parametrize(
            'share_pair',
            [
                pytest.param(
                    kind,
                    marks=[sampling.suite('shares that migrate', 6)]
                    if driver == BTRFS
                    else (),
                )
                for kind, (driver, _) in KINDS.items()
            ],
            indirect=True,
        )
    if 'sites' in metafunc.fixturenames:
        named = metafunc.config.getoption('driver', default=None)
        styles = metafunc.cls.styles
        metafunc.parametrize(
            'sites',
            [Backends(named)]
            if named
            else [
                pytest.param(backends, marks=_marks_of(backends))
                for backends in getattr(metafunc.module, 'SITES', BACKENDS)
                if backends.style in styles
            ],
            indirect=True,
            ids=lambda backends: backends.id,
        )


KINDS_OF_SITES = {('btrfs', 'CIFS'): CifsSites, ('cephfs', 'CEPHFS'): CephSites}


def _marks_of(backends):
    """Return what selects the slowest of the replicating back ends."""
    if backends.driver == CEPHFS:
        return [sampling.suite('the contract on replicas on cephfs', 2), ceph.limited]
    if backends.driver == BTRFS and not backends.share_proto:
        return [sampling.suite('the contract on replicated shares', 10)]
    return []


@pytest.fixture
def harness(request, tmp_path):
    """Start the driver under test; remove what a test created with it."""
    options = own_options(tmp_path)
    if request.param == BTRFS:
        options |= request.getfixturevalue('btrfs_options')
    kind = driver_harness.DriverHarness
    if request.param == CEPHFS:
        options |= request.getfixturevalue('ceph').options()
        kind = CephHarness
    if request.param == CEPHFS_NFS:
        options |= request.getfixturevalue('gateways').options
        kind = CephNfsHarness
    file = request.config.getoption('driver_config', default=None)
    section = request.config.getoption('driver_section', default='backend')

    def configure():
        if file:
            return Configuration(manila_lite.conf.new(files=[file]), section)
        return Configuration.from_values(options)

    harness = kind(request.param.removesuffix('-nfs'), configure)
    if request.param in (CEPHFS, CEPHFS_NFS):
        harness.client = request.getfixturevalue('ceph_root')
    if request.param == CEPHFS_NFS:
        harness.gateways = request.getfixturevalue('gateways')
    if request.param == BTRFS and not file:
        harness.server_options = lambda: request.getfixturevalue('btrfs_server_options')
    yield harness
    harness.clean_up()


@pytest.fixture
def sites(request, tmp_path):
    """Provide a share and back ends that can hold replicas of it."""
    name, style, _, share_proto = request.param
    if style:
        folder = request.getfixturevalue('folder_for')(name, share_proto)
        values = request.getfixturevalue('values_for')(request.param)
        kind = KINDS_OF_SITES.get((name, share_proto), Sites)
        sites = kind(folder, **values)
    else:
        peers = request.config.getoption('driver_peers', default='')
        if not peers:
            pytest.skip('--driver-peers names no other back ends')
        sites = Sites.of_file(
            name,
            request.config.getoption('driver_config'),
            [request.config.getoption('driver_section'), *peers.split(',')],
        )
        if sites.style not in request.cls.styles:
            sites.clean_up()
            pytest.skip(f'the test does not apply to {sites.style} replicas')
    yield sites
    sites.clean_up()


@pytest.fixture
def values_for(request):
    """Provide what `Sites` needs to know of replicating back ends."""

    def find(backends):
        values = {
            'driver': backends.driver,
            'style': backends.style,
            'servers': bool(backends.servers),
            'more': request.getfixturevalue('options_for')(
                backends.driver, backends.servers
            ),
        }
        if backends.driver == CEPHFS:
            values['cluster'] = request.getfixturevalue('ceph')
            values['client'] = request.getfixturevalue('ceph_root')
        if backends.servers and backends.share_proto == 'CIFS':
            values['tenant'] = request.getfixturevalue('server_client')
        return values

    return find


@pytest.fixture
def share_pair(request, folder_for):
    """Provide a share, and a back end that it can migrate to."""
    if request.config.getoption('driver', default=None):
        pytest.skip('it migrates shares of the drivers of this package')
    kind = request.param
    pair = SharePair(folder_for(*KINDS[kind]) / 'pair', kind)
    yield pair
    pair.clean_up()


@pytest.fixture
def folder_for(request, tmp_path):
    """Provide the folder that a driver can have its back ends in."""

    def find(name, share_proto='NFS'):
        if name != BTRFS:
            return tmp_path
        if share_proto == 'CIFS':
            storage.require_cifs()
        return request.getfixturevalue('btrfs_folder')

    return find


@pytest.fixture
def options_for(request):
    """Provide the options that back ends with share servers need."""

    def find(name, servers):
        if name == CEPHFS:
            return (
                f'cephfs_python = {ceph.PYTHON}\ncephfs_command_timeout = {ceph.LIMIT}'
            )
        if name != BTRFS or not servers:
            return ''
        return f'btrfs_bridge = {request.getfixturevalue("server_bridge")}'

    return find


@pytest.fixture(scope='session')
def server_bridge():
    """Provide a bridge for share servers, which has no clients."""
    storage.require_servers()
    with tenant_network.bridge() as name:
        yield name


@pytest.fixture(scope='session')
def server_client(server_bridge):
    """Provide a client of these share servers."""
    with tenant_network.client_on(server_bridge, '10.20.0.4/24') as client:
        yield client


@pytest.fixture
def btrfs_folder():
    """Provide a folder for back ends with pools of their own."""
    storage.require()
    with storage.folder() as folder:
        yield folder


@pytest.fixture
def driver(harness):
    return harness.start()
