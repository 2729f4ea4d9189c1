"""Conditions under which a new share joins a share group."""

import dataclasses

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries.groups import share_groups
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.share_group import IN_POOL
from manila_lite.states.share_group import GroupStatus


def lock_group(
    session: Session, request: ShareRequest
) -> rows.ShareGroupRow | None:
    """Lock (shared) the group that a new share joins; None without one.

    It is not deleted before the transaction ends. Raises InvalidShareGroup
    if it cannot have another share now.
    """
    if request.share_group_id is None:
        return None
    group = share_groups.lock_shared(session, request.share_group_id)
    if group.status != GroupStatus.AVAILABLE:
        raise exception.InvalidShareGroup(
            reason=f'share group {group.id} must be available, not '
            f'{group.status}'
        )
    if group.host is None:
        raise exception.InvalidShareGroup(
            reason=f'share group {group.id} is not on a back end'
        )
    return group


def in_zone_of(
    request: ShareRequest, group: rows.ShareGroupRow | None
) -> ShareRequest:
    """Return the request in the zone of its group, which it may repeat."""
    if group is None or group.availability_zone is None:
        return request
    if request.availability_zone not in (None, group.availability_zone):
        raise exception.InvalidInput(
            reason=f'availability_zone must be {group.availability_zone}, '
            'that of the share group'
        )
    return dataclasses.replace(
        request, availability_zone=group.availability_zone
    )


def check(
    session: Session,
    group: rows.ShareGroupRow | None,
    share_type_id: str | None,
    host: str | None,
) -> None:
    """Raise InvalidInput if the group cannot have a share of this type.

    `host` is where the share will be, if that is known: with the snapshot
    that it is created from.
    """
    if group is None:
        return
    if (
        share_type_id
        not in share_groups.list_share_types(session, [group.id])[group.id]
    ):
        raise exception.InvalidInput(
            reason='share_type must be one of those of the share group'
        )
    if host is not None and not _is_with(group, host):
        raise exception.InvalidInput(
            reason='snapshot_id: the snapshot is not on the back end of the '
            'share group'
        )


def _is_with(group: rows.ShareGroupRow, host: str) -> bool:
    if group.consistent_snapshot_support == IN_POOL:
        return host == group.host
    return (
        Host.parse(host).service_host
        == Host.parse(group.host or '').service_host
    )
