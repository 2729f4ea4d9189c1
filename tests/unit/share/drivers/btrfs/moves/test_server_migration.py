"""Share servers that migrate between two back ends of this machine."""

from concurrent import futures
import contextlib
import os

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from tests.drivers.crashes import killed_at
from tests.drivers.driver_harness import CTX
from tests.drivers.migration_contract import BtrfsPair
from tests.support import storage, tenant_network
from tests.support.nfs_client import NfsError
from tests.support.processes import wait_until
from tests.support.smb_client import PASSWORD, SmbError

pytestmark = storage.beside_daemons

SOURCE, CLIENT, PORT = '10.20.0.5', '10.20.0.99', 2049
SMALL_POOL = 512 << 20
MOST_OF_IT = 200 << 20


@pytest.fixture(scope='module')
def bridge():
    storage.require_servers()
    with tenant_network.bridge() as name:
        yield name


@pytest.fixture(scope='module')
def client(bridge):
    with tenant_network.client_on(bridge, f'{CLIENT}/24') as client:
        yield client


class Pair(BtrfsPair):
    """A back end with a client, and one with a small pool."""

    pool_sizes = {'there': SMALL_POOL}

    def __init__(self, folder, bridge, client):
        super().__init__(folder, bridge)
        self._client = client
        self.path = f'/shares/{self.share.name}'
        self.allow(self.source)
        self.elsewhere = self.destination('10.20.0.9')

    def allow(self, driver):
        rule = self.made['here'].rule(self.share, CLIENT)
        driver.update_access(CTX, self.share, [rule], [], [], [])

    def start(self):
        self.target.share_server_migration_start(*self.arguments(self.elsewhere))

    def proceed(self):
        return self.target.share_server_migration_continue(
            *self.arguments(self.elsewhere)
        )

    def progress(self):
        return self.target.share_server_migration_get_progress(
            *self.arguments(self.elsewhere)
        )['total_progress']

    def complete(self):
        return self.target.share_server_migration_complete(
            *self.arguments(self.elsewhere), self.info
        )

    def cancel(self):
        self.target.share_server_migration_cancel(*self.arguments(self.elsewhere))

    def kill_once_retired(self):
        """Kill a completion when the source serves no clients any more."""
        folder = self.source.backend.root / 'servers' / self.server.id
        specification = folder / 'nfs' / 'spec.json'

        def copies_again(event, _):
            return event == 'fcntl.ioctl' and not specification.exists()

        assert killed_at(1, self.complete, copies_again)

    def restart(self, name):
        driver = self.made[name].start()
        setattr(self, 'source' if name == 'here' else 'target', driver)

    def is_served(self, address=SOURCE):
        try:
            nfs = self._client.nfs(address, PORT)
            return nfs.read(self.path, 'notes') == b'content'
        except (OSError, NfsError):
            return False


class CifsPair(Pair):
    """The same with a CIFS share."""

    share_proto = 'CIFS'

    def allow(self, driver):
        """Let alice in, whom only the source has from the beginning."""
        if driver is self.source:
            driver.backend.servers.users(self.server.id).add('alice', PASSWORD)
        rule = self.made['here'].rule(self.share, 'alice', access_type='user')
        replies = driver.update_access(CTX, self.share, [rule], [], [], [])
        assert replies[rule['access_id']]['state'] == 'active'

    def alice(self, address=SOURCE):
        return self._client.smb('alice', address, 445)

    def is_served(self, address=SOURCE):
        try:
            return self.alice(address).read(self.share.name, 'notes') == b'content'
        except SmbError:
            return False


@pytest.fixture
def pair(bridge, client):
    with storage.folder() as folder:
        yield Pair(folder, bridge, client)


@pytest.fixture
def cifs_pair(bridge, client):
    storage.require_cifs()
    with storage.folder() as folder:
        yield CifsPair(folder, bridge, client)


def fill(pair, name='filling'):
    path = pair.volume(pair.source) / name
    path.write_bytes(os.urandom(MOST_OF_IT))


def test_what_was_copied_is_not_sent_again(pair):
    fill(pair)
    pair.start()
    assert pair.proceed()
    # It would not fit twice.
    (pair.volume(pair.source) / 'late').write_text('late')
    pair.complete()
    moved = pair.volume(pair.target)
    assert (moved / 'filling').stat().st_size == MOST_OF_IT
    assert (moved / 'late').read_text() == 'late'


def test_full_destination_fails_the_first_phase_and_nothing_else(pair):
    for number in range(3):
        fill(pair, f'filling-{number}')
    pair.start()
    with pytest.raises(exception.ShareBackendException, match='no space'):
        pair.proceed()
    assert pair.is_served()
    pair.cancel()
    assert pair.is_empty(pair.target)


def test_full_destination_fails_the_second_phase_and_clients_go_on(pair):
    pair.start()
    assert pair.proceed()
    for number in range(3):
        fill(pair, f'filling-{number}')
    with pytest.raises(exception.ShareBackendException, match='no space'):
        pair.complete()
    assert pair.is_served()


def test_size_and_progress_are_those_of_the_source(pair):
    assert pair.source.extend_share(pair.share, 3) is None
    fill(pair)
    pair.source.update_share_usage_size(CTX, [pair.share])
    pair.start()
    assert pair.progress() < 100
    pair.proceed()
    assert pair.progress() == 100
    pair.complete()
    assert pair.target.get_share_status(pair.share)['size'] == 3


def test_retired_server_stays_ended_when_its_back_end_starts(pair):
    pair.start()
    pair.proceed()
    pair.kill_once_retired()
    pair.restart('here')
    pair.source.check_health()
    assert not pair.is_served()
    pair.restart('there')
    pair.complete()
    pair.allow(pair.target)
    assert pair.is_served('10.20.0.9')


def test_retired_server_serves_when_the_destination_is_torn_down(pair):
    pair.start()
    pair.proceed()
    pair.kill_once_retired()
    pair.target.teardown_server({'server_id': pair.elsewhere.id})
    assert pair.is_served()
    assert pair.is_empty(pair.target)


def test_source_out_of_reach_serves_again_when_it_is_back(pair):
    pair.start()
    pair.proceed()
    pair.kill_once_retired()
    storage.stop(pair.source.backend.root)
    kernel.unmount_below(pair.source.backend.root)
    for _ in range(2):
        pair.cancel()
    assert pair.is_empty(pair.target)
    pair.restart('here')
    assert pair.is_served()
    assert not list((pair.source.backend.root / 'leaving').iterdir())
    assert not list((pair.source.backend.root / 'pools' / 'pool' / 'moving').iterdir())


def test_share_that_exists_on_both_sides_is_not_replaced(pair):
    pair.start()
    pair.proceed()
    with (
        pair.failing_completion(),
        pytest.raises(exception.ShareBackendException, match='both'),
    ):
        pair.complete()
    assert pair.is_served()
    pair.complete()
    assert pair.has_share(pair.target)


def test_server_of_a_completed_migration_cannot_be_cancelled_away(pair):
    pair.start()
    pair.proceed()
    pair.complete()
    pair.cancel()
    assert pair.has_share(pair.target)
    with pytest.raises(exception.ShareBackendException, match='still has'):
        pair.target.teardown_server({'server_id': pair.elsewhere.id})


# CIFS


def test_cifs_share_moves_with_its_users_and_no_acknowledged_write_is_lost(cifs_pair):
    pair, written = cifs_pair, []

    def write_until_interrupted():
        with (
            pair.alice().session(pair.share.name) as session,
            contextlib.suppress(SmbError),
        ):
            while True:
                name = f'record-{len(written)}'
                session(f'put /etc/hostname {name}')
                written.append(name)

    assert pair.check()['compatible']
    with futures.ThreadPoolExecutor(1) as executor:
        writing = executor.submit(write_until_interrupted)
        wait_until(lambda: written or writing.done(), 'it writes')
        pair.start()
        assert pair.proceed()
        copied = len(written)
        wait_until(lambda: len(written) > copied or writing.done(), 'it goes on')
        pair.complete()
        writing.result()
    pair.allow(pair.target)
    assert pair.is_served('10.20.0.9')
    assert not pair.is_served()
    names = pair.alice('10.20.0.9').names(pair.share.name)
    assert names == {'notes', *written} or names == {
        'notes',
        *written,
        f'record-{len(written)}',  # written, but not acknowledged
    }
    pair.source.teardown_server({'server_id': pair.server.id})
    assert not list((pair.source.backend.root / 'smb').iterdir())
    assert pair.is_served('10.20.0.9')


def test_cifs_server_that_was_retired_is_served_by_one_side(cifs_pair):
    pair = cifs_pair
    pair.start()
    pair.proceed()
    with pair.alice().session(pair.share.name) as session:
        pair.kill_once_retired()
        with pytest.raises(SmbError):
            session('ls')
    pair.restart('here')
    pair.source.check_health()
    assert not pair.is_served()
    pair.restart('there')
    pair.cancel()
    assert pair.is_served()
    pair.start()
    pair.proceed()
    pair.complete()
    pair.allow(pair.target)
    assert pair.is_served('10.20.0.9')


def test_password_at_the_time_of_the_move_is_valid(cifs_pair):
    pair = cifs_pair
    destination = pair.target.backend.servers.users(pair.elsewhere.id)
    destination.add('alice', 'of another time')
    destination.add('carol', PASSWORD)
    pair.start()
    pair.proceed()
    pair.complete()
    pair.allow(pair.target)
    assert pair.is_served('10.20.0.9')
    assert destination.names() == ['alice', 'carol']


def test_back_end_without_cifs_takes_no_server_with_cifs_shares(cifs_pair):
    changed = cifs_pair.made['there'].configure()
    changed.override({'btrfs_cifs': False})
    cifs_pair.made['there'].configure = lambda: changed
    cifs_pair.restart('there')
    assert not cifs_pair.check()['compatible']
