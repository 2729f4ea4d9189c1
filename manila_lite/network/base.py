"""What a network plug-in does: give addresses and take them back."""

import abc
from collections.abc import Collection, Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.networks import allocations as network_allocations
from manila_lite.db.session import Database
from manila_lite.db.session import Session

USER = 'user'
ADMIN = 'admin'
"""Labels: of the networks of users, and of the administrators' one."""


class NetworkPlugin(abc.ABC):
    """Gives the share servers of one back end their addresses.

    `options` are those of `conf.network`, as they hold for the back end.
    With the label `admin` it serves the network of administrators, which
    is described by options alone and has no subnet.
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
        """The versions that it may give addresses of, out of 4 and 6."""
        return frozenset(
            version
            for version in (4, 6)
            if self.options[f'network_plugin_ipv{version}_enabled']
        )

    def check(self) -> None:
        """Raise NetworkBadConfigurationException for unusable options."""
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
        """Give a server so many addresses in a subnet; the rows of them.

        Those that it has in the subnet count: a second call gives no
        more. Raises NoFreeAddress, having given none.
        """

    @abc.abstractmethod
    def manage_network_allocations(
        self,
        share_server_id: str,
        subnet_id: str | None,
        addresses: Collection[str],
    ) -> list[str]:
        """Note that a server has these addresses, where they fit.

        The answer is those that do not belong to this network. Raises
        NetworkException when one has been given to another server.
        """

    def deallocate_network(
        self,
        session: Session,
        share_server_id: str,
        subnet_id: str | None = None,
    ) -> int:
        """Take the addresses of a server back, in one subnet or in all.

        In the transaction that says why; how many there were.
        """
        return network_allocations.remove(
            session, share_server_id, self.label, subnet_id
        )
