"""A back end with share servers, and tenants that use it.

The networks of the tenants are bridges with the same addresses.
"""

from collections.abc import Iterator, Mapping
import contextlib
import json
import os
import pathlib
import signal
from typing import NamedTuple

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import storage, tenant_network
from tests.support.nfs_client import NfsClient
from tests.support.smb_client import SmbClient
from tests.support.tenant_network import TenantClient

ADDRESS, CLIENT = '10.20.0.5', '10.20.0.99'
ADDRESS_6, CLIENT_6 = 'fd00:20::5', 'fd00:20::99'
SEGMENTS = 101, 102
PORT, SMB_PORT = 2049, 445


class Tenant(NamedTuple):
    """A tenant's network, a client in it, and perhaps a share server."""

    segment: int
    client: TenantClient

    def nfs(self, address: str = ADDRESS) -> NfsClient:
        return self.client.nfs(address, PORT)

    def smb(self, user: str, address: str = ADDRESS) -> SmbClient:
        return self.client.smb(user, address, SMB_PORT)

    def read(self, path: str, name: str = 'notes') -> bytes:
        nfs = self.nfs()
        try:
            return nfs.read(path, name)
        finally:
            nfs.close()

    def write(self, path: str, data: bytes, name: str = 'notes') -> None:
        nfs = self.nfs()
        try:
            nfs.write(path, name, data)
        finally:
            nfs.close()


class ServedSite:
    """The back end, as one process or another has started it."""

    def __init__(self, options: Mapping[str, object]):
        self.harness = DriverHarness(
            'btrfs', lambda: Configuration.from_values(options)
        )
        self.root = pathlib.Path(str(options['btrfs_root']))
        self.driver = self.harness.start()

    def restart(self) -> None:
        self.driver = self.harness.start()

    def network_info(
        self, tenant: Tenant, *addresses: str, server_id: str | None = None
    ) -> list[base.NetworkInfo]:
        """Return the settings of a server, with a subnet per address."""
        found: list[base.NetworkInfo] = []
        for address in addresses or (ADDRESS,):
            (info,) = self.harness.network_info(
                address, server_id=found[0]['server_id'] if found else server_id
            )
            info |= {'network_type': 'vlan', 'segmentation_id': tenant.segment}
            (allocation,) = info['network_allocations']
            allocation |= {'network_type': 'vlan', 'segmentation_id': tenant.segment}
            if ':' in address:
                network = {'cidr': 'fd00:20::/64', 'gateway': 'fd00:20::1'}
                info |= network
                allocation |= network
            found.append(info)
        return found

    def set_up(self, tenant: Tenant, *addresses: str) -> base.ShareServerForDriver:
        info = self.network_info(tenant, *addresses)
        return self.harness.server(info, self.driver.setup_server(info))

    def tear_down(self, server: base.ShareServerForDriver) -> None:
        self.driver.teardown_server({'server_id': server.id})

    @contextlib.contextmanager
    def server(
        self, tenant: Tenant, *addresses: str
    ) -> Iterator[base.ShareServerForDriver]:
        """Provide a share server, and finally delete it with its shares."""
        server = self.set_up(tenant, *addresses)
        before = len(self.harness.shares)
        try:
            yield server
        finally:
            for share in self.harness.shares[before:]:
                with contextlib.suppress(exception.ShareResourceNotFound):
                    self.driver.delete_share(CTX, share)
            self.tear_down(server)

    def share(
        self, server: base.ShareServerForDriver, *clients: str
    ) -> tuple[base.ShareForDriver, str]:
        """Create a share for these clients; return it and its path."""
        share = self.harness.share()
        exports = base.normalise_export_locations(
            self.driver.create_share(CTX, share, share_server=server)
        )
        self.allow(share, *(clients or (CLIENT,)))
        return share, exports[0]['path'].partition(':/')[2]

    def allow(self, share: base.ShareForDriver, *clients: str) -> None:
        rules = [self.harness.rule(share, client) for client in clients]
        self.driver.update_access(CTX, share, rules, [], [], [])

    # What is there

    def folder(self, server: base.ShareServerForDriver) -> pathlib.Path:
        return self.root / 'servers' / server.id

    def pid(self, server: base.ShareServerForDriver, daemon: str) -> int:
        record = self.folder(server) / 'nfs' / f'{daemon}.json'
        return json.loads(record.read_text())['pid']

    def kill(self, server: base.ShareServerForDriver, daemon: str) -> None:
        os.kill(self.pid(server, daemon), signal.SIGKILL)

    def links(self, server: base.ShareServerForDriver) -> list[str]:
        record = json.loads((self.folder(server) / 'server.json').read_text())
        return [link[0] for link in record['links']]


@contextlib.contextmanager
def served_site(**options: object) -> Iterator[ServedSite]:
    """Start a back end on bridges, one for each segment."""
    storage.require_servers()
    name = tenant_network.new_name()
    with contextlib.ExitStack() as stack:
        for segment in SEGMENTS:
            stack.enter_context(tenant_network.bridge(f'{name}{segment}'))
        path = stack.enter_context(storage.folder())
        yield ServedSite(
            storage.options(
                path,
                driver_handles_share_servers=True,
                btrfs_bridge=f'{name}{{segmentation_id}}',
                btrfs_nfs_port=PORT,
                **options,
            )
        )


@contextlib.contextmanager
def tenants_of(site: ServedSite) -> Iterator[list[Tenant]]:
    """Provide a tenant on each of the bridges."""
    template = site.driver.configuration.btrfs_bridge
    with contextlib.ExitStack() as stack:
        yield [
            Tenant(
                segment,
                stack.enter_context(
                    tenant_network.client_on(
                        template.format(segmentation_id=segment),
                        f'{CLIENT}/24',
                        f'{CLIENT_6}/64',
                    )
                ),
            )
            for segment in SEGMENTS
        ]
