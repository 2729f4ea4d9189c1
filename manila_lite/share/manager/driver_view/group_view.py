"""Share groups and their snapshots as read for work, and for drivers."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries.groups import member_sources, share_groups, snapshots
from manila_lite.db.session import Session
from manila_lite.share.drivers import base
from manila_lite.share.drivers.base import (
    ShareGroupForDriver,
    ShareGroupSnapshotForDriver,
    ShareServerForDriver,
    SnapshotForDriver,
)
from manila_lite.share.manager.driver_view import server_view, share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    LoadedSnapshot,
    NameTemplates,
)
from manila_lite.states.share_instance import InstanceStatus


class LoadedGroup(typing.NamedTuple):
    """A share group as read for work, with what belongs to it.

    These are the ids of its share types and its share server.
    """

    row: rows.ShareGroupRow
    share_type_ids: list[str]
    server: LoadedServer | None = None

    @property
    def share_server(self) -> ShareServerForDriver | None:
        """Its share server in the form given to drivers."""
        return server_view.optional_server_for_driver(self.server)

    @property
    def for_driver(self) -> ShareGroupForDriver:
        return server_view.from_row(
            ShareGroupForDriver,
            self.row,
            share_types=[{'share_type_id': id} for id in self.share_type_ids],
            shares=[],
            share_server_id=self.server and self.server.row.id,
        )


def load_group(
    session: Session, group_id: str, *, lock_shared: bool = False
) -> LoadedGroup:
    """Read a group with its share types and its share server.

    Raises ShareGroupNotFound. With `lock_shared` its row is locked against
    moves until the transaction ends.
    """
    read = share_groups.lock_shared if lock_shared else share_groups.get
    row = read(session, group_id)
    return LoadedGroup(
        row,
        share_groups.list_share_types(session, [group_id])[group_id],
        server_view.find_server(session, row.share_server_id),
    )


class LoadedMember(typing.NamedTuple):
    """The part of a group snapshot that has the content of one share."""

    row: rows.GroupSnapshotMemberRow
    share: LoadedInstance

    def for_driver(self, names: NameTemplates) -> SnapshotForDriver:
        return SnapshotForDriver(
            id=self.row.id,
            snapshot_id=self.row.id,
            name=names.snapshot % self.row.id,
            size=self.row.size,
            share=share_view.share_for_driver(self.share, names.share),
            provider_location=self.row.provider_location,
            created_at=self.row.created_at,
            updated_at=self.row.updated_at,
        )


CloneSource = LoadedSnapshot | LoadedMember
"""What a share is created from: a snapshot, or a member of one of a group."""


def source_for_driver(source: CloneSource, names: NameTemplates) -> SnapshotForDriver:
    """Return a snapshot as drivers are given it to create a share from."""
    if isinstance(source, LoadedMember):
        return source.for_driver(names)
    return share_view.snapshot_for_driver(source, names)


class LoadedGroupSnapshot(typing.NamedTuple):
    """A snapshot of a group as read for work."""

    row: rows.ShareGroupSnapshotRow
    group: LoadedGroup
    members: list[LoadedMember]

    @property
    def share_instance_ids(self) -> list[str]:
        return [one.row.share_instance_id for one in self.members]

    def for_driver(self, names: NameTemplates) -> ShareGroupSnapshotForDriver:
        return server_view.from_row(
            ShareGroupSnapshotForDriver,
            self.row,
            share_group=self.group.for_driver,
            share_group_snapshot_members=[
                one.for_driver(names) for one in self.members
            ],
        )


def load_member(session: Session, member_id: str) -> LoadedMember:
    """Read a member of an available snapshot, with its share.

    The snapshot is locked (shared): it is not deleted before the transaction
    ends. Raises ShareGroupSnapshotMemberNotFound, InvalidShareGroupSnapshot.
    """
    row = snapshots.get_member(session, member_id)
    member_sources.lock_available(session, row.share_group_snapshot_id)
    return LoadedMember(row, share_view.load_instance(session, row.share_instance_id))


def load_snapshot(
    session: Session, snapshot_id: str, *, lock_shared: bool = False
) -> LoadedGroupSnapshot:
    """Read a snapshot with its members and their shares.

    Takes a constant number of statements. Raises ShareGroupSnapshotNotFound;
    with `lock_shared` its row is locked against moves.
    """
    read = snapshots.lock_shared if lock_shared else snapshots.get
    row = read(session, snapshot_id)
    members = snapshots.list_members(session, [snapshot_id])[snapshot_id]
    instances = {
        one.row.id: one
        for one in share_view.load_instances(
            session, [member.share_instance_id for member in members]
        )
    }
    return LoadedGroupSnapshot(
        row,
        load_group(session, row.share_group_id),
        [
            LoadedMember(member, instances[member.share_instance_id])
            for member in members
            if member.share_instance_id in instances
        ],
    )


class Clone(typing.NamedTuple):
    """A share to be created, and the snapshot it is created from.

    With `waits_for_group`, work on its group is about to create it.
    """

    share: LoadedInstance
    snapshot: CloneSource
    waits_for_group: bool = False

    def snapshot_for_driver(self, names: NameTemplates) -> base.SnapshotForDriver:
        return source_for_driver(self.snapshot, names)


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
