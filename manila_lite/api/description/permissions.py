"""Who may use an operation: the rule, its default, and the roles."""

import functools
import re
import typing

from manila_lite import policies
from manila_lite.api import wsgi

_PART = re.compile(r'\b(role|rule):([\w:-]+)')


def of(policy: str | wsgi.Unchecked) -> dict[str, typing.Any]:
    """Return what the description of an operation says about its policy."""
    if isinstance(policy, wsgi.Unchecked):
        return {'x-openstack-policy': None, 'x-openstack-check': policy.value}
    found: dict[str, typing.Any] = {'x-openstack-policy': policy}
    default = _defaults().get(policy)
    if default is not None:
        found['x-openstack-default-check'] = default
        found['x-openstack-default-roles'] = sorted(_roles(default, set()))
    return found


@functools.cache
def _defaults() -> dict[str, str]:
    return {rule.name: rule.check_str for rule in policies.list_rules()}


def _roles(check: str, seen: set[str]) -> set[str]:
    """Return the roles that a check mentions, also in other rules."""
    roles: set[str] = set()
    for kind, name in _PART.findall(check):
        if kind == 'role':
            roles.add(name)
        elif name not in seen:
            seen.add(name)
            roles |= _roles(_defaults().get(name, ''), seen)
    return roles
