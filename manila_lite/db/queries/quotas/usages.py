"""Usage rows: the guarded UPDATE of a charge, and reads.

One UPDATE changes the row of the project and those of the user and the
share type.
"""

from collections.abc import Mapping, Sequence
import functools
import typing

import sqlalchemy as sa

from manila_lite.db.queries.quotas.quotas import USAGE, Key, Owner
from manila_lite.db.rows import UsageRow
from manila_lite.db.session import Session


class Change(typing.NamedTuple):
    """A kind of change: the factor of the amounts for each column."""

    name: str
    in_use: int
    reserved: int
    limited: bool = False


def change(
    session: Session,
    change: Change,
    owner: Owner,
    deltas: Mapping[str, int],
    *,
    only_checked: str,
) -> int:
    """Change usage; return how many rows allowed it.

    The amount of the resource `only_checked` is compared with its limit
    but counted nowhere.
    """
    return session.run(
        _statement(session.dialect, change, *_shape(owner, deltas), only_checked),
        **_params(owner),
        **{f'by_{key}': n for key, n in deltas.items()},
    )


def list_for_owner(
    session: Session, owner: Owner, deltas: Mapping[str, int]
) -> Sequence[UsageRow]:
    """Return the usage rows that a change of these resources concerns."""
    return session.rows(
        sa.select(USAGE).where(_rows(*_shape(owner, deltas))), **_params(owner)
    )


def _shape(
    owner: Owner, deltas: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what distinguishes statements: kinds of scopes, and resources."""
    return tuple(scope.kind for scope in owner.scopes), tuple(deltas)


def _params(owner: Owner) -> dict[str, str]:
    return {
        'of_project': owner.project_id,
        **{f'of_{scope.kind}_id': scope.id for scope in owner.scopes},
    }


def _rows(kinds: tuple[str, ...], resources: tuple[str, ...]) -> sa.ColumnElement[bool]:
    return sa.and_(
        USAGE.c.project_id == sa.bindparam('of_project'),
        sa.or_(
            *(
                sa.and_(
                    USAGE.c.scope == kind,
                    USAGE.c.scope_id == sa.bindparam(f'of_{kind}_id'),
                )
                for kind in kinds
            )
        ),
        USAGE.c.resource.in_(resources),
    )


@functools.cache
def _statement(
    dialect: str,
    change: Change,
    kinds: tuple[str, ...],
    resources: tuple[str, ...],
    only_checked: str,
) -> sa.Update:
    """Return the UPDATE, which matches fewer rows if it is refused."""
    amounts = {
        name: sa.bindparam(f'by_{name}', type_=sa.BigInteger()) for name in resources
    }
    requested = sa.case(amounts, value=USAGE.c.resource)
    delta = sa.case({**amounts, only_checked: 0}, value=USAGE.c.resource)
    values = {
        name: USAGE.c[name] + times * delta
        for name, times in (('in_use', change.in_use), ('reserved', change.reserved))
        if times
    }
    guards = [value >= 0 for value in values.values()]
    if change.limited:
        guards.append(
            sa.or_(
                requested <= 0,
                USAGE.c.hard_limit < 0,
                USAGE.c.in_use + USAGE.c.reserved + requested <= USAGE.c.hard_limit,
            )
        )
    rows = [_rows(kinds, resources)]
    if dialect == 'postgresql':
        rows = _locked_in_order(rows)
    return sa.update(USAGE).values(values).where(*rows, *guards)


def _locked_in_order(
    rows: list[sa.ColumnElement[bool]],
) -> list[sa.ColumnElement[bool]]:
    """Lock the rows in key order, which PostgreSQL does not guarantee."""
    keys = [USAGE.c[name] for name in Key._fields]
    held = sa.select(*keys).where(*rows).order_by(*keys).with_for_update().cte('locked')
    return [key == held.c[key.name] for key in keys]
