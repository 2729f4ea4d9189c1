"""Write user messages about the outcome of work, by published codes."""

import typing

from manila_lite import messages
from manila_lite.db.queries import messages as message_rows
from manila_lite.db.rows import MessageShareRow
from manila_lite.db.session import Session
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work.table import Claim

_GROUP_RESOURCES = {
    SHARE_GROUP.resource: message_rows.find_group,
    SHARE_GROUP_SNAPSHOT.resource: message_rows.find_group_of_snapshot,
}
"""Messages know groups only; those about a snapshot name its group."""


def notify_user(
    session: Session,
    claim: Claim,
    action: messages.Action,
    detail: messages.Detail,
    ttl: int,
    reason: str | None = None,
    explanation: str | None = None,
) -> None:
    """Write a user message about the resource of the claimed work.

    Users see shares and snapshots, not their instances; of the replicas
    they see those that are not active. When an administrator made the
    request without a project, the message goes to the project that owns
    the share.
    """
    if claim.resource == SNAPSHOT_INSTANCE.resource:
        snapshot = message_rows.find_snapshot(session, claim.resource_id)
        owner_id = snapshot.project_id if snapshot else None
        resource = ('SHARE_SNAPSHOT', snapshot.id if snapshot else claim.resource_id)
    elif claim.resource == SHARE_BACKUP.resource:
        # Published messages know no backups.
        backed_up = message_rows.find_share_of_backup(session, claim.resource_id)
        owner_id = backed_up.project_id if backed_up else None
        resource = ('SHARE', backed_up.id if backed_up else claim.resource_id)
    elif claim.resource in _GROUP_RESOURCES:
        group = _GROUP_RESOURCES[claim.resource](session, claim.resource_id)
        owner_id = group.project_id if group else None
        resource = ('SHARE_GROUP', group.id if group else claim.resource_id)
    else:
        share = message_rows.find_share(session, claim.resource_id)
        owner_id = share.project_id if share else None
        resource = _displayed(claim.resource_id, share)
    project_id = claim.project_id or owner_id
    if project_id is None:
        return  # no project to notify
    messages.record(
        session,
        project_id,
        action,
        resource,
        ttl,
        detail=detail,
        request_id=claim.request_id,
        reason=reason,
        explanation=explanation,
    )


def _displayed(id: str, share: MessageShareRow | None) -> messages.Resource:
    if share is None:
        return 'SHARE', id
    return displayed_resource(id, share.id, share.replica_state)


def displayed_resource(
    id: str, share_id: str, replica_state: str | None
) -> messages.Resource:
    """Return the resource under which users see a share instance."""
    if replica_state in PASSIVE:
        return 'SHARE_REPLICA', id
    return 'SHARE', share_id


def detail_of(error: Exception, failure: typing.Any) -> messages.Detail:
    """Return the detail the error carries, else the declared one."""
    own = messages.detail_in(error)
    return own or failure.detail or messages.Detail.UNKNOWN_ERROR
