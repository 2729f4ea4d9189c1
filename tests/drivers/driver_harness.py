"""The driver under test, which a test can start repeatedly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import os
import pathlib
import re
import tempfile
import uuid

import jeepney
from jeepney.io.blocking import open_dbus_connection

from manila_lite import context, exception
from manila_lite.db.session import Database
from manila_lite.share.drivers import records, registry
from manila_lite.share.drivers.base import (
    AccessRuleForDriver,
    NetworkInfo,
    PrivateStorage,
    ShareBackupForDriver,
    ShareDriver,
    ShareForDriver,
    ShareServerForDriver,
    SnapshotForDriver,
    SnapshotSupport,
    normalise_export_locations,
)
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.ganesha import Ganesha
from manila_lite.share.drivers.local.driver import LocalDriver
from manila_lite.share.manager.private_storage import DatabasePrivateStorage
from tests.support import databases, traces

CTX = context.RequestContext(user_id='user', project_id='project')
GIB = 1024**3

_WRITE = 0x40  # the flag of NFS-Ganesha for a client that may write


class DirectoryUsers:
    """Users of a share that is a directory of this machine."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)

    def write(self, text: str) -> None:
        (self.path / 'notes').write_text(text)

    def read(self) -> str:
        notes = self.path / 'notes'
        return notes.read_text() if notes.exists() else ''

    def fill(self, gib: float) -> None:
        """Use up space without writing all of it."""
        with (self.path / 'filling').open('wb') as file:
            os.posix_fallocate(file.fileno(), 0, int(gib * GIB))


class DummyUsers:
    """Users of a share of the dummy driver."""

    def __init__(self, driver: ShareDriver, share: ShareForDriver):
        self.driver = driver
        self.share_id = share.id

    def write(self, text: str) -> None:
        self.driver.write(self.share_id, text)

    def read(self) -> str:
        return self.driver.read(self.share_id)

    def fill(self, gib: float) -> None:
        self.driver.write(self.share_id, 'filling', used_gb=gib)


def directory_at(driver: ShareDriver, location: str) -> pathlib.Path | None:
    """Return the directory that users of a location see, if it is here."""
    if isinstance(driver, BtrfsDriver):
        _, _, path = location.partition(':/')
        if location.startswith('\\\\'):
            kind, _, name = location.rpartition('\\')[2].rpartition('.')
            path = f'{kind or "shares"}/{name}'
        pools = driver.backend.pools.values()
        return next(p.top / path for p in pools if (p.top / path).is_dir())
    return pathlib.Path(location) if os.path.isdir(location) else None


def names_on(driver: BtrfsDriver) -> set[str]:
    """Return the names of volumes, records and exports of a back end."""
    tops = (
        *(folder for folder, _ in nfs_servers(driver)),
        driver.backend.root / 'smb',
        *(pool.top for pool in driver.backend.pools.values()),
    )
    return {
        name.removesuffix('.json').removesuffix('.conf').split('.')[-1]
        for top in tops
        for name in _names_below(top, 3)
    }


def _names_below(folder: pathlib.Path, levels: int) -> Iterator[str]:
    """Yield the names; the supervisor may remove volumes meanwhile."""
    for path, folders, files in os.walk(folder):
        yield from folders
        yield from files
        if len(pathlib.Path(path).relative_to(folder).parts) + 1 == levels:
            folders.clear()


def nfs_clients(
    driver: BtrfsDriver, item: ShareForDriver | SnapshotForDriver
) -> set[tuple[str, str, str]]:
    """Return the clients of a volume that the NFS server lets in.

    Those that it will let in when it is restarted are added. A back end that
    tests have taken away lets none in.
    """
    if not driver.backend.root.exists():
        return set()
    kind = 'snapshots' if isinstance(item, SnapshotForDriver) else 'shares'
    return {
        client
        for folder, server in nfs_servers(driver)
        for client in _clients_at(folder, server, f'{kind}.{item.name}')
    }


def nfs_servers(driver: BtrfsDriver) -> list[tuple[pathlib.Path, Ganesha]]:
    """Return the folders of exports of a back end, and their servers."""
    backend = driver.backend
    if not backend.has_servers:
        return [(backend.root / 'exports', backend.daemons.server)]
    folder = backend.root / 'servers'
    return [
        (folder / name / 'exports', backend.servers.get(name).nfs)
        for name in os.listdir(folder)
    ]


def _clients_at(
    folder: pathlib.Path, server: Ganesha, name: str
) -> set[tuple[str, str, str]]:
    file = folder / f'{name}.conf'
    table = records.find(folder / 'numbers.json') or {'numbers': {}}
    number = table['numbers'].get(name)
    if number not in server.numbers():
        assert not file.exists()
        return set()
    configured = re.findall(r'Clients = (\S+); Access_Type = (\S+);', file.read_text())
    return displayed_clients(_bus_of(folder), number) | {
        ('ip', to, level.lower()) for to, level in configured
    }


def displayed_clients(socket: pathlib.Path, number: int) -> set[tuple[str, str, str]]:
    """Return the clients that the NFS server on a bus lets in."""
    return {
        ('ip', network.removesuffix('/32'), 'rw' if flags & _WRITE else 'ro')
        for network, *_, flags, _ in displayed_export(socket, number)[4]
    }


def nfs_export(folder: pathlib.Path, number: int) -> tuple:
    """Return what the NFS server of a folder says about an export."""
    return displayed_export(_bus_of(folder), number)


def _bus_of(folder: pathlib.Path) -> pathlib.Path:
    socket = folder.parent / 'bus'
    return socket if socket.exists() else folder.parent / 'nfs' / 'bus.sock'


def displayed_export(socket: pathlib.Path, number: int) -> tuple:
    """Return what the NFS server on a bus says about an export."""
    manager = jeepney.DBusAddress(
        '/org/ganesha/nfsd/ExportMgr',
        bus_name='org.ganesha.nfsd',
        interface='org.ganesha.nfsd.exportmgr',
    )
    call = jeepney.new_method_call(manager, 'DisplayExport', 'q', (number,))
    with open_dbus_connection(f'unix:path={socket}') as connection:
        return connection.send_and_get_reply(call, timeout=60).body


def exported_clients(file: pathlib.Path) -> set[tuple[str, str, str]]:
    """Return the clients in an NFS export file; none if it is missing."""
    if not file.exists():
        return set()
    head, line = file.read_text().splitlines()
    assert head.startswith('#')
    _, *clients = line.split(' ')
    found = [re.fullmatch(r'(.+)\((rw|ro),.*\)', each) for each in clients]
    return {('ip', match[1], match[2]) for match in found}


@functools.cache
def private_storage() -> PrivateStorage:
    """Return the storage of all drivers, which outlives their restarts."""
    folder = traces.at_end.enter_context(tempfile.TemporaryDirectory())
    url = f'sqlite:///{folder}/private'
    databases.create_tables(url)
    return DatabasePrivateStorage(Database(url))


@dataclasses.dataclass
class DriverHarness:
    """A driver by name, its options, and what was created with it."""

    driver: str
    configure: Callable[[], Configuration]
    shares: list[ShareForDriver] = dataclasses.field(default_factory=list)
    snapshots: list[SnapshotForDriver] = dataclasses.field(default_factory=list)
    server_options: Callable[[], Mapping[str, object]] = dict

    def start(self) -> ShareDriver:
        """Return the driver as a new process would start it."""
        driver = registry.load(self.driver)(
            configuration=self.configure(), private_storage=private_storage()
        )
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    def start_with_servers(self) -> ShareDriver:
        """Do the same with driver_handles_share_servers enabled."""
        configure = self.configure

        def with_servers() -> Configuration:
            found = configure()
            found.override(
                {'driver_handles_share_servers': True, **self.server_options()}
            )
            return found

        return dataclasses.replace(self, configure=with_servers).start()

    def share(self, **values) -> ShareForDriver:
        """Return a share that does not exist on the back end yet."""
        share_id = str(uuid.uuid4())
        share = ShareForDriver(
            **{
                'id': share_id,
                'share_id': str(uuid.uuid4()),
                'name': f'share-{share_id}',
                'size': 1,
                'share_proto': 'NFS',
                'project_id': CTX.project_id,
                'host': 'host@backend',
                **values,
            }
        )
        self.shares.append(share)
        return share

    def snapshot(self, share: ShareForDriver, **values) -> SnapshotForDriver:
        """Return a snapshot that does not exist on the back end yet."""
        snapshot_id = str(uuid.uuid4())
        snapshot = SnapshotForDriver(
            **{
                'id': snapshot_id,
                'snapshot_id': str(uuid.uuid4()),
                'name': f'snapshot-{snapshot_id}',
                'size': share.size,
                'share': share,
                **values,
            }
        )
        self.snapshots.append(snapshot)
        return snapshot

    def backup(self, share: ShareForDriver, **values) -> ShareBackupForDriver:
        """Return a backup that does not exist on the back end yet."""
        backup_id = str(uuid.uuid4())
        return ShareBackupForDriver(
            **{
                'id': backup_id,
                'share_id': share.share_id,
                'name': f'share-backup-{backup_id}',
                'project_id': CTX.project_id,
                'size': share.size,
                'host': share.host,
                **values,
            }
        )

    def network_info(
        self, *addresses: str, server_id: str | None = None, admin: Sequence[str] = ()
    ) -> list[NetworkInfo]:
        """Return the network settings of a server with these addresses."""
        server_id = server_id or str(uuid.uuid4())
        subnet_id = str(uuid.uuid4())

        def given(label: str, those: Sequence[str]):
            return [
                {
                    'id': str(uuid.uuid4()),
                    'share_server_id': server_id,
                    'share_network_subnet_id': subnet_id,
                    'label': label,
                    'ip_address': one,
                    'ip_version': 4,
                    'cidr': '10.20.0.0/24',
                    'gateway': '10.20.0.1',
                    'mtu': 1500,
                    'network_type': 'flat',
                    'segmentation_id': None,
                    'mac_address': None,
                }
                for one in those
            ]

        return [
            {
                'server_id': server_id,
                'backend_name': 'backend',
                'share_network_id': 'network',
                'neutron_net_id': None,
                'share_network_subnet_id': subnet_id,
                'neutron_subnet_id': None,
                'network_type': 'flat',
                'segmentation_id': None,
                'cidr': '10.20.0.0/24',
                'gateway': '10.20.0.1',
                'mtu': 1500,
                'ip_version': 4,
                'security_services': [],
                'subnet_metadata': {},
                'network_allocations': given('user', addresses),
                'admin_network_allocations': given('admin', admin),
            }
        ]

    def server(
        self, info: list[NetworkInfo], details: Mapping[str, str] | None = None
    ) -> ShareServerForDriver:
        """Return a server with these settings, as passed to its driver."""
        return ShareServerForDriver(
            id=info[0]['server_id'],
            host='host@backend',
            status='active',
            share_network_id=info[0]['share_network_id'],
            share_network_subnet_ids=[one['share_network_subnet_id'] for one in info],
            backend_details=dict(details or {}),
            network_allocations=[
                one
                for each in info
                for one in (
                    *each['network_allocations'],
                    *each['admin_network_allocations'],
                )
            ],
        )

    def set_up_server(
        self, driver: ShareDriver, *addresses: str
    ) -> ShareServerForDriver:
        """Create a server and return it."""
        info = self.network_info(*(addresses or ('10.20.0.5',)))
        details = driver.setup_server(
            info, metadata={'request_host': 'host@backend#pool'}
        )
        return self.server(info, details)

    def rule(
        self, share: ShareForDriver, access_to: str, **values
    ) -> AccessRuleForDriver:
        """Return an access rule that is not applied yet."""
        return AccessRuleForDriver(
            **{
                'id': str(uuid.uuid4()),
                'share_id': share.share_id,
                'access_type': 'ip',
                'access_to': access_to,
                **values,
            }
        )

    def at(self, location: str, **values) -> ShareForDriver:
        """Return a share to be managed, with one known export location."""
        return self.share(
            export_locations=[
                {'path': location, 'is_admin_only': False, 'metadata': {}}
            ],
            **values,
        )

    def clients(self, driver: ShareDriver, item: ShareForDriver | SnapshotForDriver):
        """Return the clients with access; None if a test cannot see them.

        A client is its type, its name and its level.
        """
        prefix = 'snapshot_' if isinstance(item, SnapshotForDriver) else ''
        if hasattr(driver, f'{prefix}access_inventory'):
            clients_by_id = getattr(driver, f'{prefix}access_inventory')()
            return clients_by_id.get(item.id, set())
        if isinstance(driver, BtrfsDriver):
            return nfs_clients(driver, item)
        if isinstance(driver, LocalDriver):
            return exported_clients(
                pathlib.Path(
                    driver.configuration.local_root, 'exports', f'{item.name}.exports'
                )
            )
        return None

    def users(self, driver: ShareDriver, share: ShareForDriver):
        """Return users of a share; None if a test cannot act as them."""
        location = normalise_export_locations(driver.create_share(CTX, share))[0]
        directory = directory_at(driver, location['path'])
        if directory:
            return DirectoryUsers(directory)
        if hasattr(driver, 'write') and hasattr(driver, 'read'):
            return DummyUsers(driver, share)
        return None

    def clean_up(self) -> None:
        """Delete everything that tests have created."""
        driver = self.start()
        if isinstance(driver, SnapshotSupport):
            for snapshot in self.snapshots:
                driver.delete_snapshot(CTX, snapshot)
        for share in self.shares:
            with contextlib.suppress(exception.ShareResourceNotFound):
                driver.delete_share(CTX, share)
