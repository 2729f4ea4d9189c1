"""Access rules of shares that are mounted natively: Ceph users and their keys."""

import dataclasses
import errno

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import MISSING, NFS, CephfsBackend, State
from manila_lite.share.drivers.cephfs.cluster import CommandFailed
from manila_lite.share.drivers.cephfs.exports import CephfsExports
from manila_lite.share.drivers.cephfs.replicas import CephfsRoles
from manila_lite.share.drivers.cephfs.users import (
    CEPHX,
    INTERNAL,
    authorize,
    evict,
    list_users,
    revoke,
)
from manila_lite.share.drivers.contract.access import RuleChanges

_LEVELS = {'rw': 'rw', 'ro': 'r'}
_REFUSED = (errno.EPERM, errno.EACCES, errno.EINVAL)


class CephfsAccess:
    """A Ceph user for each rule, with capabilities for one path only."""

    def __init__(
        self, backend: CephfsBackend, exports: CephfsExports, roles: CephfsRoles
    ):
        self._backend, self._exports, self._roles = backend, exports, roles

    def update_access(
        self, share: base.ShareForDriver, rules: RuleChanges
    ) -> base.AccessReplies:
        """Allow exactly these users; all others are cut off when it returns.

        Replies have the keys of users, also those that were rotated.
        """
        record = self._backend.admit_share(share['id'], share['name'])
        if record['state'] not in (State.AVAILABLE, State.REVERTING):
            raise exception.ShareResourceNotFound(share_id=share['id'])
        subvolume = record['subvolume']
        rules = self._for_role(share, rules)
        try:
            if share['share_proto'].upper() == NFS:
                return self._exports.update_access(share, record, rules)
            return self._apply(share, subvolume, rules)
        except CommandFailed as error:
            if error.errno != MISSING:
                raise
            raise exception.ShareResourceNotFound(share_id=share['id']) from error

    def _for_role(self, share: base.ShareForDriver, rules: RuleChanges) -> RuleChanges:
        """Return the rules as they apply to a replica that is not active."""
        if self._roles.denies_all(share):
            return RuleChanges(access_rules=[], delete_rules=rules.delete_rules)
        if not self._roles.is_read_only(share):
            return rules
        return RuleChanges(
            access_rules=_read_only(rules.access_rules),
            add_rules=_read_only(rules.add_rules),
            delete_rules=_read_only(rules.delete_rules),
            update_rules=_read_only(rules.update_rules),
        )

    def _apply(
        self, share: base.ShareForDriver, subvolume: str, rules: RuleChanges
    ) -> base.AccessReplies:
        others = [rule for rule in rules.access_rules if rule not in rules.add_rules]
        # Nothing else is to be changed: what was denied before is in `delete_rules`.
        is_addition = bool(rules.add_rules) and not rules.is_revoking
        if is_addition and all(rule['access_key'] for rule in others):
            present = {
                rule['access_to']: _LEVELS[rule['access_level']] for rule in others
            }
        else:
            present = list_users(self._backend, subvolume)
        replies: dict[str, base.AccessReply] = {}
        wanted = {}
        for rule in rules.access_rules:
            if reason := _unsupported(rule):
                replies[rule['id']] = {'state': 'error', 'reason': reason}
            else:
                wanted[rule['access_to']] = rule
        # An earlier call may have ended before it cut one of them off.
        denied = {
            rule['access_to']
            for rule in rules.delete_rules
            if rule['access_type'] == CEPHX
        }
        for user in sorted((present.keys() | denied) - wanted.keys()):
            revoke(self._backend, subvolume, user)
        is_sync = not rules.add_rules and not rules.delete_rules
        for user, rule in wanted.items():
            level = _LEVELS[rule['access_level']]
            is_known = present.get(user) == level and rule['access_key']
            if is_sync or rule in rules.add_rules or not is_known:
                replies[rule['id']] = self._allow(
                    share, subvolume, user, level, present.get(user)
                )
        return replies

    def _allow(
        self,
        share: base.ShareForDriver,
        subvolume: str,
        user: str,
        level: str,
        before: str | None,
    ) -> base.AccessReply:
        """Allow a user, and evict its clients if they may no longer write."""
        if user == self._backend.cluster.client_id:
            return {'state': 'error', 'reason': f'{user} is the user of the service'}
        try:
            key = authorize(self._backend, subvolume, user, level, share['project_id'])
        except CommandFailed as error:
            if error.errno not in _REFUSED:
                raise
            return {'state': 'error', 'reason': error.status}
        if before == 'rw' and level == 'r':
            evict(self._backend, subvolume, user)
        return {'state': 'active', 'access_key': key}


def _read_only(rules: base.AccessRules) -> base.AccessRules:
    return [dataclasses.replace(rule, access_level='ro') for rule in rules]


def _unsupported(rule: base.AccessRuleForDriver) -> str | None:
    """Return why a rule can never apply, or None."""
    if rule['access_type'] != CEPHX:
        return f'shares of this protocol have rules of the type {CEPHX} only'
    if rule['access_to'].startswith(INTERNAL):
        return f'names that begin with {INTERNAL} are those of the service'
    if rule['access_level'] not in _LEVELS:
        return f'there is no access level {rule["access_level"]}'
    return None
