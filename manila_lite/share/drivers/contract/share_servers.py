"""What drivers do with share servers, if they make any.

Names, parameters and answers are the published ones
(driver-interface.csv). A driver that works with
`driver_handles_share_servers` writes `ShareServerSupport` out in full; the
rest is inherited. Addresses are given by the network plug-in to the
manager: a driver is told of them and never asks for any.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping
from manila_lite.share.drivers.contract.values import AccessReplies
from manila_lite.share.drivers.contract.values import NetworkInfo
from manila_lite.share.drivers.contract.values import SecurityServiceForDriver
from manila_lite.share.drivers.contract.values import ShareForDriver
from manila_lite.share.drivers.contract.values import SnapshotForDriver

ServerDetails = Mapping[str, str]


@runtime_checkable
class ShareServerSupport(Protocol):
    """Share servers, made and removed as shares need them."""

    @abc.abstractmethod
    def _setup_server(
        self,
        network_info: list[NetworkInfo],
        metadata: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any] | None:
        """Make a server, and say what is to be remembered of it.

        `network_info` has one entry per subnet it is to have addresses
        in. `metadata` has `request_host` (host@backend#pool of the share
        it is made for) and, where known, `share_type_id` and
        `encryption_key_ref`. A server that is there already is kept. An
        error may carry `detail_data={'server_details': {...}}`, which is
        remembered all the same.
        """

    @abc.abstractmethod
    def _teardown_server(
        self,
        server_details: ServerDetails,
        security_services: Sequence[SecurityServiceForDriver] | None = None,
    ) -> None:
        """Remove a server; gone is success.

        `server_details` are those it had remembered, and `server_id`,
        also when the answer to its making was lost.
        """

    @abc.abstractmethod
    def get_network_allocations_number(self) -> int:
        """How many addresses a server has in each of its subnets."""


class ShareServerDefaults:
    """What every driver inherits about share servers."""

    def setup_server(
        self, *args: Any, **kwargs: Any
    ) -> Mapping[str, Any] | None:
        """Make a share server: see `ShareServerSupport._setup_server`."""
        if not isinstance(self, ShareServerSupport):
            raise NotImplementedError
        return self._setup_server(*args, **kwargs)

    def teardown_server(self, *args: Any, **kwargs: Any) -> None:
        """Remove one: see `ShareServerSupport._teardown_server`."""
        if not isinstance(self, ShareServerSupport):
            raise NotImplementedError
        self._teardown_server(*args, **kwargs)

    def get_admin_network_allocations_number(self) -> int:
        """How many addresses it has in the administrators' network."""
        return 0

    def choose_share_server_compatible_with_share(
        self,
        context: RequestContext,
        share_servers: Sequence[ShareServerMapping],
        share: ShareForDriver,
        snapshot: SnapshotForDriver | None = None,
        share_group: Mapping[str, Any] | None = None,
        encryption_key_ref: str | None = None,
    ) -> ShareServerMapping | None:
        """The server that is to have a new share; None asks for another.

        The first that is offered, where a driver has no wish.
        """
        return share_servers[0] if share_servers else None

    def choose_share_server_compatible_with_share_group(
        self,
        context: RequestContext,
        share_servers: Sequence[ShareServerMapping],
        share_group_ref: Mapping[str, Any],
        share_group_snapshot: Mapping[str, Any] | None = None,
    ) -> ShareServerMapping | None:
        """The same of a share group."""
        return share_servers[0] if share_servers else None

    def get_share_server_pools(
        self, share_server: ShareServerMapping
    ) -> list[dict[str, Any]]:
        """The pools a server uses, by `pool_name`; for the scheduler."""
        return []

    # Servers that are there already

    def get_share_server_network_info(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        identifier: str,
        driver_options: Mapping[str, str],
    ) -> list[str]:
        """The addresses of a server that is not managed yet."""
        raise NotImplementedError

    def manage_server(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        identifier: str,
        driver_options: Mapping[str, str],
    ) -> tuple[str | None, ServerDetails | None]:
        """Take a server over: its new identifier, what to remember.

        Raises ManageInvalidShareServer when it is nothing it could have.
        """
        raise NotImplementedError

    def unmanage_server(
        self,
        server_details: ServerDetails,
        security_services: Sequence[SecurityServiceForDriver] | None = None,
    ) -> None:
        """Forget a server, which stays where it is."""
        raise NotImplementedError

    # Networks that change while servers are on them

    def update_share_server_security_service(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        network_info: Sequence[NetworkInfo],
        share_instances: Sequence[ShareForDriver],
        share_instance_rules: Sequence[Mapping[str, Any]],
        new_security_service: SecurityServiceForDriver,
        current_security_service: SecurityServiceForDriver | None = None,
    ) -> Mapping[str, AccessReplies] | None:
        """Have a server use a directory service, instead of another or too.

        `share_instance_rules` has `share_instance_id` and `access_rules`
        of each. What came of rules is answered by instance id.
        """
        raise NotImplementedError

    def check_update_share_server_security_service(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        network_info: Sequence[NetworkInfo],
        share_instances: Sequence[ShareForDriver],
        share_instance_rules: Sequence[Mapping[str, Any]],
        new_security_service: SecurityServiceForDriver,
        current_security_service: SecurityServiceForDriver | None = None,
    ) -> bool:
        """Whether the server could; an error means that it could not."""
        raise NotImplementedError

    def update_share_server_network_allocations(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        current_network_allocations: Mapping[str, Any],
        new_network_allocations: Mapping[str, Any],
        security_services: Sequence[SecurityServiceForDriver],
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
    ) -> Mapping[str, Any] | None:
        """Give a server addresses in one more subnet.

        `current_network_allocations` has `admin_network_allocations` and
        `subnets`, one entry per subnet it is in; the new ones are such an
        entry (`share_network_subnet_id`, `network_allocations` ...). The
        answer may have `share_updates` (export locations by share
        instance id), `snapshot_updates` and `server_details`.
        """
        raise NotImplementedError

    def check_update_share_server_network_allocations(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        current_network_allocations: Mapping[str, Any],
        new_share_network_subnet: Mapping[str, Any],
        security_services: Sequence[SecurityServiceForDriver],
        share_instances: Sequence[ShareForDriver],
        share_instances_rules: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Whether the server could; an error means that it could not."""
        raise NotImplementedError

    def update_share_network_subnet_from_metadata(
        self,
        context: RequestContext,
        share_network: Mapping[str, Any],
        share_network_subnet: Mapping[str, Any],
        share_server: ShareServerMapping,
        metadata: Mapping[str, str],
    ) -> None:
        """Take note of metadata of a subnet that drivers may be told."""
        raise NotImplementedError
