"""Accept requests about resource locks, and check for locks.

A request that creates a lock first locks the rows of the resource. A request
that removes the resource first moves the same rows and then checks for
locks. So the second of the two always sees the effect of the first.
"""

from collections.abc import Sequence
import dataclasses

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.access import locks
from manila_lite.db.rows import ResourceLockRow
from manila_lite.db.session import Database, Session, transaction
from manila_lite.states.locks import (
    ACTIONS,
    NOT_LOCKABLE,
    LockContext,
    ResourceAction,
    ResourceType,
)
from manila_lite.states.share_instance import InstanceStatus

_SERVICE_ROLE = 'service'


@dataclasses.dataclass(frozen=True)
class LockRequest:
    """The resource to lock and the action to forbid."""

    resource_id: str
    resource_type: str
    action: str = ResourceAction.DELETE
    reason: str | None = None


@dataclasses.dataclass(eq=False)
class Locks:
    """Operations on resource locks. Each method is one transaction."""

    db: Database

    @transaction
    def create(
        self, session: Session, ctx: RequestContext, request: LockRequest
    ) -> ResourceLockRow:
        """Create a lock on a resource that the caller may lock; return it."""
        if request.action not in ACTIONS[request.resource_type]:
            raise exception.InvalidInput(
                reason=f'{request.action} cannot be locked for a '
                f'{request.resource_type}'
            )
        rows = _lock_resource(session, ctx, request)
        _refuse_offered(request, rows)
        if request.action == ResourceAction.DELETE:
            _refuse_not_lockable(request, rows)
        elif locks.list_for_resource(session, rows[0].id, ResourceAction.SHOW):
            raise exception.VisibilityLocked(access_id=rows[0].id)
        lock_id = _insert(session, ctx, request, rows[0].share_id)
        return locks.get(session, lock_id)

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        lock: ResourceLockRow,
        values: dict[str, object],
    ) -> ResourceLockRow:
        """Change the action or the reason of a lock; return it."""
        _require_change_allowed(ctx, lock)
        action = values.get('resource_action', lock.resource_action)
        if action != lock.resource_action and action == ResourceAction.SHOW:
            raise exception.InvalidInput(
                reason='a lock cannot be changed to forbid show; create '
                'another lock for it'
            )
        if values:
            locks.update(session, lock.id, values)
        return locks.get(session, lock.id)

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, lock: ResourceLockRow
    ) -> None:
        """Delete a lock, and the lock of the share that depends on it."""
        _require_change_allowed(ctx, lock)
        locks.delete(session, lock.id)


def lock_rule(
    session: Session,
    ctx: RequestContext,
    access_id: str,
    share_id: str,
    *,
    visibility: bool = False,
    deletion: bool = False,
    reason: str | None = None,
) -> None:
    """Lock a rule that is created in the same transaction.

    A lock against its deletion also locks the share, whose deletion would
    delete the rule. Raises InvalidShare if the share is being deleted.
    """
    rule = LockRequest(access_id, ResourceType.ACCESS_RULE, reason=reason)
    if deletion:
        share = LockRequest(share_id, ResourceType.SHARE)
        try:
            _refuse_not_lockable(share, locks.lock_share_rows(session, share_id))
        except exception.ResourceNotLockable as error:
            raise exception.InvalidShare(reason=error.msg) from error
        lock_id = _insert(session, ctx, rule, share_id)
        _insert(
            session,
            ctx,
            dataclasses.replace(
                share, reason=f'Required by lock {lock_id} of an access rule.'
            ),
            share_id,
            because_of=lock_id,
        )
    if visibility:
        _insert(
            session,
            ctx,
            dataclasses.replace(rule, action=ResourceAction.SHOW),
            share_id,
        )


def unlock_rule(
    session: Session, ctx: RequestContext, access_id: str, *, unrestrict: bool = False
) -> None:
    """Raise AccessRuleLocked unless the rule may be denied.

    With `unrestrict`, its locks are removed if the caller may remove all of
    them. Call it after the move that denies the rule, in the same
    transaction, so that no lock can be added in between.
    """
    rule_locks = locks.list_for_resource(session, access_id)
    if not rule_locks:
        return
    if not unrestrict or not all(_may_delete(ctx, lock) for lock in rule_locks):
        raise exception.AccessRuleLocked(access_id=access_id)
    locks.delete_many(session, [lock.id for lock in rule_locks])


def lock_context_of(ctx: RequestContext) -> str:
    """Return the lock context of the caller: user, admin or service."""
    if _SERVICE_ROLE in (*ctx.roles, *ctx.service_roles):
        return LockContext.SERVICE
    return LockContext.ADMIN if ctx.is_admin else LockContext.USER


_MAY_CHANGE = {
    LockContext.ADMIN: (LockContext.USER, LockContext.SERVICE, LockContext.ADMIN),
    LockContext.SERVICE: (LockContext.USER, LockContext.SERVICE),
}
"""Contexts whose locks may be changed, by the context of the caller."""


def may_change(ctx: RequestContext, lock: ResourceLockRow) -> bool:
    """Return whether the context of the caller allows a change."""
    contexts = {
        lock_context_of(ctx),
        LockContext.ADMIN if ctx.is_admin else LockContext.USER,
    }
    if any(lock.lock_context in _MAY_CHANGE.get(one, ()) for one in contexts):
        return True
    return (
        lock.lock_context == LockContext.USER
        and lock.user_id == ctx.user_id
        and lock.project_id == ctx.project_id
    )


def _may_delete(ctx: RequestContext, lock: rows.ResourceLockRow) -> bool:
    return may_change(ctx, lock) and ctx.can('resource_lock:delete', lock)


def _require_change_allowed(ctx: RequestContext, lock: rows.ResourceLockRow) -> None:
    if not may_change(ctx, lock):
        raise exception.Forbidden(f'Lock {lock.id} may not be changed by this user.')


def _lock_resource(
    session: Session, ctx: RequestContext, request: LockRequest
) -> Sequence[rows.LockableRow]:
    """Lock the rows of a resource that the caller may see and lock."""
    if request.resource_type == ResourceType.SHARE:
        rows = locks.lock_share_rows(session, request.resource_id)
    else:
        rows = locks.lock_rule_rows(session, request.resource_id)
    if not rows or not (
        rows[0].project_id == ctx.project_id
        or rows[0].is_public
        or lock_context_of(ctx) != LockContext.USER
        or ctx.is_admin
    ):
        raise exception.InvalidInput(
            reason=f'{request.resource_type} {request.resource_id} could not be found'
        )
    ctx.authorize('resource_lock:create', rows[0])
    return rows


def _refuse_offered(request: LockRequest, rows: Sequence[rows.LockableRow]) -> None:
    """Refuse a lock that would change hands with the share."""
    if any(row.share_status == InstanceStatus.AWAITING_TRANSFER for row in rows):
        raise exception.ResourceNotLockable(
            resource_type=request.resource_type, resource_id=request.resource_id
        )


def _refuse_not_lockable(
    request: LockRequest, rows: Sequence[rows.LockableRow]
) -> None:
    if (
        any(row.status in NOT_LOCKABLE[request.resource_type] for row in rows)
        or rows[0].is_soft_deleted
    ):
        raise exception.ResourceNotLockable(
            resource_type=request.resource_type, resource_id=request.resource_id
        )


def _insert(
    session: Session,
    ctx: RequestContext,
    request: LockRequest,
    share_id: str,
    because_of: str | None = None,
) -> str:
    is_rule = request.resource_type == ResourceType.ACCESS_RULE
    return locks.insert(
        session,
        {
            'user_id': ctx.user_id,
            'project_id': ctx.project_id,
            'lock_context': lock_context_of(ctx),
            'resource_id': request.resource_id,
            'resource_type': request.resource_type,
            'resource_action': request.action,
            'lock_reason': request.reason,
            'share_id': share_id,
            'because_of': because_of,
            'access_id': request.resource_id if is_rule else None,
        },
    )
