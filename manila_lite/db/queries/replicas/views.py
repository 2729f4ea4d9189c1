"""Replicas as users see them: a page, or one replica, with metadata.

A page takes one statement, and one for its metadata that repeats the page
as a subquery.
"""

import dataclasses

import sqlalchemy as sa

from manila_lite.db.models import services, shares
from manila_lite.db.queries import pages
from manila_lite.db.queries.metadata import has_pairs
from manila_lite.db.queries.replicas.replicas import METADATA
from manila_lite.db.rows import Page
from manila_lite.db.session import Session
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
METADATA_TABLE = shares.ShareInstanceMetadata.__table__
ZONE = services.AvailabilityZone.__table__

_SUMMARY = (
    INSTANCE.c.id,
    INSTANCE.c.share_id,
    INSTANCE.c.status,
    INSTANCE.c.replica_state,
    INSTANCE.c.created_at,
)
_SHOWN = (
    *_SUMMARY,
    INSTANCE.c.host,
    INSTANCE.c.share_network_id,
    INSTANCE.c.share_server_id,
    INSTANCE.c.cast_rules_to_readonly,
    INSTANCE.c.updated_at,
    ZONE.c.name.label('availability_zone'),
    SHARE.c.project_id,
    SHARE.c.user_id,
)
_FROM = INSTANCE.join(SHARE).outerjoin(ZONE)
_ONE = (
    sa.select(*_SHOWN)
    .select_from(_FROM)
    .where(
        INSTANCE.c.id == sa.bindparam('replica_id'),
        INSTANCE.c.replica_state.is_not(None),
    )
)


@dataclasses.dataclass
class ShareReplicaFilter:
    """Criteria for replicas; empty fields match everything.

    Replicas hidden by deferred deletion are left out unless
    `include_hidden` is set.
    """

    project_id: str | None = None
    share_id: str | None = None
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    include_hidden: bool = False


def get(session: Session, replica_id: str) -> pages.Listing:
    """Return one replica, or no rows if it does not exist."""
    return pages.Listing(
        session.rows(_ONE, replica_id=replica_id),
        {'metadata': {replica_id: METADATA.get(session, replica_id)}},
    )


def list_page(
    session: Session,
    criteria: ShareReplicaFilter,
    page: Page,
    *,
    detailed: bool = False,
) -> pages.Listing:
    """Return ids and states of the replicas of a page, or all that is shown."""
    if not detailed:
        return pages.Listing(session.rows(_page(criteria, page, *_SUMMARY)), {})
    rows = session.rows(_page(criteria, page, *_SHOWN))
    ids = _page(criteria, page, INSTANCE.c.id).subquery()
    return pages.Listing(rows, {'metadata': METADATA.list_of_page(session, ids)})


def _page(
    criteria: ShareReplicaFilter, page: Page, *columns: sa.ColumnElement
) -> sa.Select:
    return pages.select_page(
        sa.select(*columns)
        .select_from(_FROM)
        .where(INSTANCE.c.replica_state.is_not(None), *_conditions(criteria)),
        page,
        INSTANCE,
    )


def _conditions(criteria: ShareReplicaFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = []
    if criteria.project_id is not None:
        found.append(SHARE.c.project_id == criteria.project_id)
    if criteria.share_id is not None:
        found.append(INSTANCE.c.share_id == criteria.share_id)
    if criteria.metadata:
        found.append(
            has_pairs(
                INSTANCE.c.id,
                METADATA_TABLE.c.share_instance_id,
                METADATA_TABLE.c.key,
                METADATA_TABLE.c.value,
                criteria.metadata,
                correlated=criteria.project_id is not None,
            )
        )
    if not criteria.include_hidden:
        found.append(INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)))
    return found
