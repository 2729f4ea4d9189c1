"""Access rules given to drivers, and the answers they may give."""

from collections.abc import Sequence
from typing import Protocol

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping
from manila_lite.share.drivers.contract.values import AccessReplies
from manila_lite.share.drivers.contract.values import AccessReply
from manila_lite.share.drivers.contract.values import AccessRuleForDriver
from manila_lite.share.drivers.contract.values import ShareForDriver

_Rules = Sequence[AccessRuleForDriver]


class AllowDenyDriver(Protocol):
    """A driver that is told of each rule on its own."""

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


def normalise_access_replies(
    answer: AccessReplies | None,
) -> dict[str, AccessReply]:
    """What a driver said of rules; nothing, if it said nothing."""
    return {
        access_id: told or {} for access_id, told in (answer or {}).items()
    }


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
    """The answer of `update_access` for drivers that have none.

    Who goes, goes first: a client may be given a new level, or be named
    again, in the same call. Such a driver cannot be asked to forget what
    it was never told of; with nothing changed it hears all rules again.
    """
    answers: dict[str, AccessReply] = {}
    for rule in (*delete_rules, *update_rules):
        try:
            driver.deny_access(context, share, rule, share_server)
        except exception.DriverError:
            answers[rule['access_id']] = {'state': 'error'}
    if not (add_rules or delete_rules or update_rules):
        add_rules = access_rules
    for rule in (*update_rules, *add_rules):
        if rule['access_id'] in answers:
            continue  # the old level holds still
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
            answers[rule['access_id']] = {'state': 'error'}
    return answers
