"""Snapshots as users see them: a page, or one snapshot, with metadata.

A snapshot is shown with the status of one of its instances: of those on
up-to-date replicas, the first in the order of the published API. A page
takes one statement for the snapshots joined with their instances, and one
for their metadata, which repeats the page as a subquery. A single
snapshot and its metadata take one statement.
"""

from collections.abc import Collection, Sequence
import dataclasses

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.queries.metadata import by_parent, has_pairs
from manila_lite.db.queries.snapshots.snapshots import METADATA
from manila_lite.db.rows import Page, SnapshotInstanceViewRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE as SHARE_INSTANCE,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE as INSTANCE,
    SNAPSHOT_METADATA,
)
from manila_lite.states import snapshot_instance as states
from manila_lite.states.share_replica import UP_TO_DATE

# A scalar subquery, as for shares: evaluated until the page is full.
_IS_VISIBLE = (
    sa.select(INSTANCE.c.id)
    .where(
        INSTANCE.c.snapshot_id == SNAPSHOT.c.id,
        INSTANCE.c.status.not_in(sorted(states.HIDDEN_FROM_TENANTS)),
    )
    .limit(1)
    .correlate(SNAPSHOT)
    .scalar_subquery()
    .is_not(None)
)

SNAPSHOT_COLUMNS = frozenset(column.name for column in SNAPSHOT.c)
INSTANCE_SORT_KEYS = frozenset({'status', 'progress', 'provider_location'})


@dataclasses.dataclass
class SnapshotFilter:
    """Criteria for snapshots; empty fields match everything.

    `snapshot` are exact column values, `like` substrings; all pairs of
    `metadata` must be present. `used` is whether shares were created from
    the snapshot. Snapshots hidden by deferred deletion are left out unless
    `include_hidden` is set. With `ids` only these snapshots are looked at.
    """

    project_id: str | None = None
    include_hidden: bool = False
    snapshot: dict[str, object] = dataclasses.field(default_factory=dict)
    status: str | None = None
    like: dict[str, str] = dataclasses.field(default_factory=dict)
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    used: bool | None = None
    ids: Collection[str] | None = None


_SUMMARY = (SNAPSHOT.c.id, SNAPSHOT.c.display_name.label('name'), SNAPSHOT.c.created_at)
_SHOWN = sa.select(
    *(
        pages.to_show(column)
        for column in SNAPSHOT.c
        if column is not SNAPSHOT.c.updated_at
    ),
    INSTANCE.c.status,
    INSTANCE.c.provider_location,
    SHARE_INSTANCE.c.replica_state,
)


def _joined(these: sa.FromClause = SNAPSHOT) -> sa.FromClause:
    return these.outerjoin(INSTANCE, INSTANCE.c.snapshot_id == SNAPSHOT.c.id).outerjoin(
        SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id
    )


_ONE = (
    _SHOWN.add_columns(SNAPSHOT_METADATA.c.key, SNAPSHOT_METADATA.c.value)
    .select_from(
        _joined().outerjoin(
            SNAPSHOT_METADATA, SNAPSHOT_METADATA.c.share_snapshot_id == SNAPSHOT.c.id
        )
    )
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
)


def get(session: Session, snapshot_id: str) -> pages.Listing:
    """Return one snapshot, or no rows if it does not exist."""
    found = session.rows(_ONE, snapshot_id=snapshot_id)
    return pages.Listing(
        select_displayed(found),
        {'metadata': by_parent((row.id, row.key, row.value) for row in found)},
    )


def list_page(
    session: Session,
    criteria: SnapshotFilter,
    page: Page,
    *,
    detailed: bool = False,
    count: bool = False,
) -> pages.Listing:
    """Return ids and names of the snapshots of a page, or all that is shown."""
    criteria = _checked(session, criteria)
    total = _check_length(session, criteria, page, count)
    if not detailed:
        found = session.rows(_page(criteria, page, *_SUMMARY))
        return pages.Listing(found, {}, total)
    ids = _page(criteria, page, SNAPSHOT.c.id).subquery()
    # An outer join from the page: for an inner join SQLite would scan all
    # snapshots if that saves it from sorting the page.
    these = ids.outerjoin(SNAPSHOT, SNAPSHOT.c.id == ids.c.id)
    found = session.rows(
        _SHOWN.select_from(_joined(these)).order_by(
            *pages.order(page, SNAPSHOT, _sort_value(page))
        )
    )
    if not found:  # to find nothing again could take as long
        return pages.Listing([], {}, total)
    metadata = METADATA.list_of_page(session, ids)
    return pages.Listing(select_displayed(found), {'metadata': metadata}, total)


def select_displayed(rows: Sequence[sa.Row]) -> Sequence[sa.Row]:
    """Return the displayed row of each snapshot, in order."""
    if pages.is_unique(rows):
        return rows
    return pages.choose_first(rows, _rank)


def _rank(row: sa.Row) -> tuple[bool, int]:
    return (row.replica_state not in UP_TO_DATE, states.display_rank(row.status))


def _displayed_column(column: str) -> sa.ScalarSelect:
    """Return a subquery for a column of the displayed instance."""
    one, of = INSTANCE.alias(), SHARE_INSTANCE.alias()
    return (
        sa.select(one.c[column])
        .select_from(one.join(of, of.c.id == one.c.share_instance_id))
        .where(one.c.snapshot_id == SNAPSHOT.c.id)
        .order_by(
            sa.case((of.c.replica_state.in_(sorted(UP_TO_DATE)), 0), else_=1),
            sa.case(
                {status: states.display_rank(status) for status in sorted(states.ALL)},
                value=one.c.status,
            ),
            one.c.id,
        )
        .limit(1)
        .correlate(SNAPSHOT)
        .scalar_subquery()
    )


def _checked(session: Session, criteria: SnapshotFilter) -> SnapshotFilter:
    """Return the criteria with the ids of snapshots, if few have the status.

    Raises InvalidInput for a search in a list of all projects that is too long.
    """
    if criteria.project_id is not None:
        return criteria
    if criteria.status is not None:
        with_status = sa.select(INSTANCE.c.snapshot_id).where(
            INSTANCE.c.status == criteria.status
        )
        ids = pages.find_few(session, [with_status])
        if ids is not None:
            return dataclasses.replace(criteria, ids=ids)
    if criteria.like:
        others = dataclasses.replace(criteria, like={})
        pages.check_search(session, SNAPSHOT, _conditions(others))
    return criteria


def _page(
    criteria: SnapshotFilter, page: Page, *columns: sa.ColumnElement
) -> sa.Select:
    return pages.select_page(
        sa.select(*columns).where(*_conditions(criteria)),
        page,
        SNAPSHOT,
        _sort_value(page),
    )


def _sort_value(page: Page) -> sa.ColumnElement:
    # A subquery gives one value for each snapshot: with a join, one with
    # several instances would appear several times in the page.
    return (
        _displayed_column(page.sort_key)
        if page.sort_key in INSTANCE_SORT_KEYS
        else SNAPSHOT.c[page.sort_key]
    )


def _check_length(
    session: Session, criteria: SnapshotFilter, page: Page, count: bool
) -> int | None:
    return pages.check_length(
        session, page, SNAPSHOT, _conditions(criteria), count=count
    )


def _conditions(criteria: SnapshotFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        SNAPSHOT.c[name] == value for name, value in criteria.snapshot.items()
    ]
    if criteria.ids is not None:
        found.append(SNAPSHOT.c.id.in_(sorted(criteria.ids)))
    if criteria.project_id is not None:
        found.append(SNAPSHOT.c.project_id == criteria.project_id)
    if not criteria.include_hidden:
        found.append(_IS_VISIBLE)
    found += [
        SNAPSHOT.c[name].contains(text, autoescape=True)
        for name, text in criteria.like.items()
    ]
    if criteria.status is not None:
        found.append(
            sa.exists()
            .where(
                INSTANCE.c.snapshot_id == SNAPSHOT.c.id,
                INSTANCE.c.status == criteria.status,
            )
            .correlate(SNAPSHOT)
        )
        found.append(_displayed_column('status') == criteria.status)
    if criteria.metadata:
        found.append(
            has_pairs(
                SNAPSHOT.c.id,
                SNAPSHOT_METADATA.c.share_snapshot_id,
                SNAPSHOT_METADATA.c.key,
                SNAPSHOT_METADATA.c.value,
                criteria.metadata,
                correlated=criteria.project_id is not None,
            )
        )
    if criteria.used is not None:
        made = sa.exists().where(SHARE.c.snapshot_id == SNAPSHOT.c.id)
        found.append(made if criteria.used else ~made)
    return found


# Snapshot instances as administrators see them

_INSTANCES = sa.select(INSTANCE, SNAPSHOT.c.share_id).select_from(
    INSTANCE.join(SNAPSHOT)
)
_ONE_INSTANCE = _INSTANCES.where(INSTANCE.c.id == sa.bindparam('instance_id'))


def get_instance(session: Session, instance_id: str) -> SnapshotInstanceViewRow:
    row = session.first(_ONE_INSTANCE, instance_id=instance_id)
    if row is None:
        raise exception.SnapshotInstanceNotFound(snapshot_instance_id=instance_id)
    return row


def list_instances(
    session: Session, snapshot_id: str | None, page: Page
) -> Sequence[SnapshotInstanceViewRow]:
    """Return a page of all instances, or of those of a snapshot."""
    statement = _INSTANCES
    if snapshot_id is not None:
        statement = statement.where(INSTANCE.c.snapshot_id == snapshot_id)
    return session.rows(pages.select_page(statement, page, INSTANCE))
