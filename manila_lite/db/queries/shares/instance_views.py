"""Instances of shares as the API shows them, and the displayed instance.

A share is shown with the status of its displayed instance, and sorted and
filtered by the columns of it. `states.share_instance` defines the order of
statuses.
"""

from collections.abc import Sequence
import dataclasses
import typing

import sqlalchemy as sa

from manila_lite.db.models import services, shares
from manila_lite.db.queries import pages
from manila_lite.db.rows import InstanceViewRow, Page, RankedRow
from manila_lite.db.session import Session
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


EXPORT = shares.ExportLocation.__table__
ZONE = services.AvailabilityZone.__table__

_SHOWN = sa.select(INSTANCE, ZONE.c.name.label('availability_zone')).select_from(
    INSTANCE.outerjoin(ZONE)
)


@dataclasses.dataclass
class ShareInstanceFilter:
    """Criteria for share instances; empty fields match everything."""

    id: str | None = None
    share_id: str | None = None
    exact: dict[str, str] = dataclasses.field(default_factory=dict)
    export_id: str | None = None
    export_path: str | None = None
    soft_deleted: bool | None = None


class ShareInstanceListing(typing.NamedTuple):
    rows: Sequence[InstanceViewRow]
    children: dict[str, dict[str, list[str]]]


def list_instances(
    session: Session, criteria: ShareInstanceFilter, page: Page, *, exports: bool
) -> ShareInstanceListing:
    """Return the instances of a page, and the paths of their exports."""
    conditions = _conditions(criteria)
    rows = session.rows(pages.select_page(_SHOWN.where(*conditions), page, INSTANCE))
    paths: dict[str, list[str]] = {}
    if exports:
        ids = pages.select_page(
            sa.select(INSTANCE.c.id).where(*conditions), page, INSTANCE
        ).subquery()
        for row in session.rows(
            sa.select(EXPORT.c.share_instance_id, EXPORT.c.path)
            .join(ids, ids.c.id == EXPORT.c.share_instance_id)
            .order_by(EXPORT.c.created_at, EXPORT.c.path)
        ):
            paths.setdefault(row.share_instance_id, []).append(row.path)
    return ShareInstanceListing(rows, {'exports': paths})


def _conditions(criteria: ShareInstanceFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        INSTANCE.c[name] == value for name, value in criteria.exact.items()
    ]
    if criteria.id is not None:
        found.append(INSTANCE.c.id == criteria.id)
    if criteria.share_id is not None:
        found.append(INSTANCE.c.share_id == criteria.share_id)
    if criteria.soft_deleted is not None:
        found.append(
            sa.exists().where(
                SHARE.c.id == INSTANCE.c.share_id,
                SHARE.c.is_soft_deleted.is_(criteria.soft_deleted),
            )
        )
    of_export = EXPORT.alias()
    asked = [
        of_export.c[name] == value
        for name, value in (('id', criteria.export_id), ('path', criteria.export_path))
        if value is not None
    ]
    if asked:
        found.append(
            sa.exists().where(of_export.c.share_instance_id == INSTANCE.c.id, *asked)
        )
    return found
