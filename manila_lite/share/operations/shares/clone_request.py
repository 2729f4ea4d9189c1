"""Requests for a share from a snapshot, and their checks."""

import dataclasses
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.shares import clone_sources
from manila_lite.db.session import Session
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.snapshot_instance import SnapshotStatus


def lock_source_shared(
    session: Session, ctx: RequestContext, snapshot_id: str
) -> typing.Any:
    """Lock an available snapshot FOR SHARE; raises InvalidShareSnapshot.

    It must belong to the caller's project. Administrators see those of all
    projects, and would copy the data of one to another.
    """
    source = clone_sources.lock_source_shared(session, snapshot_id)
    if source.project_id != ctx.project_id:
        raise exception.InvalidShareSnapshot(
            reason=f'snapshot {snapshot_id} belongs to project '
            f'{source.project_id}, not {ctx.project_id}'
        )
    if source.status != SnapshotStatus.AVAILABLE:
        raise exception.InvalidShareSnapshot(
            reason=f'status of snapshot {snapshot_id} must be available, '
            f'not {source.status}'
        )
    return source


def complete_request(
    request: ShareRequest, source: typing.Any, proto: str, *, allow_other_zone: bool
) -> ShareRequest:
    """Return the request with defaults from the snapshot.

    Raises InvalidInput where it contradicts the snapshot. A clone may be in
    another zone only with `allow_other_zone`.
    """
    if request.check_clone_support and not source.create_share_from_snapshot_support:
        raise exception.InvalidInput(
            reason='the share of the snapshot does not support creating '
            'shares from its snapshots'
        )
    if request.size is not None and request.size < source.size:
        raise exception.InvalidInput(
            reason=f'size must be at least the {source.size} GiB of the '
            f'snapshot, not {request.size}'
        )
    if proto != source.share_proto:
        raise exception.InvalidInput(
            reason=f'share_proto must be {source.share_proto}, as for the '
            f'snapshot, not {proto}'
        )
    network = request.share_network_id
    if network is not None and network != source.share_network_id:
        raise exception.InvalidInput(
            reason='share_network_id must be that of the share of the '
            'snapshot, or omitted'
        )
    key = request.encryption_key_ref
    if key is not None and key != source.encryption_key_ref:
        raise exception.InvalidInput(
            reason='encryption_key_ref must be that of the share of the '
            'snapshot, or omitted'
        )
    zone = request.availability_zone
    if (
        zone is not None
        and not allow_other_zone
        and zone not in (source.availability_zone, source.availability_zone_id)
    ):
        raise exception.InvalidInput(
            reason='availability_zone must be that of the share of the '
            f'snapshot, {source.availability_zone}, not {zone}'
        )
    return dataclasses.replace(
        request,
        size=source.size if request.size is None else request.size,
        share_type=request.share_type or source.share_type_id,
        share_network_id=source.share_network_id,
        encryption_key_ref=source.encryption_key_ref,
        availability_zone=zone or source.availability_zone,
    )


def check_type(source: typing.Any, share_type_id: str | None) -> None:
    """Refuse a type other than that of the snapshot's share."""
    if share_type_id != source.share_type_id:
        raise exception.InvalidInput(
            reason='share_type must be that of the share of the snapshot, or omitted'
        )
