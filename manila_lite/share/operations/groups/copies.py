"""Accept share groups that are created from snapshots of share groups.

The new group is on the back end of the snapshot, and on its share server if
it has one, so the scheduler is not asked. Its shares are created from the
members, each by work of its own; the group is being created until they are
there.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.groups import member_sources, share_groups
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.types import group_types, qos_types, types as share_types
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Database, Session, transaction
from manila_lite.quota import charges, shares as share_quota
from manila_lite.quota.charges import Owner
from manila_lite.quota.encryption_keys import charge_key
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.snapshots import GROUP_DELTAS
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ProvisioningRpc, ShareGroupsRpc
from manila_lite.share.operations.groups.share_groups import (
    ShareGroupRequest,
    insert_group,
)
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.shares import placement
from manila_lite.work.admission import AdmissionControl, admission_controlled


@dataclasses.dataclass(eq=False)
class ShareGroupCopies:
    """Creation of groups from snapshots. Each method is one transaction."""

    db: Database
    limits: DefaultLimits
    groups: Client[ShareGroupsRpc]
    provisioning: Client[ProvisioningRpc]
    admission: AdmissionControl

    @admission_controlled
    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.ShareGroupSnapshotRow,
        request: ShareGroupRequest,
    ) -> str:
        """Accept a group with a share for each member of the snapshot.

        Returns the id of the group. Type, availability zone and share
        network may be omitted or must be those of the group of the snapshot.
        """
        member_sources.lock_available(session, snapshot.id)
        # With a snapshot, it is not deleted: nor is its share server.
        source = share_groups.get(session, snapshot.share_group_id)
        _refuse_other_project(ctx, snapshot)
        _check_repeats(session, ctx, request, source)
        if source.share_network_id is not None:
            checks.lock_active_shared(session, source.share_network_id)
        members = member_sources.list_sources(session, snapshot.id)
        _refuse_without_support(members)
        types = {
            id: _share_type(session, ctx, id)
            for id in sorted({one.share_type_id for one in members})
        }
        qos_types_of = {
            id: qos_types.lock_default(session, share_type)
            for id, share_type in types.items()
        }
        group_id = insert_group(
            session,
            ctx,
            request,
            share_groups.list_share_types(session, [source.id])[source.id],
            share_group_type_id=source.share_group_type_id,
            host=source.host,
            availability_zone_id=source.availability_zone_id,
            share_network_id=source.share_network_id,
            share_server_id=source.share_server_id,
            consistent_snapshot_support=source.consistent_snapshot_support,
            source_share_group_snapshot_id=snapshot.id,
        )
        self.groups.on(typing.cast(str, source.host)).create_share_group(
            session,
            ctx,
            share_group_id=group_id,
            on_network=source.share_network_id is not None,
        )
        for member in members:
            self._create_share(
                session,
                ctx,
                group_id,
                source.share_network_id,
                member,
                types[member.share_type_id],
                qos_types_of[member.share_type_id],
            )
        # Late: others of the project wait from here to the commit.
        self._charge(session, ctx, members, types)
        _allocate(session, members)
        return group_id

    def _charge(
        self,
        session: Session,
        ctx: RequestContext,
        members: Sequence[rows.MemberSourceRow],
        types: Mapping[str, TypeWithSpecs],
    ) -> None:
        project_id = typing.cast(str, ctx.project_id)
        charges.charge(
            session, Owner(project_id, ctx.user_id), GROUP_DELTAS, limits=self.limits
        )
        for type_id, share_type in types.items():
            sizes = [one.size for one in members if one.share_type_id == type_id]
            has_replicas = 'replication_type' in share_type.extra_specs
            share_quota.charge(
                session,
                Owner(project_id, ctx.user_id, type_id),
                max(sizes),
                limits=self.limits,
                shares=len(sizes),
                gigabytes=sum(sizes),
                replicas=int(has_replicas),
            )
        keys = {one.encryption_key_ref for one in members}
        for key_ref in sorted(key for key in keys if key is not None):
            users = [one for one in members if one.encryption_key_ref == key_ref]
            charge_key(
                session,
                Owner(project_id, ctx.user_id, users[0].share_type_id),
                key_ref,
                limits=self.limits,
                shares=len(users),
            )

    def _create_share(
        self,
        session: Session,
        ctx: RequestContext,
        group_id: str,
        share_network_id: str | None,
        member: rows.MemberSourceRow,
        share_type: TypeWithSpecs,
        qos_type_id: str | None,
    ) -> None:
        new = placement.insert(
            session,
            ctx,
            {
                'size': member.size,
                'share_group_id': group_id,
                'source_share_group_snapshot_member_id': member.id,
                'share_proto': member.share_proto,
                'is_public': False,
                **share_types.capability_columns(share_type),
            },
            {
                'share_type_id': member.share_type_id,
                'qos_type_id': qos_type_id,
                'host': member.host,
                'availability_zone_id': member.availability_zone_id,
                'share_network_id': share_network_id,
                'encryption_key_ref': member.encryption_key_ref,
            },
            {},
        )
        self.provisioning.on(member.host).create_share_from_group_snapshot(
            session, ctx, instance_id=new.instance['id'], member_id=member.id
        )


def _share_type(session: Session, ctx: RequestContext, type_id: str) -> TypeWithSpecs:
    """Return the type of a member, which its owner may use."""
    found = share_types.find_usable(session, type_id, ctx.project_id, True)
    if found is None:
        raise exception.ShareTypeNotFound(share_type_id=type_id)
    return found


def _refuse_other_project(
    ctx: RequestContext, snapshot: rows.ShareGroupSnapshotRow
) -> None:
    """Refuse to copy the data of one project to another.

    Administrators see the snapshots of all projects.
    """
    if snapshot.project_id != ctx.project_id:
        raise exception.InvalidInput(
            reason='source_share_group_snapshot_id: share group snapshot '
            f'{snapshot.id} belongs to project {snapshot.project_id}, not '
            f'{ctx.project_id}'
        )


def _check_repeats(
    session: Session,
    ctx: RequestContext,
    request: ShareGroupRequest,
    source: rows.ShareGroupRow,
) -> None:
    """Raise InvalidInput where the request contradicts the snapshot."""
    if request.share_types:
        raise exception.InvalidInput(
            reason='share_types cannot be used with '
            'source_share_group_snapshot_id: they are those of the group of '
            'the snapshot'
        )
    wanted = request.share_group_type_id
    if wanted is not None:
        found = group_types.find(session, ctx, wanted)
        if found is None or found.id != source.share_group_type_id:
            raise exception.InvalidInput(
                reason='share_group_type_id must be that of the group of the '
                'snapshot, or omitted'
            )
    if request.share_network_id not in (None, source.share_network_id):
        raise exception.InvalidInput(
            reason='share_network_id must be that of the group of the '
            'snapshot, or omitted'
        )
    if request.availability_zone not in (
        None,
        source.availability_zone,
        source.availability_zone_id,
    ):
        raise exception.InvalidInput(
            reason='availability_zone must be that of the group of the '
            'snapshot, or omitted'
        )


def _refuse_without_support(members: Sequence[rows.MemberSourceRow]) -> None:
    for one in members:
        if not one.create_share_from_snapshot_support:
            raise exception.InvalidShareGroupSnapshot(
                reason=f'share {one.share_id}, a member of it, does not '
                'support creating shares from its snapshots'
            )


def _allocate(session: Session, members: Sequence[rows.MemberSourceRow]) -> None:
    """Count the new shares on their pools, last to avoid deadlocks."""
    by_host = collections.Counter[str]()
    for one in members:
        by_host[one.host] += one.size
    for host in sorted(by_host):
        pools.adjust_allocated(session, host, by_host[host])
