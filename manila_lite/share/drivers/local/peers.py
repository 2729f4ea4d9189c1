"""Where the replicas and snapshots of the local driver are, and their roles.

The back ends of a replication domain find each other's roots by their
sections, which are in the configuration of every share service, or by an
option that names the roots of other services.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import pathlib

from oslo_log import log

from manila_lite.host import Host
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    ReplicaList,
    find_active,
)
from manila_lite.share.drivers.files.replication import DR, ReplicaUnreachable, Role
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.replica import LocalReplica, ReplicaRecord
from manila_lite.share.drivers.local.store import SHARES, LocalItem, LocalStore


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

    def other_stores(self) -> Iterator[LocalStore]:
        """Yield those of the other local back ends of this service."""
        own = self._backend.configuration
        for other in own.other_backends():
            if other.share_driver == own.share_driver:
                yield LocalStore(pathlib.Path(other.local_root))

    def reachable(self, shares: ReplicaList) -> list[LocalReplica]:
        found = (self.peer_replica(each) for each in shares)
        return [replica for replica in found if replica and _exists(replica)]

    def reachable_active(self, replica_list: ReplicaList) -> LocalReplica | None:
        """Return the active replica, or None if it is unreachable."""
        leader = find_active(replica_list)
        return next(iter(self.reachable([leader] if leader else [])), None)


def _exists(replica: LocalReplica) -> bool:
    with contextlib.suppress(ReplicaUnreachable):
        return replica.find() is not None
    return False


LOG = log.getLogger(__name__)


class LocalRoles:
    """The roles of our replicas, which both sides have to agree on."""

    def __init__(self, backend: LocalBackend, peers: LocalPeers):
        self._backend = backend
        self._peers = peers

    def role_of(self, share: base.ShareForDriver) -> str:
        """Return the effective role: both sides have to agree on it."""
        own = self._peers.own_replica(share)
        if share['replica_state'] not in (None, ACTIVE):
            return Role.PASSIVE
        state = own.state()
        if state.role == Role.RETIRING:
            return self._recovered_role(own, state)
        return state.role

    def _recovered_role(self, own: LocalReplica, state: ReplicaRecord) -> str:
        """Become active again if the successor has not become active."""
        with self._backend.store.try_locked_work_directory(own.name) as work:
            if work is None or own.state() != state:
                return Role.PASSIVE  # the promotion is in progress
            other = self._peers.replica_at(state.source_host, state.source)
            if other is None:
                return Role.PASSIVE
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                successor = other.state()
                if (
                    successor.role != Role.ACTIVE
                    or successor.generation <= state.generation
                ):
                    own.write_state(
                        dataclasses.replace(
                            state, role=Role.ACTIVE, source=None, source_host=None
                        )
                    )
                    return Role.ACTIVE
        return Role.PASSIVE

    def denies_all_access(self, share: base.ShareForDriver) -> bool:
        """Return whether clients are denied whatever the rules say."""
        return share['replication_type'] == DR and self.role_of(share) != Role.ACTIVE

    def demote_superseded(self) -> None:
        """Deny writing to replicas that others have replaced meanwhile.

        That happened while this back end was unreachable, so that it could
        not be notified.
        """
        for item in self._backend.store.list_items(SHARES):
            own = LocalReplica(self._backend.store, item.name)
            for follower in own.followers():
                other = self._peers.replica_at(follower['host'], follower['name'])
                if other is not None and _is_superseded(own, other):
                    LOG.warning(
                        'Replica %(name)s is no longer active: '
                        '%(other)s has taken over',
                        {'name': own.name, 'other': other.name},
                    )
                    own.become_passive(other, self._backend.replication_type)


def _is_superseded(own: LocalReplica, other: LocalReplica) -> bool:
    """Return whether the other is active and this one is outdated."""
    with contextlib.suppress(ReplicaUnreachable, PermissionError):
        other.record()
        here, there = own.state(), other.state()
        return (
            here.role == there.role == Role.ACTIVE
            and there.generation > here.generation
        )
    return False
