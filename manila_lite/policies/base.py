"""The personas and helpers to declare policy rules for them.

There are three roles: a reader sees the resources of the project, a
member also changes them, and an admin acts in every project.
"""

from collections.abc import Callable, Sequence
import importlib.metadata
import typing

from oslo_policy import _checks, policy

ADMIN = 'rule:context_is_admin'
ADMIN_OR_MEMBER = '(rule:context_is_admin) or (rule:project-member)'
ADMIN_OR_READER = '(rule:context_is_admin) or (rule:project-reader)'

SERVICE_OR_MEMBER = '(rule:admin_or_service_api) or (rule:project-member)'
SERVICE_OR_READER = '(rule:admin_or_service_api) or (rule:project-reader)'
SERVICE = 'rule:admin_or_service_api'
OWNER_USER_OR_SERVICE = '(rule:owner-user or rule:admin_or_service_api)'

# The defaults before the three roles; checked in addition to the rules above
# only when an operator sets enforce_new_defaults to false.
DEPRECATED_ADMIN = 'rule:admin_api'
DEPRECATED_OWNER = 'rule:default'
DEPRECATED_OWNER_USER = 'rule:admin_or_owner_user'
DEPRECATED_REASON = 'The reader, member and admin roles replace ownership alone.'
DEPRECATED_SINCE = '2023.1'


def _load_on_use(
    entry_point: importlib.metadata.EntryPoint,
) -> Callable[[str, str], typing.Any]:
    return lambda kind, match: entry_point.load()(kind, match)


# Parsing the first rule makes oslo.policy import all kinds of checks,
# including requests for the http kind: 50 ms and 120 modules that no default
# rule needs. They stay registered, and a rule that uses one loads it.
if _checks.extension_checks is None:
    _checks.extension_checks = {
        entry_point.name: _load_on_use(entry_point)
        for entry_point in importlib.metadata.entry_points(
            group='oslo.policy.rule_checks'
        )
    }


PROJECT_SCOPE = ('project',)
ANY_SCOPE = ('system', 'project')
NO_SCOPE: tuple[str, ...] = ()
"""Scopes of published rules that declare none, and check none."""


def _rule(
    name: str,
    check: str,
    description: str,
    operations: Sequence[str],
    deprecated: str | None,
    scopes: Sequence[str] = PROJECT_SCOPE,
) -> policy.DocumentedRuleDefault:
    """Return a documented rule; operations look like 'GET /v2/shares'."""
    return policy.DocumentedRuleDefault(
        name,
        check,
        description,
        [
            {'method': method, 'path': path}
            for method, path in map(str.split, operations)
        ],
        scope_types=list(scopes),
        deprecated_rule=policy.DeprecatedRule(
            name,
            deprecated,
            deprecated_reason=DEPRECATED_REASON,
            deprecated_since=DEPRECATED_SINCE,
        )
        if deprecated
        else None,
    )


def admin(
    name: str,
    description: str,
    *operations: str,
    deprecated: str | None = DEPRECATED_ADMIN,
) -> policy.DocumentedRuleDefault:
    """Return a rule for administrators."""
    return _rule(name, ADMIN, description, operations, deprecated)


def member(
    name: str,
    description: str,
    *operations: str,
    deprecated: str | None = DEPRECATED_OWNER,
    scopes: Sequence[str] = PROJECT_SCOPE,
) -> policy.DocumentedRuleDefault:
    """Return a rule for administrators and members of the project."""
    return _rule(name, ADMIN_OR_MEMBER, description, operations, deprecated, scopes)


def reader(
    name: str,
    description: str,
    *operations: str,
    deprecated: str | None = DEPRECATED_OWNER,
    scopes: Sequence[str] = PROJECT_SCOPE,
) -> policy.DocumentedRuleDefault:
    """Return a rule for administrators and readers of the project."""
    return _rule(name, ADMIN_OR_READER, description, operations, deprecated, scopes)


def rule(
    name: str, check: str, description: str, *operations: str, deprecated: str | None
) -> policy.DocumentedRuleDefault:
    """Return a rule with a check of its own."""
    return _rule(name, check, description, operations, deprecated)


def _persona(
    name: str, check: str, description: str, scope_types: Sequence[str] = ('project',)
) -> policy.RuleDefault:
    return policy.RuleDefault(
        name, check, description, scope_types=list(scope_types) or None
    )


RULES = [
    _persona(
        'project-admin',
        'role:admin and project_id:%(project_id)s',
        'An administrator of the owning project.',
    ),
    _persona(
        'project-member',
        'role:member and project_id:%(project_id)s',
        'A member of the owning project.',
    ),
    _persona(
        'project-reader',
        'role:reader and project_id:%(project_id)s',
        'A reader of the owning project.',
    ),
    _persona(
        'owner-user',
        'user_id:%(user_id)s and project_id:%(project_id)s',
        'The user that created the resource.',
    ),
    _persona(
        'admin_or_service_api',
        'role:admin or role:service',
        'An administrator or another service.',
    ),
    _persona(
        'context_is_admin',
        'role:admin',
        'An administrator of the service; also decides is_admin of the '
        'request context.',
    ),
    _persona(
        'context_is_host_admin',
        'role:admin and project_id:%(project_id)s',
        'An administrator of the project that owns the host.',
    ),
    _persona(
        'admin_or_owner',
        'is_admin:True or project_id:%(project_id)s',
        'An administrator or any user of the owning project.',
        (),
    ),
    _persona(
        'admin_or_owner_user',
        'is_admin:True or project_id:%(project_id)s and user_id:%(user_id)s',
        'An administrator or the user that created the resource.',
        (),
    ),
    _persona(
        'default',
        'rule:admin_or_owner',
        'The rule for names without a rule of their own.',
        (),
    ),
    _persona(
        'admin_api', 'is_admin:True', 'An administrator, by the request context.', ()
    ),
]
