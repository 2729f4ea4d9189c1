"""Access to the shares and snapshots of the dummy back end."""

from collections import deque
import fnmatch
from typing import NamedTuple

from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.state import AccessStore, RefusesRule

_MAX_CALLS = 1_000


class AccessCall(NamedTuple):
    """An access call: the number of rules, and the changed ones."""

    method: str
    subject_id: str
    rules: int
    added: list[str]
    deleted: list[str]
    updated: list[str]


class DummyAccess:
    def __init__(self, backend: DummyBackend):
        self._backend = backend
        self._refuses_rule: RefusesRule = self._refuses_by_option
        self._calls: deque[AccessCall] = deque(maxlen=_MAX_CALLS)

    # Controls for tests

    @property
    def calls(self) -> list[AccessCall]:
        """Return the latest access calls that ran, oldest first."""
        with self._backend.lock:
            return list(self._calls)

    def refuse_rules(self, refuses: RefusesRule | None) -> None:
        """Make single rules fail from now on; None ends that.

        `refuses` is called with allow, update or deny, and the rule. Rules
        that it refuses get the state error in the reply.
        """
        with self._backend.lock:
            self._refuses_rule = refuses or self._refuses_by_option

    def _refuses_by_option(self, verb: str, rule: base.AccessRuleForDriver) -> bool:
        patterns = self._backend.options.dummy_driver_refuse_clients
        return any(
            fnmatch.fnmatchcase(rule['access_to'], pattern) for pattern in patterns
        )

    # Driver methods

    def update_access(
        self, share: base.ShareForDriver, rules: RuleChanges
    ) -> base.AccessReplies:
        with self._backend.lock:
            self._backend.get_share(share['id'])
            return self.change(
                'update_access', self._backend.state.access, share['id'], rules
            )

    def snapshot_update_access(
        self, snapshot: base.SnapshotForDriver, rules: RuleChanges
    ) -> base.AccessReplies:
        with self._backend.lock:
            self._backend.get_snapshot(snapshot['id'])
            return self.change(
                'snapshot_update_access',
                self._backend.state.snapshot_access,
                snapshot['id'],
                rules,
            )

    # Changes

    def change(
        self, method: str, access: AccessStore, subject_id: str, rules: RuleChanges
    ) -> base.AccessReplies:
        """Record and apply the changes of an access call."""
        self._calls.append(
            AccessCall(
                method,
                subject_id,
                len(rules.access_rules),
                *(
                    [rule['access_id'] for rule in changed]
                    for changed in (
                        rules.add_rules,
                        rules.delete_rules,
                        rules.update_rules,
                    )
                ),
            )
        )
        return access.change(
            subject_id,
            rules,
            refuses=self._refuses_rule,
            midway=self._backend.faults.midway,
        )
