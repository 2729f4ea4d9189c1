"""What a driver may offer to the scheduler, told by what it implements.

An interface is inherited, or simply written out in full: a driver that
has all its methods offers it.
"""

import abc
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.values import AccessReplies
from manila_lite.share.drivers.contract.values import AccessRuleForDriver
from manila_lite.share.drivers.contract.values import ExportLocationsReply
from manila_lite.share.drivers.contract.values import NewShareReply
from manila_lite.share.drivers.contract.values import ShareForDriver
from manila_lite.share.drivers.contract.values import SnapshotForDriver
from manila_lite.share.drivers.contract.values import SnapshotReply

ShareServerMapping = Mapping[str, Any]


@runtime_checkable
class SnapshotSupport(Protocol):
    """Snapshots of a share."""

    @abc.abstractmethod
    def create_snapshot(
        self,
        context: RequestContext,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> SnapshotReply | None:
        """Take a snapshot; one that is there already stays as it is."""

    @abc.abstractmethod
    def delete_snapshot(
        self,
        context: RequestContext,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Remove a snapshot; gone is success."""


@runtime_checkable
class CreateFromSnapshotSupport(SnapshotSupport, Protocol):
    """New shares that start as a copy of a snapshot."""

    @abc.abstractmethod
    def create_share_from_snapshot(
        self,
        context: RequestContext,
        share: ShareForDriver,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
        parent_share: ShareForDriver | None = None,
    ) -> ExportLocationsReply | NewShareReply:
        """Make a share with the content of the snapshot.

        A driver that needs a while for it answers creating_from_snapshot
        and is asked by `get_share_status` how it gets on.
        """


@runtime_checkable
class RevertSupport(SnapshotSupport, Protocol):
    """A share put back, in place, to its newest snapshot."""

    @abc.abstractmethod
    def revert_to_snapshot(
        self,
        context: RequestContext,
        snapshot: SnapshotForDriver,
        share_access_rules: list[AccessRuleForDriver],
        snapshot_access_rules: list[AccessRuleForDriver],
        share_server: ShareServerMapping | None = None,
    ) -> int | None:
        """Put the share back; the new size in GiB, or None if as noted.

        The rules are those in force, for back ends that lose them.
        """


@runtime_checkable
class MountSnapshotSupport(SnapshotSupport, Protocol):
    """Snapshots that clients can mount."""

    @abc.abstractmethod
    def snapshot_update_access(
        self,
        context: RequestContext,
        snapshot: SnapshotForDriver,
        access_rules: list[AccessRuleForDriver],
        add_rules: list[AccessRuleForDriver],
        delete_rules: list[AccessRuleForDriver],
        share_server: ShareServerMapping | None = None,
    ) -> AccessReplies | None:
        """Let exactly the given clients read the snapshot.

        Called and answered like `update_access` of shares.
        """


CAPABILITIES: dict[str, type] = {
    'snapshot_support': SnapshotSupport,
    'create_share_from_snapshot_support': CreateFromSnapshotSupport,
    'revert_to_snapshot_support': RevertSupport,
    'mount_snapshot_support': MountSnapshotSupport,
}
