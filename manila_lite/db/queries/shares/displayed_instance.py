"""The displayed instance of a share, in Python and in SQL.

A share is shown with the status of this instance, and sorted and filtered
by its columns. `states.share_instance` defines the order of statuses.
"""

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.rows import RankedRow
from manila_lite.states.share_instance import (
    OVERRIDING_STATUSES,
    SHARE_INSTANCE,
    display_rank,
)
from manila_lite.states.share_replica import ReplicaState

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__

_OTHER = len(OVERRIDING_STATUSES)


def instance_rank(instance: RankedRow) -> tuple[int, bool, int]:
    """Return the rank of an instance; the lowest one is displayed.

    Of several with the same rank the oldest is. An instance has `status`
    and `replica_state`.
    """
    rank = display_rank(instance.status)
    return (min(rank, _OTHER), instance.replica_state != ReplicaState.ACTIVE, rank)


def _order(table: sa.FromClause) -> list[sa.ColumnElement]:
    """Return the order of the instances of a share: rank, then age."""
    status = table.c.status
    ranks = {name: display_rank(name) for name in sorted(SHARE_INSTANCE.statuses)}
    first = {name: ranks[name] for name in OVERRIDING_STATUSES}
    return [
        sa.case(first, value=status, else_=_OTHER),
        sa.case({ReplicaState.ACTIVE: 0}, value=table.c.replica_state, else_=1),
        sa.case(ranks, value=status),
        table.c.created_at,
        table.c.id,
    ]


_DISPLAYED = INSTANCE.alias('displayed')
_BEST_FIRST = _order(_DISPLAYED)


def select_column(column: str) -> sa.ScalarSelect:
    """Return a subquery for a column of the displayed instance.

    It is correlated with the share of the enclosing statement.
    """
    return (
        sa.select(_DISPLAYED.c[column])
        .where(_DISPLAYED.c.share_id == SHARE.c.id)
        .order_by(*_BEST_FIRST)
        .limit(1)
        .correlate(SHARE)
        .scalar_subquery()
    )
