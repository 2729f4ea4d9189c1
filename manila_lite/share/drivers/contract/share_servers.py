"""Driver methods for share servers.

Names, parameters and replies are the published ones (driver-interface.csv).
A driver that works with `driver_handles_share_servers` implements
`ShareServerSupport` in full and inherits the rest. The manager gets
addresses from the network plug-in: a driver receives them and never requests
any.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import values
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping

ServerDetails = Mapping[str, str]


@runtime_checkable
class ShareServerSupport(Protocol):
    """Share servers, created and deleted as shares need them."""

    @abc.abstractmethod
    def _setup_server(
        self,
        network_info: list[values.NetworkInfo],
        metadata: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any] | None:
        """Create a server and return the details to store for it.

        `network_info` has one entry per subnet in which the server needs
        addresses. `metadata` has `request_host` (host@backend#pool of the
        share that needs the server) and, if known, `share_type_id` and
        `encryption_key_ref`. A server that already exists is kept. An error
        may carry `detail_data={'server_details': {...}}`, which is stored as
        well.
        """

    @abc.abstractmethod
    def _teardown_server(
        self,
        server_details: ServerDetails,
        security_services: Sequence[values.SecurityServiceForDriver] | None = None,
    ) -> None:
        """Delete a server; a missing one is success.

        `server_details` are the stored details and `server_id`, which is
        present even if the reply of the setup was lost.
        """

    @abc.abstractmethod
    def get_network_allocations_number(self) -> int:
        """Return how many addresses a server needs in each subnet."""


class ShareServerDefaults:
    """Defaults that every driver inherits for share servers."""

    def setup_server(self, *args: Any, **kwargs: Any) -> Mapping[str, Any] | None:
        """Create a server: see `ShareServerSupport._setup_server`."""
        if not isinstance(self, ShareServerSupport):
            raise NotImplementedError
        return self._setup_server(*args, **kwargs)

    def teardown_server(self, *args: Any, **kwargs: Any) -> None:
        """Delete a server: see `ShareServerSupport._teardown_server`."""
        if not isinstance(self, ShareServerSupport):
            raise NotImplementedError
        self._teardown_server(*args, **kwargs)

    def get_admin_network_allocations_number(self) -> int:
        """Return how many addresses it needs in the admin network."""
        return 0

    def choose_share_server_compatible_with_share(
        self,
        context: RequestContext,
        share_servers: Sequence[ShareServerMapping],
        share: values.ShareForDriver,
        snapshot: values.SnapshotForDriver | None = None,
        share_group: values.ShareGroupForDriver | None = None,
        encryption_key_ref: str | None = None,
    ) -> ShareServerMapping | None:
        """Return the server for a new share, or None to create another.

        By default this is the first server offered. For a share in a
        `share_group` that is the server of the group; None fails the work.
        """
        return share_servers[0] if share_servers else None

    def choose_share_server_compatible_with_share_group(
        self,
        context: RequestContext,
        share_servers: Sequence[ShareServerMapping],
        share_group_ref: values.ShareGroupForDriver,
        share_group_snapshot: values.ShareGroupSnapshotForDriver | None = None,
    ) -> ShareServerMapping | None:
        """Return the server for a new share group, or None as above.

        The shares of the group will be on it. A group from a snapshot is on
        the server of its source, without this call.
        """
        return share_servers[0] if share_servers else None

    def get_share_server_pools(
        self, share_server: ShareServerMapping
    ) -> list[dict[str, Any]]:
        """Return the pools a server uses, by `pool_name`, for scheduling."""
        return []

    # Managing existing servers

    def get_share_server_network_info(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        identifier: str,
        driver_options: Mapping[str, str],
    ) -> list[str]:
        """Return the addresses of a server that is not yet managed."""
        raise NotImplementedError

    def manage_server(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        identifier: str,
        driver_options: Mapping[str, str],
    ) -> tuple[str | None, ServerDetails | None]:
        """Manage a server; return its new identifier and its details.

        Raises ManageInvalidShareServer if the driver cannot manage it.
        """
        raise NotImplementedError

    def unmanage_server(
        self,
        server_details: ServerDetails,
        security_services: Sequence[values.SecurityServiceForDriver] | None = None,
    ) -> None:
        """Stop managing a server and leave it in place."""
        raise NotImplementedError

    # Changing networks that are in use

    def update_share_server_security_service(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        network_info: Sequence[values.NetworkInfo],
        share_instances: Sequence[values.ShareForDriver],
        share_instance_rules: Sequence[Mapping[str, Any]],
        new_security_service: values.SecurityServiceForDriver,
        current_security_service: values.SecurityServiceForDriver | None = None,
    ) -> Mapping[str, values.AccessReplies] | None:
        """Make a server use a security service, replacing or adding it.

        `share_instance_rules` has `share_instance_id` and `access_rules` of
        each. The reply has access rule replies by share instance id.
        """
        raise NotImplementedError

    def check_update_share_server_security_service(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        network_info: Sequence[values.NetworkInfo],
        share_instances: Sequence[values.ShareForDriver],
        share_instance_rules: Sequence[Mapping[str, Any]],
        new_security_service: values.SecurityServiceForDriver,
        current_security_service: values.SecurityServiceForDriver | None = None,
    ) -> bool:
        """Return whether the server could; an error means it could not."""
        raise NotImplementedError

    def update_share_server_network_allocations(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        current_network_allocations: Mapping[str, Any],
        new_network_allocations: Mapping[str, Any],
        security_services: Sequence[values.SecurityServiceForDriver],
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
    ) -> Mapping[str, Any] | None:
        """Add addresses in one more subnet to a server.

        `current_network_allocations` has `admin_network_allocations` and
        `subnets`, with one entry per current subnet; the new allocations are
        one such entry (`share_network_subnet_id`, `network_allocations`
        ...). The reply may have `share_updates` (export locations by share
        instance id), `snapshot_updates` and `server_details`.
        """
        raise NotImplementedError

    def check_update_share_server_network_allocations(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        current_network_allocations: Mapping[str, Any],
        new_share_network_subnet: Mapping[str, Any],
        security_services: Sequence[values.SecurityServiceForDriver],
        share_instances: Sequence[values.ShareForDriver],
        share_instances_rules: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Return whether the server could; an error means it could not."""
        raise NotImplementedError

    def update_share_network_subnet_from_metadata(
        self,
        context: RequestContext,
        share_network: Mapping[str, Any],
        share_network_subnet: Mapping[str, Any],
        share_server: ShareServerMapping,
        metadata: Mapping[str, str],
    ) -> None:
        """Apply subnet metadata that drivers may receive."""
        raise NotImplementedError
