"""Daemons that are killed or hang in any combination, as clients see it.

What the share service does every second is done here, too.
"""

from concurrent import futures
import contextlib
import json
import os
import pathlib
import signal
import time

import pytest

from manila_lite.periodic import Periodic, Task
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import sampling, storage
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.processes import free_port
from tests.support.smb_client import PASSWORD, SmbClient, SmbError
from tests.unit.share.drivers.btrfs import tenants
from tests.unit.share.drivers.btrfs.nfs_site import eventually

pytestmark = sampling.suite('daemons that are killed or hang', 2)

WRITER = '127.0.0.2'
LONGEST = 30.0
"""Seconds: five of silence, and the rounds of questions before and after.

It takes 5 to 8 where nothing else runs.
"""

DAEMONS = ('supervisor', 'bus', 'server', 'smbd')


class Served:
    """A back end with shares of both protocols, of which one changes."""

    def __init__(self, driver, harness, root, daemons, server, clients):
        self.driver, self.harness, self.server = driver, harness, server
        self._records = {name: daemons / f'{name}.json' for name in DAEMONS} | {
            'supervisor': root / 'nfs' / 'supervisor.json'
        }
        self._nfs, self._smb, self._client = clients
        self.nfs_shares = self._create('NFS'), self._create('NFS')
        self.smb_shares = self._create('CIFS'), self._create('CIFS')
        for share in self.nfs_shares[0], self.smb_shares[0]:
            self.allow(share, True)

    def _create(self, protocol):
        share = self.harness.share(share_proto=protocol)
        self.driver.create_share(CTX, share, share_server=self.server)
        return share

    def allow(self, share, is_allowed):
        """Let the client, or no client, use a share."""
        if share['share_proto'] == 'NFS':
            rule = self.harness.rule(share, self._client)
        else:
            rule = self.harness.rule(share, 'alice', access_type='user')
        self.driver.update_access(
            CTX,
            share,
            [rule] if is_allowed else [],
            [],
            [],
            [],
            share_server=self.server,
        )

    def serves(self, *shares):
        return all(map(self._serves, shares))

    def _serves(self, share):
        try:
            if share['share_proto'] == 'CIFS':
                self._smb.write(share.name, 'notes', b'hello')
                return self._smb.read(share.name, 'notes') == b'hello'
            with contextlib.closing(self._nfs()) as client:
                path = f'/shares/{share.name}'
                client.write(path, 'notes', b'hello')
                return client.read(path, 'notes') == b'hello'
        except (OSError, NfsError, SmbError):
            return False

    def signal(self, number, names):
        for name in names:
            os.kill(self.pids()[name], number)

    def pids(self):
        return {
            name: json.loads(record.read_text())['pid']
            for name, record in self._records.items()
        }

    def has_replaced(self, pids):
        """Return whether these processes have ended, and others run."""
        now = self.pids()
        return all(
            now[name] != pid
            and not pathlib.Path(f'/proc/{pid}/fd').exists()
            and pathlib.Path(f'/proc/{now[name]}').exists()
            for name, pid in pids.items()
        )


@contextlib.contextmanager
def without_servers():
    storage.require_cifs()
    with storage.folder() as folder:
        options = storage.options(folder, btrfs_cifs=True, btrfs_smb_port=free_port())
        root = pathlib.Path(options['btrfs_root'])
        harness = DriverHarness('btrfs', lambda: Configuration.from_values(options))
        driver = harness.start()
        SmbUsers(root / 'smb').add('alice', PASSWORD)
        clients = (
            lambda: NfsClient('127.0.0.1', options['btrfs_nfs_port'], WRITER),
            SmbClient('alice', options['btrfs_smb_port']),
            WRITER,
        )
        yield Served(driver, harness, root, root / 'nfs', None, clients)


@contextlib.contextmanager
def with_servers():
    storage.require_cifs()
    with (
        tenants.served_site(btrfs_cifs=True) as site,
        tenants.tenants_of(site) as (tenant, _),
        site.server(tenant) as server,
    ):
        site.driver.backend.servers.get(server.id).users.add('alice', PASSWORD)
        yield Served(
            site.driver,
            site.harness,
            site.root,
            site.folder(server) / 'nfs',
            server,
            (tenant.nfs, tenant.smb('alice'), tenants.CLIENT),
        )


@pytest.fixture(
    scope='module',
    params=[without_servers, with_servers],
    ids=lambda make: make.__name__,
)
def site(request):
    with request.param() as site:
        service = Periodic([Task('supervision', 1.0, site.driver.keep_serving)])
        service.start()
        try:
            yield site
        finally:
            service.stop(60)


@pytest.mark.parametrize('killed, stopped', [
    ('supervisor server', ''),
    ('supervisor bus server smbd', ''),
    ('', 'server'),
    ('', 'bus'),
    ('', 'smbd'),
    ('', 'supervisor'),
    ('supervisor', 'server smbd'),
    ('server smbd', 'supervisor'),
    ('', 'supervisor bus server smbd'),
])  # fmt: skip
def test_what_is_killed_or_hangs_is_replaced(site, killed, stopped):
    """What is asked for meanwhile is applied then."""
    changed = site.nfs_shares[1], site.smb_shares[1]
    for share in changed:
        site.allow(share, False)
    assert not site.serves(changed[0])
    assert not site.serves(changed[1])
    before = site.pids()
    ended = {*killed.split(), *stopped.split()}
    site.signal(signal.SIGSTOP, stopped.split())
    site.signal(signal.SIGKILL, killed.split())
    began = time.monotonic()
    with futures.ThreadPoolExecutor() as executor:
        asked = [executor.submit(site.allow, one, True) for one in changed]
        back = [
            executor.submit(_seconds_until_served, site, share)
            for share in (site.nfs_shares[0], site.smb_shares[0])
        ]
        eventually(lambda: site.has_replaced({n: before[n] for n in ended}))
        replaced = time.monotonic() - began
        seconds = [each.result(60) for each in back]
        for each in asked:
            each.result(60)
    assert site.serves(*changed)
    assert max(replaced, *seconds) < LONGEST
    if 'bus' in ended:
        ended.add('server')
    now = site.pids()
    assert {name for name in before if before[name] != now[name]} == ended


def _seconds_until_served(site, share):
    return eventually(lambda: site.serves(share))
