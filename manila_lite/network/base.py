"""The interface of network plug-ins."""

import abc
from collections.abc import Collection, Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.networks import allocations as network_allocations
from manila_lite.db.session import Database, Session

USER = 'user'
ADMIN = 'admin'
"""Labels of networks: share networks of users, the administrators' one."""


class NetworkPlugin(abc.ABC):
    """Allocates addresses for the share servers of one back end.

    `options` are the values of `conf.network` for this back end. With the
    label `admin` the plug-in serves the network of administrators, which
    is described by options only and has no subnet.
    """

    def __init__(
        self,
        db: Database,
        options: Mapping[str, typing.Any],
        *,
        group: str,
        label: str = USER,
    ):
        self.db = db
        self.options = options
        self.group = group
        self.label = label
        self.check()

    @property
    def ip_versions(self) -> frozenset[int]:
        """The enabled IP versions, out of 4 and 6."""
        return frozenset(
            version
            for version in (4, 6)
            if self.options[f'network_plugin_ipv{version}_enabled']
        )

    def check(self) -> None:
        """Raise NetworkBadConfigurationException for invalid options."""
        if not self.ip_versions:
            raise self.configuration_error(
                'neither network_plugin_ipv4_enabled nor '
                'network_plugin_ipv6_enabled is set'
            )

    def configuration_error(self, reason: str) -> exception.ManilaLiteError:
        return exception.NetworkBadConfigurationException(
            reason=f'section [{self.group}]: {reason}'
        )

    @abc.abstractmethod
    def allocate_network(
        self, share_server_id: str, subnet_id: str | None, count: int
    ) -> Sequence[typing.Any]:
        """Allocate addresses of a server in a subnet; return their rows.

        Addresses that the server already has there are included in
        `count`, so a second call allocates no more. Raises NoFreeAddress
        and allocates none when there are too few.
        """

    @abc.abstractmethod
    def manage_network_allocations(
        self, share_server_id: str, subnet_id: str | None, addresses: Collection[str]
    ) -> list[str]:
        """Record addresses that a managed server has in this network.

        Returns the addresses that do not belong to this network. Raises
        NetworkException when one belongs to another server.
        """

    def deallocate_network(
        self, session: Session, share_server_id: str, subnet_id: str | None = None
    ) -> int:
        """Free the addresses of a server in one subnet or in all.

        Runs in the caller's transaction; returns the count.
        """
        return network_allocations.remove(
            session, share_server_id, self.label, subnet_id
        )
