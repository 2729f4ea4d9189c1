"""Driver methods that migrate a share to another back end.

Names, parameters and replies are the published ones (driver-interface.csv).
All methods are called on the source back end. The first phase copies
everything while the source keeps serving; if it fails or is cancelled,
nothing that clients use may have changed. The second phase cuts over. The
destination is an instance of the share that has an id of its own.
`source_snapshots` are those of the source, `snapshot_mappings` those of the
destination by the ids of the former. Both are empty unless snapshots are
preserved, which a driver offers by `preserve_snapshots`.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, TypedDict

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import (
    Arguments,
    DefaultedInterface,
    ShareServerMapping,
    requires,
)
from manila_lite.share.drivers.contract.values import (
    ExportLocationsReply,
    ShareForDriver,
    SnapshotForDriver,
)

SnapshotMappings = Mapping[str, SnapshotForDriver]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareMigration(Arguments):
    """The share that moves, where to, and the snapshots that it takes along."""

    source_share: ShareForDriver
    destination_share: ShareForDriver
    source_snapshots: Sequence[SnapshotForDriver] = ()
    snapshot_mappings: SnapshotMappings = dataclasses.field(default_factory=dict)
    destination_share_server: ShareServerMapping | None = None

    @property
    def snapshot_pairs(self) -> list[tuple[SnapshotForDriver, SnapshotForDriver]]:
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

    export_locations: ExportLocationsReply
    snapshot_updates: Mapping[str, Mapping[str, Any]]


class ShareMigrationDefaults:
    """Defaults that every driver inherits: no share can be migrated."""

    def migration_check_compatibility(
        self,
        context: RequestContext,
        source_share: ShareForDriver,
        destination_share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
        destination_share_server: ShareServerMapping | None = None,
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
        source_share: ShareForDriver,
        destination_share: ShareForDriver,
        source_snapshots: Sequence[SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: ShareServerMapping | None = None,
        destination_share_server: ShareServerMapping | None = None,
    ) -> None:
        """Start the first phase and return immediately."""
        raise NotImplementedError

    def migration_continue(
        self,
        context: RequestContext,
        source_share: ShareForDriver,
        destination_share: ShareForDriver,
        source_snapshots: Sequence[SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: ShareServerMapping | None = None,
        destination_share_server: ShareServerMapping | None = None,
    ) -> bool:
        """Return whether the first phase is done; an error means failure.

        Called repeatedly until one of the two happens.
        """
        raise NotImplementedError

    def migration_complete(
        self,
        context: RequestContext,
        source_share: ShareForDriver,
        destination_share: ShareForDriver,
        source_snapshots: Sequence[SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: ShareServerMapping | None = None,
        destination_share_server: ShareServerMapping | None = None,
    ) -> ShareMigrationCompleteReply | None:
        """Run the second phase: the destination starts to serve clients.

        After this call nothing of the source is left. It is repeated if its
        reply was lost, and then finds the destination complete.
        """
        raise NotImplementedError

    def migration_cancel(
        self,
        context: RequestContext,
        source_share: ShareForDriver,
        destination_share: ShareForDriver,
        source_snapshots: Sequence[SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: ShareServerMapping | None = None,
        destination_share_server: ShareServerMapping | None = None,
    ) -> None:
        """Stop the first phase and remove what it has copied.

        Also called after the first phase has failed. Nothing to remove is
        success.
        """
        raise NotImplementedError

    def migration_get_progress(
        self,
        context: RequestContext,
        source_share: ShareForDriver,
        destination_share: ShareForDriver,
        source_snapshots: Sequence[SnapshotForDriver],
        snapshot_mappings: SnapshotMappings,
        share_server: ShareServerMapping | None = None,
        destination_share_server: ShareServerMapping | None = None,
    ) -> Mapping[str, Any]:
        """Return `total_progress` of the first phase, in percent.

        Other keys of the reply are shown to administrators as `details`.
        """
        raise NotImplementedError


@requires(
    'migration_check_compatibility',
    'migration_start',
    'migration_continue',
    'migration_complete',
)
class ShareMigrationSupport(ShareMigrationDefaults, DefaultedInterface):
    """Migration of shares from the back end to others that it reaches."""
