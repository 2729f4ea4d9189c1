"""Which instance of a share speaks for it, in Python and in SQL.

Shares are shown with its status, sorted and filtered by its columns. The
one home of the order is `states.share_instance`.
"""

import typing

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.states.share_instance import MACHINE
from manila_lite.states.share_instance import WHOEVER_IT_IS
from manila_lite.states.share_instance import weight
from manila_lite.states.share_replica import P

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__

_OTHER = len(WHOEVER_IT_IS)


def rank(instance: typing.Any) -> tuple[int, bool, int]:
    """The least of the instances of a share speaks for it.

    Of several such the oldest does. An instance has `status` and
    `replica_state`.
    """
    weighs = weight(instance.status)
    return (min(weighs, _OTHER), instance.replica_state != P.ACTIVE, weighs)


def _order(table: sa.FromClause) -> list[sa.ColumnElement]:
    """What the instances of a share are ordered by: `rank`, then age."""
    status = table.c.status
    weighs = {name: weight(name) for name in sorted(MACHINE.statuses)}
    first = {name: weighs[name] for name in WHOEVER_IT_IS}
    return [
        sa.case(first, value=status, else_=_OTHER),
        sa.case({P.ACTIVE: 0}, value=table.c.replica_state, else_=1),
        sa.case(weighs, value=status),
        table.c.created_at,
        table.c.id,
    ]


_SPEAKER = INSTANCE.alias('speaker')
_BEST_FIRST = _order(_SPEAKER)


def of_share(column: str) -> sa.ScalarSelect:
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
