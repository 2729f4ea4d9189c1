"""Driver methods that migrate a share, or a share server with its shares.

Names, parameters and replies are the published ones (driver-interface.csv)
and those of the server migration design. The first phase copies everything
while the source keeps serving; if it fails or is cancelled, nothing that
clients use may have changed. The second phase cuts over.

Methods for a share are called on the source back end. The destination is an
instance of the share that has an id of its own. `source_snapshots` are those
of the source, `snapshot_mappings` those of the destination by the ids of the
former. Both are empty unless snapshots are preserved, which a driver offers
by `preserve_snapshots`.

Methods for a share server are called on the destination back end. `shares`
and `snapshots` are those on the source; their ids stay. If a pool was
requested, the destination's `host` names it.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, TypedDict

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import interfaces, values

SnapshotMappings = Mapping[str, values.SnapshotForDriver]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareMigration(interfaces.Arguments):
    """The share that moves, where to, and the snapshots that it takes along."""

    source_share: values.ShareForDriver
    destination_share: values.ShareForDriver
    source_snapshots: Sequence[values.SnapshotForDriver] = ()
    snapshot_mappings: SnapshotMappings = dataclasses.field(default_factory=dict)
    destination_share_server: interfaces.ShareServerMapping | None = None

    @property
    def snapshot_pairs(
        self,
    ) -> list[tuple[values.SnapshotForDriver, values.SnapshotForDriver]]:
        """Each snapshot of the source with that of the destination."""
        return [
            (one, self.snapshot_mappings[one['id']])
            for one in self.source_snapshots
            if one['id'] in self.snapshot_mappings
        ]


class ShareMigrationCompatibility(TypedDict, total=False):
    """What a driver offers for one migration; missing keys are false."""

    compatible: bool
    writable: bool
    preserve_metadata: bool
    nondisruptive: bool
    preserve_snapshots: bool


class ShareMigrationCompleteReply(TypedDict, total=False):
    """Where clients find the share, and snapshots by their new ids."""

    export_locations: values.ExportLocationsReply
    snapshot_updates: Mapping[str, Mapping[str, Any]]


class ShareMigrationDefaults:
    """Defaults that every driver inherits: no share can be migrated."""

    def migration_check_compatibility(
        self,
        context: RequestContext,
        source_share: values.ShareForDriver,
        destination_share: values.ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
        destination_share_server: interfaces.ShareServerMapping | None = None,
    ) -> ShareMigrationCompatibility:
        """Return whether, and how, this back end can migrate the share."""
        return {
            'compatible': False,
            'writable': False,
            'preserve_metadata': False,
            'nondisruptive': False,
            'preserve_snapshots': False,
        }

    def migration_start(
        self,
        context: RequestContext,
        source_share: values.ShareForDriver,
        destination_share: values.ShareForDriver,
        source_snapshots: Sequence[values.SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: interfaces.ShareServerMapping | None = None,
        destination_share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Start the first phase and return immediately."""
        raise NotImplementedError

    def migration_continue(
        self,
        context: RequestContext,
        source_share: values.ShareForDriver,
        destination_share: values.ShareForDriver,
        source_snapshots: Sequence[values.SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: interfaces.ShareServerMapping | None = None,
        destination_share_server: interfaces.ShareServerMapping | None = None,
    ) -> bool:
        """Return whether the first phase is done; an error means failure.

        Called repeatedly until one of the two happens.
        """
        raise NotImplementedError

    def migration_complete(
        self,
        context: RequestContext,
        source_share: values.ShareForDriver,
        destination_share: values.ShareForDriver,
        source_snapshots: Sequence[values.SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: interfaces.ShareServerMapping | None = None,
        destination_share_server: interfaces.ShareServerMapping | None = None,
    ) -> ShareMigrationCompleteReply | None:
        """Run the second phase: the destination starts to serve clients.

        After this call nothing of the source is left. It is repeated if its
        reply was lost, and then finds the destination complete.
        """
        raise NotImplementedError

    def migration_cancel(
        self,
        context: RequestContext,
        source_share: values.ShareForDriver,
        destination_share: values.ShareForDriver,
        source_snapshots: Sequence[values.SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: interfaces.ShareServerMapping | None = None,
        destination_share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Stop the first phase and remove what it has copied.

        Also called after the first phase has failed. Nothing to remove is
        success.
        """
        raise NotImplementedError

    def migration_get_progress(
        self,
        context: RequestContext,
        source_share: values.ShareForDriver,
        destination_share: values.ShareForDriver,
        source_snapshots: Sequence[values.SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: interfaces.ShareServerMapping | None = None,
        destination_share_server: interfaces.ShareServerMapping | None = None,
    ) -> Mapping[str, Any]:
        """Return `total_progress` of the first phase, in percent.

        Other keys of the reply are shown to administrators as `details`.
        """
        raise NotImplementedError


@interfaces.requires(
    'migration_check_compatibility',
    'migration_start',
    'migration_continue',
    'migration_complete',
)
class ShareMigrationSupport(ShareMigrationDefaults, interfaces.DefaultedInterface):
    """Migration of shares from the back end to others that it reaches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerMigration(interfaces.Arguments):
    """The server that moves, where to, and what is on it."""

    src_share_server: interfaces.ShareServerMapping
    dest_share_server: interfaces.ShareServerMapping
    shares: Sequence[values.ShareForDriver] = ()
    snapshots: Sequence[values.SnapshotForDriver] = ()


class ServerMigrationCompatibility(TypedDict, total=False):
    """What a driver offers for one migration; missing keys are false.

    The last two keys report which methods it implements.
    """

    compatible: bool
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool
    migration_cancel: bool
    migration_get_progress: bool


class MigratedShare(TypedDict, total=False):
    """The new place of a share; missing keys mean no change."""

    export_locations: values.ExportLocationsReply
    pool_name: str


class MigratedSnapshot(TypedDict, total=False):
    """The new place of a snapshot; missing keys mean no change."""

    provider_location: str
    export_locations: values.ExportLocationsReply


class ServerMigrationStartReply(TypedDict, total=False):
    """The back end details to store for the destination."""

    backend_details: Mapping[str, Any]


class ServerMigrationCompleteReply(ServerMigrationStartReply, total=False):
    """The updates of shares and snapshots, by instance id."""

    share_updates: Mapping[str, MigratedShare]
    snapshot_updates: Mapping[str, MigratedSnapshot]


class ServerMigrationDefaults:
    """Defaults that every driver inherits: no server can be migrated."""

    def choose_share_server_compatible_for_migration(
        self,
        context: RequestContext,
        share_servers: Sequence[interfaces.ShareServerMapping],
        src_share_server: interfaces.ShareServerMapping,
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
    ) -> interfaces.ShareServerMapping | None:
        """Return the destination server, or None to create a new one.

        The candidates are active servers of the destination in the right
        subnets.
        """
        return None

    def share_server_migration_check_compatibility(
        self,
        context: RequestContext,
        share_server: interfaces.ShareServerMapping,
        dest_host: str,
        old_share_network: Mapping[str, Any],
        new_share_network: Mapping[str, Any],
        shares_request_spec: Mapping[str, Any],
    ) -> ServerMigrationCompatibility:
        """Return whether, and how, this back end can take the server.

        `dest_host` is host@backend, with #pool if one was requested. The
        networks have id, name, project_id and their subnets.
        `shares_request_spec` has `shares_size` and `snapshots_size` (total
        GiB) and `shares_req_spec`, one entry per share.
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
        src_share_server: interfaces.ShareServerMapping,
        dest_share_server: interfaces.ShareServerMapping,
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
    ) -> ServerMigrationStartReply | None:
        """Start the first phase and return immediately.

        A destination with addresses has been set up. In a nondisruptive
        migration it has none and takes over those of the source.
        """
        raise NotImplementedError

    def share_server_migration_continue(
        self,
        context: RequestContext,
        src_share_server: interfaces.ShareServerMapping,
        dest_share_server: interfaces.ShareServerMapping,
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
    ) -> bool:
        """Return whether the first phase is done; an error means failure.

        Called repeatedly until one of the two happens.
        """
        raise NotImplementedError

    def share_server_migration_complete(
        self,
        context: RequestContext,
        src_share_server: interfaces.ShareServerMapping,
        dest_share_server: interfaces.ShareServerMapping,
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
        new_network_info: Sequence[values.NetworkInfo],
    ) -> ServerMigrationCompleteReply | None:
        """Run the second phase: the destination starts to serve clients.

        `new_network_info` describes the destination's subnets. After this
        call the source must be ready to be torn down.
        """
        raise NotImplementedError

    def share_server_migration_cancel(
        self,
        context: RequestContext,
        src_share_server: interfaces.ShareServerMapping,
        dest_share_server: interfaces.ShareServerMapping,
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
    ) -> None:
        """Stop the first phase and remove what it has copied.

        A destination created for the migration is torn down afterwards.
        """
        raise NotImplementedError

    def share_server_migration_get_progress(
        self,
        context: RequestContext,
        src_share_server: interfaces.ShareServerMapping,
        dest_share_server: interfaces.ShareServerMapping,
        shares: Sequence[values.ShareForDriver],
        snapshots: Sequence[values.SnapshotForDriver],
    ) -> Mapping[str, Any]:
        """Return `total_progress` of the first phase, in percent.

        Other keys of the reply are shown to administrators as `details`.
        """
        raise NotImplementedError


@interfaces.requires(
    'share_server_migration_check_compatibility',
    'share_server_migration_start',
    'share_server_migration_continue',
    'share_server_migration_complete',
)
class ServerMigrationSupport(ServerMigrationDefaults, interfaces.DefaultedInterface):
    """Migration of share servers to the back end.

    The reply to the check of compatibility says whether a migration can be
    cancelled, and whether its progress can be reported.
    """
