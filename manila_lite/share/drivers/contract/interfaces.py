"""Optional driver interfaces, from which capabilities are derived.

An interface may be inherited or implemented without inheriting it: a driver
that has all its abstract methods offers it. `isinstance` tells.
"""

import abc
from collections.abc import Callable, Mapping
import functools
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.values import (
    AccessReplies,
    AccessRuleForDriver,
    ExportLocationsReply,
    NewShareReply,
    ShareForDriver,
    SnapshotForDriver,
    SnapshotReply,
)

ShareServerMapping = Mapping[str, Any]
Interface = TypeVar('Interface', bound='DefaultedInterface')
P = ParamSpec('P')
R = TypeVar('R')


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
        """Create a snapshot; one that already exists is kept unchanged."""

    @abc.abstractmethod
    def delete_snapshot(
        self,
        context: RequestContext,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Delete a snapshot; a missing one is success."""


@runtime_checkable
class CreateFromSnapshotSupport(SnapshotSupport, Protocol):
    """New shares with the content of a snapshot."""

    @abc.abstractmethod
    def create_share_from_snapshot(
        self,
        context: RequestContext,
        share: ShareForDriver,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
        parent_share: ShareForDriver | None = None,
    ) -> ExportLocationsReply | NewShareReply:
        """Create a share with the content of the snapshot.

        A driver that works asynchronously replies creating_from_snapshot;
        its progress is then polled with `get_share_status`.
        """


@runtime_checkable
class RevertSupport(SnapshotSupport, Protocol):
    """Reverting a share in place to its latest snapshot."""

    @abc.abstractmethod
    def revert_to_snapshot(
        self,
        context: RequestContext,
        snapshot: SnapshotForDriver,
        share_access_rules: list[AccessRuleForDriver],
        snapshot_access_rules: list[AccessRuleForDriver],
        share_server: ShareServerMapping | None = None,
    ) -> int | None:
        """Revert the share; return the new size in GiB.

        None means the size recorded with the snapshot.
        The access rules are those in force, for back ends that lose them.
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
        """Grant read access to exactly the given clients.

        Parameters and reply are those of `update_access` for shares.
        """


def requires(*names: str) -> Callable[[type[Interface]], type[Interface]]:
    """Make methods that an interface has by default abstract in it.

    They are declared once, with the defaults.
    """

    def declared(interface: type[Interface]) -> type[Interface]:
        for name in names:
            setattr(interface, name, _abstract(getattr(interface, name)))
        return abc.update_abstractmethods(interface)

    return declared


def _abstract(default: Callable[P, R]) -> Callable[P, R]:
    # The default itself must not be abstract: every driver inherits it.
    @functools.wraps(default)
    def method(*args: P.args, **kwargs: P.kwargs) -> R:
        return default(*args, **kwargs)

    return abc.abstractmethod(method)


class DefaultedInterface(abc.ABC):  # noqa: B024 (its interfaces have some)
    """The base of interfaces whose methods every driver has by default.

    An interface derives from a class of defaults, which `ShareDriver` has as
    well, and from this one; `requires` names what drivers have to implement. A
    driver offers it if it inherits the interface, or if none of the abstract
    methods is still the default.
    """

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        if DefaultedInterface not in cls.__bases__:
            return NotImplemented  # a driver, not an interface
        defaults = super(cls, cls)
        return (
            NotImplemented
            if any(
                getattr(other, name, None) in (None, getattr(defaults, name))
                for name in cls.__abstractmethods__
            )
            else True
        )


CAPABILITIES: dict[str, type] = {
    'snapshot_support': SnapshotSupport,
    'create_share_from_snapshot_support': CreateFromSnapshotSupport,
    'revert_to_snapshot_support': RevertSupport,
    'mount_snapshot_support': MountSnapshotSupport,
}
