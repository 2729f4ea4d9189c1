"""What must hold of the replicas of every share when nothing is owed."""

import collections
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from manila_lite.db.models import access
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.session import Session
from manila_lite.states.share_replica import PROMOTABLE
from manila_lite.states.share_replica import READABLE
from manila_lite.states.share_replica import UP_TO_DATE
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SnapshotStatus

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
MAPPING = access.InstanceAccessRule.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__


def problems(session: Session) -> Iterator[str]:
    """Everything that is wrong, in words; rightly nothing."""
    rows = session.rows(
        sa.select(INSTANCE, SHARE.c.replication_type)
        .select_from(INSTANCE.join(SHARE))
        .order_by(INSTANCE.c.id)
    )
    of_share: dict[str, list[sa.Row]] = {}
    for row in rows:
        of_share.setdefault(row.share_id, []).append(row)
    rules = _mapped(
        session,
        MAPPING.c.share_instance_id,
        MAPPING.c.access_id,
        MAPPING.c.state,
    )
    taken = _mapped(
        session,
        SNAPSHOT_INSTANCE.c.share_instance_id,
        SNAPSHOT_INSTANCE.c.snapshot_id,
        SNAPSHOT_INSTANCE.c.status,
    )
    for share_id, replicas in of_share.items():
        if replicas[0].replication_type is None:
            yield from _none(replicas)
            continue
        yield from active_ones(share_id, replicas)
        yield from places(share_id, replicas)
        yield from casts(replicas)
        # One for which no place was found takes no part in what follows.
        if (
            len(
                {
                    frozenset(rules[row.id])
                    for row in replicas
                    if row.host is not None
                }
            )
            > 1
        ):
            yield f'the replicas of {share_id} have different rules'
        yield from copies(share_id, replicas, taken)


def _mapped(
    session: Session, of: sa.Column, key: sa.Column, value: sa.Column
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for one, name, status in session.rows(sa.select(of, key, value)):
        found[one][name] = status
    return found


def _none(instances: Sequence[sa.Row]) -> Iterator[str]:
    for row in instances:
        if row.replica_state is not None or row.sole_active_of is not None:
            yield f'{row.id} is no replica, and {row.replica_state}'


def active_ones(share_id: str, replicas: Sequence[sa.Row]) -> Iterator[str]:
    """One is active, or more where all can be written to."""
    active = [
        row for row in replicas if row.replica_state == ReplicaState.ACTIVE
    ]
    type_ = replicas[0].replication_type
    if not active or (type_ in PROMOTABLE and len(active) > 1):
        yield f'{share_id} is {type_} and has {len(active)} active replicas'
    for row in replicas:
        sole = share_id if row in active and type_ in PROMOTABLE else None
        if row.sole_active_of != sole:
            yield (
                f'{row.id} is {row.replica_state} and the one active of '
                f'{row.sole_active_of}'
            )


def places(share_id: str, replicas: Sequence[sa.Row]) -> Iterator[str]:
    """No pool has two replicas of one share."""
    hosts = [row.host for row in replicas if row.host is not None]
    if len(set(hosts)) < len(hosts):
        yield f'{share_id} has replicas in one pool: {sorted(hosts)}'


def casts(replicas: Sequence[sa.Row]) -> Iterator[str]:
    """Where others may read, only the active replica can be written to."""
    for row in replicas:
        cast = (
            row.replication_type == READABLE
            and row.replica_state != ReplicaState.ACTIVE
        )
        if row.cast_rules_to_readonly != cast:
            yield (
                f'{row.id} is {row.replica_state} and its rules are '
                f'{"" if row.cast_rules_to_readonly else "not "}cast'
            )


def copies(
    share_id: str, replicas: Sequence[sa.Row], taken: dict[str, dict[str, str]]
) -> Iterator[str]:
    """All replicas have all snapshots, and those in sync really have.

    One that could not be removed is where it could not be, only.
    """
    known = set().union(*(taken[row.id] for row in replicas))
    stuck = {
        id
        for row in replicas
        for id, status in taken[row.id].items()
        if status == SnapshotStatus.ERROR_DELETING
    }
    active = [
        row for row in replicas if row.replica_state == ReplicaState.ACTIVE
    ]
    there = {
        id
        for row in active
        for id, status in taken[row.id].items()
        if status == SnapshotStatus.AVAILABLE
    }
    for row in replicas:
        if row.host is None:
            continue  # no place was found for it
        missing = known - stuck - taken[row.id].keys()
        if missing:
            yield f'replica {row.id} of {share_id} has no {missing}'
        behind = {
            id
            for id in there - stuck
            if taken[row.id].get(id) != SnapshotStatus.AVAILABLE
        }
        if row.replica_state in UP_TO_DATE and behind:
            yield (
                f'replica {row.id} is {row.replica_state} without '
                f'snapshots {behind}'
            )
