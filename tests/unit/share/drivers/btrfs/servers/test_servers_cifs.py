"""CIFS shares on share servers, with clients in the networks of tenants."""

import contextlib
import os
import pathlib

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs import kernel
from tests.drivers.driver_harness import CTX
from tests.support import storage, tenant_network
from tests.support.failing_disk import FailingDisk
from tests.support.smb_client import PASSWORD, SmbError
from tests.unit.share.drivers.btrfs import tenants
from tests.unit.share.drivers.btrfs.nfs_site import eventually, require_five_seconds

pytestmark = storage.beside_daemons

LOST = 'NETWORK_NAME_DELETED|FILE_CLOSED|USER_SESSION_DELETED|CONNECTION_'
UNREACHABLE = 'CONNECTION_|HOST_UNREACHABLE|NETWORK_UNREACHABLE|IO_TIMEOUT'


class Server:
    """A share server with two users."""

    def __init__(self, site, tenant, server):
        self.site, self.tenant, self.server = site, tenant, server
        self.at = site.driver.backend.servers.get(server.id)
        for name in ('alice', 'robert'):
            self.at.users.add(name, PASSWORD)
        self.alice, self.robert = tenant.smb('alice'), tenant.smb('robert')

    def create(self, *rules):
        """Create a share for users; without them alice may write."""
        share = self.site.harness.share(share_proto='CIFS')
        self.site.driver.create_share(CTX, share, share_server=self.server)
        self.allow(share, *(rules or (('alice', 'rw'),)))
        return share

    def allow(self, share, *rules):
        """Allow exactly these: pairs of a name and a level."""
        self.site.driver.update_access(
            CTX,
            share,
            [
                self.site.harness.rule(
                    share, user, access_type='user', access_level=level
                )
                for user, level in rules
            ],
            [],
            [],
            [],
            share_server=self.server,
        )

    def pid(self, daemon='smbd'):
        return self.site.pid(self.server, daemon)

    def serves(self, share):
        try:
            return self.alice.read(share.name, 'notes') == b'hello'
        except SmbError:
            return False


@pytest.fixture(scope='module')
def site():
    storage.require_cifs()
    with tenants.served_site(btrfs_cifs=True) as site:
        yield site


@pytest.fixture(scope='module')
def both(site):
    with tenants.tenants_of(site) as found:
        yield found


@pytest.fixture(scope='module')
def server(site, both):
    """Start one server for all tests: they only add shares, and repair it."""
    with site.server(both[0]) as server:
        yield Server(site, both[0], server)


@pytest.fixture
def share(server):
    """Create a share with a file that alice has written."""
    share = server.create()
    server.alice.write(share.name, 'notes', b'hello')
    return share


def refused(status):
    return pytest.raises(SmbError, match=f'NT_STATUS_({status})')


def processes_of(session):
    """Return the pids of a session that have not ended."""
    found = set()
    for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text().rpartition(')')[2].split()
            if fields[3] == str(session) and fields[0] not in 'ZX':
                found.add(path.parent.name)
    return found


# Access


def test_clients_have_the_access_of_their_rules(site, server):
    share = site.harness.share(share_proto='CIFS')
    (location,) = normalise_export_locations(
        site.driver.create_share(CTX, share, share_server=server.server)
    )
    assert location['path'] == f'\\\\{tenants.ADDRESS}\\{share.name}'
    with refused('BAD_NETWORK_NAME'):
        server.alice(share.name, 'ls')
    server.allow(share, ('alice', 'rw'), ('robert', 'ro'))
    server.alice.write(share.name, 'notes', b'hello')
    assert server.robert.read(share.name, 'notes') == b'hello'
    with refused('ACCESS_DENIED'):
        server.robert.write(share.name, 'notes', b'bye')
    server.allow(share, ('robert', 'rw'))
    with refused('ACCESS_DENIED'):
        server.alice(share.name, 'ls')
    with refused('LOGON_FAILURE|ACCESS_DENIED'):
        server.robert._replace(password='wrong')(share.name, 'ls')


def test_report_restores_the_exports_of_each_server(site, both, server, share, caplog):
    nfs_share, path = site.share(server.server)
    both[0].write(path, b'hello')
    exports = server.at.exports
    server.at.nfs.remove(exports.number('shares', nfs_share.name))
    (server.at.smb_folder / 'shares.conf').write_text('')
    site.driver.check_health()
    assert both[0].read(path) == b'hello'
    assert server.serves(share)
    for each in (nfs_share, share):
        assert f'shares.{each.name}' in caplog.text


@pytest.mark.parametrize('rules', [[], [('robert', 'rw')], [('alice', 'ro')]])
def test_client_that_loses_its_rule_loses_its_open_files(site, server, share, rules):
    with server.alice.session(share.name) as session:
        session('put /etc/hostname before')
        server.allow(share, *rules)
        with refused(LOST):
            session('put /etc/hostname after')
    volume = site.driver.backend.pools['pool'].path('shares', share.name)
    assert {path.name for path in volume.iterdir()} == {'notes', 'before'}


def test_rule_for_a_user_of_another_server_is_refused(site, both, server):
    with site.server(both[1]) as other:
        site.driver.backend.servers.get(other.id).users.add('carol', PASSWORD)
        share = server.create()
        rule = site.harness.rule(share, 'carol', access_type='user')
        replies = site.driver.update_access(CTX, share, [rule], [], [], [])
        assert replies[rule['access_id']]['state'] == 'error'


def test_tenants_with_the_same_address_see_only_their_shares(site, both, server, share):
    """Users of the same name have the password of their own server."""
    with site.server(both[1]) as second:
        other = Server(site, both[1], second)
        other.at.users.add('alice', 'of the other')
        theirs = other.create()
        alice = other.alice._replace(password='of the other')
        alice.write(theirs.name, 'notes', b'other')
        assert server.alice.read(share.name, 'notes') == b'hello'
        assert alice.read(theirs.name, 'notes') == b'other'
        with refused('BAD_NETWORK_NAME'):
            server.alice(theirs.name, 'ls')
        with refused('BAD_NETWORK_NAME'):
            alice(share.name, 'ls')
        with refused('LOGON_FAILURE|ACCESS_DENIED'):
            other.alice(theirs.name, 'ls')


def test_server_listens_on_the_address_of_the_share_server_only(
    site, both, server, share
):
    with refused(UNREACHABLE):
        server.alice._replace(namespace=None, address='127.0.0.1')(share.name, 'ls')
    listening = pathlib.Path(f'/proc/{server.pid()}/net/tcp').read_text()
    listening += pathlib.Path(f'/proc/{server.pid()}/net/udp').read_text()
    ports = {
        line.split()[1]
        for line in listening.splitlines()
        if ':' in line and line.split()[3] in ('0A', '07')
    }
    smb = f':{tenants.SMB_PORT:04X}'
    assert {port for port in ports if port.endswith(smb)} == {
        f'0500140A{smb}'  # 10.20.0.5
    }


def test_addresses_of_all_subnets_are_served(site, both):
    addresses = (tenants.ADDRESS, tenants.ADDRESS_6)
    with site.server(both[1], *addresses) as found:
        server = Server(site, both[1], found)
        share = server.create()
        locations = site.driver.ensure_share(CTX, share, found)
        assert [one['path'] for one in locations] == [
            f'\\\\{tenants.ADDRESS}\\{share.name}',
            f'\\\\fd00-20--5.ipv6-literal.net\\{share.name}',
        ]
        for address in addresses:
            alice = both[1].smb('alice', address)
            alice.write(share.name, 'notes', b'hello')


def test_snapshot_is_mounted_cloned_and_reverted_to(site, server, share):
    snapshot = site.harness.snapshot(share)
    reply = site.driver.create_snapshot(CTX, snapshot, share_server=server.server)
    server.alice.write(share.name, 'notes', b'now!')
    mounted = reply['export_locations'][0]['path'].rpartition('\\')[2]
    rule = site.harness.rule(share, 'robert', access_type='user')
    site.driver.snapshot_update_access(
        CTX, snapshot, [rule], [rule], [], share_server=server.server
    )
    assert server.robert.read(mounted, 'notes') == b'hello'
    with refused('ACCESS_DENIED|MEDIA_WRITE_PROTECTED'):
        server.robert.write(mounted, 'notes', b'more')
    clone = site.harness.share(share_proto='CIFS')
    site.driver.create_share_from_snapshot(
        CTX, clone, snapshot, share_server=server.server
    )
    server.allow(clone, ('robert', 'ro'))
    assert server.robert.read(clone.name, 'notes') == b'hello'
    with server.alice.session(share.name) as session:
        site.driver.revert_to_snapshot(
            CTX, snapshot, [], [], share_server=server.server
        )
        with refused(LOST):
            session('ls')
    assert server.serves(share)
    site.driver.delete_snapshot(CTX, snapshot, share_server=server.server)
    with refused('BAD_NETWORK_NAME'):
        server.robert(mounted, 'ls')


def test_size_is_a_limit(site, server, share):
    volume = site.driver.backend.pools['pool'].path('shares', share.name)
    with (volume / 'large').open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, 1000 << 20)
    with refused('DISK_FULL'):
        server.alice.write(share.name, 'more', bytes(32 << 20))


def test_released_share_keeps_its_session_until_it_is_managed_again(
    site, server, share
):
    (location,) = site.driver.ensure_share(CTX, share, server.server)
    with server.alice.session(share.name) as session:
        site.driver.unmanage_with_server(share, share_server=server.server)
        session('put /etc/hostname one')
        again = site.harness.at(location['path'], share_proto='CIFS')
        site.driver.manage_existing_with_server(again, {}, share_server=server.server)
        with refused(LOST):
            session('put /etc/hostname two')


# Daemons


def test_server_with_nfs_shares_only_runs_no_smbd(site, both):
    with site.server(both[1]) as server:
        site.share(server)
        folder = site.folder(server) / 'nfs'
        site.restart()
        assert not (folder / 'smbd.json').exists()


def test_first_cifs_share_does_not_interrupt_nfs(site, both):
    with site.server(both[1]) as server:
        _, path = site.share(server)
        nfs = both[1].nfs()
        nfs.write(path, 'notes', b'hello')
        pid = site.pid(server, 'server')
        share = Server(site, both[1], server).create()
        both[1].smb('alice').write(share.name, 'notes', b'by CIFS')
        assert nfs.read(path, 'notes') == b'hello'
        assert site.pid(server, 'server') == pid


def test_killed_daemon_is_back_within_five_seconds(server, share):
    pid = server.pid()
    server.site.kill(server.server, 'smbd')
    seconds = eventually(lambda: server.pid() != pid and server.serves(share))
    require_five_seconds(seconds, lambda: _restart(server, share))


def _restart(server, share):
    storage.stop(server.site.root)
    server.site.restart()
    assert server.serves(share)


def test_rule_that_is_revoked_while_smbd_is_killed_is_not_served(site, server, share):
    with server.alice.session(share.name) as session:
        site.kill(server.server, 'smbd')
        server.allow(share, ('robert', 'ro'))
        with refused(LOST):
            session('ls')
    with refused('ACCESS_DENIED'):
        server.alice(share.name, 'ls')
    assert server.robert.read(share.name, 'notes') == b'hello'


def test_only_the_killed_server_is_restarted(site, both, server, share):
    with site.server(both[1]) as second:
        other = Server(site, both[1], second)
        other.create()
        pid, nfs = other.pid(), server.pid('server')
        site.kill(server.server, 'smbd')
        eventually(lambda: server.serves(share))
        assert other.pid() == pid
        assert server.pid('server') == nfs


def test_start_of_the_service_changes_nothing(site, server, share):
    pid = server.pid()
    with server.alice.session(share.name) as session:
        site.restart()
        site.driver.ensure_shares(CTX, [share])
        session('put /etc/hostname after')
    assert server.pid() == pid


def test_everything_is_back_after_a_restart_of_the_machine(site, server, share):
    storage.stop(site.root)
    kernel.unmount_below(site.root)
    site.restart()
    assert server.serves(share)


def test_lost_link_is_repaired(site, server, share):
    pid = server.pid()
    (link,) = site.links(server.server)
    tenant_network.delete_link(link)
    site.driver.check_health()
    assert server.serves(share)
    assert server.pid() == pid


def test_lost_namespace_is_replaced(site, server, share):
    kernel.unmount(site.folder(server.server) / 'netns')
    site.driver.check_health()
    eventually(lambda: server.serves(share))


def test_nothing_is_left_of_a_deleted_server(site, both):
    folders = set((site.root / 'smb').glob('*'))
    with site.server(both[1]) as found:
        server = Server(site, both[1], found)
        share = server.create()
        (folder,) = set((site.root / 'smb').glob('*')) - folders
        with server.alice.session(share.name):
            pid = server.pid()
            assert len(processes_of(pid)) > 1
            site.driver.delete_share(CTX, share, share_server=found)
            site.tear_down(found)
            assert not processes_of(pid)
        assert not folder.exists()
        assert not site.folder(found).exists()


def test_storage_stop_ends_smbd_and_the_next_start_resumes(site, server, share):
    pid = server.pid()
    storage.stop(site.root)
    assert not processes_of(pid)
    site.restart()
    assert server.serves(share)


def test_back_end_without_cifs_stops_sharing_and_refuses_shares(site, server, share):
    configure = site.harness.configure
    changed = configure()
    changed.override({'btrfs_cifs': False})
    site.harness.configure = lambda: changed
    with contextlib.ExitStack() as stack:
        stack.callback(site.restart)
        stack.callback(setattr, site.harness, 'configure', configure)
        site.restart()
        eventually(lambda: not server.serves(share))
        with pytest.raises(exception.ShareRefused, match='no CIFS'):
            server.create()
    assert server.serves(share)


def test_cifs_share_is_back_on_its_server_with_its_disk(site, server, share):
    top = site.driver.backend.pools['pool'].top
    kernel.flush(top)
    disk = FailingDisk(site.root.parent / 'pool.img')
    disk.break_file_system(top)
    try:
        kernel.unmount(top)
        with pytest.raises(exception.StorageUnavailable, match='pool pool'):
            site.driver.check_health()
        assert not server.serves(share)
    finally:
        disk.heal()
        eventually(lambda: is_healthy(site.driver))
    assert server.serves(share)


def is_healthy(driver):
    try:
        driver.check_health()
    except exception.DriverError:
        return False
    return True
