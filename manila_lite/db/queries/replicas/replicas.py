"""Replicas of a share: as requests and work act on them, and as users see them.

A page for users takes one statement, and one for its metadata that repeats the
page as a subquery.
"""

from collections.abc import Collection
import dataclasses
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.metadata import MetadataTable, has_pairs
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import (
    DetailedInstance,
    Page,
    PlacedReplicaRow,
    ReplicaRow,
    ReplicaRuleRow,
    ReplicaTarget,
    SnapshotInstanceRow,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE,
    INSTANCE_METADATA,
    MAPPING,
    RULE,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_METADATA,
    ZONE,
)
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS
from manila_lite.states.share_replica import PROMOTABLE, SHARE_REPLICA, ReplicaState

METADATA = MetadataTable(INSTANCE_METADATA, 'share_instance_id', INSTANCE)

_TARGET = (
    sa.select(*columns(ReplicaTarget, INSTANCE, SHARE))
    .select_from(INSTANCE.join(SHARE))
    .where(
        INSTANCE.c.id == sa.bindparam('replica_id'),
        INSTANCE.c.replica_state.is_not(None),
    )
)
_LOCK_INSTANCES = (
    sa.select(*columns(ReplicaRow, INSTANCE))
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
    .order_by(INSTANCE.c.id)
    .with_for_update()
)
_COUNT = (
    sa.select(sa.func.count())
    .select_from(INSTANCE)
    .where(
        INSTANCE.c.share_id == sa.bindparam('of_share'),
        INSTANCE.c.replica_state.is_not(None),
    )
)
_HOSTS = (
    sa.select(INSTANCE.c.host, INSTANCE.c.replica_state)
    .where(
        INSTANCE.c.share_id == sa.bindparam('of_share'), INSTANCE.c.host.is_not(None)
    )
    .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
)
_ACTIVE = (
    sa.select(INSTANCE.c.id)
    .where(
        INSTANCE.c.share_id == sa.bindparam('of_share'),
        INSTANCE.c.replica_state == ReplicaState.ACTIVE,
    )
    .order_by(INSTANCE.c.id)
    .limit(1)
)
_PLACED = (
    sa.select(INSTANCE.c.id, INSTANCE.c.host)
    .where(
        INSTANCE.c.share_id == sa.bindparam('of_share'),
        INSTANCE.c.replica_state.is_not(None),
        INSTANCE.c.host.is_not(None),
    )
    .order_by(INSTANCE.c.id)
)
_ADVANCE_GENERATION = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
    .values(replica_generation=INSTANCE.c.replica_generation + 1)
)
_OF_SHARES: sa.BindParameter[typing.Any] = sa.bindparam('share_ids', expanding=True)
_INSTANCES_OF = sa.select(INSTANCE.c.id).where(
    INSTANCE.c.share_id.in_(_OF_SHARES), INSTANCE.c.replica_state.is_not(None)
)
_RULES_OF = (
    sa.select(*columns(ReplicaRuleRow, RULE, MAPPING, mapping_id=MAPPING.c.id))
    .select_from(MAPPING.join(RULE))
    .where(RULE.c.share_id.in_(_OF_SHARES))
    .order_by(RULE.c.created_at, RULE.c.id)
)
_SNAPSHOTS_OF = (
    sa.select(
        SNAPSHOT_INSTANCE,
        SNAPSHOT.c.project_id,
        SNAPSHOT.c.user_id,
        SNAPSHOT.c.share_id,
        SNAPSHOT.c.size,
        SNAPSHOT.c.share_size,
        INSTANCE.c.replica_state,
        INSTANCE.c.host,
        INSTANCE.c.share_type_id,
        SHARE.c.mount_snapshot_support,
    )
    .select_from(
        SNAPSHOT_INSTANCE.join(SNAPSHOT)
        .join(INSTANCE, INSTANCE.c.id == SNAPSHOT_INSTANCE.c.share_instance_id)
        .join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id)
    )
    .where(SNAPSHOT.c.share_id.in_(_OF_SHARES))
    .order_by(SNAPSHOT.c.created_at, SNAPSHOT.c.id, SNAPSHOT_INSTANCE.c.id)
)
_SNAPSHOT_METADATA_OF = (
    sa.select(SNAPSHOT_METADATA)
    .join(SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_METADATA.c.share_snapshot_id)
    .where(SNAPSHOT.c.share_id.in_(_OF_SHARES))
)


def get_target(session: Session, replica_id: str) -> ReplicaTarget:
    """Return what an action needs to authorize and check a replica.

    Raises ShareReplicaNotFound, also for instances that are not replicas.
    """
    row = session.first(_TARGET, replica_id=replica_id)
    if row is None:
        raise exception.ShareReplicaNotFound(replica_id=replica_id)
    return row


def lock_instances(session: Session, share_id: str) -> typing.Sequence[ReplicaRow]:
    """Lock all instances of a share and return them.

    Code that decides about one replica by the state of the others locks
    them all first, always in this order. So does code that adds one.
    """
    found = session.rows(_LOCK_INSTANCES, of_share=share_id)
    if session.dialect == 'sqlite':
        return found
    # After waiting for a lock, the statement does not see instances that
    # were added in the meantime. The second one does, and with all of them
    # locked no more can be added.
    return session.rows(_LOCK_INSTANCES, of_share=share_id)


def count(session: Session, share_id: str) -> int:
    """Return the number of replicas of a share, including active ones."""
    return session.value(_COUNT, of_share=share_id)


def get_hosts(session: Session, share_id: str) -> tuple[str | None, frozenset[str]]:
    """Return the host of the active replica, if any, and all hosts."""
    rows = session.rows(_HOSTS, of_share=share_id)
    return (
        next(
            (row.host for row in rows if row.replica_state == ReplicaState.ACTIVE), None
        ),
        frozenset(row.host for row in rows),
    )


def list_placed(session: Session, share_id: str) -> typing.Sequence[PlacedReplicaRow]:
    """Return the replicas that are on a back end, ordered by id."""
    return session.rows(_PLACED, of_share=share_id)


def advance_generation(session: Session, share_id: str) -> None:
    """Invalidate outstanding replies of drivers about the replicas.

    They were requested while another replica was active, or while the
    active one had other data. The generation is read with the replica,
    and matched when the outcome is written.
    """
    session.run(_ADVANCE_GENERATION, of_share=share_id)


def initial_columns(share_id: str, replication_type: str | None) -> dict[str, object]:
    """Return the replica columns of the first instance of a share."""
    if replication_type is None:
        return {}
    return {
        'replica_state': SHARE_REPLICA.initial['create'],
        'sole_active_of': sole_active_of(share_id, replication_type),
    }


def find_active(session: Session, share_id: str) -> str | None:
    """Return the id of the active replica, or of one of them."""
    return session.value(_ACTIVE, of_share=share_id)


def sole_active_of(share_id: str, replication_type: str | None) -> str | None:
    """Return the unique value that allows only one active replica."""
    return share_id if replication_type in PROMOTABLE else None


# Input for drivers, for many shares at once


def list_instances(
    session: Session, share_ids: Collection[str]
) -> list[DetailedInstance]:
    """Return all replicas of the shares, as `list_with_details` does."""
    ids = [row.id for row in session.rows(_INSTANCES_OF, share_ids=sorted(share_ids))]
    return share_instances.list_with_details(session, ids)


def list_rules(
    session: Session, share_ids: Collection[str]
) -> dict[str, list[ReplicaRuleRow]]:
    """Return the access rules of the shares, by instance id."""
    found: dict[str, list[ReplicaRuleRow]] = {}
    for row in session.rows(_RULES_OF, share_ids=sorted(share_ids)):
        found.setdefault(row.share_instance_id, []).append(row)
    return found


def list_snapshots(
    session: Session, share_ids: Collection[str]
) -> tuple[typing.Sequence[SnapshotInstanceRow], dict[str, dict]]:
    """Return all snapshot instances of the shares, and their metadata.

    The oldest snapshots come first; each row has the `replica_state` of
    its replica. The metadata is by snapshot id.
    """
    wanted = sorted(share_ids)
    metadata: dict[str, dict[str, str]] = {}
    rows = session.rows(_SNAPSHOTS_OF, share_ids=wanted)
    if rows:
        for one in session.rows(_SNAPSHOT_METADATA_OF, share_ids=wanted):
            metadata.setdefault(one.share_snapshot_id, {})[one.key] = one.value
    return rows, metadata


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
                INSTANCE_METADATA.c.share_instance_id,
                INSTANCE_METADATA.c.key,
                INSTANCE_METADATA.c.value,
                criteria.metadata,
                correlated=criteria.project_id is not None,
            )
        )
    if not criteria.include_hidden:
        found.append(INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)))
    return found
