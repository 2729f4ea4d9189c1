"""The interface of network plug-ins, and how they are found."""

import abc
from collections.abc import Collection, Mapping, Sequence
import inspect
import logging
import typing

from oslo_config import cfg

from manila_lite import exception, plugins
from manila_lite.conf import network as options
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
        self.db, self.options, self.group, self.label = db, options, group, label
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


LOG = logging.getLogger(__name__)

ENTRY_POINTS = 'manila_lite.network'

# Class paths in configuration files that were written for Manila.
_SUCCESSORS = {
    'manila.network.standalone_network_plugin.StandaloneNetworkPlugin': ('standalone')
}


def load_plugin(
    db: Database, conf: cfg.ConfigOpts, group: str, label: str = USER
) -> NetworkPlugin:
    """Create the plug-in configured in a section.

    Raises NetworkBadConfigurationException.
    """
    values = options.values(conf, group)
    name = values['network_api_class']
    if name in _SUCCESSORS:
        LOG.warning(
            'network_api_class %s: the plug-in "%s" is used instead.',
            name,
            _SUCCESSORS[name],
        )
        name = _SUCCESSORS[name]
    return _find(name)(db, values, group=group, label=label)


def _find(name: str) -> type[NetworkPlugin]:
    try:
        found = plugins.load(ENTRY_POINTS, name)
    except plugins.UnusablePlugin as error:
        raise _bad_plugin(name, str(error)) from error
    if not (inspect.isclass(found) and issubclass(found, NetworkPlugin)):
        raise _bad_plugin(name, 'it is not a NetworkPlugin')
    return found


def _bad_plugin(name: str, reason: str) -> exception.ManilaLiteError:
    return exception.NetworkBadConfigurationException(
        reason=f'network_api_class "{name}" cannot be used: {reason}'
    )
