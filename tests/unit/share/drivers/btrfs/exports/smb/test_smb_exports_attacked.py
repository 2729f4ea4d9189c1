"""Clients that send any names do not leave their CIFS share."""

import contextlib
import os
import pathlib
import re

import pytest

from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import storage, tenant_network
from tests.support.smb_client import PASSWORD
from tests.unit.share.drivers.btrfs import tenants

PREVIOUS = '@GMT-2026.01.01-00.00.00'


class World:
    """Shares of two users on one server, and a client of it."""

    def __init__(self, harness, driver, client, address, server, users):
        self.harness, self.driver = harness, driver
        self._client, self._address, self._server = client, address, server
        self.top = next(iter(driver.backend.pools.values())).top
        self.own = self._create()
        for name in ('alice', 'robert'):
            users().add(name, PASSWORD)
        self.victim = self._create()
        self._allow(self.own, 'alice')
        self._allow(self.victim, 'robert')

    def _create(self):
        share = self.harness.share(share_proto='CIFS')
        self.driver.create_share(CTX, share, share_server=self._server)
        return share

    def _allow(self, share, user):
        rule = self.harness.rule(share, user, access_type='user')
        self.driver.update_access(
            CTX, share, [rule], [rule], [], [], share_server=self._server
        )

    def folder(self, share):
        return self.top / 'shares' / share.name

    def snapshot(self, share):
        snapshot = self.harness.snapshot(share)
        self.driver.create_snapshot(CTX, snapshot, share_server=self._server)
        return snapshot

    def ask(self, share, *calls):
        """Return what the server has answered to the owner of the share."""
        return self._client.raw_smb(self._address, share, 'alice', calls)


@contextlib.contextmanager
def one_server():
    storage.require_cifs()
    # Samba's client takes no other port than 445.
    network = f'10.23.{os.getpid() % 250}'
    with (
        tenant_network.bridge() as bridge,
        tenant_network.client_on(bridge, f'{network}.2/24') as client,
        storage.folder() as folder,
    ):
        tenant_network.add_address(bridge, f'{network}.1/24')
        options = storage.options(
            folder,
            btrfs_cifs=True,
            btrfs_smb_port=445,
            btrfs_export_addresses=[f'{network}.1'],
        )
        harness = DriverHarness('btrfs', lambda: Configuration.from_values(options))
        users = SmbUsers(pathlib.Path(options['btrfs_root']) / 'smb')
        yield World(
            harness, harness.start(), client, f'{network}.1', None, lambda: users
        )


@contextlib.contextmanager
def share_server():
    storage.require_cifs()
    with tenants.served_site(btrfs_cifs=True) as site, tenants.tenants_of(site) as both:
        server = site.set_up(both[0])
        yield World(
            site.harness,
            site.driver,
            both[0].client,
            tenants.ADDRESS,
            server,
            lambda: site.driver.backend.servers.get(server.id).users,
        )


@pytest.fixture(
    scope='module', params=[one_server, share_server], ids=lambda f: f.__name__
)
def world(request):
    """Provide shares with files, a snapshot, and links out of the first."""
    with request.param() as world:
        own, other = world.folder(world.own), world.folder(world.victim)
        (own / 'folder').mkdir()
        (own / 'notes').write_text('own')
        (other / 'notes').write_text('secret')
        for share in (world.own, world.victim):
            world.snapshot(share)
        (own / 'notes').write_text('new')
        for link, target in {
            'up': '..',
            'other': f'../{other.name}',
            'absolute': str(world.top),
            'file': f'../{other.name}/notes',
            'etc': '/etc',
            'folder/up': '../..',
        }.items():
            (own / link).symlink_to(target)
        yield world


def outside(world):
    """Return names that lead out of the share, if they lead anywhere."""
    other = world.victim.name
    snapshots = [each.name for each in world.harness.snapshots]
    return [
        *('..', '..\\', '../', '\\..', '.. ', '...', '\u2025'),
        f'..\\{other}',
        f'..\\{other}\\notes',
        f'../{other}/notes',
        f'\\..\\{other}\\notes',
        f'folder\\..\\..\\{other}\\notes',
        f'folder/../../{other}/notes',
        f'.. \\{other}\\notes',
        f'{world.top}\\owner.json',
        '..\\..\\owner.json',
        '..\\..\\records',
        *('up', 'other', 'absolute', 'file', 'etc', 'folder\\up'),
        *(f'up\\{other}\\notes', 'other\\notes', 'absolute\\owner.json'),
        *(f'folder\\up\\{other}\\notes', 'etc\\hostname', '/etc/hostname'),
        *('C:\\etc\\hostname', '\\\\localhost\\etc\\hostname'),
        *(f'..\\..\\snapshots\\{each}\\notes' for each in snapshots),
        *(f'notes:..\\{other}\\notes', ':..', 'notes:stream', 'up::$DATA'),
        f'{PREVIOUS}\\..\\{other}\\notes',
        f'..\\{other}\\{PREVIOUS}\\notes',
        f'{PREVIOUS}\\up\\{other}\\notes',
    ]


def content(world):
    """Return what is in the pool, besides the share of the attacker."""
    own = world.folder(world.own)
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in world.top.rglob('*')
        if own not in (path, *path.parents)
    }


def test_names_within_the_share_are_answered(world):
    """Otherwise the tests below would prove nothing."""
    loaded, listed, made = world.ask(
        world.own.name,
        ['loadfile', 'folder\\..\\notes'],
        ['list', '.\\..'],
        ['mkdir', 'folder\\made'],
    )
    assert loaded == repr(b'new')
    assert set(re.findall("'name': '(.*?)'", listed)) == {'folder', 'notes'}
    assert made is not None


def test_names_do_not_lead_out_of_a_share(world):
    before = content(world)
    calls = [
        [method, name]
        for name in outside(world)
        for method in ('loadfile', 'list', 'unlink')
    ]
    calls += [['mkdir', f'{name}\\made'] for name in outside(world)]
    calls += [['rename', 'folder', name] for name in outside(world)[8:18]]
    *answers, control = world.ask(world.own.name, *calls, ['list', ''])
    assert control is not None
    links = {'up', 'other', 'absolute', 'file', 'etc', 'folder\\up'}
    reached = [
        (*call, answer)
        for call, answer in zip(calls, answers, strict=True)
        # A link itself belongs to the share.
        if answer is not None and not (call[0] == 'unlink' and call[1] in links)
    ]
    assert not reached
    assert content(world) == before


def test_previous_versions_do_not_show_snapshots(world):
    """Rules of their own say which users may read these."""
    (answer,) = world.ask(world.own.name, ['loadfile', f'{PREVIOUS}\\notes'])
    assert answer in (None, repr(b'new'))


def test_shares_of_others_and_of_the_machine_are_refused(world):
    other = world.victim.name
    snapshot = f'snapshots.{world.harness.snapshots[0].name}'
    climbing = f'{world.own.name}\\..\\{other}'
    names = other, climbing, snapshot, 'C$', 'homes', 'global'
    for name in names:
        assert world.ask(name, ['list', '']) == [None], name
    assert world.ask('IPC$', ['list', ''], ['loadfile', 'notes']) == [None] * 2
