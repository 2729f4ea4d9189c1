"""Limits as they were set, and the usage rows they are copied to.

A usage row carries its effective limit, so that a charge takes one
UPDATE. Code that changes a limit or inserts a usage row must first call
`lock_limits`; otherwise a row could be inserted with an outdated limit.
"""

from collections.abc import Iterable, Mapping
import functools
import typing

import sqlalchemy as sa

from manila_lite.db.dialects import build_upsert
from manila_lite.db.models import quotas
from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import ProjectUsageRow, ScopeUsageRow
from manila_lite.db.session import Session
from manila_lite.db.tables import QUOTA_CLASS as CLASS, USAGE

PROJECT = 'project'
SHARE_TYPE = 'share_type'
USER = 'user'
KINDS = (PROJECT, SHARE_TYPE, USER)

DEFAULT_CLASS = 'default'
"""The class whose limits apply to all projects without their own."""

LIMITS = {
    PROJECT: quotas.Quota.__table__,
    SHARE_TYPE: quotas.ProjectShareTypeQuota.__table__,
    USER: quotas.ProjectUserQuota.__table__,
}


class Scope(typing.NamedTuple):
    """The scope of a limit: a project, or a user or share type in it."""

    project_id: str
    kind: str = PROJECT
    id: str = ''


class Key(typing.NamedTuple):
    """The key of a usage row; rows are locked in key order."""

    project_id: str
    scope: str
    scope_id: str
    resource: str


class Owner(typing.NamedTuple):
    """The owner that a resource is charged to; user and type may be None.

    With `only_share_type` it is charged to the type within the project, but
    not to the project.
    """

    project_id: str
    user_id: str | None = None
    share_type_id: str | None = None
    only_share_type: bool = False

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes in which it counts, in key order."""
        ids = ((PROJECT, ''), (SHARE_TYPE, self.share_type_id), (USER, self.user_id))
        return tuple(
            Scope(self.project_id, kind, id)
            for kind, id in ids
            if id is not None and (kind == SHARE_TYPE or not self.only_share_type)
        )

    def keys(self, resources: Iterable[str]) -> list[Key]:
        """Return the keys of the usage rows that count these resources."""
        return sorted(
            Key(*scope, resource) for scope in self.scopes for resource in resources
        )


class Layers(typing.NamedTuple):
    """The limits that were set, by resource; the widest layer is first.

    `own` are those of the user or the share type.
    """

    default_class: dict[str, int]
    project: dict[str, int]
    own: dict[str, int]


# A row that counts nothing is the lock of all limits.
_LOCK = {
    **Key('', 'limits', '', '')._asdict(),
    'in_use': 0,
    'reserved': 0,
    'hard_limit': 0,
}


@functools.cache
def _lock_statement(dialect: str) -> sa.Executable:
    return build_upsert(
        dialect, USAGE, values=_LOCK, changes={'reserved': 0}, keys=Key._fields
    )


def lock_limits(session: Session) -> None:
    """Lock all limits, so that no other transaction changes one."""
    session.run(_lock_statement(session.dialect))


# Limits


def _belongs(kind: str) -> list[sa.ColumnElement]:
    """Return the conditions that a row of limits belongs to a scope."""
    found = [LIMITS[kind].c.project_id == sa.bindparam('of_project')]
    if kind != PROJECT:
        owner = LIMITS[kind].c[f'{kind}_id']
        found.append(owner == sa.bindparam('of_id'))
    return found


def _params(scope: Scope) -> dict[str, str]:
    if scope.kind == PROJECT:
        return {'of_project': scope.project_id}
    return {'of_project': scope.project_id, 'of_id': scope.id}


_DEFAULTS = sa.select(
    sa.literal(DEFAULT_CLASS), CLASS.c.resource, CLASS.c.hard_limit
).where(CLASS.c.class_name == DEFAULT_CLASS)
_SET = {
    kind: sa.select(sa.literal(kind), table.c.resource, table.c.hard_limit).where(
        *_belongs(kind)
    )
    for kind, table in LIMITS.items()
}
_LAYERS = {
    PROJECT: sa.union_all(_DEFAULTS, _SET[PROJECT]),
    **{
        kind: sa.union_all(_DEFAULTS, _SET[PROJECT], _SET[kind])
        for kind in (SHARE_TYPE, USER)
    },
}
_DELETE = {
    kind: sa.delete(table).where(*_belongs(kind)) for kind, table in LIMITS.items()
}
_DELETE_SOME = {
    kind: _DELETE[kind].where(
        table.c.resource.in_(sa.bindparam('resources', expanding=True))
    )
    for kind, table in LIMITS.items()
}
_DELETE_USERS = sa.delete(LIMITS[USER]).where(
    LIMITS[USER].c.project_id == sa.bindparam('of_project')
)


def get_layers(session: Session, scope: Scope) -> Layers:
    """Return the limits set for a scope and above it."""
    found: dict[str, dict[str, int]] = {
        DEFAULT_CLASS: {},
        PROJECT: {},
        SHARE_TYPE: {},
        USER: {},
    }
    for layer, resource, limit in session.rows(_LAYERS[scope.kind], **_params(scope)):
        found[layer][resource] = limit
    return Layers(
        found[DEFAULT_CLASS],
        found[PROJECT],
        {} if scope.kind == PROJECT else found[scope.kind],
    )


def set_limits(session: Session, scope: Scope, values: Mapping[str, int]) -> None:
    """Set some limits of a scope; the others are left alone."""
    session.run(_DELETE_SOME[scope.kind], resources=list(values), **_params(scope))
    owner = {'project_id': scope.project_id}
    if scope.kind != PROJECT:
        owner[f'{scope.kind}_id'] = scope.id
    session.run_many(
        sa.insert(LIMITS[scope.kind]),
        [
            {**owner, 'resource': resource, 'hard_limit': limit}
            for resource, limit in values.items()
        ],
    )


def delete_limits(session: Session, scope: Scope) -> None:
    """Delete the limits of a scope; for a project, of its users too."""
    session.run(_DELETE[scope.kind], **_params(scope))
    if scope.kind == PROJECT:
        session.run(_DELETE_USERS, of_project=scope.project_id)


_CLASS_LIMITS = sa.select(CLASS.c.resource, CLASS.c.hard_limit).where(
    CLASS.c.class_name == sa.bindparam('of_class')
)
_DELETE_CLASS_LIMITS = sa.delete(CLASS).where(
    CLASS.c.class_name == sa.bindparam('of_class'),
    CLASS.c.resource.in_(sa.bindparam('resources', expanding=True)),
)


def get_class_limits(session: Session, class_name: str) -> dict[str, int]:
    """Return the limits set for a class."""
    return {
        row.resource: row.hard_limit
        for row in session.rows(_CLASS_LIMITS, of_class=class_name)
    }


def set_class_limits(
    session: Session, class_name: str, values: Mapping[str, int]
) -> None:
    """Set some limits of a class; the others are left alone."""
    session.run(_DELETE_CLASS_LIMITS, of_class=class_name, resources=list(values))
    session.run_many(
        sa.insert(CLASS),
        [
            {'class_name': class_name, 'resource': resource, 'hard_limit': limit}
            for resource, limit in values.items()
        ],
    )


# Usage

_KEY = [USAGE.c[name] for name in Key._fields]
_KEY_IS = [column == sa.bindparam(f'of_{column.name}') for column in _KEY]
_IN_SCOPE = _KEY_IS[:-1]

_USAGES = (
    sa.select(*columns(ScopeUsageRow, USAGE))
    .where(*_IN_SCOPE)
    .order_by(USAGE.c.resource)
)
_USAGES_LOCKED = _USAGES.with_for_update()
_ALL_USAGES = (
    sa.select(*_KEY, USAGE.c.in_use, USAGE.c.reserved)
    .where(USAGE.c.scope.in_(KINDS))
    .order_by(*_KEY)
)
_SET_USAGE = (
    sa.update(USAGE)
    .where(*_KEY_IS)
    .values(
        in_use=sa.bindparam('counted_in_use'), reserved=sa.bindparam('counted_reserved')
    )
)
_SET_EFFECTIVE = (
    sa.update(USAGE).where(*_KEY_IS).values(hard_limit=sa.bindparam('new_limit'))
)
_SET_USERS_EFFECTIVE = (
    sa.update(USAGE)
    .where(USAGE.c.project_id == sa.bindparam('of_project'), USAGE.c.scope == USER)
    .values(hard_limit=sa.bindparam('new_limit'))
)


def _of(key: tuple[str, ...]) -> dict[str, str]:
    return {f'of_{name}': value for name, value in zip(Key._fields, key, strict=False)}


def list_usages(
    session: Session, scope: Scope, *, lock: bool = False
) -> typing.Sequence[ScopeUsageRow]:
    """Return the usage rows of a scope; unused resources have none."""
    return session.rows(_USAGES_LOCKED if lock else _USAGES, **_of(scope))


def list_all_usages(
    session: Session, project_id: str | None = None, *, lock: bool = False
) -> typing.Sequence[ProjectUsageRow]:
    """Return the usage rows of a project or of all, in key order."""
    statement = _ALL_USAGES
    if project_id is not None:
        statement = statement.where(USAGE.c.project_id == project_id)
    return session.rows(statement.with_for_update() if lock else statement)


def insert_usages(session: Session, limits: Mapping[Key, int]) -> None:
    """Insert usage rows that count nothing yet.

    Another Galera node, where row locks do not count, may insert them too.
    """
    session.insert_unique_rows(
        sa.insert(USAGE),
        [
            {**key._asdict(), 'in_use': 0, 'reserved': 0, 'hard_limit': limit}
            for key, limit in sorted(limits.items())
        ],
    )


def set_usages(session: Session, counted: Iterable[tuple[Key, int, int]]) -> None:
    """Overwrite usage rows with tuples of key, in use and reserved."""
    session.run_many(
        _SET_USAGE,
        [
            {**_of(key), 'counted_in_use': in_use, 'counted_reserved': reserved}
            for key, in_use, reserved in sorted(counted)
        ],
    )


def set_effective_limits(
    session: Session, scope: Scope, limits: Mapping[str, int]
) -> None:
    """Copy limits to the usage rows of a scope, if they exist."""
    session.run_many(
        _SET_EFFECTIVE,
        [
            {**_of(Key(*scope, resource)), 'new_limit': limits[resource]}
            for resource in sorted(limits)
        ],
    )


def set_effective_user_limit(session: Session, project_id: str, limit: int) -> None:
    """Copy a limit to the usage rows of all users of a project."""
    session.run(_SET_USERS_EFFECTIVE, of_project=project_id, new_limit=limit)


def set_effective_defaults(session: Session, defaults: Mapping[str, int]) -> int:
    """Copy defaults to projects without their own limits.

    Returns the number of usage rows that were changed.
    """
    if not defaults:
        return 0
    limit = sa.case(dict(defaults), value=USAGE.c.resource)
    own = LIMITS[PROJECT]
    return session.run(
        sa.update(USAGE)
        .where(
            USAGE.c.scope == PROJECT,
            USAGE.c.hard_limit != limit,
            ~sa.exists().where(
                own.c.project_id == USAGE.c.project_id,
                own.c.resource == USAGE.c.resource,
            ),
        )
        .values(hard_limit=limit)
    )
