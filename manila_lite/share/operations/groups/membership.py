"""Conditions under which a new share joins a share group."""

import dataclasses

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.groups import share_groups
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.share_group import IN_POOL, GroupStatus


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
