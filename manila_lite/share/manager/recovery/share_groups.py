"""Rescue of share groups and of their snapshots."""

from collections.abc import Mapping
import dataclasses

from manila_lite.db.queries.groups import share_groups, snapshots as rows
from manila_lite.db.rows import ShareGroupRow, ShareGroupSnapshotRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.messages import Action
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import group_view
from manila_lite.share.manager.driver_view.group_view import (
    LoadedGroup,
    LoadedGroupSnapshot,
)
from manila_lite.share.manager.groups.lifecycle import ShareGroupsEndpoint
from manila_lite.share.manager.groups.snapshots import (
    ShareGroupSnapshotsEndpoint,
    locations_of,
)
from manila_lite.share.manager.recovery.base import (
    DriverCall,
    Ending,
    ProbedRecovery,
    RescueCase,
    Verdict,
    verdict_on_status,
)
from manila_lite.states import share_group
from manila_lite.states.share_server import ServerStatus

GroupCase = RescueCase[ShareGroupRow, LoadedGroup]


@dataclasses.dataclass(eq=False)
class ShareGroupRecovery(ProbedRecovery[ShareGroupRow, LoadedGroup]):
    machine = share_group.SHARE_GROUP

    groups: ShareGroupsEndpoint

    def find(self, session: Session, id: str) -> GroupCase | None:
        if share_groups.find(session, id) is None:
            return None
        loaded = group_view.load_group(session, id)
        return RescueCase(loaded.row, loaded)

    def driver_call(self, case: GroupCase, name: str) -> DriverCall:
        group = case.loaded
        if group.row.share_network_id is not None and (
            group.server is None or group.server.row.status == ServerStatus.CREATING
        ):
            return (_has_no_server,)
        if not isinstance(self.groups.driver, base.ShareGroupSupport):
            return (_exists_without_driver,)
        return (getattr(self.groups.driver, name), group.for_driver, group.share_server)

    def interpret(self, case: GroupCase, reply: object) -> Verdict:
        return verdict_on_status(reply, share_group.GroupStatus.AVAILABLE)

    def converge(self, session: Session, case: GroupCase, end: Ending) -> None:
        self.groups.created(session, case.row.id)

    def give_up(self, session: Session, case: GroupCase, end: Ending) -> None:
        fire(session, share_group.SHARE_GROUP, case.row.id, end.event)
        self.notify(
            session,
            end,
            Action.DELETE if end.event == 'delete_failed' else Action.CREATE,
        )


def _has_no_server() -> base.StatusReply:
    """Return the state of a group whose share server was not finished."""
    return {'status': share_group.GroupStatus.ERROR}


def _exists_without_driver() -> base.StatusReply:
    """Return the state of a group that the back end need not know of."""
    return {'status': share_group.GroupStatus.AVAILABLE}


GroupSnapshotCase = RescueCase[ShareGroupSnapshotRow, LoadedGroupSnapshot]


@dataclasses.dataclass(eq=False)
class ShareGroupSnapshotRecovery(
    ProbedRecovery[ShareGroupSnapshotRow, LoadedGroupSnapshot]
):
    machine = share_group.SHARE_GROUP_SNAPSHOT

    snapshots: ShareGroupSnapshotsEndpoint

    def find(self, session: Session, id: str) -> GroupSnapshotCase | None:
        if rows.find(session, id) is None:
            return None
        loaded = group_view.load_snapshot(session, id)
        return RescueCase(loaded.row, loaded)

    def driver_call(self, case: GroupSnapshotCase, name: str) -> DriverCall:
        driver, names = self.snapshots.driver, self.snapshots.names
        if isinstance(driver, base.ShareGroupSnapshotSupport):
            return (
                getattr(driver, name),
                case.loaded.for_driver(names),
                case.loaded.group.share_server,
            )
        return (self._ask_for_members, case.loaded)

    def _ask_for_members(self, snapshot: LoadedGroupSnapshot) -> base.StatusReply:
        """Return what the back end says of the snapshots of all shares."""
        members: list[Mapping[str, str | None]] = []
        for member in snapshot.members:
            reply = self.snapshots.driver.get_snapshot_status(
                member.for_driver(self.snapshots.names), member.share.share_server
            )
            if reply['status'] != share_group.GroupSnapshotStatus.AVAILABLE:
                return reply
            members.append(
                {
                    'id': member.row.id,
                    'provider_location': reply.get('provider_location'),
                }
            )
        return {
            'status': share_group.GroupSnapshotStatus.AVAILABLE,
            'share_group_snapshot_members': members,
        }

    def interpret(self, case: GroupSnapshotCase, reply: object) -> Verdict:
        return verdict_on_status(reply, share_group.GroupSnapshotStatus.AVAILABLE)

    def converge(self, session: Session, case: GroupSnapshotCase, end: Ending) -> None:
        members = end.facts.get('share_group_snapshot_members')
        self.snapshots.created(session, case.loaded, locations_of((None, members)))

    def give_up(self, session: Session, case: GroupSnapshotCase, end: Ending) -> None:
        self.snapshots.release(session, case.row.id)
        fire(session, share_group.SHARE_GROUP_SNAPSHOT, case.row.id, end.event)
        self.notify(
            session,
            end,
            Action.DELETE if end.event == 'delete_failed' else Action.CREATE,
        )
