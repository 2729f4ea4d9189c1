"""Accept requests about resource locks, and ask whether there are any.

Who locks first takes the rows of the resource; who removes the resource
moves the same rows first and then looks for locks. So the one who is
second always sees what the first has done.
"""

import dataclasses
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import locks
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.session import transaction
from manila_lite.states.locks import ACTIONS
from manila_lite.states.locks import NOT_LOCKABLE
from manila_lite.states.locks import LockContext
from manila_lite.states.locks import ResourceAction
from manila_lite.states.locks import ResourceType

_SERVICE_ROLE = 'service'


@dataclasses.dataclass(frozen=True)
class LockRequest:
    """What is to be locked against what."""

    resource_id: str
    resource_type: str
    action: str = ResourceAction.DELETE
    reason: str | None = None


class Locks:
    """Each method is a transaction: all of a request, or none of it."""

    def __init__(self, db: Database):
        self.db = db

    @transaction
    def create(
        self, session: Session, ctx: RequestContext, request: LockRequest
    ) -> sa.Row:
        """Lock a resource that the caller may lock; the lock."""
        if request.action not in ACTIONS[request.resource_type]:
            raise exception.InvalidInput(
                reason=f'{request.action} cannot be locked for a '
                f'{request.resource_type}'
            )
        found = _taken(session, ctx, request)
        if request.action == ResourceAction.DELETE:
            _refuse_too_late(request, found)
        elif locks.list_for_resource(
            session, found[0].id, ResourceAction.SHOW
        ):
            raise exception.VisibilityLocked(access_id=found[0].id)
        lock_id = _insert(session, ctx, request, found[0].share_id)
        return locks.get(session, lock_id)

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        lock: typing.Any,
        values: dict[str, object],
    ) -> sa.Row:
        """Change the action or the reason of a lock; the lock."""
        _refuse_others(ctx, lock)
        action = values.get('resource_action', lock.resource_action)
        if action != lock.resource_action and action == ResourceAction.SHOW:
            raise exception.InvalidInput(
                reason='a lock cannot be changed to forbid show; make '
                'another lock that does'
            )
        if values:
            locks.update(session, lock.id, values)
        return locks.get(session, lock.id)

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, lock: typing.Any
    ) -> None:
        """Remove a lock, and the one of the share made because of it."""
        _refuse_others(ctx, lock)
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
    """Lock a rule that the same transaction makes.

    Where its deletion is locked, so is that of its share, which would
    take the rule along. Raises InvalidShare when the share is going.
    """
    rule = LockRequest(access_id, ResourceType.ACCESS_RULE, reason=reason)
    if deletion:
        share = LockRequest(share_id, ResourceType.SHARE)
        try:
            _refuse_too_late(share, locks.lock_share_rows(session, share_id))
        except exception.ResourceNotLockable as error:
            raise exception.InvalidShare(reason=error.msg) from error
        lock_id = _insert(session, ctx, rule, share_id)
        _insert(
            session,
            ctx,
            dataclasses.replace(
                share, reason=f'Lock {lock_id} of an access rule keeps it.'
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
    session: Session,
    ctx: RequestContext,
    access_id: str,
    *,
    unrestrict: bool = False,
) -> None:
    """Return when a rule may be denied, or raise AccessRuleLocked.

    With `unrestrict` its locks are removed, if the caller may remove all
    of them. To be asked after the move that denies it, in one transaction
    with it: then no lock can come between.
    """
    found = locks.list_for_resource(session, access_id)
    if not found:
        return
    if not unrestrict or not all(_may_delete(ctx, lock) for lock in found):
        raise exception.AccessRuleLocked(access_id=access_id)
    locks.delete_many(session, [lock.id for lock in found])


def lock_context_of(ctx: RequestContext) -> str:
    """The capacity in which the caller locks."""
    if _SERVICE_ROLE in (*ctx.roles, *ctx.service_roles):
        return LockContext.SERVICE
    return LockContext.ADMIN if ctx.is_admin else LockContext.USER


_MAY_CHANGE = {
    LockContext.ADMIN: (
        LockContext.USER,
        LockContext.SERVICE,
        LockContext.ADMIN,
    ),
    LockContext.SERVICE: (LockContext.USER, LockContext.SERVICE),
}
"""Whose locks may be changed besides one's own, by one's capacity."""


def may_change(ctx: RequestContext, lock: typing.Any) -> bool:
    """Whether the capacities allow the caller to change a lock."""
    capacities = {
        lock_context_of(ctx),
        LockContext.ADMIN if ctx.is_admin else LockContext.USER,
    }
    if any(
        lock.lock_context in _MAY_CHANGE.get(one, ()) for one in capacities
    ):
        return True
    return (
        lock.lock_context == LockContext.USER
        and lock.user_id == ctx.user_id
        and lock.project_id == ctx.project_id
    )


def _may_delete(ctx, lock):
    return may_change(ctx, lock) and ctx.can('resource_lock:delete', lock)


def _refuse_others(ctx, lock):
    if not may_change(ctx, lock):
        raise exception.Forbidden(
            f'Lock {lock.id} may not be changed by this user.'
        )


def _taken(session, ctx, request):
    """The rows of the resource, if the caller may know of it and lock it."""
    if request.resource_type == ResourceType.SHARE:
        found = locks.lock_share_rows(session, request.resource_id)
    else:
        found = locks.lock_rule_rows(session, request.resource_id)
    if not found or not (
        found[0].project_id == ctx.project_id
        or found[0].is_public
        or lock_context_of(ctx) != LockContext.USER
        or ctx.is_admin
    ):
        raise exception.InvalidInput(
            reason=f'{request.resource_type} {request.resource_id} could '
            'not be found'
        )
    ctx.authorize('resource_lock:create', found[0])
    return found


def _refuse_too_late(request, found):
    if (
        any(row.status in NOT_LOCKABLE[request.resource_type] for row in found)
        or found[0].is_soft_deleted
    ):
        raise exception.ResourceNotLockable(
            resource_type=request.resource_type,
            resource_id=request.resource_id,
        )


def _insert(session, ctx, request, share_id, because_of=None):
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
