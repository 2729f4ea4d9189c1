"""What all parts of the driver use: options, names, commands."""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import errno
import functools
import json
from typing import Any
import zlib

from oslo_utils import netutils

from manila_lite import exception
from manila_lite.share.drivers import base, disk_identity
from manila_lite.share.drivers.cephfs.cluster import (
    Cluster,
    CommandFailed,
    Fenced,
    ignoring,
)
from manila_lite.share.drivers.cephfs.records import (
    OWNER,
    SHARE,
    SNAPSHOT,
    Record,
    Records,
)
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.contract.statistics import Disk, DiskRegistry
from manila_lite.share.drivers.space import GIB

NATIVE, NFS = 'CEPHFS', 'NFS'

MISSING = errno.ENOENT
RETAINED = 'snapshot-retained'
"""The state of a subvolume that was removed while it had snapshots."""


class State:
    """The states of a record; see `records`."""

    CREATING = 'creating'
    AVAILABLE = 'available'
    REVERTING = 'reverting'
    DELETING = 'deleting'
    UNMANAGED = 'unmanaged'


class CephfsBackend:
    """The cluster, the options and the records of one back end."""

    def __init__(
        self,
        configuration: Configuration,
        clock: Callable[[], float],
        sleep: Callable[[float], object],
    ):
        self.configuration, self.clock, self.sleep = configuration, clock, sleep
        self.group: str = configuration.cephfs_volume_group
        self.cluster = cluster_as(
            configuration,
            configuration.cephfs_auth_id,
            configuration.cephfs_keyring_path,
        )
        self.filesystem = ''
        self.data_pool = ''
        self._monitor_map: dict[str, Any] | None = None  # as of the last check

    def find_filesystem(self) -> None:
        """Find the file system and its pools."""
        found = {one['name']: one for one in self.cluster.mon('fs ls')}
        name = self.configuration.cephfs_filesystem_name
        if not name and len(found) == 1:
            name = next(iter(found))
        if name not in found:
            has = ', '.join(sorted(found)) or 'none'
            raise self.bad_option(
                'cephfs_filesystem_name '
                + (f'{name} does not exist' if name else 'is needed')
                + f'; the cluster has {has}'
            )
        pools = found[name]['data_pools']
        data_pool = self.configuration.cephfs_data_pool or pools[0]
        if data_pool not in pools:
            raise self.bad_option(
                f'cephfs_data_pool {data_pool} is not one of {name}, which has '
                + ', '.join(pools)
            )
        self.filesystem, self.data_pool = name, data_pool
        self.cluster.pool = self.configuration.cephfs_records_pool or pools[0]

    def bad_option(self, reason: str) -> exception.BadConfiguration:
        return exception.BadConfiguration(
            reason=f'back end "{self.configuration.config_group}": {reason}'
        )

    @functools.cached_property
    def records(self) -> Records:
        return Records(self.cluster, f'{self.filesystem}.{self.group}', self.clock)

    def claim(self, registry: DiskRegistry) -> None:
        """Raise StorageUnavailable if this is not the cluster of the back end."""
        records = self.records
        dump = self._monitor_map = self.cluster.mon('mon dump')
        present = functools.cache(lambda: records.get_all(SHARE))
        identity = disk_identity.claim_with(
            registry,
            Disk(
                None,
                records.find_identity(),
                dump['fsid'],
                f'{self.filesystem}/{self.group} of Ceph cluster {dump["fsid"]}',
            ),
            records.create_identity,
            lambda id, name: name in present(),
        )
        records.keep_to(identity)

    # Commands about the subvolumes of the group

    def run(self, command: str, **arguments: Any) -> str:
        """Run a command, and return its output."""
        return self.cluster.mgr(
            f'fs {command}',
            vol_name=self.filesystem,
            group_name=self.group,
            **arguments,
        )

    def ask(self, command: str, **arguments: object) -> Any:
        """Run a command that replies in JSON."""
        return json.loads(self.run(command, **arguments))

    def order(self, command: str, **arguments: object) -> str:
        """Run a command that changes something, unless a later call has come."""
        try:
            return self.run(command, fence=self.records.fence(), **arguments)
        except Fenced as error:
            self.records.check_call()
            raise exception.ShareBackendException(
                msg=f'the records changed before "{command}"'
            ) from error

    def evict(self, metadata: str) -> None:
        """Cut off all clients of the file system whose sessions have this metadata."""
        servers = self.cluster.mon('fs get', fs_name=self.filesystem)['mdsmap']
        for rank in servers['in']:
            server = servers['up'].get(f'mds_{rank}')
            if server is None:
                raise exception.FileServerUnresponsive(server='Ceph')
            filters = [f'client_metadata.{metadata}']
            self.cluster.mds(server, 'session evict', filters=filters)

    def find_path(self, subvolume: str) -> str | None:
        """Return the path of a subvolume in its file system, or None."""
        with ignoring(MISSING):
            return self.run('subvolume getpath', sub_name=subvolume).strip()
        return None

    def get_info(self, share_id: str, subvolume: str) -> dict[str, Any]:
        """Return what Ceph knows of a subvolume."""
        try:
            info = self.ask('subvolume info', sub_name=subvolume)
        except CommandFailed as error:
            if error.errno != MISSING:
                raise
            raise exception.ShareResourceNotFound(share_id=share_id) from error
        if info.get('state') == RETAINED:
            raise exception.ShareResourceNotFound(share_id=share_id)
        return info

    def resize(self, subvolume: str, size: int, *, no_shrink: bool = False) -> None:
        """Set the quota of a subvolume, in GiB."""
        self.order(
            'subvolume resize',
            sub_name=subvolume,
            new_size=str(size * GIB),
            no_shrink=no_shrink,
        )

    # Records

    def get_share(self, share: base.ShareForDriver) -> Record:
        """Return the record of a share that is on the back end."""
        return require(share['id'], self.records.get(SHARE + share['name']))

    def admit_share(self, share_id: str, name: str) -> Record:
        """Return the record of a share; record the token of the call with it."""
        key = SHARE + name
        values = self.records.change(key, decide=lambda values: None)
        return require(share_id, values[key])

    def get_snapshot(self, snapshot: base.SnapshotForDriver) -> Record:
        record = self.records.get(SNAPSHOT + snapshot['name'])
        if record is None or record['state'] == State.UNMANAGED:
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        return record

    # Where clients find shares

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols that shares may have."""
        return (NATIVE, NFS) if self.configuration.cephfs_nfs_gateways else (NATIVE,)

    def nfs_addresses_of(self, path: str) -> list[str]:
        """Return where a share is exported, the address that it prefers first."""
        options = self.configuration
        return [
            *_rotated(options.cephfs_nfs_virtual_addresses, path),
            *_rotated(options.cephfs_nfs_gateways, path),
        ]

    def monitors(self) -> str:
        """Return the addresses of the monitors, as clients name them.

        These are the addresses of version 1 of the protocol, where there are
        any: older kernels know no other.
        """
        found = [one.get('v1') or next(iter(one.values())) for one in self._monitors()]
        return ','.join(sorted(found))

    def all_monitors(self) -> str:
        """Return all their addresses, as a configuration file of Ceph has them."""
        found = [
            ','.join(f'{version}:{address}' for version, address in one.items())
            for one in self._monitors()
        ]
        return ','.join(f'[{one}]' for one in sorted(found))

    def _monitors(self) -> list[dict[str, str]]:
        """Return the addresses of each by the version of the protocol.

        They are as old as the last check of the health of the cluster.
        """
        found = self._monitor_map or self.cluster.mon('mon dump')
        return [
            {one['type']: one['addr'] for one in monitor['public_addrs']['addrvec']}
            for monitor in found['mons']
        ]

    def export_locations(
        self, share_proto: str, path: str, monitors: str | None = None
    ) -> list[base.ExportLocation]:
        if share_proto.upper() == NFS:
            hosts = [netutils.escape_ipv6(one) for one in self.nfs_addresses_of(path)]
        else:
            hosts = [monitors or self.monitors()]
        return [
            {
                'path': f'{host}:{path}',
                'is_admin_only': False,
                'metadata': {'preferred': str(host == hosts[0])},
            }
            for host in hosts
        ]


def _rotated(addresses: Iterable[str], path: str) -> list[str]:
    """Return addresses from one of them on, so that shares divide them."""
    found = sorted(addresses)
    first = zlib.crc32(path.encode()) % max(len(found), 1)
    return found[first:] + found[:first]


def cluster_as(
    configuration: Configuration, client_id: str, keyring: str | None
) -> Cluster:
    """Return the cluster of a back end as one of its Ceph users sees it."""
    return Cluster(
        interpreter=configuration.cephfs_python,
        conffile=configuration.cephfs_conf_path,
        client_id=client_id,
        keyring=keyring,
        limit=configuration.cephfs_command_timeout,
    )


def require(share_id: str, record: Record | None) -> Record:
    """Return the record of a share that the driver manages."""
    if record is None or record['state'] == State.UNMANAGED:
        raise exception.ShareResourceNotFound(share_id=share_id)
    return record


def refuse_reverting(name: str, record: Record) -> None:
    """Raise an error if a revert is incomplete: the content is a mixture."""
    if record['state'] == State.REVERTING:
        raise exception.ShareBackendException(msg=f'{name} is not reverted completely')


@contextlib.contextmanager
def removing_orphan(
    backend: CephfsBackend, owner: str, remove: Callable[[], object]
) -> Iterator[None]:
    """Remove what a late call has created, unless a resource owns it.

    It may be managed under another name by now. It cannot be managed while it is
    being removed.
    """
    try:
        yield
    except (
        exception.StaleFencingToken,
        exception.ShareResourceNotFound,
        exception.SnapshotResourceNotFound,
    ):
        with backend.records.claimed(owner) as is_claimed:
            if is_claimed:
                remove()
        raise


def owner_key(subvolume: str, snapshot: str = '') -> str:
    """Return the key of what owns a subvolume, or a snapshot of it."""
    return OWNER + (f'{subvolume}@{snapshot}' if snapshot else subvolume)


def quota_gib(info: dict[str, Any]) -> int | None:
    """Return the quota of a subvolume in GiB, rounded up; None for none."""
    quota = info['bytes_quota']
    return -(-quota // GIB) if isinstance(quota, int) else None
