"""Driver methods for share groups.

Names, parameters and replies are the published ones (driver-interface.csv).
A driver without them has groups in which nothing is done together: every
share is created and deleted by itself. Every method may be called twice and
must lead to the same state.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import interfaces, values

GroupUpdate = Mapping[str, Any] | None
GroupReply = GroupUpdate | tuple[GroupUpdate, Sequence[Any] | None]
"""An update of the group, alone or with updates of its shares.

Of an update, only `status` counts: `error` fails the work.
"""

GroupSnapshotReply = tuple[GroupUpdate, Sequence[Mapping[str, Any]] | None] | None
"""An update of the snapshot, and updates of its members.

Of a member with its `id`, `provider_location` is stored; a `status` of
`error` fails the work, as one of the snapshot does.
"""


class ShareGroupDefaults:
    """Defaults that every driver inherits: it knows no groups."""

    def create_share_group(
        self,
        context: RequestContext,
        share_group_dict: values.ShareGroupForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> GroupReply:
        """Create a group without shares; one that exists is kept.

        The shares of a group that is made from a snapshot are created by
        `create_share_from_snapshot`, which may run before this call.
        """
        raise NotImplementedError

    def delete_share_group(
        self,
        context: RequestContext,
        share_group_dict: values.ShareGroupForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> GroupReply:
        """Delete a group without shares; a missing one is success."""
        raise NotImplementedError

    def create_share_group_from_share_group_snapshot(
        self,
        context: RequestContext,
        share_group_dict: values.ShareGroupForDriver,
        share_group_snapshot_dict: values.ShareGroupSnapshotForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> GroupReply:
        """Create a group with its `shares`; what exists of it is kept.

        Each share has the content of the member of the snapshot whose id is
        its `source_share_group_snapshot_member_id`. The reply has an update
        for each share, with `id`, `export_locations` and, unless it is
        available, `status`: `creating_from_snapshot` as that of
        `create_share_from_snapshot`; `error` fails the work, and the group
        and all of these shares are in error.
        """
        raise NotImplementedError

    def create_share_group_snapshot(
        self,
        context: RequestContext,
        snap_dict: values.ShareGroupSnapshotForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> GroupSnapshotReply:
        """Take a snapshot of every member; those that exist are kept."""
        raise NotImplementedError

    def delete_share_group_snapshot(
        self,
        context: RequestContext,
        snap_dict: values.ShareGroupSnapshotForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> GroupSnapshotReply:
        """Delete the snapshots of all members; missing ones are success."""
        raise NotImplementedError

    def get_share_group_snapshot_status(
        self,
        share_group_snapshot: values.ShareGroupSnapshotForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> values.StatusReply:
        """Return the actual state of a share group snapshot.

        The reply may have updates of members, as that of its creation has
        them, as `share_group_snapshot_members`.

        Raises SnapshotResourceNotFound if there is no such snapshot.
        """
        raise NotImplementedError

    def get_share_group_status(
        self,
        share_group: values.ShareGroupForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> values.StatusReply:
        """Return the actual state of a share group on the back end.

        Raises ShareGroupResourceNotFound if there is no such group.
        """
        raise NotImplementedError


@interfaces.requires('create_share_group', 'delete_share_group')
class ShareGroupSupport(ShareGroupDefaults, interfaces.DefaultedInterface):
    """Groups that the back end knows of."""


@interfaces.requires('create_share_group_from_share_group_snapshot')
class ShareGroupFromSnapshotSupport(ShareGroupDefaults, interfaces.DefaultedInterface):
    """New groups with the content of a group snapshot, in one call.

    For a driver without it, the group is created by `create_share_group`, and
    each of its shares by `create_share_from_snapshot`.
    """


@interfaces.requires('create_share_group_snapshot', 'delete_share_group_snapshot')
class ShareGroupSnapshotSupport(ShareGroupDefaults, interfaces.DefaultedInterface):
    """Snapshots of all shares of a group in one call.

    For a driver without it, the snapshot of each share is taken and deleted
    by `create_snapshot` and `delete_snapshot`.
    """
