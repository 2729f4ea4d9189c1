"""Shares created from snapshots, as loaded and as drivers report them."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import group_view
from manila_lite.share.manager.driver_view.group_view import CloneSource
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    NameTemplates,
)
from manila_lite.states.share_instance import InstanceStatus


class Clone(typing.NamedTuple):
    """A share to be created, and the snapshot it is created from.

    With `waits_for_group`, work on its group is about to create it.
    """

    share: LoadedInstance
    snapshot: CloneSource
    waits_for_group: bool = False

    def snapshot_for_driver(self, names: NameTemplates) -> base.SnapshotForDriver:
        return group_view.source_for_driver(self.snapshot, names)


class ReportedClone(typing.NamedTuple):
    """What a driver reports about a share created from a snapshot."""

    status: str
    exports: list[base.ExportLocation]
    progress: str | None = None


def parse_reply(reply: typing.Any) -> ReportedClone:
    """Parse a reply of either form; raise InvalidShareInstance."""
    if not isinstance(reply, Mapping):
        return ReportedClone(
            InstanceStatus.AVAILABLE, base.normalise_export_locations(reply)
        )
    status = reply.get('status')
    if status not in (InstanceStatus.AVAILABLE, InstanceStatus.CREATING_FROM_SNAPSHOT):
        raise exception.InvalidShareInstance(
            reason=f'the driver reports status {status}'
        )
    progress = reply.get('progress')
    return ReportedClone(
        status,
        base.normalise_export_locations(reply.get('export_locations')),
        None if progress is None else str(progress)[:32],
    )
