"""Driver methods that give clients access to shares.

Names, parameters and replies are the published ones (driver-interface.csv),
except for `apply_access`, which callers use.
"""

from collections.abc import Callable, Sequence
import dataclasses

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import Arguments, ShareServerMapping
from manila_lite.share.drivers.contract.values import (
    AccessReplies,
    AccessReply,
    AccessRuleForDriver,
    ShareForDriver,
)

AccessRules = list[AccessRuleForDriver]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleChanges(Arguments):
    """The rules that must apply, and those that have changed.

    See `AccessDefaults.update_access`. The levels of rules of snapshots do not
    change.
    """

    access_rules: AccessRules
    add_rules: AccessRules = dataclasses.field(default_factory=list)
    delete_rules: AccessRules = dataclasses.field(default_factory=list)
    update_rules: AccessRules = dataclasses.field(default_factory=list)

    @property
    def is_resync(self) -> bool:
        """Whether the back end may be in any state."""
        return not (self.add_rules or self.delete_rules or self.update_rules)

    @property
    def is_revoking(self) -> bool:
        """Whether a client may have to lose access."""
        return self.is_resync or bool(self.delete_rules or self.update_rules)


class AccessDefaults:
    """Defaults that every driver inherits: no client has access."""

    def update_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access_rules: AccessRules,
        add_rules: AccessRules,
        delete_rules: AccessRules,
        update_rules: AccessRules,
        share_server: ShareServerMapping | None = None,
    ) -> AccessReplies | None:
        """Grant access to exactly the clients in `access_rules`.

        These are all rules that must apply when the call returns. The other
        lists name the changes since the last call. If all three are empty,
        the back end may be in any state and must be brought in line.
        Deleting a rule that does not exist is success.

        The reply maps rule ids to the rules that failed or have a key. Rules
        that are not mentioned are considered applied. An exception applies
        to all changed rules.
        """
        raise NotImplementedError

    def allow_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object:
        """Allow one client; the legacy fallback for `update_access`."""
        raise NotImplementedError

    def deny_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object:
        """Deny one client; the legacy fallback for `update_access`."""
        raise NotImplementedError

    def apply_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access_rules: Sequence[AccessRuleForDriver],
        add_rules: Sequence[AccessRuleForDriver] = (),
        delete_rules: Sequence[AccessRuleForDriver] = (),
        update_rules: Sequence[AccessRuleForDriver] = (),
        share_server: ShareServerMapping | None = None,
    ) -> dict[str, AccessReply]:
        """Apply access rules; return replies by rule id.

        Callers use this method: it hides whether the driver implements
        `update_access` or `allow_access` and `deny_access`.
        """
        rules = (
            list(access_rules),
            list(add_rules),
            list(delete_rules),
            list(update_rules),
        )
        try:
            replies = self.update_access(
                context, share, *rules, share_server=share_server
            )
        except NotImplementedError:
            replies = _apply_one_by_one(
                *rules,
                allow=lambda rule: self.allow_access(
                    context, share, rule, share_server
                ),
                deny=lambda rule: self.deny_access(context, share, rule, share_server),
            )
        return normalise_access_replies(replies)


def normalise_access_replies(replies: AccessReplies | None) -> dict[str, AccessReply]:
    """Return a driver's replies as a dict; None becomes empty."""
    return {access_id: reply or {} for access_id, reply in (replies or {}).items()}


def _apply_one_by_one(
    access_rules: AccessRules,
    add_rules: AccessRules,
    delete_rules: AccessRules,
    update_rules: AccessRules,
    allow: Callable[[AccessRuleForDriver], object],
    deny: Callable[[AccessRuleForDriver], object],
) -> AccessReplies:
    """Apply rules to drivers that do not implement `update_access`.

    Denials come first: one call may change the level of a client or name it
    again. Such a driver cannot remove unknown rules; if nothing has changed,
    all rules are allowed again.
    """
    replies: dict[str, AccessReply] = {}
    for rule in (*delete_rules, *update_rules):
        try:
            deny(rule)
        except exception.DriverError:
            replies[rule['access_id']] = {'state': 'error'}
    if not (add_rules or delete_rules or update_rules):
        add_rules = access_rules
    for rule in (*update_rules, *add_rules):
        if rule['access_id'] in replies:
            continue  # the old level still applies
        try:
            allow(rule)
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
