"""Why a back end refused access rules, in words for users."""

from collections.abc import Collection, Mapping, Sequence

from manila_lite import exception
from manila_lite.messages import Detail
from manila_lite.messages import detail_in
from manila_lite.share.drivers.base import AccessReply
from manila_lite.share.manager.driver_view.access_view import RuleView

_NAMED_CLIENTS = 5
_UNSUPPORTED = (
    NotImplementedError,
    exception.InvalidShareAccess,
    exception.InvalidShareAccessLevel,
    exception.InvalidShareAccessType,
)


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
