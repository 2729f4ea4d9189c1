"""Create and delete share groups.

A group on a share network gets its share server here; its shares follow it.
A driver without groups is not called: there is nothing else to do on its back
end before the first share of a group, or after the last one.
"""

import contextlib
import dataclasses
import functools

from manila_lite import exception
from manila_lite.db.queries.groups import member_sources, share_groups, snapshots
from manila_lite.db.rows import ShareGroupRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota.snapshots import remove_group
from manila_lite.rpc.contract import implements, work, work_kinds
from manila_lite.rpc.share import ShareGroupsRpc
from manila_lite.share.drivers.base import GroupReply, ShareDriver, ShareGroupSupport
from manila_lite.share.manager.driver_view import group_view
from manila_lite.share.manager.driver_view.group_view import LoadedGroup
from manila_lite.share.manager.endpoint import require_status, undo_if_gone
from manila_lite.share.manager.groups.copies import GroupCopies, GroupCopy
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_group import SHARE_GROUP, GroupStatus
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

INTERVAL = 1.0
"""Seconds until a new group looks for its shares again."""

_AWAIT = work_kinds(ShareGroupsRpc)['share_groups.await_shares_of_group']


@implements(ShareGroupsRpc)
@dataclasses.dataclass(eq=False)
class ShareGroupsEndpoint:
    """Carries out work on the share groups of one back end."""

    driver: ShareDriver
    setup: ServerSetup
    servers: ShareServersEndpoint
    copies: GroupCopies

    # Create

    @work(expects=GroupStatus.CREATING, failed='_record_failure')
    def create_share_group(
        self, job: JobContext, share_group_id: str, on_network: bool = False
    ) -> None:
        group = self.setup.provide_server_for_group(job, job.prepared)
        if group is None:
            return
        if self.copies.can_create(group):
            self._create_copy(job, group)
            return
        if isinstance(self.driver, ShareGroupSupport):
            _check(
                self.driver.create_share_group(
                    driver_context(), group.for_driver, share_server=group.share_server
                )
            )
        undo = functools.partial(self._remove, group)
        with undo_if_gone(job, share_groups.find, share_group_id, undo):
            if group.row.source_share_group_snapshot_id is None:
                job.finish(self.created, share_group_id)
            else:
                job.hand_over(_await_shares, job.claim, share_group_id)

    def _create_copy(self, job: JobContext, group: LoadedGroup) -> None:
        """Create a group from a snapshot, together with its shares."""
        copy = self.copies.create(job, group)

        def undo() -> None:
            self._remove(group)
            self.copies.remove_orphans(job, copy)

        with undo_if_gone(job, share_groups.find, group.row.id, undo):
            if copy.copying:
                job.hand_over(self._copying, job.claim, copy)
            else:
                job.finish(self._copied, copy)

    def _copied(self, session: Session, copy: GroupCopy) -> None:
        self.created(session, copy.group.row.id)
        self.copies.record(session, copy)

    def _copying(self, session: Session, job: Claim, copy: GroupCopy) -> None:
        _await_shares(session, job, copy.group.row.id)
        self.copies.record(session, copy)

    def created(self, session: Session, group_id: str) -> None:
        """Record that a group exists on its back end."""
        fire(session, SHARE_GROUP, group_id, 'created')

    def _record_failure(self, session: Session, job: Claim, error: Exception) -> bool:
        return self.setup.record_failure_of_group(session, job, error)

    # Its shares, if it is created from a snapshot

    @work(expects=GroupStatus.CREATING)
    def await_shares_of_group(self, job: JobContext, share_group_id: str) -> None:
        if job.read(member_sources.are_shares_created, share_group_id):
            job.finish(self.created, share_group_id)
        else:
            job.pause(INTERVAL)

    # Delete

    def prepare_delete_share_group(self, session: Session, job: Claim) -> LoadedGroup:
        group = self.expect(session, job, GroupStatus.DELETING)
        if share_groups.has_members(session, group.row.id) or snapshots.has_any(
            session, group.row.id
        ):
            # Only after `reset_status`: requests are refused with them.
            raise exception.InvalidShareGroup(
                reason=f'share group {group.row.id} has shares or snapshots'
            )
        return group

    def delete_share_group(self, job: JobContext, share_group_id: str) -> None:
        group: LoadedGroup = job.prepared
        self._remove(group)
        job.finish(self._deleted, group.row)

    def _deleted(self, session: Session, row: ShareGroupRow) -> None:
        remove_group(session, row)
        self.servers.release(session, row.share_server_id)

    def _remove(self, group: LoadedGroup) -> None:
        """Remove a group from the back end; a missing one is success."""
        if isinstance(self.driver, ShareGroupSupport):
            with contextlib.suppress(exception.ShareGroupResourceNotFound):
                _check(
                    self.driver.delete_share_group(
                        driver_context(),
                        group.for_driver,
                        share_server=group.share_server,
                    )
                )

    def expect(self, session: Session, job: Claim, status: str) -> LoadedGroup:
        """Return the locked group if it still waits for this work."""
        group = group_view.load_group(session, job.resource_id, lock_shared=True)
        require_status(job, SHARE_GROUP, group.row.id, group.row.status, status)
        return group


def _await_shares(session: Session, job: Claim, group_id: str) -> None:
    table.hand_over(session, job, _AWAIT, job.queue, {'share_group_id': group_id})


def _check(reply: GroupReply) -> None:
    """Raise ShareBackendException if the driver reports a failure."""
    update = reply[0] if isinstance(reply, tuple) else reply
    if (update or {}).get('status') == GroupStatus.ERROR:
        raise exception.ShareBackendException(
            msg='the driver reports that the share group is in error'
        )
