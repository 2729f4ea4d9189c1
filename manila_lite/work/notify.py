"""Tells the project's user what became of work, in published words."""

import typing

import sqlalchemy as sa

from manila_lite import messages
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.session import Session
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work.table import Claim

INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
OF_SNAPSHOT = snapshots.SnapshotInstance.__table__
SNAPSHOT = snapshots.Snapshot.__table__

_SHARE_OF = (
    sa.select(SHARE.c.id, SHARE.c.project_id, INSTANCE.c.replica_state)
    .join(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
)
_SNAPSHOT_OF = (
    sa.select(SNAPSHOT.c.id, SNAPSHOT.c.project_id)
    .join(OF_SNAPSHOT)
    .where(OF_SNAPSHOT.c.id == sa.bindparam('instance_id'))
)


def notify_user(
    session: Session,
    job: Claim,
    action: messages.Action,
    detail: messages.Detail | None,
    ttl: int,
) -> None:
    """Write a user message about what the job worked on.

    Users know shares and snapshots, not their instances, but for replicas
    that follow the active one. An administrator may have asked without a
    project; then that of the share is told.
    """
    of_snapshot = job.resource == SNAPSHOT_INSTANCE.resource
    found = session.one(
        _SNAPSHOT_OF if of_snapshot else _SHARE_OF, instance_id=job.resource_id
    )
    project_id = job.project_id or (found and found.project_id)
    if project_id is None:
        return  # there is nobody to tell
    messages.record(
        session,
        project_id=project_id,
        request_id=job.request_id,
        action=action,
        detail=detail,
        **_known_as(job.resource_id, found, of_snapshot),
        ttl=ttl,
    )


def _known_as(id: str, found: typing.Any, of_snapshot: bool) -> dict[str, str]:
    kind = 'SHARE_SNAPSHOT' if of_snapshot else 'SHARE'
    if found and not of_snapshot:
        return displayed_resource(id, found.id, found.replica_state)
    return {'resource_type': kind, 'resource_id': found.id if found else id}


def displayed_resource(
    id: str, share_id: str, replica_state: str | None
) -> dict[str, str]:
    """The resource that users know a share instance as."""
    if replica_state in PASSIVE:
        return {'resource_type': 'SHARE_REPLICA', 'resource_id': id}
    return {'resource_type': 'SHARE', 'resource_id': share_id}


def detail_of(error: Exception, failure: typing.Any) -> messages.Detail:
    """The detail to tell: the error's own, or the declared one."""
    own = getattr(error, 'params', {}).get('message_detail')
    return own or failure.detail or messages.Detail.UNKNOWN_ERROR
