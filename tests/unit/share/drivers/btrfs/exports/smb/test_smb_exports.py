"""CIFS shares of the btrfs driver, as smbclient sees them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.operations.access.targets import normalise
from tests.drivers.crashes import changes, killed_at_steps
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import sampling, storage
from tests.support.processes import free_port, wait_until
from tests.support.smb_client import PASSWORD, SmbClient, SmbError
from tests.unit.share.drivers.btrfs.nfs_site import eventually, require_five_seconds

pytestmark = storage.beside_daemons

MIB = 1 << 20


class Site:
    """A back end with two users."""

    def __init__(self, folder: pathlib.Path):
        self.options = storage.options(
            folder, btrfs_cifs=True, btrfs_smb_port=free_port()
        )
        self.root = pathlib.Path(self.options['btrfs_root'])
        self.users = SmbUsers(self.root / 'smb')
        self.harness = DriverHarness('btrfs', lambda: None)
        self.driver = self.start()
        for name in ('alice', 'robert'):
            self.users.add(name, PASSWORD)
        self.alice, self.robert = self.client('alice'), self.client('robert')

    def start(self, **options) -> BtrfsDriver:
        """Start the driver as another process does."""
        driver = BtrfsDriver(
            configuration=Configuration.from_values(self.options | options)
        )
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    def client(self, user, **values) -> SmbClient:
        return SmbClient(user, self.options['btrfs_smb_port'], **values)

    def share(self, **values):
        return self.harness.share(share_proto='CIFS', **values)

    def create(self, **values):
        """Create a share that alice may write to."""
        share = self.share(**values)
        self.driver.create_share(CTX, share)
        self.allow(share, 'alice')
        return share

    def rule(self, share, user, level='rw'):
        return self.harness.rule(share, user, access_type='user', access_level=level)

    def allow(self, share, *users):
        """Allow exactly these: names, or pairs of a name and a level."""
        rules = [
            self.rule(share, *((one,) if isinstance(one, str) else one))
            for one in users
        ]
        replies = self.driver.update_access(CTX, share, rules, [], [], [])
        return [replies[rule['access_id']] for rule in rules]

    def kill(self) -> None:
        record = self.root / 'nfs' / 'smbd.json'
        os.kill(json.loads(record.read_text())['pid'], signal.SIGKILL)

    @contextlib.contextmanager
    def without_probes(self):
        """Let the supervisor not ask smbd, which then has a client more."""
        record = self.root / 'nfs' / 'supervisor.json'
        pid = json.loads(record.read_text())['pid']
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def volume(self, share) -> pathlib.Path:
        return self.driver.backend.pools['pool'].path('shares', share.name)


@pytest.fixture(scope='module')
def site():
    storage.require_cifs()
    with storage.folder() as folder:
        yield Site(folder)


@contextlib.contextmanager
def commands_to(names: list[str]):
    """Append the names of the programs that are started in the block."""
    is_open = True

    def note(event, args):
        if is_open and event == 'subprocess.Popen':
            names.append(args[0])

    sys.addaudithook(note)
    try:
        yield
    finally:
        is_open = False


def refused(status):
    return pytest.raises(SmbError, match=f'NT_STATUS_{status}')


def test_clients_have_the_access_of_their_rules(site):
    share = site.share()
    (location,) = normalise_export_locations(site.driver.create_share(CTX, share))
    assert location['path'] == f'\\\\127.0.0.1\\{share.name}'
    with refused('BAD_NETWORK_NAME'):
        site.alice(share.name, 'ls')
    site.allow(share, 'alice', ('robert', 'ro'))
    site.alice.write(share.name, 'notes', b'hello')
    assert site.robert.read(share.name, 'notes') == b'hello'
    with refused('ACCESS_DENIED'):
        site.robert.write(share.name, 'notes', b'bye')
    site.allow(share, 'robert')
    with refused('ACCESS_DENIED'):
        site.alice(share.name, 'ls')
    with refused('LOGON_FAILURE|ACCESS_DENIED'):
        site.client('robert', password='wrong')(share.name, 'ls')


@pytest.mark.parametrize('rules', [[], ['robert'], [('alice', 'ro')]])
def test_session_ends_when_a_rule_is_revoked(site, rules):
    share = site.create()
    with site.alice.session(share.name) as session:
        session('put /etc/hostname before')
        site.allow(share, *rules)
        with refused('NETWORK_NAME_DELETED|FILE_CLOSED'):
            session('put /etc/hostname after')
    assert os.listdir(site.volume(share)) == ['before']


@sampling.enumeration
@pytest.mark.parametrize('rules', [[], ['robert'], [('alice', 'ro')]])
def test_session_ends_when_a_killed_revocation_is_repeated(site, rules):
    with contextlib.ExitStack() as stack:

        def build(_):
            share = site.create()
            session = stack.enter_context(site.alice.session(share.name))
            session('put /etc/hostname before')
            return share, session

        for share, session in killed_at_steps(
            build, lambda scene: site.allow(scene[0], *rules), changes, most=3, least=5
        ):
            site.allow(share, *rules)
            # After a minute without a share, smbd disconnects.
            with refused('(NETWORK_NAME_DELETED|CONNECTION_DISCONNECTED)'):
                session('put /etc/hostname after')
            assert os.listdir(site.volume(share)) == ['before']
            site.driver.delete_share(CTX, share)


def test_rule_change_starts_three_programs_unless_clients_are_connected(site):
    share = site.create()
    started = []
    with site.without_probes():
        with commands_to(started):
            site.allow(share, 'alice', 'robert')
        assert started == ['smbcontrol'] * 3
        with site.alice.session(share.name), commands_to(started):
            site.allow(share, 'alice')
    assert started[3:] == [*['smbcontrol'] * 3, 'smbstatus', 'smbcontrol']


def test_session_goes_on_when_others_change(site):
    share = site.create()
    with site.alice.session(share.name) as session:
        site.allow(share, 'alice', 'robert')
        site.allow(share, 'alice')
        site.driver.ensure_shares(CTX, [share])
        site.driver = site.start()
        session('put /etc/hostname after')


def test_session_may_write_when_its_rule_allows_it_and_others_go_on(site):
    share = site.create()
    site.allow(share, 'alice', ('robert', 'ro'))
    with (
        site.alice.session(share.name) as writer,
        site.robert.session(share.name) as reader,
    ):
        with refused('ACCESS_DENIED'):
            reader('put /etc/hostname early')
        site.allow(share, 'alice', 'robert')
        with refused('NETWORK_NAME_DELETED'):
            reader('put /etc/hostname late')
        writer('put /etc/hostname after')
    site.robert.write(share.name, 'notes', b'hello')


def test_session_of_what_is_not_shared_ends_with_the_start_of_the_service(site):
    share, other = site.create(), site.create()
    with (
        site.alice.session(share.name) as session,
        site.alice.session(other.name) as another,
    ):
        # A process was killed when it began to withdraw the share.
        (site.root / 'smb/shares' / f'shares.{share.name}.conf').unlink()
        session('put /etc/hostname early')
        site.driver = site.start()
        with refused('NETWORK_NAME_DELETED'):
            session('put /etc/hostname late')
        another('put /etc/hostname after')


@pytest.mark.parametrize('damage', ['', '# nothing'])
def test_report_shares_again_what_is_missing_in_the_index(site, damage, caplog):
    share, other = site.create(), site.create()
    index = site.root / 'smb' / 'shares.conf'
    index.write_text(damage)
    site.driver.backend.daemons.smb_server.reload()
    with refused('BAD_NETWORK_NAME'):
        site.alice(share.name, 'ls')
    site.driver.check_health()
    for each in (share, other):
        site.alice.write(each.name, 'notes', b'hello')
        assert f'shares.{each.name}' in caplog.text
    caplog.clear()
    site.driver.check_health()
    assert 'restored' not in caplog.text


def test_share_whose_users_are_unknown_ends_with_the_report(site, caplog):
    share, other = site.create(), site.create()
    with (
        site.alice.session(share.name) as session,
        site.alice.session(other.name) as another,
    ):
        (site.root / 'smb/shares' / f'shares.{share.name}.conf').unlink()
        site.driver.check_health()
        with refused('NETWORK_NAME_DELETED'):
            session('put /etc/hostname late')
        another('put /etc/hostname after')
    assert f'{share.name} is no longer shared' in caplog.text
    site.allow(share, 'alice')
    site.alice.write(share.name, 'notes', b'hello')


def test_share_that_is_being_changed_is_not_restored(site):
    share = site.create()
    file = site.root / 'smb/shares' / f'shares.{share.name}.conf'
    text = file.read_text()
    with site.driver.backend._exporters.cifs._locks.locked(share.name):
        file.unlink()
        site.driver.check_health()
        index = site.root / 'smb' / 'shares.conf'
        assert str(file) in index.read_text()
        file.write_text(text)
        index.write_text(index.read_text().replace(f'include = {file}\n', ''))
        site.driver.check_health()
        assert str(file) not in index.read_text()
    site.driver.check_health()
    site.alice.write(share.name, 'notes', b'hello')


@pytest.mark.parametrize(
    'name',
    [
        'nobody-known',
        'Alice',
        'a b',
        '@users',
        '%U',
        'alice" "robert',
        'x\n[global]',
        'root',
        '[x',
        'a;b',
    ],
)
def test_rule_for_an_unknown_user_is_refused_with_a_reason(site, name):
    share = site.create()
    good, odd = site.allow(share, 'alice', name)
    assert good['state'] == 'active'
    assert odd['state'] == 'error'
    assert 'user' in odd['reason'] or 'characters' in odd['reason']
    site.alice(share.name, 'ls')


def test_rule_of_another_type_is_refused(site):
    share = site.create()
    rule = site.harness.rule(share, '10.0.0.1')
    replies = site.driver.update_access(CTX, share, [rule], [], [], [])
    assert replies[rule['access_id']]['state'] == 'error'
    with refused('BAD_NETWORK_NAME|ACCESS_DENIED'):
        site.alice(share.name, 'ls')


def test_size_is_a_limit_and_what_clients_see(site):
    share = site.create()
    assert f'{1 << 20} blocks' in site.alice(share.name, 'ls')
    with (site.volume(share) / 'large').open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, 1000 * MIB)
    with refused('DISK_FULL'):
        site.alice.write(share.name, 'more', bytes(32 * MIB))
    site.driver.extend_share(share, 2)
    site.alice.write(share.name, 'more', bytes(32 * MIB))
    with pytest.raises(exception.ShareShrinkingPossibleDataLoss):
        site.driver.shrink_share(share, 1)


@pytest.mark.parametrize('mode', ['swap', 'rewrite'])
def test_share_is_reverted_under_a_session(site, mode):
    share = site.create()
    snapshot = site.harness.snapshot(share)
    site.alice.write(share.name, 'notes', b'then')
    site.driver.create_snapshot(CTX, snapshot)
    site.alice.write(share.name, 'notes', b'now!')
    site.alice.write(share.name, 'new', b'')
    driver = site.start(btrfs_revert_mode=mode)
    with site.alice.session(share.name) as session:
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        with refused('NETWORK_NAME_DELETED'):
            session('ls')
    assert site.alice.read(share.name, 'notes') == b'then'
    assert site.alice.names(share.name) == {'notes'}


def test_snapshot_is_mounted_and_cloned(site):
    share = site.create()
    snapshot = site.harness.snapshot(share)
    site.alice.write(share.name, 'notes', b'then')
    reply = site.driver.create_snapshot(CTX, snapshot)
    (location,) = reply['export_locations']
    name = location['path'].rpartition('\\')[2]
    rule = site.rule(share, 'robert')
    site.driver.snapshot_update_access(CTX, snapshot, [rule], [], [])
    assert site.robert.read(name, 'notes') == b'then'
    with refused('ACCESS_DENIED|MEDIA_WRITE_PROTECTED'):
        site.robert.write(name, 'notes', b'')
    with refused('ACCESS_DENIED'):
        site.alice(name, 'ls')
    clone = site.share()
    site.driver.create_share_from_snapshot(CTX, clone, snapshot)
    site.allow(clone, 'robert')
    assert site.robert.read(clone.name, 'notes') == b'then'
    site.driver.snapshot_update_access(CTX, snapshot, [], [], [])
    with refused('BAD_NETWORK_NAME'):
        site.robert(name, 'ls')
    site.driver.delete_snapshot(CTX, snapshot)


def test_deleted_share_is_gone_for_its_clients(site):
    share = site.create()
    with site.alice.session(share.name) as session:
        site.driver.delete_share(CTX, share)
        with refused('NETWORK_NAME_DELETED'):
            session('ls')
    with refused('BAD_NETWORK_NAME'):
        site.alice(share.name, 'ls')
    with pytest.raises(exception.ShareResourceNotFound):
        site.driver.delete_share(CTX, share)
    assert not list((site.root / 'smb').glob(f'**/*{share.name}*'))


def test_released_share_keeps_its_session_until_it_is_managed_again(site):
    share = site.create()
    (location,) = normalise_export_locations(site.driver.create_share(CTX, share))
    with site.alice.session(share.name) as session:
        site.driver.unmanage(share)
        session('put /etc/hostname one')
        again = site.harness.at(location['path'], share_proto='CIFS')
        assert site.driver.manage_existing(again, {})['size'] == 1
        with refused('NETWORK_NAME_DELETED'):
            session('put /etc/hostname two')
    with refused('BAD_NETWORK_NAME'):
        site.alice(share.name, 'ls')


@pytest.mark.parametrize('name', ['global', 'Homes', 'snapshots.x', 'Data'])
def test_volume_whose_name_samba_takes_otherwise_is_not_managed(site, name):
    kernel.create_subvolume(site.volume(site.share(name=name)))
    share = site.harness.at(f'\\\\127.0.0.1\\{name}', share_proto='CIFS')
    with pytest.raises(exception.ManageInvalidShare, match='cannot be'):
        site.driver.manage_existing(share, {})


def test_killed_server_is_back_in_five_seconds_with_all_rules(site):
    share = site.create()
    with site.alice.session(share.name) as session:
        site.kill()
        # No process of the old one serves what is revoked now.
        site.allow(share, ('robert', 'ro'))
        with refused('CONNECTION_|NETWORK_NAME_DELETED'):
            session('ls')
    site.kill()
    seconds = eventually(lambda: _lists(site.robert, share.name))
    require_five_seconds(seconds, lambda: _restart(site, share))
    with refused('ACCESS_DENIED'):
        site.robert.write(share.name, 'notes', b'')
    with refused('ACCESS_DENIED'):
        site.alice(share.name, 'ls')


def _restart(site, share):
    storage.stop(site.root)
    site.driver = site.start()
    assert _lists(site.robert, share.name)


def _lists(client, share):
    try:
        return client(share, 'ls')
    except SmbError:
        return False


@pytest.mark.parametrize('is_stuck', [False, True])
def test_clients_are_served_only_while_cifs_is_switched_on(site, is_stuck):
    share = site.create()
    record = json.loads((site.root / 'nfs' / 'smbd.json').read_text())
    with site.alice.session(share.name) as session:
        session('ls')
        if is_stuck:
            # Its children, which serve clients, are not told to end.
            os.kill(record['pid'], signal.SIGSTOP)
        site.start(btrfs_cifs=False)
        with refused('CONNECTION_|NETWORK_NAME_DELETED'):
            session('ls')
    with refused('CONNECTION_REFUSED'):
        site.alice(share.name, 'ls')
    assert not _session_of(record['pid'])
    site.driver = site.start()
    wait_until(lambda: _lists(site.alice, share.name), 'it is back')


def _session_of(leader):
    """Return the processes that a daemon has started, which live on."""
    found = subprocess.run(
        ['ps', '-o', 'pid=,stat=', '-s', str(leader)], capture_output=True, text=True
    ).stdout
    return [line for line in found.splitlines() if ' Z' not in line]


def test_everything_is_back_after_a_start_of_the_machine(site):
    share = site.create()
    site.alice.write(share.name, 'notes', b'hello')
    storage.stop(site.root)
    kernel.unmount_below(site.root)
    site.driver = site.start()
    assert site.alice.read(share.name, 'notes') == b'hello'


def test_links_do_not_lead_out_of_a_share(site):
    share = site.create()
    (site.volume(share) / 'link').symlink_to('/etc')
    with pytest.raises(SmbError):
        site.alice(share.name, 'get link/hostname /dev/null')


def test_removed_user_is_disconnected(site):
    site.users.add('carol', PASSWORD)
    share, carol = site.create(), site.client('carol')
    site.allow(share, 'carol')
    with carol.session(share.name) as session:
        site.users.remove('carol')
        with refused('CONNECTION_'):
            session('ls')
    with refused('LOGON_FAILURE|ACCESS_DENIED'):
        carol(share.name, 'ls')
    assert site.users.names() == ['alice', 'robert']


def test_password_is_changed(site):
    share = site.create()
    site.users.add('alice', 'another')
    try:
        with refused('LOGON_FAILURE|ACCESS_DENIED'):
            site.alice(share.name, 'ls')
        site.client('alice', password='another')(share.name, 'ls')
    finally:
        site.users.add('alice', PASSWORD)


@pytest.mark.parametrize(
    'name', ['root', 'nobody', '', '-x', 'A', 'a b', 'a:b', 'a\nb', 'a"', '%u']
)
def test_odd_names_of_users_are_refused(site, name):
    with pytest.raises(exception.InvalidInput, match='not a name'):
        site.users.add(name, PASSWORD)


@pytest.mark.parametrize(
    'name', ['a', 'bob', 'a.b', '___', 'anna', '____', '0...', 'a' * 32]
)
def test_users_have_names_that_access_rules_take(site, name):
    try:
        site.users.add(name, PASSWORD)
    except exception.InvalidInput:
        with pytest.raises(exception.InvalidShareAccess):
            normalise('user', name)
    else:
        site.users.remove(name)
        assert normalise('user', name) == name


@pytest.mark.parametrize('password', ['', 'a\nb', 'x' * 128])
def test_odd_passwords_are_refused(site, password):
    with pytest.raises(exception.InvalidInput, match='1 to 127'):
        site.users.add('dave', password)
    assert 'dave' not in site.users.names()


def test_back_end_without_cifs_refuses_such_shares():
    storage.require()
    with storage.folder() as folder:
        driver = BtrfsDriver(
            configuration=Configuration.from_values(storage.options(folder))
        )
        driver.check_for_setup_error()
        share = DriverHarness('btrfs', lambda: None).share(share_proto='CIFS')
        with pytest.raises(exception.ShareRefused, match='no CIFS'):
            driver.create_share(CTX, share)


def test_samba_knows_all_settings(site):
    done = subprocess.run(
        ['testparm', '-s', site.root / 'smb' / 'smb.conf'],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert 'Unknown parameter' not in done.stderr
