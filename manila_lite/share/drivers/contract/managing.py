"""Driver methods that manage and unmanage existing shares and snapshots.

Names, parameters and replies are the published ones (driver-interface.csv).
With share servers the variants whose names end in `_with_server` are called.
"""

from collections.abc import Mapping

from manila_lite.share.drivers.contract.interfaces import (
    DefaultedInterface,
    ShareServerMapping,
    requires,
)
from manila_lite.share.drivers.contract.values import (
    ManageReply,
    ManageSnapshotReply,
    ShareForDriver,
    SnapshotForDriver,
)


class ManageDefaults:
    """Defaults that every driver inherits: nothing can be managed."""

    def manage_existing(
        self, share: ShareForDriver, driver_options: Mapping[str, str]
    ) -> ManageReply:
        """Manage the existing share at the given export location.

        Raises ManageInvalidShare if the driver cannot manage it.
        """
        raise NotImplementedError

    def manage_existing_with_server(
        self,
        share: ShareForDriver,
        driver_options: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> ManageReply:
        """Do what `manage_existing` does for a share on a share server."""
        raise NotImplementedError

    def unmanage(self, share: ShareForDriver) -> None:
        """Stop managing a share and leave its data in place.

        Raises UnmanageInvalidShare if the share cannot be released.
        """

    def unmanage_with_server(
        self, share: ShareForDriver, share_server: ShareServerMapping | None = None
    ) -> None:
        """Do what `unmanage` does for a share on a share server."""

    def manage_existing_snapshot(
        self, snapshot: SnapshotForDriver, driver_options: Mapping[str, str]
    ) -> ManageSnapshotReply:
        """Manage the existing snapshot at `snapshot.provider_location`.

        Raises ManageInvalidShareSnapshot if it is not a snapshot of the
        share.
        """
        raise NotImplementedError

    def manage_existing_snapshot_with_server(
        self,
        snapshot: SnapshotForDriver,
        driver_options: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> ManageSnapshotReply:
        """Do what `manage_existing_snapshot` does on a share server."""
        raise NotImplementedError

    def unmanage_snapshot(self, snapshot: SnapshotForDriver) -> None:
        """Stop managing a snapshot and leave its data in place.

        Raises UnmanageInvalidShareSnapshot if it cannot be released.
        """

    def unmanage_snapshot_with_server(
        self,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Do what `unmanage_snapshot` does on a share server."""


@requires('manage_existing')
class ManageSupport(ManageDefaults, DefaultedInterface):
    """Existing shares and, optionally, snapshots without share servers."""


@requires('manage_existing_with_server')
class ManageWithServerSupport(ManageDefaults, DefaultedInterface):
    """Existing shares and, optionally, snapshots on share servers."""
