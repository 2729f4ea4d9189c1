"""Invariants of the replicas of every share while no work is pending."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import pathlib

import sqlalchemy as sa

from manila_lite.db.models import access, shares, snapshots
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy import driver as dummy, replication_domain
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import (
    PROMOTABLE,
    READABLE,
    UP_TO_DATE,
    ReplicaState,
)
from manila_lite.states.snapshot_instance import SnapshotStatus

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
MAPPING = access.InstanceAccessRule.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__


def problems(session: Session, folders: Mapping[str, pathlib.Path]) -> Iterator[str]:
    """Return a description of every violated invariant.

    `folders` are those of the dummy back ends, by host.
    """
    on_backends = {
        id: found
        for folder in folders.values()
        for id, found in dummy.replica_inventory(folder).items()
    }
    rows = session.rows(
        sa.select(INSTANCE, SHARE.c.replication_type)
        .select_from(INSTANCE.join(SHARE))
        .order_by(INSTANCE.c.id)
    )
    of_share: dict[str, list[sa.Row]] = {}
    for row in rows:
        of_share.setdefault(row.share_id, []).append(row)
    rules = _mapped(
        session, MAPPING.c.share_instance_id, MAPPING.c.access_id, MAPPING.c.state
    )
    snapshots_of = _mapped(
        session,
        SNAPSHOT_INSTANCE.c.share_instance_id,
        SNAPSHOT_INSTANCE.c.snapshot_id,
        SNAPSHOT_INSTANCE.c.status,
    )
    for share_id, replicas in of_share.items():
        if replicas[0].replication_type is None:
            yield from _not_replicated(replicas)
            continue
        yield from active_replicas(share_id, replicas)
        yield from roles(replicas, on_backends)
        yield from placement(share_id, replicas)
        yield from readonly_casts(replicas)
        # A replica that was never placed has no back end to keep rules on.
        if (
            len({frozenset(rules[row.id]) for row in replicas if row.host is not None})
            > 1
        ):
            yield f'the replicas of {share_id} have different rules'
        yield from snapshot_copies(share_id, replicas, snapshots_of)


def _mapped(
    session: Session, of: sa.Column, key: sa.Column, value: sa.Column
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for one, name, status in session.rows(sa.select(of, key, value)):
        found[one][name] = status
    return found


def _not_replicated(instances: Sequence[sa.Row]) -> Iterator[str]:
    for row in instances:
        if row.replica_state is not None or row.sole_active_of is not None:
            yield f'{row.id} is no replica, but has {row.replica_state}'


def active_replicas(share_id: str, replicas: Sequence[sa.Row]) -> Iterator[str]:
    """One replica is active, or more if the type is writable."""
    active = [row for row in replicas if row.replica_state == ReplicaState.ACTIVE]
    type_ = replicas[0].replication_type
    if not active or (type_ in PROMOTABLE and len(active) > 1):
        yield f'{share_id} is {type_} and has {len(active)} active replicas'
    for row in replicas:
        sole = share_id if row in active and type_ in PROMOTABLE else None
        if row.sole_active_of != sole:
            yield (
                f'{row.id} is {row.replica_state} and the sole active of '
                f'{row.sole_active_of}'
            )


def roles(
    replicas: Sequence[sa.Row],
    on_backends: Mapping[str, replication_domain.DummyReplica],
) -> Iterator[str]:
    """The back ends have the roles of the rows, unless a row is in error.

    Writable replicas are active on the back end from their creation on.
    """
    for row in replicas:
        if (
            row.id not in on_backends
            or row.replication_type not in PROMOTABLE
            or row.status != InstanceStatus.AVAILABLE
            or row.replica_state == ReplicaState.ERROR
        ):
            continue
        is_active = row.replica_state == ReplicaState.ACTIVE
        role = on_backends[row.id].role
        if is_active != (role == replication_domain.ACTIVE):
            yield (
                f'replica {row.id} is {row.replica_state} and {role} on the back end'
            )


def placement(share_id: str, replicas: Sequence[sa.Row]) -> Iterator[str]:
    """No pool has two replicas of one share."""
    hosts = [row.host for row in replicas if row.host is not None]
    if len(set(hosts)) < len(hosts):
        yield f'{share_id} has replicas in one pool: {sorted(hosts)}'


def readonly_casts(replicas: Sequence[sa.Row]) -> Iterator[str]:
    """Of readable replicas only the active one is writable."""
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


def snapshot_copies(
    share_id: str, replicas: Sequence[sa.Row], snapshots_of: dict[str, dict[str, str]]
) -> Iterator[str]:
    """All replicas have all snapshots; on those in sync they are available.

    A snapshot in error_deleting is left only on replicas where it failed.
    """
    known = set().union(*(snapshots_of[row.id] for row in replicas))
    stuck = {
        id
        for row in replicas
        for id, status in snapshots_of[row.id].items()
        if status == SnapshotStatus.ERROR_DELETING
    }
    active = [row for row in replicas if row.replica_state == ReplicaState.ACTIVE]
    available = {
        id
        for row in active
        for id, status in snapshots_of[row.id].items()
        if status == SnapshotStatus.AVAILABLE
    }
    for row in replicas:
        if row.host is None:
            continue  # it was never placed
        missing = known - stuck - snapshots_of[row.id].keys()
        if missing:
            yield f'replica {row.id} of {share_id} has no {missing}'
        behind = {
            id
            for id in available - stuck
            if snapshots_of[row.id].get(id) != SnapshotStatus.AVAILABLE
        }
        if row.replica_state in UP_TO_DATE and behind:
            yield (
                f'replica {row.id} is {row.replica_state} without snapshots {behind}'
            )
