"""Access rules of snapshots: the rows that requests and work act on."""

from collections.abc import Collection
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.access.rules import RuleTables
from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import AccessRuleRow, MountableInstanceRow, SnapshotRuleRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE as SHARE_INSTANCE,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE as INSTANCE,
    SNAPSHOT_MAPPING as ON_INSTANCE,
    SNAPSHOT_RULE as RULE,
)
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE, RuleState
from manila_lite.states.share_replica import UP_TO_DATE, ReplicaState

READ_ONLY = 'ro'
"""The level of every rule: snapshots are read-only."""

RULES = RuleTables(
    SNAPSHOT_ACCESS_RULE,
    RULE,
    ON_INSTANCE,
    INSTANCE,
    instance_column='share_snapshot_instance_id',
    selected=sa.select(
        *columns(
            AccessRuleRow,
            RULE,
            SNAPSHOT,
            ON_INSTANCE,
            access_level=sa.literal(READ_ONLY),
            access_key=sa.null(),
            mapping_id=ON_INSTANCE.c.id,
        )
    ).select_from(ON_INSTANCE.join(RULE).join(SNAPSHOT)),
    exists=exception.ShareSnapshotAccessExists,
)
insert, list_for_instance = RULES.insert, RULES.list_for_instance
mark_stale = RULES.mark_stale


_LOCK_INSTANCES_SHARED = (
    sa.select(
        *columns(
            MountableInstanceRow,
            INSTANCE,
            SHARE_INSTANCE,
            SHARE,
            share_id=SNAPSHOT.c.share_id,
        )
    )
    .select_from(
        SNAPSHOT.join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id)
        .join(INSTANCE, INSTANCE.c.snapshot_id == SNAPSHOT.c.id)
        .join(SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id)
    )
    .where(SNAPSHOT.c.id == sa.bindparam('of_snapshot'))
    .order_by(INSTANCE.c.id)
    .with_for_update(read=True, of=INSTANCE)
)
_MOUNTABLE = (
    sa.select(SHARE.c.id, SHARE.c.mount_snapshot_support)
    .select_from(SNAPSHOT.join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id))
    .where(SNAPSHOT.c.id == sa.bindparam('of_snapshot'))
)
_FIND = sa.select(RULE.c.id).where(
    RULE.c.id == sa.bindparam('access_id'),
    RULE.c.share_snapshot_id == sa.bindparam('of_snapshot'),
)
_SHOWN = (
    sa.select(
        RULE.c.id,
        RULE.c.access_type,
        RULE.c.access_to,
        ON_INSTANCE.c.state,
        SHARE_INSTANCE.c.replica_state,
    )
    .select_from(
        RULE.join(ON_INSTANCE, ON_INSTANCE.c.access_id == RULE.c.id)
        .join(INSTANCE)
        .join(SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id)
    )
    .where(RULE.c.share_snapshot_id == sa.bindparam('of_snapshot'))
    .order_by(RULE.c.created_at, RULE.c.id)
)
_ON_SHARE_INSTANCE = (
    sa.select(ON_INSTANCE.c.access_id, ON_INSTANCE.c.state, INSTANCE.c.snapshot_id)
    .select_from(ON_INSTANCE.join(INSTANCE))
    .where(INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'))
    .order_by(ON_INSTANCE.c.access_id)
)
_ON_ACTIVE_REPLICA = (
    sa.select(ON_INSTANCE.c.access_id, ON_INSTANCE.c.state)
    .select_from(
        ON_INSTANCE.join(INSTANCE).join(
            SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id
        )
    )
    .where(
        INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot'),
        SHARE_INSTANCE.c.replica_state == ReplicaState.ACTIVE,
    )
)
_IN_FLIGHT = ON_INSTANCE.c.state.in_(sorted(SNAPSHOT_ACCESS_RULE.in_flight))
_HAS_RULES_IN_FLIGHT = sa.select(
    sa.exists().where(
        ON_INSTANCE.c.share_snapshot_instance_id == sa.bindparam('of_instance'),
        _IN_FLIGHT,
    )
)
_HAS_RULES_IN_FLIGHT_ON = sa.select(
    sa.exists().where(
        ON_INSTANCE.c.share_snapshot_instance_id == INSTANCE.c.id,
        INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'),
        _IN_FLIGHT,
    )
)
_DESTINATION = INSTANCE.alias('destination')
_MOVE_TO = (
    sa.update(ON_INSTANCE)
    .where(
        ON_INSTANCE.c.share_snapshot_instance_id.in_(
            sa.select(INSTANCE.c.id).where(
                INSTANCE.c.share_instance_id == sa.bindparam('source_id')
            )
        )
    )
    .values(
        share_snapshot_instance_id=sa.select(_DESTINATION.c.id)
        .join(INSTANCE, INSTANCE.c.snapshot_id == _DESTINATION.c.snapshot_id)
        .where(
            INSTANCE.c.id == ON_INSTANCE.c.share_snapshot_instance_id,
            _DESTINATION.c.share_instance_id == sa.bindparam('destination_id'),
        )
        .correlate(ON_INSTANCE)
        .scalar_subquery()
    )
)
_HAS_RULES_ON = (
    INSTANCE.c.share_instance_id.in_(
        sa.bindparam('share_instance_ids', expanding=True)
    ),
    INSTANCE.c.id.in_(sa.select(ON_INSTANCE.c.share_snapshot_instance_id)),
)
_MARK_STALE_ON = sa.update(INSTANCE).where(*_HAS_RULES_ON).values(access_stale=True)
_WITH_RULES_ON = (
    sa.select(INSTANCE.c.id, INSTANCE.c.share_instance_id)
    .where(*_HAS_RULES_ON)
    .order_by(INSTANCE.c.id)
)


# A rule with different states on its instances is shown with the first.
_RANK = {
    state: rank
    for rank, state in enumerate(
        (
            RuleState.ERROR,
            RuleState.QUEUED_TO_APPLY,
            RuleState.QUEUED_TO_DENY,
            RuleState.APPLYING,
            RuleState.DENYING,
            RuleState.QUEUED_TO_UPDATE,
            RuleState.UPDATING,
            RuleState.ACTIVE,
        )
    )
}


class SnapshotAccessRuleView(typing.NamedTuple):
    """A rule as users see it, with one state for all instances."""

    id: str
    access_type: str
    access_to: str
    state: str


def lock_instances_shared(
    session: Session, snapshot_id: str
) -> typing.Sequence[MountableInstanceRow]:
    """Lock the instances of a snapshot (shared) and return them.

    The rows have the capabilities of the share. The lock makes a
    concurrent delete of the snapshot see the rules inserted here.
    """
    return session.rows(_LOCK_INSTANCES_SHARED, of_snapshot=snapshot_id)


def check_exists(session: Session, snapshot_id: str, access_id: str) -> None:
    """Raise SnapshotAccessNotFound if the snapshot has no such rule."""
    if session.first(_FIND, of_snapshot=snapshot_id, access_id=access_id) is None:
        raise exception.SnapshotAccessNotFound(access_id=access_id)


def list_rules(session: Session, snapshot_id: str) -> list[SnapshotAccessRuleView]:
    """Return the rules of a snapshot, oldest first.

    Raises SnapshotNotMountable if it cannot have rules.
    """
    share = session.first(_MOUNTABLE, of_snapshot=snapshot_id)
    if share is not None and not share.mount_snapshot_support:
        raise exception.SnapshotNotMountable(share_id=share.id)
    return _shown(session.rows(_SHOWN, of_snapshot=snapshot_id))


def _shown(rows: typing.Sequence[sa.Row]) -> list[SnapshotAccessRuleView]:
    """Return one view per rule: from up-to-date replicas if possible."""
    found: dict[str, sa.Row] = {}
    for row in rows:
        known = found.get(row.id)
        if known is None or _rank(row) < _rank(known):
            found[row.id] = row
    return [
        SnapshotAccessRuleView(row.id, row.access_type, row.access_to, row.state)
        for row in found.values()
    ]


def _rank(row: sa.Row) -> tuple[bool, int]:
    return row.replica_state not in UP_TO_DATE, _RANK[row.state]


def list_on_share_instance(
    session: Session, share_instance_id: str
) -> typing.Sequence[SnapshotRuleRow]:
    """Return the rules of all snapshots of a share instance, with states."""
    return session.rows(_ON_SHARE_INSTANCE, of_share_instance=share_instance_id)


def get_states_on_active_replica(session: Session, snapshot_id: str) -> dict[str, str]:
    """Return the states of the rules of a snapshot, by rule, where active."""
    return {
        row.access_id: row.state
        for row in session.rows(_ON_ACTIVE_REPLICA, of_snapshot=snapshot_id)
    }


def has_rules_in_flight(session: Session, snapshot_instance_id: str) -> bool:
    """Whether any rule of the instance is in flight."""
    return bool(session.value(_HAS_RULES_IN_FLIGHT, of_instance=snapshot_instance_id))


def has_rules_in_flight_on(session: Session, share_instance_id: str) -> bool:
    """Whether any rule of a snapshot of the share instance is in flight."""
    return bool(
        session.value(_HAS_RULES_IN_FLIGHT_ON, of_share_instance=share_instance_id)
    )


def move_to(session: Session, source_id: str, destination_id: str) -> None:
    """Move the rules of all snapshots to the instances on a destination.

    Both ids are those of share instances of one share.
    """
    session.run(_MOVE_TO, source_id=source_id, destination_id=destination_id)


def list_with_rules_on(
    session: Session, share_instance_ids: Collection[str]
) -> dict[str, str]:
    """Return snapshot instances that have rules, with their share instance.

    Both by id, in the order in which they are locked.
    """
    return {
        row.id: row.share_instance_id
        for row in session.rows(
            _WITH_RULES_ON, share_instance_ids=sorted(share_instance_ids)
        )
    }


def mark_stale_on_share_instances(
    session: Session, share_instance_ids: Collection[str]
) -> None:
    """Mark all snapshots of some share instances that have rules stale."""
    session.run(_MARK_STALE_ON, share_instance_ids=sorted(share_instance_ids))
