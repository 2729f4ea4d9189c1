"""Where the replicas and snapshots of the local driver are, and their roles.

The back ends of a replication domain find each other's roots by their
sections, which are in the configuration of every share service, or by an
option that names the roots of other services.
"""

from collections.abc import Iterator
import dataclasses
import pathlib

from manila_lite.host import Host
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.files.replicas import (
    Peers,
    Role,
    Roles,
    is_superseded,
    warn_of_successor,
)
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.replica import LocalReplica
from manila_lite.share.drivers.local.store import SHARES, LocalItem, LocalStore


class LocalPeers(Peers[LocalReplica]):
    """Replicas of this back end and of the others of its domain."""

    def __init__(self, backend: LocalBackend):
        self._backend = backend

    def own_replica(self, share: base.ShareForDriver) -> LocalReplica:
        return LocalReplica(self._backend.store, share['name'], share['host'])

    def _address(self, host: str, name: str) -> LocalReplica | None:
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

    def other_stores(self) -> Iterator[LocalStore]:
        """Yield those of the other local back ends of this service."""
        own = self._backend.configuration
        for other in own.other_backends():
            if other.share_driver == own.share_driver:
                yield LocalStore(pathlib.Path(other.local_root))


class LocalRoles(Roles[LocalReplica]):
    def __init__(self, backend: LocalBackend, peers: LocalPeers):
        super().__init__(peers)
        self._backend = backend

    def _resumes(self, own: LocalReplica, successor: LocalReplica) -> bool:
        is_active = super()._resumes(own, successor)
        if is_active:
            own.write_state(
                dataclasses.replace(
                    own.state(), role=Role.ACTIVE, source=None, source_host=None
                )
            )
        return is_active

    def demote_superseded(self) -> None:
        """Deny writing to replicas that others have replaced meanwhile.

        That happened while this back end was unreachable, so that it could
        not be notified.
        """
        for item in self._backend.store.list_items(SHARES):
            own = LocalReplica(self._backend.store, item.name)
            for follower in own.followers():
                other = self._replicas.replica_at(follower['host'], follower['name'])
                if other is not None and is_superseded(own.state(), other.state()):
                    warn_of_successor(own, other)
                    own.become_passive(other, self._backend.replication_type)
