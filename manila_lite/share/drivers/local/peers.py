"""Where the replicas and the snapshots of the local driver are.

The back ends of a replication domain find each other's roots by their
sections, which are in the configuration of every share service, or by an
option that names the roots of other services.
"""

import contextlib
import pathlib

from manila_lite.host import Host
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.files.replicas import ReplicaUnreachable
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.replica import LocalReplica
from manila_lite.share.drivers.local.store import LocalItem, LocalStore
from manila_lite.share.drivers.replica_lists import ReplicaList, find_active


class LocalPeers:
    """Replicas of this back end and of the others of its domain."""

    def __init__(self, backend: LocalBackend):
        self._backend = backend

    def own_replica(self, share: base.ShareForDriver) -> LocalReplica:
        return LocalReplica(self._backend.store, share['name'], share['host'])

    def peer_replica(self, share: base.ShareForDriver) -> LocalReplica | None:
        return self.replica_at(share['host'], share['name'])

    def replica_at(self, host: str | None, name: str | None) -> LocalReplica | None:
        """Return a replica on any back end; None if that cannot replicate.

        The replica need not exist.
        """
        if not host or not name:
            return None
        root = self._root_at(host, to_replicate=True)
        if root is None:
            return None
        return LocalReplica(LocalStore(pathlib.Path(root)), name, host)

    def find_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> tuple[LocalItem, records.Record]:
        """Return a snapshot of this back end or of another in its domain.

        Raises SnapshotResourceNotFound.
        """
        host = snapshot.share.host
        root = self._root_at(host) if host else None
        if root and root != str(self._backend.store.root):
            store = LocalStore(pathlib.Path(root))
            item = store.snapshot(snapshot['name'])
            record = item.find()
            if record is not None:
                return item, record
        return self._backend.get_snapshot(snapshot)

    def _root_at(self, host: str, *, to_replicate: bool = False) -> str | None:
        address = Host.parse(host)
        return self._backend.configuration.local_replication_peers.get(
            address.service_host
        ) or self._root_of(address.backend, to_replicate)

    def _root_of(self, section: str, to_replicate: bool) -> str | None:
        if section == self._backend.configuration.config_group:
            return str(self._backend.store.root)
        domain = self._backend.replication_domain
        configuration = self._backend.configuration.for_backend(section)
        if (
            domain is None
            or configuration is None
            or configuration.replication_domain != domain
            or (to_replicate and not configuration.local_replication_type)
        ):
            return None
        return configuration.local_root

    def reachable_active(self, replica_list: ReplicaList) -> LocalReplica | None:
        """Return the active replica, or None if it is unreachable."""
        leader = find_active(replica_list)
        other = self.peer_replica(leader) if leader is not None else None
        if other is not None:
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                return other
        return None
