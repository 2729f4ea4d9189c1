"""Share servers that migrate between two back ends of this machine."""

import os

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from tests.drivers.crashes import killed_at
from tests.drivers.driver_harness import CTX
from tests.drivers.migration_contract import BtrfsPair
from tests.support import storage
from tests.support import tenant_network
from tests.support.nfs_client import NfsError

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
        self.target.share_server_migration_start(
            *self.arguments(self.elsewhere)
        )

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
        self.target.share_server_migration_cancel(
            *self.arguments(self.elsewhere)
        )

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


@pytest.fixture
def pair(bridge, client):
    with storage.folder() as folder:
        yield Pair(folder, bridge, client)


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
    assert not list(
        (pair.source.backend.root / 'pools' / 'pool' / 'moving').iterdir()
    )


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
