"""Where the replicas of the local driver are.

The back ends of a replication domain find each other's roots by their
sections, which are in the configuration of every share service, or by an
option that names the roots of other services.
"""

import contextlib
import pathlib

from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.replica import LocalReplica
from manila_lite.share.drivers.local.replica import ReplicaUnreachable
from manila_lite.share.drivers.local.store import LocalStore
from manila_lite.share.drivers.replica_lists import ReplicaList
from manila_lite.share.drivers.replica_lists import find_active


class LocalPeers:
    """Replicas of this back end and of the others of its domain."""

    def __init__(self, backend: LocalBackend):
        self._backend = backend

    def own_replica(self, share: base.ShareForDriver) -> LocalReplica:
        return LocalReplica(self._backend.store, share['name'], share['host'])

    def peer_replica(self, share: base.ShareForDriver) -> LocalReplica | None:
        return self.replica_at(share['host'], share['name'])

    def replica_at(
        self, host: str | None, name: str | None
    ) -> LocalReplica | None:
        """Return a replica on any back end; None if that cannot replicate.

        The replica need not exist.
        """
        if not host or not name:
            return None
        address = Host.parse(host)
        root = self._backend.configuration.local_replication_peers.get(
            address.service_host
        )
        if root is None:
            root = self._root_of(address.backend)
        if root is None:
            return None
        return LocalReplica(LocalStore(pathlib.Path(root)), name, host)

    def _root_of(self, section: str) -> str | None:
        if section == self._backend.configuration.config_group:
            return str(self._backend.store.root)
        configuration = self._backend.configuration.for_backend(section)
        if (
            configuration is None
            or not configuration.local_replication_type
            or configuration.replication_domain
            != self._backend.replication_domain
        ):
            return None
        return configuration.local_root

    def reachable_active(
        self, replica_list: ReplicaList
    ) -> LocalReplica | None:
        """Return the active replica, or None if it is unreachable."""
        leader = find_active(replica_list)
        other = self.peer_replica(leader) if leader is not None else None
        if other is not None:
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                return other
        return None
