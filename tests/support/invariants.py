"""What must hold in every database whenever nothing is owed."""

from collections.abc import Iterator, Mapping
import pathlib
import typing

import sqlalchemy as sa

from manila_lite.db.models import access
from manila_lite.db.models import engine
from manila_lite.db.models import networks
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.session import Session
from manila_lite.quota import recount
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.states import access_rule
from manila_lite.states import share_network
from manila_lite.states import share_replica
from manila_lite.states import share_server
from manila_lite.states import snapshot_instance
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.access_rule import RuleState
from manila_lite.states.machine import Machine
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import DR
from manila_lite.states.share_replica import PASSIVE
from tests.support import replica_invariants

INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
RULE = access.AccessRule.__table__
MAPPING = access.InstanceAccessRule.__table__
JOURNAL = engine.Transition.__table__
NETWORK = networks.ShareNetwork.__table__
SERVICE = services.Service.__table__
POOL = services.Pool.__table__

MACHINES = {
    machine.resource: machine
    for machine in (
        SHARE_INSTANCE,
        access_rule.ACCESS_RULE,
        access_rule.SNAPSHOT_ACCESS_RULE,
        access_rule.SHARE_INSTANCE_ACCESS,
        snapshot_instance.SNAPSHOT_INSTANCE,
        share_network.SHARE_NETWORK,
        share_replica.SHARE_REPLICA,
        share_server.SHARE_SERVER,
        share_server.SHARE_SERVER_TASK,
    )
}
SILENT = {
    access_rule.SHARE_INSTANCE_ACCESS.resource: RulesStatus.ACTIVE,
    share_server.SHARE_SERVER_TASK.resource: share_server.TaskState.NONE,
}
"""Where those begin whose birth is that of another machine's row."""

Clients = Mapping[str, set[tuple[str, str, str]]]
"""By share instance id: type, target and level of those let in."""

Inventories = Mapping[str, Mapping[str, int]]
"""By host of a back end: the size of every share instance it has."""


def problems(
    session: Session, folders: Mapping[str, pathlib.Path]
) -> list[str]:
    """Everything that is wrong, in words; rightly nothing.

    `folders` are those of the dummy back ends, by their hosts.
    """
    inventories = {
        host: dummy.inventory(folder) for host, folder in folders.items()
    }
    clients = {
        host: dummy.access_inventory(folder)
        for host, folder in folders.items()
    }
    rows = session.rows(
        sa.select(
            INSTANCE.c.id,
            INSTANCE.c.status,
            INSTANCE.c.host,
            INSTANCE.c.replica_state,
            SHARE.c.size,
        ).select_from(INSTANCE.join(SHARE))
    )
    return [
        *at_rest(session, rows),
        *books(session, rows),
        *back_ends(rows, inventories),
        *rules(session, clients),
        *replica_invariants.problems(session),
        *journal(session),
    ]


def at_rest(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Nothing is in flight, and nothing is left of what is gone."""
    for row in rows:
        if row.status in SHARE_INSTANCE.in_flight:
            yield f'{row.id} is {row.status} and nobody works on it'
    for row in session.rows(sa.select(NETWORK.c.id, NETWORK.c.status)):
        if row.status in share_network.SHARE_NETWORK.in_flight:
            yield f'network {row.id} is {row.status} and nobody works on it'
    for row in session.rows(sa.select(SERVICE).where(SERVICE.c.ensuring)):
        yield f'{row.host} is ensuring and nobody works on it'
    orphans = session.value(
        sa.select(sa.func.count())
        .select_from(SHARE)
        .where(~sa.exists().where(INSTANCE.c.share_id == SHARE.c.id))
    )
    if orphans:
        yield f'{orphans} shares have no instance'


def books(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Quota and pools say what a recount says."""
    for difference in recount.differences(session):
        yield f'quota differs from a recount: {difference}'
    placed: dict[str, int] = {}
    for row in rows:
        placed[row.host] = placed.get(row.host, 0) + row.size
    for pool in session.rows(sa.select(POOL)):
        if pool.allocated_gb != placed.get(pool.host, 0):
            yield (
                f'{pool.host} has {pool.allocated_gb} GiB allocated, '
                f'not {placed.get(pool.host, 0)}'
            )
        if pool.pending_gb < 0:
            yield f'{pool.host} has {pool.pending_gb} GiB pending'


def back_ends(
    rows: typing.Sequence[sa.Row], inventories: Inventories
) -> Iterator[str]:
    """What is available is there, and nothing else is."""
    real = {
        id: (host, size)
        for host, found in inventories.items()
        for id, size in found.items()
    }
    for row in rows:
        home = row.host and row.host.partition('#')[0]
        there = real.get(row.id)
        if row.replica_state in PASSIVE and there is not None:
            there = there[0], row.size  # it follows when it is updated
        if row.status == 'available' and there != (home, row.size):
            yield (
                f'{row.id} should be {row.size} GiB on {home}, '
                f'there is {real.get(row.id)}'
            )
    for id in real.keys() - {row.id for row in rows}:
        yield f'{id} is on a back end and nobody knows it'


def rules(session: Session, clients: Mapping[str, Clients]) -> Iterator[str]:
    """Every rule is settled, and in force where it says so, only there."""
    rows = session.rows(
        sa.select(
            INSTANCE.c.id,
            INSTANCE.c.status,
            INSTANCE.c.host,
            INSTANCE.c.access_rules_status,
            INSTANCE.c.cast_rules_to_readonly,
            INSTANCE.c.access_stale,
            INSTANCE.c.replica_state,
            SHARE.c.replication_type,
            MAPPING.c.state,
            RULE.c.access_type,
            RULE.c.access_to,
            RULE.c.access_level,
        ).select_from(
            INSTANCE.join(SHARE, SHARE.c.id == INSTANCE.c.share_id)
            .outerjoin(MAPPING, MAPPING.c.share_instance_id == INSTANCE.c.id)
            .outerjoin(RULE, RULE.c.id == MAPPING.c.access_id)
        )
    )
    found: dict[str, list[sa.Row]] = {}
    for row in rows:
        if row.status not in access_rule.LEAVING and row.host:
            found.setdefault(row.id, []).append(row)
    for id, of_instance in found.items():
        yield from _rules_of(
            id,
            [row for row in of_instance if row.state],
            of_instance[0],
            clients,
        )
    unmapped = session.value(
        sa.select(sa.func.count())
        .select_from(RULE)
        .where(~sa.exists().where(MAPPING.c.access_id == RULE.c.id))
    )
    if unmapped:
        yield f'{unmapped} access rules are on no instance'


def _rules_of(
    id: str,
    mapped: list[sa.Row],
    instance: sa.Row,
    clients: Mapping[str, Clients],
) -> Iterator[str]:
    states = {row.state for row in mapped}
    if states & access_rule.ACCESS_RULE.in_flight.keys():
        yield f'{id} has rules in {states} and nobody works on them'
    status = (
        RulesStatus.ERROR if RuleState.ERROR in states else RulesStatus.ACTIVE
    )
    if instance.access_rules_status != status:
        yield (
            f'{id} has rules in {states} and says '
            f'{instance.access_rules_status}'
        )
    if instance.access_stale:
        yield f'the rules of {id} are in doubt and nobody works on them'
    wanted = {
        (
            row.access_type,
            row.access_to,
            'ro' if row.cast_rules_to_readonly else row.access_level,
        )
        for row in mapped
        if row.state == RuleState.ACTIVE
    }
    if instance.replication_type == DR and instance.replica_state in PASSIVE:
        wanted = set()  # until it is promoted
    home = instance.host.partition('#')[0]
    real = clients[home].get(id, set())
    if real != wanted:
        yield f'{id} lets in {real}, and should let in {wanted}'


def journal(session: Session) -> Iterator[str]:
    """Every move is one of the table, and begins where the last ended."""
    last: dict[tuple[str, str], str | None] = {}
    for row in session.rows(sa.select(JOURNAL).order_by(JOURNAL.c.id)):
        key = row.resource, row.resource_id
        begins = last.get(key, SILENT.get(row.resource))
        if (
            row.resource == share_replica.SHARE_REPLICA.resource
            and key not in last
            and row.from_status in share_replica.SHARE_REPLICA.initial.values()
        ):
            begins = row.from_status  # it has two births, both silent
        if row.from_status != begins:
            yield (
                f'{key} went from {begins}, the journal says {row.from_status}'
            )
        last[key] = row.to_status
        if not _is_legal(MACHINES[row.resource], row):
            yield (
                f'{key} made {row.event} from {row.from_status} to '
                f'{row.to_status}'
            )


def _is_legal(machine: Machine, row: sa.Row) -> bool:
    if row.from_status is None:
        return machine.initial.get(row.event) == row.to_status
    move = machine[row.event]
    return move.can_leave(row.from_status) and move.target == row.to_status
