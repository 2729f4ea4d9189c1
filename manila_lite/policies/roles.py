"""The roles that the policies mention."""

from collections.abc import Iterable, Iterator
from typing import Any

from oslo_config import cfg
from oslo_policy import _checks

from manila_lite.policies.enforcer import load_library

_KNOWN = (
    _checks.TrueCheck,
    _checks.FalseCheck,
    _checks.RuleCheck,
    _checks.GenericCheck,
)
"""Checks that ask for no role."""


def find_unknown(conf: cfg.ConfigOpts, roles: Iterable[str]) -> list[str]:
    """Return the roles that no rule mentions, in lower case.

    None is unknown if a rule asks another service: it may know all roles.
    """
    known = set()
    for rule in load_library(conf).rules.values():
        for check in _leaves(rule):
            if isinstance(check, _checks.RoleCheck):
                known.add(check.match.lower())
            elif not isinstance(check, _KNOWN):
                return []
    return sorted({role.lower() for role in roles} - known)


def _leaves(check: Any) -> Iterator[Any]:
    """Yield the checks that a rule is combined of."""
    if isinstance(check, _checks.NotCheck):
        yield from _leaves(check.rule)
    elif isinstance(check, _checks.AndCheck | _checks.OrCheck):
        for part in check.rules:
            yield from _leaves(part)
    else:
        yield check
