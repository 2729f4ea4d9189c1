"""Share servers with real clients in the networks of tenants."""

import contextlib
import itertools
import json
import pathlib
import re
import subprocess

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.daemons.daemons import Supervision
from manila_lite.share.drivers.btrfs.servers import server_supervisor
from manila_lite.share.drivers.btrfs.servers.servers import ShareServer
from tests.drivers.driver_harness import CTX
from tests.support import storage, tenant_network
from tests.support.failing_disk import FailingDisk
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs import tenants
from tests.unit.share.drivers.btrfs.nfs_site import (
    all_files_open,
    eventually,
    require_five_seconds,
    stop,
)

pytestmark = storage.beside_daemons

DEVICES = pathlib.Path('/sys/class/net')
FIRST_IN_ORDER = '00000000-0000-4000-8000-000000000001'


@pytest.fixture(scope='module')
def site():
    with tenants.served_site() as site:
        yield site


@pytest.fixture(scope='module')
def both(site):
    with tenants.tenants_of(site) as found:
        yield found


@pytest.fixture
def tenant(both):
    return both[0]


@pytest.fixture
def server(site, tenant):
    with site.server(tenant) as server:
        yield server


@pytest.fixture
def path(site, tenant, server):
    """Create a share with a file; return its path."""
    _, path = site.share(server)
    tenant.write(path, b'hello')
    return path


def refused(status):
    return pytest.raises(NfsError, match=f'NFS4ERR_{status} ')


def serves(tenant, path):
    try:
        return tenant.read(path) == b'hello'
    except (OSError, NfsError):
        return False


def ended(pid):
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except FileNotFoundError:
        return True
    return text.rpartition(')')[2].split()[0] in 'ZX'


# Isolation


def test_tenants_with_the_same_address_see_only_their_shares(site, both):
    with contextlib.ExitStack() as stack:
        paths = []
        for number, tenant in enumerate(both):
            server = stack.enter_context(site.server(tenant))
            _, path = site.share(server)
            tenant.write(path, b'of %d' % number)
            paths.append(path)
        for number, tenant in enumerate(both):
            assert tenant.read(paths[number]) == b'of %d' % number
            with refused('NOENT'):
                tenant.read(paths[1 - number])


def test_client_that_loses_its_rule_loses_its_open_files(site, tenant, server):
    share, path = site.share(server)
    nfs = tenant.nfs()
    file = nfs.open(path, 'notes', create=True)
    site.allow(share, '10.20.0.98')
    with refused('ACCESS'):
        nfs.write_at(file, 0, b'late')
    with refused('NOENT'):
        tenant.read(path)


def test_addresses_of_all_subnets_are_served(site, tenant):
    with site.server(tenant, tenants.ADDRESS, tenants.ADDRESS_6) as server:
        share, path = site.share(server, tenants.CLIENT, tenants.CLIENT_6)
        locations = site.driver.ensure_share(CTX, share, server)
        assert [one['path'] for one in locations] == [
            f'{tenants.ADDRESS}:/{path}',
            f'[{tenants.ADDRESS_6}]:/{path}',
        ]
        for address in (tenants.ADDRESS, tenants.ADDRESS_6):
            tenant.nfs(address).write(path, address[0], b'hello')


def test_snapshot_is_mounted_cloned_and_reverted_to(site, tenant, server):
    share, path = site.share(server)
    tenant.write(path, b'then')
    snapshot = site.harness.snapshot(share)
    reply = site.driver.create_snapshot(CTX, snapshot, share_server=server)
    tenant.write(path, b'now!')
    mounted = reply['export_locations'][0]['path'].partition(':/')[2]
    rule = site.harness.rule(share, tenants.CLIENT)
    site.driver.snapshot_update_access(
        CTX, snapshot, [rule], [rule], [], share_server=server
    )
    assert tenant.read(mounted) == b'then'
    with refused('ROFS'):
        tenant.write(mounted, b'more')
    clone = site.harness.share()
    site.driver.create_share_from_snapshot(CTX, clone, snapshot, share_server=server)
    site.allow(clone, tenants.CLIENT)
    assert tenant.read(f'shares/{clone.name}') == b'then'
    site.driver.revert_to_snapshot(CTX, snapshot, [], [], share_server=server)
    assert tenant.read(path) == b'then'
    site.driver.delete_snapshot(CTX, snapshot, share_server=server)
    with refused('NOENT'):
        tenant.read(mounted)


# What stops


@pytest.mark.parametrize('daemon', ['server', 'bus'])
def test_killed_daemon_is_back_within_five_seconds(site, tenant, server, path, daemon):
    pid = site.pid(server, daemon)
    site.kill(server, daemon)
    seconds = eventually(
        lambda: site.pid(server, daemon) != pid and serves(tenant, path)
    )
    require_five_seconds(seconds, lambda: _restart(site, tenant, path))


def _restart(site, tenant, path):
    storage.stop(site.root)
    site.restart()
    assert serves(tenant, path)


def test_only_the_killed_server_is_restarted(site, both, server, path):
    with site.server(both[1]) as other:
        pid = site.pid(other, 'server')
        site.kill(server, 'server')
        eventually(lambda: serves(both[0], path))
        assert site.pid(other, 'server') == pid


def test_killed_supervisor_is_replaced_and_clients_do_not_notice(
    site, tenant, server, path
):
    record = site.root / 'nfs' / 'supervisor.json'
    pids = site.pid(server, 'server'), site.pid(server, 'bus')
    assert processes.end(record, tenants.signal.SIGKILL, 10)
    assert serves(tenant, path)
    site.driver.check_health()
    assert processes.is_running(record)
    assert (site.pid(server, 'server'), site.pid(server, 'bus')) == pids
    site.kill(server, 'server')
    eventually(lambda: serves(tenant, path))


def test_next_supervisor_knows_the_time_without_a_check(site, tenant, server, path):
    """What hangs together with a supervisor is replaced as soon as others."""
    folder = site.root / 'nfs'
    seconds = itertools.count(step=2.4)  # the clock is read five times
    watching = Supervision(folder, server_supervisor.__name__, lambda: next(seconds))
    watching.apply(json.loads((folder / 'spec.json').read_text()))
    pid = site.pid(server, 'server')
    stop(processes.find_pid(folder / 'supervisor.json'), pid)
    for _ in range(4):
        watching.watch()
    eventually(lambda: site.pid(server, 'server') != pid)
    found = re.findall(
        'server has not answered for ([0-9]+)', (folder / 'supervisor.log').read_text()
    )
    assert int(found[-1]) >= 9
    eventually(lambda: serves(tenant, path))


def test_supervisor_outlives_what_it_cannot_do(site, tenant, server, path):
    """While the share service is stopped, nothing would restart it."""
    record = site.root / 'nfs' / 'supervisor.json'
    pid = processes.find_pid(record)
    servers, aside = site.root / 'servers', site.root / 'aside'
    log = site.root / 'nfs' / 'supervisor.log'
    before = len(log.read_text())
    servers.rename(aside)
    eventually(lambda: str(servers) in log.read_text()[before:])
    assert processes.find_pid(record) == pid
    aside.rename(servers)
    site.kill(server, 'server')
    eventually(lambda: serves(tenant, path))
    assert processes.find_pid(record) == pid


def test_start_of_the_service_changes_nothing(site, tenant, server, path):
    pids = site.pid(server, 'server'), site.pid(server, 'bus')
    nfs = tenant.nfs()
    site.restart()
    assert nfs.read(path, 'notes') == b'hello'
    assert (site.pid(server, 'server'), site.pid(server, 'bus')) == pids


def test_everything_is_back_after_a_restart_of_the_machine(site, tenant, server, path):
    before = _traces(site, server)
    storage.stop(site.root)
    kernel.unmount_below(site.root)
    assert not list((site.root / 'pools' / 'pool').iterdir())
    site.restart()
    assert _traces(site, server)[0] != before[0]
    assert serves(tenant, path)


# What is lost


def test_server_is_silent_as_long_as_nobody_can_connect(site, server):
    """One that is starting answers on its bus before."""
    found = ShareServer(site.folder(server))
    namespace = f'--net={found.network.namespace}'
    for state, silent in (('down', 'NFS'), ('up', '')):
        command = 'nsenter', namespace, 'ip', 'link', 'set', 'lo', state
        subprocess.run(command, check=True)
        assert found.silent_daemon() == silent


def test_lost_link_is_repaired(site, tenant, server, path):
    pid = site.pid(server, 'server')
    (link,) = site.links(server)
    tenant_network.delete_link(link)
    site.driver.check_health()
    assert serves(tenant, path)
    assert site.pid(server, 'server') == pid


def test_lost_namespace_is_replaced(site, tenant, server, path):
    kernel.unmount(site.folder(server) / 'netns')
    site.driver.check_health()
    eventually(lambda: serves(tenant, path))


def test_server_on_a_bridge_that_is_gone_does_not_stop_the_others(
    site, both, server, path
):
    template = site.driver.configuration.btrfs_bridge
    with tenant_network.bridge(template.format(segmentation_id=103)):
        lost = site.set_up(both[0]._replace(segment=103))
    try:
        site.kill(server, 'server')
        with pytest.raises(exception.StorageUnavailable, match='no bridge'):
            site.restart()
        assert serves(both[0], path)
    finally:
        site.tear_down(lost)
    site.restart()


def test_server_that_cannot_be_repaired_does_not_keep_others_from_it(
    site, both, server, path
):
    template = site.driver.configuration.btrfs_bridge
    info = site.network_info(both[0]._replace(segment=103), server_id=FIRST_IN_ORDER)
    with tenant_network.bridge(template.format(segmentation_id=103)):
        lost = site.harness.server(info, site.driver.setup_server(info))
    try:
        for link in site.links(server):
            tenant_network.delete_link(link)
        with pytest.raises(exception.StorageUnavailable, match='no bridge'):
            site.driver.check_health()
        assert serves(both[0], path)
    finally:
        site.tear_down(lost)


def test_share_whose_server_is_gone_is_reported_and_deleted(site, tenant):
    server = site.set_up(tenant)
    share, _ = site.share(server)
    (site.folder(server) / 'server.json').unlink()
    (reply,) = site.driver.ensure_shares(CTX, [share]).values()
    assert reply == {'status': 'error'}
    site.driver.delete_share(CTX, share, share_server=server)
    site.tear_down(server)


# What is left


def _traces(site, server):
    """Return what there is of a server: pids, links and its namespace."""
    return (
        [site.pid(server, daemon) for daemon in ('server', 'bus')],
        [DEVICES / link for link in site.links(server)],
        site.folder(server),
    )


def _is_gone(pids, links, folder):
    return (
        all(map(ended, pids))
        and not any(link.exists() for link in links)
        and not folder.exists()
        and str(folder) not in pathlib.Path('/proc/self/mounts').read_text()
    )


def test_nothing_is_left_of_a_deleted_server(site, tenant):
    with site.server(tenant) as server:
        site.share(server)
        traces = _traces(site, server)
        assert not _is_gone(*traces)
    assert _is_gone(*traces)


def test_nothing_is_left_of_a_server_below_a_link(site, tenant):
    link = site.root.with_name('link')
    link.symlink_to(site.root)
    changed = site.harness.configure()
    changed.override({'btrfs_root': str(link)})
    original, site.harness.configure = site.harness.configure, lambda: changed
    try:
        site.restart()
        with site.server(tenant) as server:
            _, path = site.share(server)
            tenant.write(path, b'hello')
            assert serves(tenant, path)
        assert not site.folder(server).exists()
    finally:
        site.harness.configure = original
        site.restart()


def test_server_with_a_share_is_not_deleted(site, tenant, server, path):
    with pytest.raises(exception.ShareBackendException, match='still has'):
        site.tear_down(server)
    assert serves(tenant, path)


def test_what_belongs_to_no_server_is_removed_at_the_next_start(site, tenant):
    server = site.set_up(tenant)
    traces = _traces(site, server)
    (site.folder(server) / 'server.json').unlink()
    site.restart()
    eventually(lambda: _is_gone(*traces))


def test_volume_outlives_a_server_that_still_shows_it(site, tenant):
    """A mount that could not be removed must not cost the content."""
    server = site.set_up(tenant)
    volume = site.root / 'pools' / 'pool' / 'shares' / 'kept'
    site.driver.backend.pools['pool'].create('kept', 1)
    (volume / 'notes').write_text('hello')
    shown = site.folder(server) / 'exports' / 'mounts' / 'shares.kept'
    shown.mkdir()
    kernel.bind_mount(volume, shown)
    site.tear_down(server)
    assert (volume / 'notes').read_text() == 'hello'
    kernel.destroy(volume)


def test_half_made_server_gets_the_addresses_of_the_next_attempt(site, tenant):
    info = site.network_info(tenant, '10.20.0.6')
    missing = site.network_info(
        tenant._replace(segment=104), '10.20.0.6', server_id=info[0]['server_id']
    )
    with pytest.raises(exception.StorageUnavailable, match='no bridge'):
        site.driver.setup_server(missing)
    details = site.driver.setup_server(info)
    assert details['addresses'] == '10.20.0.6'
    server = site.harness.server(info)
    _, path = site.share(server)
    tenant.nfs('10.20.0.6').write(path, 'notes', b'hello')
    site.driver.delete_share(CTX, site.harness.shares[-1])
    site.tear_down(server)


def test_health_names_a_server_that_has_its_files_open(site, server):
    site.driver.check_health()
    stats = site.driver.get_share_stats(refresh=True)
    assert 0 < stats['server_open_files_ratio'] < 0.1
    with all_files_open(site.folder(server) / 'nfs') as used:
        stats = site.driver.get_share_stats(refresh=True)
        assert stats['server_open_files_ratio'] > 0.9
        reason = f'open, of {used} '
        with pytest.raises(exception.StorageUnavailable, match=reason):
            site.driver.check_health()
    site.driver.check_health()


@pytest.mark.parametrize('kind', ['ldap', 'kerberos', 'active_directory'])
def test_network_with_security_services_gets_no_server(site, tenant, kind):
    info = site.network_info(tenant, '10.20.0.6')
    info[0]['security_services'] = [{'id': 'service', 'type': kind}]
    with pytest.raises(exception.SecurityServicesUnsupported, match=kind):
        site.driver.setup_server(info)
    server = site.harness.server(info)
    assert not site.folder(server).exists()
    site.tear_down(server)


def test_half_made_server_is_deleted(site, tenant):
    info = site.network_info(tenant._replace(segment=104))
    with pytest.raises(exception.StorageUnavailable):
        site.driver.setup_server(info)
    server = site.harness.server(info)
    assert site.folder(server).exists()
    site.tear_down(server)
    assert not site.folder(server).exists()


# Stopping everything


def test_storage_stop_ends_share_servers_and_the_next_start_resumes(
    site, tenant, server, path
):
    pids, links, _ = _traces(site, server)
    storage.stop(site.root)
    assert all(map(ended, pids))
    assert not any(link.exists() for link in links)
    site.restart()
    assert serves(tenant, path)


# Options


@pytest.mark.parametrize(
    'option, value, reason',
    [
        ('btrfs_bridge', None, 'need a bridge'),
        ('btrfs_bridge', 'a/b', 'is not the name of a bridge'),
        ('btrfs_bridge', '{other}', 'is not the name of a bridge'),
        ('btrfs_bridge', 'not-there', 'no bridge not-there'),
        ('btrfs_replication_type', 'dr', 'needs a replication_domain'),
        ('driver_handles_share_servers', False, 'there are share servers'),
        ('btrfs_root', 'x' * 60, 'too long for a socket'),
    ],
)
def test_bad_options_are_refused(site, server, option, value, reason):
    if option == 'btrfs_root':
        value = str(site.root.parent / value)
    changed = site.harness.configure()
    changed.override({option: value})
    site.harness.configure, original = (lambda: changed, site.harness.configure)
    try:
        with pytest.raises(
            (exception.BadConfiguration, exception.StorageUnavailable), match=reason
        ):
            site.harness.start()
    finally:
        site.harness.configure = original


def test_shares_without_servers_keep_their_mode():
    storage.require_servers()
    with storage.folder() as folder, tenant_network.bridge() as bridge:
        exports = folder / 'root' / 'exports'
        exports.mkdir(parents=True)
        (exports / 'shares.first.conf').touch()
        options = storage.options(
            folder, driver_handles_share_servers=True, btrfs_bridge=bridge
        )
        with pytest.raises(
            exception.BadConfiguration, match='shares without a share server'
        ):
            tenants.ServedSite(options)


def test_disk_that_works_again_is_served_by_its_server(site, tenant, server, path):
    top = site.driver.backend.pools['pool'].top
    kernel.flush(top)
    disk = FailingDisk(site.root.parent / 'pool.img')
    disk.break_file_system(top)
    try:
        with pytest.raises(exception.StorageUnavailable, match='unmount'):
            site.driver.check_health()
        kernel.unmount(top)
        with pytest.raises(exception.StorageUnavailable, match='pool pool'):
            site.driver.check_health()
        with refused('NOENT'):
            tenant.read(path)
    finally:
        disk.heal()
        eventually(lambda: is_healthy(site.driver))
    assert serves(tenant, path)


def is_healthy(driver):
    try:
        driver.check_health()
    except exception.DriverError:
        return False
    return True
