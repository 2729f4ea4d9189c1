"""Invariants of the access rules of snapshots while no work is pending."""

from collections.abc import Iterator, Mapping
import typing

import sqlalchemy as sa

from manila_lite.db.models import shares, snapshots
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy.state import Clients
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE, RuleState
from manila_lite.states.share_replica import DR, ReplicaState
from manila_lite.states.snapshot_instance import LEAVING

INSTANCE = snapshots.SnapshotInstance.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
RULE = snapshots.SnapshotAccessRule.__table__
ON_INSTANCE = snapshots.SnapshotInstanceAccessRule.__table__


def problems(session: Session, clients: Mapping[str, Clients]) -> list[str]:
    """Return a description of every violated invariant.

    `clients` maps the host of a back end to the clients it allows.
    """
    rows = session.rows(
        sa.select(
            INSTANCE.c.id,
            INSTANCE.c.status,
            INSTANCE.c.access_stale,
            SHARE_INSTANCE.c.host,
            SHARE_INSTANCE.c.replica_state,
            SHARE.c.replication_type,
            ON_INSTANCE.c.state,
            RULE.c.access_type,
            RULE.c.access_to,
        ).select_from(
            INSTANCE.join(SHARE_INSTANCE.join(SHARE)).outerjoin(ON_INSTANCE.join(RULE))
        )
    )
    found: dict[str, list[sa.Row]] = {}
    for row in rows:
        found.setdefault(row.id, []).append(row)
    return [
        *(
            problem
            for of_instance in found.values()
            for problem in _of_instance(of_instance, clients)
        ),
        *_leftovers(session, found, clients),
    ]


def _of_instance(
    rows: list[typing.Any], clients: Mapping[str, Clients]
) -> Iterator[str]:
    instance = rows[0]
    if instance.status in LEAVING:
        return
    states = {row.state for row in rows} & SNAPSHOT_ACCESS_RULE.in_flight.keys()
    if states or instance.access_stale:
        yield (f'rules of snapshot {instance.id} are {states or "stale"}, without work')
    # Snapshots on an unused replica cannot be mounted either.
    is_used = (
        instance.replication_type != DR or instance.replica_state == ReplicaState.ACTIVE
    )
    wanted = {
        (row.access_type, row.access_to, 'ro')
        for row in rows
        if row.state == RuleState.ACTIVE and is_used
    }
    service = instance.host and instance.host.partition('#')[0]
    actual = clients[service].get(instance.id, set()) if service else set()
    if actual != wanted:
        yield (f'snapshot {instance.id} can be mounted by {actual}, not by {wanted}')


def _leftovers(
    session: Session, known: typing.Container[str], clients: Mapping[str, Clients]
) -> Iterator[str]:
    """Deleted snapshots have no rules, in the database or on back ends."""
    for of_backend in clients.values():
        for id in of_backend:
            if id not in known:
                yield f'snapshot {id} is deleted and can be mounted'
    unmapped = session.value(
        sa.select(sa.func.count())
        .select_from(RULE)
        .where(~sa.exists().where(ON_INSTANCE.c.access_id == RULE.c.id))
    )
    if unmapped:
        yield f'{unmapped} rules of snapshots are on no instance'
