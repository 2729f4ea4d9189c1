"""What must hold of the access rules of snapshots when nothing is owed."""

from collections.abc import Iterator, Mapping
import typing

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy.state import Clients
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE
from manila_lite.states.access_rule import RuleState
from manila_lite.states.share_replica import DR
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import LEAVING

INSTANCE = snapshots.SnapshotInstance.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
RULE = snapshots.SnapshotAccessRule.__table__
ON_INSTANCE = snapshots.SnapshotInstanceAccessRule.__table__


def problems(session: Session, clients: Mapping[str, Clients]) -> list[str]:
    """Everything that is wrong, in words; rightly nothing.

    `clients` has by the host of a back end who may mount what there.
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
            INSTANCE.join(SHARE_INSTANCE.join(SHARE)).outerjoin(
                ON_INSTANCE.join(RULE)
            )
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
        *_left_behind(session, found, clients),
    ]


def _of_instance(
    rows: list[typing.Any], clients: Mapping[str, Clients]
) -> Iterator[str]:
    one = rows[0]
    if one.status in LEAVING:
        return
    states = {
        row.state for row in rows
    } & SNAPSHOT_ACCESS_RULE.in_flight.keys()
    if states or one.access_stale:
        yield (
            f'rules of snapshot {one.id} are {states or "doubted"} and '
            'nobody works on them'
        )
    # What lies on a replica out of use is out of use as well.
    is_used = (
        one.replication_type != DR or one.replica_state == ReplicaState.ACTIVE
    )
    wanted = {
        (row.access_type, row.access_to, 'ro')
        for row in rows
        if row.state == RuleState.ACTIVE and is_used
    }
    home = one.host and one.host.partition('#')[0]
    real = clients[home].get(one.id, set()) if home else set()
    if real != wanted:
        yield (f'snapshot {one.id} can be mounted by {real}, not by {wanted}')


def _left_behind(
    session: Session,
    known: typing.Container[str],
    clients: Mapping[str, Clients],
) -> Iterator[str]:
    """What is gone has no rules, here or there."""
    for there in clients.values():
        for id in there:
            if id not in known:
                yield f'snapshot {id} is gone and can be mounted'
    unmapped = session.value(
        sa.select(sa.func.count())
        .select_from(RULE)
        .where(~sa.exists().where(ON_INSTANCE.c.access_id == RULE.c.id))
    )
    if unmapped:
        yield f'{unmapped} rules of snapshots are on no instance'
