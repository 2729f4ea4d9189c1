"""Write user messages about the outcome of work, by published codes."""

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
    claim: Claim,
    action: messages.Action,
    detail: messages.Detail | None,
    ttl: int,
) -> None:
    """Write a user message about the resource of the claimed work.

    Users see shares and snapshots, not their instances; of the replicas
    they see those that are not active. When an administrator made the
    request without a project, the message goes to the project that owns
    the share.
    """
    of_snapshot = claim.resource == SNAPSHOT_INSTANCE.resource
    parent = session.one(
        _SNAPSHOT_OF if of_snapshot else _SHARE_OF,
        instance_id=claim.resource_id,
    )
    project_id = claim.project_id or (parent and parent.project_id)
    if project_id is None:
        return  # no project to notify
    messages.record(
        session,
        project_id=project_id,
        request_id=claim.request_id,
        action=action,
        detail=detail,
        **_displayed(claim.resource_id, parent, of_snapshot),
        ttl=ttl,
    )


def _displayed(
    id: str, parent: typing.Any, of_snapshot: bool
) -> dict[str, str]:
    kind = 'SHARE_SNAPSHOT' if of_snapshot else 'SHARE'
    if parent and not of_snapshot:
        return displayed_resource(id, parent.id, parent.replica_state)
    return {'resource_type': kind, 'resource_id': parent.id if parent else id}


def displayed_resource(
    id: str, share_id: str, replica_state: str | None
) -> dict[str, str]:
    """Return the resource under which users see a share instance."""
    if replica_state in PASSIVE:
        return {'resource_type': 'SHARE_REPLICA', 'resource_id': id}
    return {'resource_type': 'SHARE', 'resource_id': share_id}


def detail_of(error: Exception, failure: typing.Any) -> messages.Detail:
    """Return the detail the error carries, else the declared one."""
    own = getattr(error, 'params', {}).get('message_detail')
    return own or failure.detail or messages.Detail.UNKNOWN_ERROR
