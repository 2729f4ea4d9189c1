"""Messages to users about access rules that a back end refused."""

from collections.abc import Collection, Mapping, Sequence

from manila_lite import exception
from manila_lite.db.session import Session
from manila_lite.messages import Action, Detail, detail_in, explanation_in, reason_in
from manila_lite.share.drivers.base import AccessReply
from manila_lite.share.manager.driver_view.share_view import RuleView
from manila_lite.states.access_rule import RuleState
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

_NAMED_CLIENTS = 5
_UNSUPPORTED = (
    NotImplementedError,
    exception.InvalidShareAccess,
    exception.InvalidShareAccessLevel,
    exception.InvalidShareAccessType,
)
_OF_GRANTS = (Detail.FORBIDDEN_CLIENT_ACCESS, Detail.UNSUPPORTED_CLIENT_ACCESS)


def notify_refused(
    session: Session,
    job: Claim,
    failed: Sequence[RuleView],
    replies: Mapping[str, AccessReply],
    ttl: int,
    hiding_locks: Collection[str] = (),
) -> None:
    """Notify users of the rules that the back end refused to change."""
    for is_denial in (False, True):
        rules = [
            rule for rule in failed if (rule.state == RuleState.DENYING) is is_denial
        ]
        if rules:
            reason = reason_of(rules, replies, hiding_locks)
            _notify(
                session,
                job,
                Detail.FORBIDDEN_CLIENT_ACCESS,
                ttl,
                reason,
                is_denial=is_denial,
            )


def notify_failed(
    session: Session,
    job: Claim,
    error: Exception,
    ttl: int,
    *,
    hidden: object = False,
    grants: int,
    denials: int,
) -> None:
    """Notify users of an error that kept so many rules from being changed.

    What the driver said may name clients, so it is left out if rules are hidden.
    """
    reason, explanation = reason_in(error), explanation_in(error)
    if hidden:
        reason = explanation = None
    for count, is_denial in ((grants, False), (denials, True)):
        if count:
            detail = message_detail(error)
            _notify(session, job, detail, ttl, reason, explanation, is_denial=is_denial)


def _notify(
    session: Session,
    job: Claim,
    detail: Detail,
    ttl: int,
    reason: str | None,
    explanation: str | None = None,
    *,
    is_denial: bool,
) -> None:
    action = Action.UPDATE_ACCESS_RULES
    if is_denial:
        # The client is not refused: it still has access.
        action = Action.DELETE_ACCESS_RULES
        if detail in _OF_GRANTS:
            detail = Detail.UNKNOWN_ERROR
    notify_user(session, job, action, detail, ttl, reason, explanation)


def message_detail(error: Exception) -> Detail:
    """Return the user message detail for an error of the driver."""
    own = detail_in(error)
    if own is not None:
        return own
    if isinstance(error, _UNSUPPORTED):
        return Detail.UNSUPPORTED_CLIENT_ACCESS
    if isinstance(error, exception.Forbidden):
        return Detail.FORBIDDEN_CLIENT_ACCESS
    return Detail.UNKNOWN_ERROR


def reason_of(
    rules: Sequence[RuleView],
    replies: Mapping[str, AccessReply],
    hiding_locks: Collection[str] = (),
) -> str:
    """Name the refused clients, and why the back end refused them.

    Clients that a lock hides from other users are not named.
    """
    lines = []
    for rule in rules[:_NAMED_CLIENTS]:
        given = rule.for_driver
        client = '***' if rule.id in hiding_locks else given['access_to']
        line = f'{given["access_type"]} {client}'
        why = replies.get(rule.id, {}).get('reason')
        lines.append(f'{line}: {why}' if why else line)
    left = len(rules) - len(lines)
    return '; '.join([*lines, *([f'and {left} more'] if left else [])])
