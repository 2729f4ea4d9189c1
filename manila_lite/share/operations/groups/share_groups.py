"""Accept requests about share groups.

A share joins a group when it is created, and leaves it when it is deleted.
A request that adds one locks the group (shared); one that removes the group
moves it first and then looks for shares.
"""

from collections.abc import Sequence
import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.groups import share_groups, snapshots
from manila_lite.db.queries.types import group_types, types as share_types
from manila_lite.db.queries.types.group_types import ShareGroupTypeRecord
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, insert_row
from manila_lite.host import Host
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.snapshots import GROUP_DELTAS, remove_group
from manila_lite.rpc.contract import Client
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import ShareGroupsRpc
from manila_lite.share.operations.reset_events import RecordOperations
from manila_lite.share.operations.shares import placement, share_request
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.share_group import (
    CONSISTENCIES,
    IN_POOL,
    SHARE_GROUP,
    GroupStatus,
)
from manila_lite.work.admission import AdmissionControl, placement_controlled

CONSISTENT_SNAPSHOTS = 'consistent_snapshot_support'
"""The group spec that says within what snapshots are consistent."""


@dataclasses.dataclass(frozen=True)
class ShareGroupRequest:
    """A request for a share group; fields as in the published body.

    `apply_type_zones` enables a rule that depends on the API version.
    """

    name: str | None = None
    description: str | None = None
    share_types: Sequence[str] = ()
    share_group_type_id: str | None = None
    share_network_id: str | None = None
    availability_zone: str | None = None
    apply_type_zones: bool = False


@dataclasses.dataclass(eq=False)
class ShareGroups(RecordOperations):
    """Operations on share groups. Each method is one transaction."""

    machine, records = SHARE_GROUP, share_groups.RECORDS

    db: Database
    limits: DefaultLimits
    scheduler: Client[PlacementRpc]
    groups: Client[ShareGroupsRpc]
    admission: AdmissionControl
    default_type: Annotated[str | None, Option('default_share_type')]
    default_group_type: Annotated[str | None, Option('default_share_group_type')]

    # Create

    @placement_controlled
    @transaction
    def create(
        self, session: Session, ctx: RequestContext, request: ShareGroupRequest
    ) -> str:
        """Accept a share group and return its id; placement follows."""
        group_type = self._group_type(session, ctx, request)
        types = self._share_types(session, ctx, request, group_type)
        _check_network(request, types)
        zone = placement.get_zone(session, request.availability_zone)
        zones = placement.zones_on_network(
            session,
            ctx,
            request.share_network_id,
            _allowed_zones(request, zone.name if zone else None, types),
        )
        charges.charge(
            session,
            Owner(typing.cast(str, ctx.project_id), ctx.user_id),
            GROUP_DELTAS,
            limits=self.limits,
        )
        group_id = insert_group(
            session,
            ctx,
            request,
            [one.id for one in types],
            share_group_type_id=group_type.id,
            availability_zone_id=zone and zone.id,
            share_network_id=request.share_network_id,
            consistent_snapshot_support=_consistency(group_type),
        )
        self.scheduler.create_share_group(
            session,
            ctx,
            share_group_id=group_id,
            zones=zones,
            on_network=request.share_network_id is not None,
        )
        return group_id

    def _group_type(
        self, session: Session, ctx: RequestContext, request: ShareGroupRequest
    ) -> ShareGroupTypeRecord:
        wanted = request.share_group_type_id or self.default_group_type
        if not wanted:
            raise exception.InvalidInput(
                reason='share_group_type_id is required: there is no default '
                'share group type'
            )
        found = group_types.find(session, ctx, wanted)
        if found is None:
            raise exception.ShareGroupTypeNotFound(share_group_type_id=wanted)
        return found

    def _share_types(
        self,
        session: Session,
        ctx: RequestContext,
        request: ShareGroupRequest,
        group_type: ShareGroupTypeRecord,
    ) -> list[TypeWithSpecs]:
        """Return the share types of the new group, by id."""
        wanted = request.share_types or [self.default_type or '']
        if not all(wanted):
            raise exception.InvalidInput(
                reason='share_types is required: there is no default share type'
            )
        found = {}
        for one in dict.fromkeys(wanted):
            share_type = share_types.find_usable(
                session, one, ctx.project_id, ctx.is_admin
            )
            if share_type is None:
                raise exception.InvalidInput(
                    reason=f'share_types: there is no share type {one}'
                )
            if share_type.id not in group_type.share_types:
                raise exception.InvalidInput(
                    reason=f'share_types: share type {one} is not one of '
                    f'those of share group type {group_type.name}'
                )
            found[share_type.id] = share_type
        return [found[id] for id in sorted(found)]

    # Delete

    @transaction
    def delete(self, session: Session, ctx: RequestContext, group_id: str) -> None:
        """Request the deletion of a share group without shares."""
        fire(session, SHARE_GROUP, group_id, 'delete')
        if share_groups.has_members(session, group_id):
            raise exception.InvalidShareGroup(
                reason=f'share group {group_id} has shares; delete them first'
            )
        self._refuse_snapshots(session, group_id)
        group = share_groups.get(session, group_id)
        if group.host is None:
            remove_group(session, group)
            return
        self.groups.on(group.host).delete_share_group(
            session, ctx, share_group_id=group_id
        )

    @transaction
    def force_delete(
        self, session: Session, ctx: RequestContext, group_id: str
    ) -> None:
        """Remove the rows of a group; its shares stay without it.

        The back end is not called, as published. A share server that
        becomes idle by that is found by the periodic task that deletes it.
        """
        group = share_groups.lock(session, group_id)
        self._refuse_snapshots(session, group_id)
        remove_group(session, group, 'force_delete')
        share_groups.release_members(session, group_id)

    def _refuse_snapshots(self, session: Session, group_id: str) -> None:
        if snapshots.has_any(session, group_id):
            raise exception.InvalidShareGroup(
                reason=f'share group {group_id} has snapshots; delete them first'
            )


def _check_network(request: ShareGroupRequest, types: Sequence[TypeWithSpecs]) -> None:
    """Require a share network if, and only if, the types have DHSS true."""
    with_servers = [one for one in types if one.flag('driver_handles_share_servers')]
    if with_servers and len(with_servers) != len(types):
        raise exception.InvalidInput(
            reason='share_types: driver_handles_share_servers must be the '
            'same for all of them'
        )
    if with_servers and request.share_network_id is None:
        raise exception.InvalidInput(
            reason='share_network_id is required by share type '
            f'{with_servers[0].name}, whose driver_handles_share_servers '
            'is true'
        )
    if request.share_network_id is not None and not with_servers:
        raise exception.InvalidInput(
            reason='share_network_id cannot be used with share type '
            f'{types[0].name}, whose driver_handles_share_servers is false'
        )


def _allowed_zones(
    request: ShareGroupRequest, zone: str | None, types: Sequence[TypeWithSpecs]
) -> list[str]:
    """Return the zones that all types allow; empty means any."""
    allowed: set[str] | None = None if zone is None else {zone}
    for one in types if request.apply_type_zones else ():
        zones = set(share_request.type_zones(one))
        if zones:
            allowed = zones if allowed is None else allowed & zones
    if allowed is not None and not allowed:
        raise exception.InvalidInput(
            reason='availability_zone: no zone is one of those of all share '
            'types of the group'
        )
    return sorted(allowed or ())


def insert_group(
    session: Session,
    ctx: RequestContext,
    request: ShareGroupRequest,
    share_type_ids: Sequence[str],
    **values: object,
) -> str:
    """Insert the row of a group that was requested; return its id."""
    group_id = session.new_id()
    insert_row(
        session,
        SHARE_GROUP,
        'create',
        id=group_id,
        project_id=ctx.project_id,
        user_id=ctx.user_id,
        name=request.name,
        description=request.description,
        created_at=session.now,
        **values,
    )
    share_groups.insert_share_types(session, group_id, share_type_ids)
    return group_id


def _consistency(group_type: ShareGroupTypeRecord) -> str | None:
    value = group_type.group_specs.get(CONSISTENT_SNAPSHOTS)
    if value is not None and value not in CONSISTENCIES:
        raise exception.InvalidInput(
            reason=f'{CONSISTENT_SNAPSHOTS} of share group type '
            f'{group_type.name} must be one of: {", ".join(CONSISTENCIES)}'
        )
    return value


def lock_group(
    session: Session, ctx: RequestContext, request: ShareRequest
) -> rows.ShareGroupRow | None:
    """Lock (shared) the group that a new share joins; None without one.

    It is not deleted before the transaction ends. Raises InvalidShareGroup
    if it cannot have another share now, or belongs to another project, whose
    group snapshots would copy the share.
    """
    if request.share_group_id is None:
        return None
    group = share_groups.lock_shared(session, request.share_group_id)
    if group.project_id != ctx.project_id:
        raise exception.InvalidShareGroup(
            reason=f'share group {group.id} belongs to project '
            f'{group.project_id}, not {ctx.project_id}'
        )
    if group.status != GroupStatus.AVAILABLE:
        raise exception.InvalidShareGroup(
            reason=f'share group {group.id} must be available, not {group.status}'
        )
    if group.host is None:
        raise exception.InvalidShareGroup(
            reason=f'share group {group.id} is not on a back end'
        )
    return group


def with_group(request: ShareRequest, group: rows.ShareGroupRow | None) -> ShareRequest:
    """Return the request on the network and in the zone of its group.

    It may repeat them. Raises InvalidInput where it, or the snapshot of the
    share, contradicts the group.
    """
    if group is None:
        return request
    if request.share_network_id not in (None, group.share_network_id):
        field = 'snapshot_id' if request.snapshot_id else 'share_network_id'
        raise exception.InvalidInput(
            reason=f'{field}: the share network must be that of the share group'
        )
    zone = group.availability_zone or request.availability_zone
    if request.availability_zone not in (None, zone):
        raise exception.InvalidInput(
            reason=f'availability_zone must be {zone}, that of the share group'
        )
    return dataclasses.replace(
        request, share_network_id=group.share_network_id, availability_zone=zone
    )


def check(
    session: Session,
    group: rows.ShareGroupRow | None,
    request: ShareRequest,
    share_type: TypeWithSpecs | None,
    source: rows.CloneSourceRow | None,
) -> None:
    """Raise InvalidInput if the group cannot have such a share.

    `source` is the snapshot that the share is created from, if it will be
    where that is.
    """
    if group is None:
        return
    if (
        share_type is None
        or share_type.id
        not in share_groups.list_share_types(session, [group.id])[group.id]
    ):
        raise exception.InvalidInput(
            reason='share_type must be one of those of the share group'
        )
    if (
        group.share_server_id is not None
        and request.encryption_key_ref is not None
        and share_type.extra_specs.get('encryption_support') == 'share_server'
    ):
        raise exception.InvalidInput(
            reason='encryption_key_ref: the share server of a share group '
            'has no encryption key'
        )
    if source is None:
        return
    if not _is_with(group, source.host):
        raise exception.InvalidInput(
            reason='snapshot_id: the snapshot is not on the back end of the share group'
        )
    if source.share_server_id != group.share_server_id:
        raise exception.InvalidInput(
            reason='snapshot_id: the snapshot is not on the share server of '
            'the share group'
        )


def _is_with(group: rows.ShareGroupRow, host: str) -> bool:
    if group.consistent_snapshot_support == IN_POOL:
        return host == group.host
    return Host.parse(host).service_host == Host.parse(group.host or '').service_host
