"""Optional driver interfaces, from which capabilities are derived.

An interface may be inherited or implemented without inheriting it: a driver
that has all its abstract methods offers it. `isinstance` tells.

Names, parameters and replies are the published ones (driver-interface.csv).
With share servers the variants whose names end in `_with_server` are called.
"""

import abc
from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any, ParamSpec, Protocol, Self, TypeVar, runtime_checkable

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import values

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
        snapshot: values.SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> values.SnapshotReply | None:
        """Create a snapshot; one that already exists is kept unchanged."""

    @abc.abstractmethod
    def delete_snapshot(
        self,
        context: RequestContext,
        snapshot: values.SnapshotForDriver,
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
        share: values.ShareForDriver,
        snapshot: values.SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
        parent_share: values.ShareForDriver | None = None,
    ) -> values.ExportLocationsReply | values.NewShareReply:
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
        snapshot: values.SnapshotForDriver,
        share_access_rules: list[values.AccessRuleForDriver],
        snapshot_access_rules: list[values.AccessRuleForDriver],
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
        snapshot: values.SnapshotForDriver,
        access_rules: list[values.AccessRuleForDriver],
        add_rules: list[values.AccessRuleForDriver],
        delete_rules: list[values.AccessRuleForDriver],
        share_server: ShareServerMapping | None = None,
    ) -> values.AccessReplies | None:
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


class ManageDefaults:
    """Defaults that every driver inherits: nothing can be managed."""

    def manage_existing(
        self, share: values.ShareForDriver, driver_options: Mapping[str, str]
    ) -> values.ManageReply:
        """Manage the existing share at the given export location.

        Raises ManageInvalidShare if the driver cannot manage it.
        """
        raise NotImplementedError

    def manage_existing_with_server(
        self,
        share: values.ShareForDriver,
        driver_options: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> values.ManageReply:
        """Do what `manage_existing` does for a share on a share server."""
        raise NotImplementedError

    def unmanage(self, share: values.ShareForDriver) -> None:
        """Stop managing a share and leave its data in place.

        Raises UnmanageInvalidShare if the share cannot be released.
        """

    def unmanage_with_server(
        self,
        share: values.ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Do what `unmanage` does for a share on a share server."""

    def manage_existing_snapshot(
        self, snapshot: values.SnapshotForDriver, driver_options: Mapping[str, str]
    ) -> values.ManageSnapshotReply:
        """Manage the existing snapshot at `snapshot.provider_location`.

        Raises ManageInvalidShareSnapshot if it is not a snapshot of the
        share.
        """
        raise NotImplementedError

    def manage_existing_snapshot_with_server(
        self,
        snapshot: values.SnapshotForDriver,
        driver_options: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> values.ManageSnapshotReply:
        """Do what `manage_existing_snapshot` does on a share server."""
        raise NotImplementedError

    def unmanage_snapshot(self, snapshot: values.SnapshotForDriver) -> None:
        """Stop managing a snapshot and leave its data in place.

        Raises UnmanageInvalidShareSnapshot if it cannot be released.
        """

    def unmanage_snapshot_with_server(
        self,
        snapshot: values.SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Do what `unmanage_snapshot` does on a share server."""


@requires('manage_existing')
class ManageSupport(ManageDefaults, DefaultedInterface):
    """Existing shares and, optionally, snapshots without share servers."""


@requires('manage_existing_with_server')
class ManageWithServerSupport(ManageDefaults, DefaultedInterface):
    """Existing shares and, optionally, snapshots on share servers."""


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What a call carries, in one value.

    The fields have the names of published parameters. The method of a driver's
    part that has such a value is given one made of the arguments of the call.
    Fields that a driver method does not declare have their defaults.
    """

    @classmethod
    def required(cls) -> set[str]:
        """Return the names of the fields without a default."""
        return {
            field.name
            for field in dataclasses.fields(cls)
            if field.default is field.default_factory is dataclasses.MISSING
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the value made of those arguments of a call that it has."""
        names = (field.name for field in dataclasses.fields(cls))
        return cls(**{name: given[name] for name in names if name in given})
