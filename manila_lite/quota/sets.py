"""The limits of projects, users, share types and classes.

Every change locks all limits, sets the requested ones, and copies the
effective limits to the usage rows, which charges are checked against.
`defaults` are the limits set by the options.
"""

from collections.abc import Collection, Mapping
import itertools
import typing

from manila_lite.db.queries.quotas import quotas
from manila_lite.db.session import Session
from manila_lite.quota import limits
from manila_lite.quota.limits import UNLIMITED, effective_limits

Limits = Mapping[str, int]


class Allowance(typing.NamedTuple):
    """The limit of a resource in a scope, and its usage."""

    limit: int
    in_use: int
    reserved: int


def scope_of(
    project_id: str, *, user_id: str | None = None, share_type_id: str | None = None
) -> quotas.Scope:
    """Return the scope of a user or share type, or of the whole project."""
    if user_id is not None:
        return quotas.Scope(project_id, quotas.USER, user_id)
    if share_type_id is not None:
        return quotas.Scope(project_id, quotas.SHARE_TYPE, share_type_id)
    return quotas.Scope(project_id)


def _names(scope: quotas.Scope) -> tuple[str, ...]:
    return limits.NAMES_PER_TYPE if scope.kind == quotas.SHARE_TYPE else limits.NAMES


def show(session: Session, defaults: Limits, scope: quotas.Scope) -> dict[str, int]:
    """Return the effective limits of a scope, by resource, in order."""
    return effective_limits(
        defaults, *quotas.get_layers(session, scope), names=_names(scope)
    )


def show_usage(
    session: Session, defaults: Limits, scope: quotas.Scope
) -> dict[str, Allowance]:
    """Return the effective limits of a scope with its usage."""
    used = {
        row.resource: (row.in_use, row.reserved)
        for row in quotas.list_usages(session, scope)
    }
    return {
        name: Allowance(limit, *used.get(name, (0, 0)))
        for name, limit in show(session, defaults, scope).items()
    }


def change(
    session: Session,
    defaults: Limits,
    scope: quotas.Scope,
    values: Mapping[str, object],
    *,
    force: bool = False,
) -> dict[str, int]:
    """Set some limits of a scope; return all of its limits.

    Raises InvalidInput if a limit may not be set; `force` allows limits
    below the current usage and above the limits of the project.
    """
    requested = limits.parse(values, _names(scope))
    quotas.lock_limits(session)
    layers = quotas.get_layers(session, scope)
    usages = quotas.list_usages(session, scope, lock=True)
    limits.check(
        requested,
        force=force,
        used={row.resource: row.in_use + row.reserved for row in usages},
        ceilings=None
        if scope.kind == quotas.PROJECT
        else effective_limits(defaults, layers.default_class, layers.project),
    )
    quotas.set_limits(session, scope, requested)
    quotas.set_effective_limits(session, scope, requested)
    return effective_limits(defaults, *layers, requested, names=_names(scope))


def reset(session: Session, defaults: Limits, scope: quotas.Scope) -> None:
    """Delete the limits of a scope; for a project, those of users too."""
    quotas.lock_limits(session)
    quotas.delete_limits(session, scope)
    layers = quotas.get_layers(session, scope)
    quotas.set_effective_limits(session, scope, _row_limits(defaults, scope, layers))
    if scope.kind == quotas.PROJECT:
        quotas.set_effective_user_limit(session, scope.project_id, UNLIMITED)


def show_class(
    session: Session, defaults: Limits, class_name: str = quotas.DEFAULT_CLASS
) -> dict[str, int]:
    """Return the limits of a class; `default` applies to new projects."""
    return effective_limits(defaults, quotas.get_class_limits(session, class_name))


def change_class(
    session: Session, defaults: Limits, class_name: str, values: Mapping[str, object]
) -> dict[str, int]:
    """Set some limits of a class; return all of its limits."""
    requested = limits.parse(values)
    quotas.lock_limits(session)
    quotas.set_class_limits(session, class_name, requested)
    if class_name == quotas.DEFAULT_CLASS:
        quotas.set_effective_defaults(session, requested)
    return show_class(session, defaults, class_name)


def refresh_defaults(session: Session, defaults: Limits) -> int:
    """Apply changed options; return the number of usage rows changed."""
    quotas.lock_limits(session)
    return quotas.set_effective_defaults(session, show_class(session, defaults))


def create_usages(
    session: Session, defaults: Limits, keys: Collection[quotas.Key]
) -> int:
    """Insert those usage rows that are missing; return their number."""
    quotas.lock_limits(session)
    created = 0
    for scope, group in itertools.groupby(
        sorted(keys), key=lambda key: quotas.Scope(*key[:-1])
    ):
        found = {row.resource for row in quotas.list_usages(session, scope)}
        missing = [key for key in group if key.resource not in found]
        if missing:
            row_limits = _row_limits(defaults, scope, quotas.get_layers(session, scope))
            quotas.insert_usages(
                session, {key: row_limits[key.resource] for key in missing}
            )
            created += len(missing)
    return created


def _row_limits(
    defaults: Limits, scope: quotas.Scope, layers: quotas.Layers
) -> dict[str, int]:
    """Return the limits for the usage rows of a scope.

    A user or share type without own limits is unlimited; the row of the
    project limits it.
    """
    if scope.kind == quotas.PROJECT:
        return effective_limits(defaults, layers.default_class, layers.project)
    return effective_limits(layers.own)
