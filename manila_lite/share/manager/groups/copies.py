"""Create groups from snapshots with all their shares, where a driver can.

One call of the driver creates the group and its shares. The work that
creates each of these shares waits for it, and is stale when it has
succeeded. For other drivers it creates the share by itself.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import typing

from manila_lite import exception
from manila_lite.db.queries.groups import member_sources
from manila_lite.db.queries.servers import relocation, share_servers
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ProvisioningRpc
from manila_lite.share.drivers.base import (
    GroupReply,
    ShareDriver,
    ShareGroupFromSnapshotSupport,
)
from manila_lite.share.manager.driver_view import group_view, share_view
from manila_lite.share.manager.driver_view.group_view import ReportedClone, parse_reply
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.demand import no_server
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_group import GroupStatus
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


class GroupCopy(typing.NamedTuple):
    """A group that is created from a snapshot, with its shares.

    `replies` are what the driver reports about them, by share instance id.
    """

    group: group_view.LoadedGroup
    snapshot: group_view.LoadedGroupSnapshot
    shares: list[LoadedInstance]
    replies: Mapping[str, ReportedClone]

    @property
    def copying(self) -> list[LoadedInstance]:
        """The shares that the back end has begun to create."""
        return [
            one
            for one in self.shares
            if self.replies[one.row.id].status != InstanceStatus.AVAILABLE
        ]


@dataclasses.dataclass(eq=False)
class GroupCopies:
    """Creates groups with shares on one back end, in one driver call each."""

    driver: ShareDriver
    setup: ServerSetup
    provisioning: Client[ProvisioningRpc]

    def __post_init__(self) -> None:
        self.provisioning = self.provisioning.on(self.setup.service_host)

    def can_create(self, group: group_view.LoadedGroup) -> bool:
        """Whether the driver creates the shares together with this group."""
        return group.row.source_share_group_snapshot_id is not None and (
            isinstance(self.driver, ShareGroupFromSnapshotSupport)
        )

    def create(self, job: JobContext, group: group_view.LoadedGroup) -> GroupCopy:
        """Create a group that has its server, and its shares."""
        copy = job.read(self._load, group)
        if group.server is not None:
            self.setup.db.write(self._bind, job.claim, copy, by=job.claim)
        names = self.setup.names
        driver = typing.cast(ShareGroupFromSnapshotSupport, self.driver)
        reply = driver.create_share_group_from_share_group_snapshot(
            driver_context(),
            dataclasses.replace(
                group.for_driver,
                shares=[
                    share_view.share_for_driver(one, names.share) for one in copy.shares
                ],
            ),
            copy.snapshot.for_driver(names),
            share_server=group.share_server,
        )
        return copy._replace(replies=self._parse(copy, reply))

    def _load(self, session: Session, group: group_view.LoadedGroup) -> GroupCopy:
        snapshot_id = typing.cast(str, group.row.source_share_group_snapshot_id)
        instances = share_view.load_instances(
            session, member_sources.list_creating(session, group.row.id)
        )
        return GroupCopy(
            group,
            group_view.load_snapshot(session, snapshot_id),
            [one._replace(server=group.server) for one in instances],
            {},
        )

    def _bind(self, session: Session, job: Claim, copy: GroupCopy) -> None:
        """Put the shares on the server of the group; raise without room."""
        assert copy.group.server is not None
        server_id = copy.group.server.row.id
        table.checkpoint(session, job, f'shares on share server {server_id}')
        for one in copy.shares:
            if one.row.share_server_id is None and not share_servers.bind(
                session, one.row.id, server_id, one.row.size, self.setup.limits
            ):
                raise no_server(
                    f'share server {server_id}, that of the share group, '
                    f'cannot take share {one.row.share_id}'
                )

    def _parse(self, copy: GroupCopy, reply: GroupReply) -> dict[str, ReportedClone]:
        """Return what is reported about each share, or raise."""
        update, shares = reply if isinstance(reply, tuple) else (reply, None)
        if (update or {}).get('status') == GroupStatus.ERROR:
            raise exception.ShareBackendException(
                msg='the driver reports that the share group is in error'
            )
        found = {
            one['id']: parse_reply({'status': InstanceStatus.AVAILABLE, **one})
            for one in shares or ()
        }
        for one in copy.shares:
            if one.row.id not in found:
                raise exception.ShareBackendException(
                    msg=f'the driver reports nothing about {one.row.id}, a '
                    'share of the group'
                )
        return found

    def record(self, session: Session, copy: GroupCopy) -> None:
        """Record the shares that were created, or are being copied.

        One that a request has moved on meanwhile is left alone.
        """
        ids = member_sources.lock_creating(session, [one.row.id for one in copy.shares])
        copying = {one.row.id for one in copy.copying} & ids
        fire_matching(
            session,
            SHARE_INSTANCE,
            'created',
            {'id': sorted(ids - copying)},
            progress='100%',
        )
        relocation.replace_exports(
            session, {id: copy.replies[id].exports for id in ids}
        )
        for one in copy.copying:
            if one.row.id not in copying:
                continue
            fire_matching(
                session,
                SHARE_INSTANCE,
                'copy',
                {'id': one.row.id},
                progress=copy.replies[one.row.id].progress,
            )
            self.provisioning.await_share_from_snapshot(
                session, owner_context(one.row), instance_id=one.row.id
            )

    def remove_orphans(self, job: JobContext, copy: GroupCopy) -> None:
        """Delete what was created for shares that are gone."""
        for one in copy.shares:
            if job.read(share_instances.find, one.row.id) is None:
                with contextlib.suppress(exception.ShareResourceNotFound):
                    self.driver.delete_share(
                        driver_context(),
                        share_view.share_for_driver(one, self.setup.names.share),
                        share_server=one.share_server,
                    )
