"""Instances of shares as the API shows them, and the displayed instance.

A share is shown with the status of its displayed instance, and sorted and
filtered by the columns of it. `states.share_instance` defines the order of
statuses.
"""

import dataclasses

import sqlalchemy as sa

from manila_lite.db.queries import pages
from manila_lite.db.queries.metadata import MetadataTable, by_parent
from manila_lite.db.rows import Page, RankedRow
from manila_lite.db.session import Session
from manila_lite.db.tables import EXPORT, EXPORT_METADATA, INSTANCE, SHARE, ZONE
from manila_lite.states.share_instance import (
    OVERRIDING_STATUSES,
    SHARE_INSTANCE,
    display_rank,
)
from manila_lite.states.share_replica import DR, ReplicaState

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


def list_instances(
    session: Session, criteria: ShareInstanceFilter, page: Page, *, exports: bool
) -> pages.Listing:
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
    return pages.Listing(rows, {'exports': paths})


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
    asked = [
        EXPORT.c[name] == value
        for name, value in (('id', criteria.export_id), ('path', criteria.export_path))
        if value is not None
    ]
    if asked:
        # Found first: an EXISTS is evaluated for each instance there is.
        found.append(
            INSTANCE.c.id.in_(sa.select(EXPORT.c.share_instance_id).where(*asked))
        )
    return found


METADATA = MetadataTable(EXPORT_METADATA, 'export_location_id', EXPORT)

PREFERRED = 'preferred'
"""The metadata key that is a separate field on the wire."""

# No client can use those of a passive replica of this type.
_IS_ADMIN_ONLY = sa.case(
    (
        sa.and_(
            SHARE.c.replication_type == DR,
            INSTANCE.c.replica_state != ReplicaState.ACTIVE,
        ),
        sa.true(),
    ),
    else_=EXPORT.c.is_admin_only,
)
_COLUMNS = (
    *(column for column in EXPORT.c if column.name != 'is_admin_only'),
    _IS_ADMIN_ONLY.label('is_admin_only'),
    INSTANCE.c.share_id,
    INSTANCE.c.replica_state,
    ZONE.c.name.label('availability_zone'),
)
_ALL = (
    sa.select(*_COLUMNS)
    .select_from(
        EXPORT.join(INSTANCE)
        .join(SHARE)
        .outerjoin(ZONE, ZONE.c.id == INSTANCE.c.availability_zone_id)
    )
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_OF_SHARE = _ALL.where(INSTANCE.c.share_id == sa.bindparam('of_id'))
_OF_INSTANCE = _ALL.where(INSTANCE.c.id == sa.bindparam('of_id'))
_METADATA = sa.select(
    EXPORT_METADATA.c.export_location_id, EXPORT_METADATA.c.key, EXPORT_METADATA.c.value
).select_from(EXPORT_METADATA.join(EXPORT).join(INSTANCE))
_METADATA_OF_SHARE = _METADATA.where(INSTANCE.c.share_id == sa.bindparam('of_id'))
_METADATA_OF_INSTANCE = _METADATA.where(INSTANCE.c.id == sa.bindparam('of_id'))


def list_for_share(
    session: Session, share_id: str, *, all_replicas: bool
) -> pages.Listing:
    """Return the export locations of a share, and their metadata.

    Of a replicated share they are those of the active replica only, unless
    `all_replicas` is set, as in versions below 2.47.
    """
    rows = [
        row
        for row in session.rows(_OF_SHARE, of_id=share_id)
        if all_replicas or row.replica_state in (None, ReplicaState.ACTIVE)
    ]
    metadata = by_parent(session.rows(_METADATA_OF_SHARE, of_id=share_id))
    return pages.Listing(rows, {'metadata': metadata})


def list_for_instance(session: Session, instance_id: str) -> pages.Listing:
    metadata = by_parent(session.rows(_METADATA_OF_INSTANCE, of_id=instance_id))
    return pages.Listing(
        session.rows(_OF_INSTANCE, of_id=instance_id), {'metadata': metadata}
    )
