"""The back ends that the btrfs driver can copy from and to.

They are on this machine, and have a section in the same configuration.
"""

from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.moves.replicas import Replica
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.files.replicas import Peers


class BtrfsPeers(Peers[Replica]):
    """This back end and the others that it can reach."""

    def __init__(self, backend: BtrfsBackend):
        self._backend = backend
        self._others: dict[str, BtrfsBackend] = {}

    def at(self, host: str | None) -> BtrfsBackend | None:
        """Return the back end of a host, or None if it cannot be reached.

        It has those of its pools that are mounted.
        """
        section = Host.parse(host or '').backend
        own = self._backend.configuration
        if section in ('', own.config_group):
            return self._backend
        found = own.for_backend(section)
        if (
            found is None
            or not own.replication_domain
            or found.replication_domain != own.replication_domain
        ):
            return None
        return self._reach(found)

    def with_servers_at(self, host: str) -> BtrfsBackend | None:
        """Return another back end with share servers, whatever its domain."""
        section = Host.parse(host).backend
        own = self._backend.configuration
        found = own.for_backend(section)
        if (
            section == own.config_group
            or found is None
            or not found.driver_handles_share_servers
        ):
            return None
        return self._reach(found)

    def beside(self, host: str, own_host: str) -> BtrfsBackend | None:
        """Return a back end of this machine, of any replication domain.

        `own_host` is that of a share of this back end: services of several
        machines may have back ends with the same name.
        """
        there, here = Host.parse(host), Host.parse(own_host)
        if there.service_host == here.service_host:
            return self._backend
        if there.machine != here.machine:
            return None
        found = self._backend.configuration.for_backend(there.backend)
        if found is None or found.share_driver != 'btrfs':
            return None
        return self._reach(found)

    def _reach(self, found: Configuration) -> BtrfsBackend | None:
        section = found.config_group
        if section not in self._others:
            if not found.btrfs_pools:
                return None
            self._others[section] = BtrfsBackend(found)
        other = self._others[section]
        return other if other.attach() else None

    def own_replica(self, share: base.ShareForDriver) -> Replica:
        return Replica(self._backend, share['name'], share['host'])

    def _address(self, host: str, name: str) -> Replica | None:
        backend = self.at(host)
        return None if backend is None else Replica(backend, name, host)
