"""How a driver moves a share server with all that is on it.

Names, parameters and answers are the published ones
(driver-interface.csv), and of the server migration design. All methods
are called on the back end that the server goes to. In the first phase
everything is copied while the source serves; nothing that clients use
may have changed when it fails or is cancelled. The second phase cuts
over. `shares` and `snapshots` are those on the source; their ids stay.
Where a pool was asked for, `host` of the destination names it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping
from manila_lite.share.drivers.contract.values import ExportLocationsReply
from manila_lite.share.drivers.contract.values import NetworkInfo
from manila_lite.share.drivers.contract.values import ShareForDriver
from manila_lite.share.drivers.contract.values import SnapshotForDriver


class ServerMigrationCompatibility(TypedDict, total=False):
    """What a driver offers for one migration; what is not said is false.

    The last two say which of the methods it has for it.
    """

    compatible: bool
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool
    migration_cancel: bool
    migration_get_progress: bool


class MigratedShare(TypedDict, total=False):
    """Where a share is now; what is not said stays as it is."""

    export_locations: ExportLocationsReply
    pool_name: str


class MigratedSnapshot(TypedDict, total=False):
    """Where a snapshot is now; what is not said stays as it is."""

    provider_location: str
    export_locations: ExportLocationsReply


class ServerMigrationStartReply(TypedDict, total=False):
    """What is to be remembered of the destination."""

    backend_details: Mapping[str, Any]


class ServerMigrationCompleteReply(ServerMigrationStartReply, total=False):
    """What has become of shares and snapshots, by instance id."""

    share_updates: Mapping[str, MigratedShare]
    snapshot_updates: Mapping[str, MigratedSnapshot]


class ServerMigrationDefaults:
    """What every driver inherits: it can migrate no server."""

    def choose_share_server_compatible_for_migration(
        self,
        context: RequestContext,
        share_servers: Sequence[ShareServerMapping],
        src_share_server: ShareServerMapping,
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
    ) -> ShareServerMapping | None:
        """The server that is to take everything; None asks for a new one.

        Offered are the active servers of the destination that are in the
        right subnets.
        """
        return None

    def share_server_migration_check_compatibility(
        self,
        context: RequestContext,
        share_server: ShareServerMapping,
        dest_host: str,
        old_share_network: Mapping[str, Any],
        new_share_network: Mapping[str, Any],
        shares_request_spec: Mapping[str, Any],
    ) -> ServerMigrationCompatibility:
        """Whether this back end could take the server, and how.

        `dest_host` is host@backend, with #pool where one was asked for.
        The networks have id, name, project_id and their subnets.
        `shares_request_spec` has `shares_size` and `snapshots_size` (GiB
        in all) and `shares_req_spec`, one entry per share.
        """
        return {
            'compatible': False,
            'writable': False,
            'nondisruptive': False,
            'preserve_snapshots': False,
            'migration_cancel': False,
            'migration_get_progress': False,
        }

    def share_server_migration_start(
        self,
        context: RequestContext,
        src_share_server: ShareServerMapping,
        dest_share_server: ShareServerMapping,
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
    ) -> ServerMigrationStartReply | None:
        """Begin the first phase, and come back at once.

        A destination with addresses has been set up; of a migration that
        is not disruptive it has none, and takes over those of the source.
        """
        raise NotImplementedError

    def share_server_migration_continue(
        self,
        context: RequestContext,
        src_share_server: ShareServerMapping,
        dest_share_server: ShareServerMapping,
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
    ) -> bool:
        """Whether the first phase is done; an error means that it failed.

        Asked again and again until one of the two.
        """
        raise NotImplementedError

    def share_server_migration_complete(
        self,
        context: RequestContext,
        src_share_server: ShareServerMapping,
        dest_share_server: ShareServerMapping,
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
        new_network_info: Sequence[NetworkInfo],
    ) -> ServerMigrationCompleteReply | None:
        """The second phase: clients are served by the destination.

        `new_network_info` is what the destination is on its subnets. The
        source must then be ready to be torn down.
        """
        raise NotImplementedError

    def share_server_migration_cancel(
        self,
        context: RequestContext,
        src_share_server: ShareServerMapping,
        dest_share_server: ShareServerMapping,
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
    ) -> None:
        """Stop the first phase, and remove what it has copied.

        A destination made for it is torn down afterwards.
        """
        raise NotImplementedError

    def share_server_migration_get_progress(
        self,
        context: RequestContext,
        src_share_server: ShareServerMapping,
        dest_share_server: ShareServerMapping,
        shares: Sequence[ShareForDriver],
        snapshots: Sequence[SnapshotForDriver],
    ) -> Mapping[str, Any]:
        """How far the first phase is: `total_progress` in percent."""
        raise NotImplementedError
