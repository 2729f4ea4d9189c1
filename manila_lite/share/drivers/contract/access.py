"""Access rules passed to drivers, and the replies to them."""

from collections.abc import Sequence
from typing import Protocol

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping
from manila_lite.share.drivers.contract.values import (
    AccessReplies,
    AccessReply,
    AccessRuleForDriver,
    ShareForDriver,
)

_Rules = Sequence[AccessRuleForDriver]


class AllowDenyDriver(Protocol):
    """A driver that receives each rule in a call of its own."""

    def allow_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object: ...

    def deny_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object: ...


def normalise_access_replies(replies: AccessReplies | None) -> dict[str, AccessReply]:
    """Return a driver's replies as a dict; None becomes empty."""
    return {access_id: reply or {} for access_id, reply in (replies or {}).items()}


def apply_with_allow_deny(
    driver: AllowDenyDriver,
    context: RequestContext,
    share: ShareForDriver,
    access_rules: _Rules,
    add_rules: _Rules,
    delete_rules: _Rules,
    update_rules: _Rules,
    share_server: ShareServerMapping | None,
) -> AccessReplies:
    """Apply rules to drivers that do not implement `update_access`.

    Denials come first: one call may change the level of a client or name it
    again. Such a driver cannot remove unknown rules; if nothing has changed,
    all rules are allowed again.
    """
    replies: dict[str, AccessReply] = {}
    for rule in (*delete_rules, *update_rules):
        try:
            driver.deny_access(context, share, rule, share_server)
        except exception.DriverError:
            replies[rule['access_id']] = {'state': 'error'}
    if not (add_rules or delete_rules or update_rules):
        add_rules = access_rules
    for rule in (*update_rules, *add_rules):
        if rule['access_id'] in replies:
            continue  # the old level still applies
        try:
            driver.allow_access(context, share, rule, share_server)
        except exception.ShareAccessExists:
            continue
        except (
            exception.DriverError,
            exception.InvalidShareAccess,
            exception.InvalidShareAccessType,
            exception.InvalidShareAccessLevel,
        ):
            replies[rule['access_id']] = {'state': 'error'}
    return replies
