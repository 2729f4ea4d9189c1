"""Clients that make up file handles do not leave their share."""

import contextlib
import json
import os
import signal

import pytest

from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from tests.drivers.driver_harness import CTX
from tests.support import file_handles, storage
from tests.support.file_handles import Handle
from tests.support.nfs_client import NfsError, OpenFile
from tests.unit.share.drivers.btrfs import tenants
from tests.unit.share.drivers.btrfs.driver_site import WRITER, Site, path_of
from tests.unit.share.drivers.btrfs.nfs_site import eventually

VICTIM = '127.0.0.3'
BEYOND = 5
"""How many subvolumes are tried that do not exist yet."""


class OneServer:
    """Shares of a back end without share servers."""

    clients = WRITER, VICTIM

    def __init__(self, folder):
        self.site = Site(folder)

    @property
    def driver(self):
        return self.site.driver

    @property
    def harness(self):
        return self.site.harness

    def create(self, client=WRITER, snapshot=None):
        share = self.site.share()
        if snapshot:
            self.driver.create_share_from_snapshot(CTX, share, snapshot)
        else:
            self.driver.create_share(CTX, share)
        rule = self.harness.rule(share, client)
        self.driver.update_access(CTX, share, [rule], [rule], [], [])
        return share, path_of(share)

    def attacker(self):
        return self.site.client(WRITER)

    def victim(self):
        return self.site.client(VICTIM)

    def create_victim(self, snapshot=None):
        return self.create(VICTIM, snapshot)

    def pid(self):
        record = self.driver.backend.root / 'nfs' / 'server.json'
        return json.loads(record.read_text())['pid']

    def is_back(self):
        return self.driver.backend.daemons.server.is_answering()


class ManyServers:
    """Shares of two tenants, each on a share server of its own."""

    clients = tenants.CLIENT, tenants.CLIENT

    def __init__(self, site, attacker, victim):
        self.site, self.driver = site, site.driver
        self.harness = site.harness
        self._tenants = attacker, victim
        self._servers = [site.set_up(each) for each in self._tenants]

    def create(self, server=0, snapshot=None):
        at = self._servers[server]
        if snapshot is None:
            return self.site.share(at)
        share = self.harness.share()
        exports = base.normalise_export_locations(
            self.driver.create_share_from_snapshot(
                CTX, share, snapshot, share_server=at
            )
        )
        self.site.allow(share, tenants.CLIENT)
        return share, exports[0]['path'].partition(':/')[2]

    def attacker(self):
        return self._tenants[0].nfs()

    def victim(self):
        return self._tenants[1].nfs()

    def create_victim(self, snapshot=None):
        return self.create(1, snapshot)

    def pid(self):
        return self.site.pid(self._servers[0], 'server')

    def is_back(self):
        server = self.driver.backend.servers.get(self._servers[0].id)
        return server.nfs.is_answering()


@pytest.fixture(scope='module', params=['one server', 'share servers'])
def world(request):
    with contextlib.ExitStack() as stack:
        if request.param == 'one server':
            storage.require()
            yield OneServer(stack.enter_context(storage.folder()))
            return
        site = stack.enter_context(tenants.served_site())
        both = stack.enter_context(tenants.tenants_of(site))
        yield ManyServers(site, *both)


@pytest.fixture(scope='module')
def own(world):
    """Create the share of the attacker, with a file; return its path."""
    share, path = world.create()
    with contextlib.closing(world.attacker()) as client:
        client.write(path, 'notes', b'own')
    take_snapshot(world, share, world.clients[0])
    return path


def take_snapshot(world, share, client):
    snapshot = world.harness.snapshot(share)
    world.driver.create_snapshot(CTX, snapshot)
    rule = world.harness.rule(share, client)
    world.driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
    return snapshot


@pytest.fixture(scope='module')
def own_snapshot(world, own):
    """Return the path of a snapshot of this share."""
    return f'/snapshots/{world.harness.snapshots[0].name}'


@pytest.fixture(scope='module')
def victim(world, own):
    """Create a share with a file, a snapshot and a clone of another one.

    They come after those of the attacker, whichever test is the first.
    """
    share, path = world.create_victim()
    with contextlib.closing(world.victim()) as client:
        client.write(path, 'notes', b'secret')
    world.create_victim(take_snapshot(world, share, world.clients[1]))
    return path


@pytest.fixture
def client(world):
    with contextlib.closing(world.attacker()) as client:
        yield client


@pytest.fixture(params=['own', 'own_snapshot'], ids=['share', 'snapshot'])
def path(request):
    """Provide the path of what the attacker may use."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def handle(client, path):
    return Handle.parse(client.look_up(path))


def subvolumes(world, handle):
    """Return all of the pool but the own one, and some that are to come."""
    pool = world.driver.backend.pools
    top = next(iter(pool.values())).top
    last = max(
        kernel.subvolume_id(path)
        for folder in ('shares', 'snapshots')
        for path in (top / folder).iterdir()
    )
    found = {file_handles.TOP, *range(file_handles.FIRST, last + 1 + BEYOND)}
    assert last > handle.subvolume + 2
    return sorted(found - {handle.subvolume})


def forged(world, handle):
    return [
        each
        for subvolume in subvolumes(world, handle)
        for each in file_handles.in_subvolume(handle, subvolume)
    ]


def test_made_up_handle_of_the_own_share_is_accepted(client, handle):
    """Otherwise the tests below would prove nothing."""
    root, file, *_ = (
        each
        for each in file_handles.in_subvolume(handle, handle.subvolume)
        if each.kind == file_handles.WITHOUT_PARENT and not each.generation
    )
    assert client.names_below(root.pack()) == {'notes'}
    assert client.read_at(OpenFile(file.pack(), bytes(16)), 0, 9) == b'own'


def test_handle_of_another_subvolume_is_stale(world, client, handle, victim):
    assert not file_handles.accepted(client, forged(world, handle))


def test_nothing_can_be_done_with_a_handle_of_another_subvolume(
    world, client, handle, victim
):
    handles = forged(world, handle)[:: len(file_handles.KINDS) * 2]
    assert not file_handles.accepted(client, handles, all_tries=True)
    pools = world.driver.backend.pools.values()
    assert not any((pool.top / 'forged').exists() for pool in pools)


def test_mixtures_of_two_exports_are_refused(world, client, handle, victim):
    with contextlib.closing(world.victim()) as other:
        root = Handle.parse(other.look_up(victim))
    mixed = file_handles.of_export(handle, root)
    assert not file_handles.accepted(client, mixed)


def test_share_made_later_is_out_of_reach(world, client, handle, victim):
    guesses = forged(world, handle)
    assert not file_handles.accepted(client, guesses[-BEYOND * 12 :])
    world.create_victim()
    assert not file_handles.accepted(client, guesses[-BEYOND * 12 :])


def test_restarted_server_refuses_as_well(world, path, victim):
    pid = world.pid()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: world.pid() not in (None, pid) and world.is_back())
    with contextlib.closing(world.attacker()) as again:
        handle = Handle.parse(again.look_up(path))
        assert again.read(path, 'notes') == b'own'
        assert not file_handles.accepted(again, forged(world, handle))


def test_damaged_handles_do_not_end_the_server(world, client, handle):
    pid = world.pid()
    for data in file_handles.damaged(handle, 2000):
        with contextlib.suppress(NfsError):
            client.size_of(data)
    assert world.pid() == pid
    assert client.size_of(handle.pack()) >= 0


def test_names_do_not_lead_out_of_a_share(client, path, handle):
    root = handle.pack()
    for name in ('..', '.', '../..', 'a/../..', '/', '/etc', ''):
        with pytest.raises(NfsError):
            client.look_up_below(root, name)
    pseudo = client.look_up_parent(root)
    assert client.names_below(pseudo) == {path.rpartition('/')[2]}
