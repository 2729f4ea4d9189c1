"""Take and delete snapshots of share groups.

The shares of the group are snapshotting until the snapshot of all of them
has been taken, or has failed.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import typing

from manila_lite import exception
from manila_lite.db.moves.snapshots import release_shares
from manila_lite.db.queries.groups import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota.snapshots import remove_group_snapshot
from manila_lite.rpc.contract import implements, work
from manila_lite.rpc.share import ShareGroupSnapshotsRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import group_view
from manila_lite.share.manager.driver_view.group_view import (
    LoadedGroupSnapshot,
    LoadedMember,
)
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoint import require_status, undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.states.share_group import SHARE_GROUP_SNAPSHOT, GroupSnapshotStatus
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

Locations = Mapping[str, str | None]
"""Where the back end has the snapshot of each share, by member id."""


_AVAILABLE = GroupSnapshotStatus.AVAILABLE


class UnusableGroupSnapshot(exception.ShareBackendException):
    """The driver reports that a snapshot is in error, and where it is."""

    def __init__(self, locations: Locations):
        super().__init__(msg='the driver reports that the snapshot is in error')
        self.locations = locations


@implements(ShareGroupSnapshotsRpc)
@dataclasses.dataclass(eq=False)
class ShareGroupSnapshotsEndpoint:
    """Carries out work on the group snapshots of one back end."""

    driver: base.ShareDriver
    names: NameTemplates

    # Create

    @work(expects=GroupSnapshotStatus.CREATING)
    def create_share_group_snapshot(
        self, job: JobContext, share_group_snapshot_id: str
    ) -> None:
        snapshot: LoadedGroupSnapshot = job.prepared
        locations = self._take(snapshot)
        undo = functools.partial(self._remove, snapshot)
        with undo_if_gone(job, snapshots.find, share_group_snapshot_id, undo):
            job.finish(self.created, snapshot, locations)

    def _take(self, snapshot: LoadedGroupSnapshot) -> Locations:
        if isinstance(self.driver, base.ShareGroupSnapshotSupport):
            return locations_of(
                self.driver.create_share_group_snapshot(
                    driver_context(),
                    snapshot.for_driver(self.names),
                    share_server=snapshot.group.share_server,
                )
            )
        return self._take_one_by_one(snapshot)

    def _take_one_by_one(self, snapshot: LoadedGroupSnapshot) -> Locations:
        """Take a snapshot of each share; if one fails, remove the others."""
        found: dict[str, str | None] = {}
        driver = typing.cast(base.SnapshotSupport, self.driver)
        with contextlib.ExitStack() as undo:
            for member in snapshot.members:
                view = member.for_driver(self.names)
                reply = (
                    driver.create_snapshot(
                        driver_context(), view, share_server=member.share.share_server
                    )
                    or {}
                )
                location = reply.get('provider_location')
                undo.callback(
                    self._remove_member,
                    member,
                    dataclasses.replace(view, provider_location=location),
                )
                if reply.get('status', _AVAILABLE) != _AVAILABLE:
                    raise UnusableGroupSnapshot({})
                found[member.row.id] = location
            undo.pop_all()
        return found

    def created(
        self, session: Session, snapshot: LoadedGroupSnapshot, locations: Locations
    ) -> None:
        """Record that the snapshot was taken, and release the shares."""
        release_shares(session, snapshot.share_instance_ids, excluding=snapshot.row.id)
        fire(session, SHARE_GROUP_SNAPSHOT, snapshot.row.id, 'created')
        snapshots.set_locations(session, locations)

    def failed_create_share_group_snapshot(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Store the reported locations, which deletion needs."""
        if isinstance(error, UnusableGroupSnapshot):
            snapshots.set_locations(session, error.locations)
        return False

    def dropped_create_share_group_snapshot(self, session: Session, job: Claim) -> None:
        self.release(session, job.resource_id)

    def release(self, session: Session, snapshot_id: str) -> None:
        """Release the shares of a snapshot that is not taken any more."""
        members = snapshots.list_members(session, [snapshot_id])[snapshot_id]
        release_shares(
            session, [one.share_instance_id for one in members], excluding=snapshot_id
        )

    # Delete

    @work(expects=GroupSnapshotStatus.DELETING)
    def delete_share_group_snapshot(
        self, job: JobContext, share_group_snapshot_id: str
    ) -> None:
        snapshot: LoadedGroupSnapshot = job.prepared
        self._remove(snapshot)
        job.finish(remove_group_snapshot, snapshot.row)

    def _remove(self, snapshot: LoadedGroupSnapshot) -> None:
        """Remove the snapshots of all members; a missing one is success."""
        if isinstance(self.driver, base.ShareGroupSnapshotSupport):
            locations_of(
                self.driver.delete_share_group_snapshot(
                    driver_context(),
                    snapshot.for_driver(self.names),
                    share_server=snapshot.group.share_server,
                )
            )
            return
        for member in snapshot.members:
            self._remove_member(member, member.for_driver(self.names))

    def _remove_member(
        self, member: LoadedMember, view: base.SnapshotForDriver
    ) -> None:
        with contextlib.suppress(
            exception.SnapshotResourceNotFound, exception.ShareResourceNotFound
        ):
            typing.cast(base.SnapshotSupport, self.driver).delete_snapshot(
                driver_context(), view, share_server=member.share.share_server
            )

    def expect(self, session: Session, job: Claim, status: str) -> LoadedGroupSnapshot:
        """Return the locked snapshot if it still waits for this work."""
        snapshot = group_view.load_snapshot(session, job.resource_id, lock_shared=True)
        require_status(
            job, SHARE_GROUP_SNAPSHOT, snapshot.row.id, snapshot.row.status, status
        )
        return snapshot


def locations_of(reply: base.GroupSnapshotReply) -> Locations:
    """Return the locations of members in a reply of the driver.

    Raises UnusableGroupSnapshot if it reports a failure.
    """
    update, members = reply or (None, None)
    found = {
        one['id']: one['provider_location']
        for one in members or ()
        if one.get('provider_location')
    }
    for one in (update or {}, *(members or ())):
        if one.get('status') == GroupSnapshotStatus.ERROR:
            raise UnusableGroupSnapshot(found)
    return found
