"""Where the replicas are that the local driver has made.

The back ends of a replication domain find each other's roots by their
sections, which stand in the configuration of every share service, or by
an option that names those of other services.
"""

import contextlib
import pathlib

from manila_lite.share.drivers import base
from manila_lite.share.drivers.local.replica import LocalReplica
from manila_lite.share.drivers.local.replica import ReplicaUnreachable
from manila_lite.share.drivers.local.store import LocalStore

ACTIVE = 'active'

ReplicaList = list[base.ShareForDriver]


class LocalPeers(base.ShareDriver):
    _places: LocalStore

    @property
    def _style(self) -> str | None:
        return self.configuration.local_replication_type

    def _needs_replication(self) -> None:
        if not self._style:
            raise NotImplementedError

    def _mine(self, share: base.ShareForDriver) -> LocalReplica:
        return LocalReplica(self._places, share['name'], share['host'])

    def _other(self, share: base.ShareForDriver) -> LocalReplica | None:
        return self._at(share['host'], share['name'])

    def _at(self, host: str | None, name: str | None) -> LocalReplica | None:
        """A replica on any back end; None if that is none to replicate to.

        That it can be named does not mean that it is there.
        """
        if not host or not name:
            return None
        backend = host.partition('#')[0]
        root = self.configuration.local_replication_peers.get(backend)
        if root is None:
            root = self._root_of(backend.partition('@')[2])
        if root is None:
            return None
        return LocalReplica(LocalStore(pathlib.Path(root)), name, host)

    def _root_of(self, section: str) -> str | None:
        if section == self.configuration.config_group:
            return str(self._places.root)
        there = self.configuration.for_backend(section)
        if (
            there is None
            or not there.local_replication_type
            or there.replication_domain != self.replication_domain
        ):
            return None
        return there.local_root

    def _active(self, replica_list: ReplicaList) -> LocalReplica | None:
        """The active replica, if it is there."""
        leader = find_active(replica_list)
        other = self._other(leader) if leader is not None else None
        if other is not None:
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                return other
        return None


def find_active(replica_list: ReplicaList) -> base.ShareForDriver | None:
    return next(
        (one for one in replica_list if one['replica_state'] == ACTIVE), None
    )
