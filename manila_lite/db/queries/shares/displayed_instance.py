"""Which instance of a share speaks for it, in Python and in SQL.

Shares are shown with its status, sorted and filtered by its columns. The
one home of the order is `states.share_instance`.
"""

import typing

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.states.share_instance import OVERRIDING_STATUSES
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import display_rank
from manila_lite.states.share_replica import ReplicaState

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__

_OTHER = len(OVERRIDING_STATUSES)


def instance_rank(instance: typing.Any) -> tuple[int, bool, int]:
    """The least of the instances of a share speaks for it.

    Of several such the oldest does. An instance has `status` and
    `replica_state`.
    """
    weighs = display_rank(instance.status)
    return (
        min(weighs, _OTHER),
        instance.replica_state != ReplicaState.ACTIVE,
        weighs,
    )


def _order(table: sa.FromClause) -> list[sa.ColumnElement]:
    """Return the order of the instances of a share: rank, then age."""
    status = table.c.status
    weighs = {
        name: display_rank(name) for name in sorted(SHARE_INSTANCE.statuses)
    }
    first = {name: weighs[name] for name in OVERRIDING_STATUSES}
    return [
        sa.case(first, value=status, else_=_OTHER),
        sa.case(
            {ReplicaState.ACTIVE: 0}, value=table.c.replica_state, else_=1
        ),
        sa.case(weighs, value=status),
        table.c.created_at,
        table.c.id,
    ]


_SPEAKER = INSTANCE.alias('speaker')
_BEST_FIRST = _order(_SPEAKER)


def select_column(column: str) -> sa.ScalarSelect:
    """What a column of the instance says that speaks for the share.

    To be used in a statement about shares.
    """
    return (
        sa.select(_SPEAKER.c[column])
        .where(_SPEAKER.c.share_id == SHARE.c.id)
        .order_by(*_BEST_FIRST)
        .limit(1)
        .correlate(SHARE)
        .scalar_subquery()
    )
