"""Invariants of every database while no work is pending."""

from collections.abc import Iterator, Mapping
import pathlib
import typing

import orjson
import sqlalchemy as sa

from manila_lite.data import manifest
from manila_lite.data.gate import Copying
from manila_lite.db import commits
from manila_lite.db.models import (
    access,
    engine,
    migrations,
    networks,
    quotas,
    services,
    share_groups as share_group_models,
    shares,
    snapshots,
)
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.session import Session
from manila_lite.quota import recount
from manila_lite.rpc.data import TOPIC
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.states import (
    access_rule,
    share_network,
    share_replica,
    share_server,
    snapshot_instance,
)
from manila_lite.states.access_rule import RulesStatus, RuleState
from manila_lite.states.machine import Machine
from manila_lite.states.share_backup import SHARE_BACKUP, BackupStatus
from manila_lite.states.share_group import (
    SHARE_GROUP,
    SHARE_GROUP_SNAPSHOT,
    GroupStatus,
)
from manila_lite.states.share_instance import (
    HIDDEN_FROM_TENANTS,
    SHARE_INSTANCE,
    InstanceStatus,
)
from manila_lite.states.share_replica import DR, PASSIVE
from manila_lite.states.share_task import SHARE_TASK, WAITING, ShareTask
from manila_lite.states.share_transfer import SHARE_TRANSFER
from tests.support import replica_invariants

INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
KEY = quotas.EncryptionKey.__table__
RULE = access.AccessRule.__table__
SNAPSHOT = snapshots.Snapshot.__table__
BACKUP = shares.ShareBackup.__table__
GROUP = share_group_models.ShareGroup.__table__
TRANSFER = shares.Transfer.__table__
MAPPING = access.InstanceAccessRule.__table__
JOURNAL = engine.Transition.__table__
NETWORK = networks.ShareNetwork.__table__
SERVICE = services.Service.__table__
POOL = services.Pool.__table__
SERVER_MIGRATION = migrations.ServerMigration.__table__

PLACED_NOWHERE = frozenset({share_network.SHARE_NETWORK.resource})
"""Kinds that belong to no back end, or to several."""

MACHINES = {
    machine.resource: machine
    for machine in (
        SHARE_INSTANCE,
        SHARE_BACKUP,
        access_rule.ACCESS_RULE,
        access_rule.SNAPSHOT_ACCESS_RULE,
        access_rule.SHARE_INSTANCE_ACCESS,
        snapshot_instance.SNAPSHOT_INSTANCE,
        share_network.SHARE_NETWORK,
        share_replica.SHARE_REPLICA,
        share_server.SHARE_SERVER,
        share_server.SHARE_SERVER_TASK,
        SHARE_GROUP,
        SHARE_GROUP_SNAPSHOT,
        SHARE_TASK,
        SHARE_TRANSFER,
    )
}
MIGRATING = frozenset({InstanceStatus.MIGRATING, InstanceStatus.MIGRATING_TO})

UNRECORDED_INITIAL_STATUS = {
    access_rule.SHARE_INSTANCE_ACCESS.resource: RulesStatus.ACTIVE,
    share_server.SHARE_SERVER_TASK.resource: share_server.TaskState.NONE,
    SHARE_TASK.resource: ShareTask.NONE,
}
"""Initial statuses of machines whose rows another machine creates."""

Clients = Mapping[str, set[tuple[str, str, str]]]
"""By share instance id: type, target and level of allowed clients."""

Inventories = Mapping[str, Mapping[str, int]]
"""By host of a back end: the size of every share instance it has."""


_INSTANCES = sa.select(
    INSTANCE.c.id,
    INSTANCE.c.status,
    INSTANCE.c.host,
    INSTANCE.c.replica_state,
    SHARE.c.size,
    SHARE.c.task_state,
).select_from(INSTANCE.join(SHARE))


def problems(
    session: Session,
    folders: Mapping[str, pathlib.Path],
    backup_folder: str | None = None,
    journal_is_whole: bool = True,
) -> list[str]:
    """Return a description of every violated invariant.

    `folders` are those of the dummy back ends, by host, `backup_folder` that
    of data services, if it is to be checked. Without the whole journal, some
    resources have lost their first moves.
    """
    inventories = {host: dummy.inventory(folder) for host, folder in folders.items()}
    clients = {host: dummy.access_inventory(folder) for host, folder in folders.items()}
    rows = session.rows(_INSTANCES)
    return [
        *of_rows(session, journal_is_whole),
        *back_ends(rows, inventories),
        *share_groups(session, folders),
        *share_backups(session, folders),
        *(kept_backups(session, pathlib.Path(backup_folder)) if backup_folder else ()),
        *access_rules(session, clients),
        *replica_invariants.problems(session, folders),
    ]


def of_rows(session: Session, journal_is_whole: bool = True) -> list[str]:
    """Return what is wrong by the rows alone, whatever back ends have."""
    rows = session.rows(_INSTANCES)
    return [
        *at_rest(session, rows),
        *usages_and_pools(session, rows),
        *share_transfers(session),
        *journal(session, journal_is_whole),
    ]


def at_rest(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Nothing is in flight, and no rows are left of deleted resources."""
    for row in rows:
        if row.task_state in SHARE_TASK.in_flight:
            yield f'share instance {row.id}: the task is {row.task_state}'
        # After phase one the next move is up to an administrator.
        waits = row.task_state in WAITING and (row.status in MIGRATING)
        if row.status in SHARE_INSTANCE.in_flight and not waits:
            yield f'share instance {row.id} is {row.status}, without work'
    for row in session.rows(sa.select(NETWORK.c.id, NETWORK.c.status)):
        if row.status in share_network.SHARE_NETWORK.in_flight:
            yield f'network {row.id} is {row.status}, without work'
    yield from in_flight(session)
    for row in session.rows(sa.select(SERVICE).where(SERVICE.c.ensuring)):
        yield f'{row.host} is ensuring, without work'
    orphans = session.value(
        sa.select(sa.func.count())
        .select_from(SHARE)
        .where(~sa.exists().where(INSTANCE.c.share_id == SHARE.c.id))
    )
    if orphans:
        yield f'{orphans} shares have no instance'


def in_flight(session: Session) -> Iterator[str]:
    """What is in flight has an owner: work, or a resource that it waits for.

    No resource that waits is without a host: there is no back end whose service
    would go on with it.
    """
    for row in recovery.list_all_in_flight(session, most=1000):
        if not row.waits:
            yield f'{row.resource} {row.id} is {row.status}, without work'
        elif row.host is None and row.resource not in PLACED_NOWHERE:
            yield f'{row.resource} {row.id} is {row.status}, without a host'


def key_uses(session: Session) -> Iterator[str]:
    """Each key is counted as often as shares that are charged use it."""
    counted = {
        (row.project_id, row.key_ref): row.uses for row in session.rows(sa.select(KEY))
    }
    used = {
        (row.project_id, row.encryption_key_ref): row.number
        for row in session.rows(
            sa.select(
                SHARE.c.project_id,
                INSTANCE.c.encryption_key_ref,
                sa.func.count(SHARE.c.id.distinct()).label('number'),
            )
            .join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
            .where(
                INSTANCE.c.encryption_key_ref.is_not(None),
                INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)),
            )
            .group_by(SHARE.c.project_id, INSTANCE.c.encryption_key_ref)
        )
    }
    if counted != used:
        yield f'uses of encryption keys are {counted}, not {used}'


def usages_and_pools(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Quota usages and pools equal a recount.

    Pools have the share instances, and what server migrations reserve.
    """
    for difference in recount.differences(session):
        yield f'quota differs from a recount: {difference}'
    yield from key_uses(session)
    allocated: dict[str, int] = {}
    for row in rows:
        allocated[row.host] = allocated.get(row.host, 0) + row.size
    for row in session.rows(
        sa.select(SERVER_MIGRATION.c.reserved).where(
            SERVER_MIGRATION.c.open_for.is_not(None)
        )
    ):
        for host, gb in orjson.loads(row.reserved or '{}').items():
            allocated[host] = allocated.get(host, 0) + gb
    for pool in session.rows(sa.select(POOL)):
        if pool.allocated_gb != allocated.get(pool.host, 0):
            yield (
                f'{pool.host} has {pool.allocated_gb} GiB allocated, '
                f'not {allocated.get(pool.host, 0)}'
            )
        if pool.pending_gb < 0:  # only of thick pools
            yield f'{pool.host} has {pool.pending_gb} GiB pending'


def share_transfers(session: Session) -> Iterator[str]:
    """Shares that await a transfer have one, and are of one project."""
    for row in session.rows(
        sa.select(INSTANCE.c.share_id, INSTANCE.c.status, TRANSFER.c.id)
        .select_from(
            INSTANCE.outerjoin(TRANSFER, TRANSFER.c.resource_id == INSTANCE.c.share_id)
        )
        .where(INSTANCE.c.status == InstanceStatus.AWAITING_TRANSFER)
    ):
        if row.id is None:
            yield f'share {row.share_id} awaits a transfer, without any'
    for row in session.rows(
        sa.select(TRANSFER.c.id, TRANSFER.c.status).where(
            TRANSFER.c.status.in_(sorted(SHARE_TRANSFER.in_flight))
        )
    ):
        yield f'transfer {row.id} is {row.status}, without work'
    for row in session.rows(
        sa.select(SNAPSHOT.c.id, SNAPSHOT.c.project_id, SHARE.c.project_id)
        .join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id)
        .where(SNAPSHOT.c.project_id != SHARE.c.project_id)
    ):
        yield f'snapshot {row.id} is not of the project of its share'


def back_ends(rows: typing.Sequence[sa.Row], inventories: Inventories) -> Iterator[str]:
    """Available share instances are on their back end, and no others are."""
    actual = {
        id: (host, size)
        for host, by_instance in inventories.items()
        for id, size in by_instance.items()
    }
    for row in rows:
        service = row.host and row.host.partition('#')[0]
        found_at = actual.get(row.id)
        if row.replica_state in PASSIVE and found_at is not None:
            # The next update resizes it.
            found_at = found_at[0], row.size
        if row.status == 'available' and found_at != (service, row.size):
            yield (
                f'{row.id} should be {row.size} GiB on {service}, '
                f'there is {actual.get(row.id)}'
            )
    for id in actual.keys() - {row.id for row in rows}:
        yield f'{id} is on a back end and has no row'


def share_groups(
    session: Session, folders: Mapping[str, pathlib.Path]
) -> Iterator[str]:
    """Available groups are on their back end, and no others are.

    Their shares are there as well.
    """
    found_at = {
        id: host
        for host, folder in folders.items()
        for id in dummy.group_inventory(folder)
    }
    rows = session.rows(sa.select(GROUP))
    for row in rows:
        if row.status in SHARE_GROUP.in_flight:
            yield f'share group {row.id} is {row.status}, without work'
        if row.status == GroupStatus.AVAILABLE and (
            found_at.get(row.id) != row.service_host
        ):
            yield f'share group {row.id} is not on {row.service_host}'
    for id in found_at.keys() - {row.id for row in rows}:
        yield f'share group {id} is on a back end and has no row'
    for share in session.rows(
        sa.select(SHARE.c.id, INSTANCE.c.service_host, GROUP.c.service_host)
        .join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
        .outerjoin(GROUP, GROUP.c.id == SHARE.c.share_group_id)
        .where(SHARE.c.share_group_id.is_not(None))
    ):
        if share[1] is not None and share[1] != share[2]:
            yield f'share {share.id} is not with its group'


def share_backups(
    session: Session, folders: Mapping[str, pathlib.Path]
) -> Iterator[str]:
    """Available backups of drivers are complete, and no others are there."""
    found_at = {
        id: (host, percent)
        for host, folder in folders.items()
        for id, percent in dummy.backup_inventory(folder).items()
    }
    rows = session.rows(sa.select(BACKUP))
    for row in rows:
        if row.status in SHARE_BACKUP.in_flight:
            yield f'share backup {row.id} is {row.status}, without work'
        wanted = row.host.partition('#')[0], 100
        if (
            row.topic == 'manila-share'
            and row.status == BackupStatus.AVAILABLE
            and found_at.get(row.id) != wanted
        ):
            yield f'share backup {row.id} is {found_at.get(row.id)}'
    for id in found_at.keys() - {row.id for row in rows}:
        yield f'share backup {id} is on a back end and has no row'


def kept_backups(session: Session, folder: pathlib.Path) -> list[str]:
    return list(_kept_backups(session, folder))


def _kept_backups(session: Session, folder: pathlib.Path) -> Iterator[str]:
    """The bytes of available backups are there, and no others are.

    `folder` is where data services keep them.
    """
    rows = session.rows(sa.select(BACKUP).where(BACKUP.c.topic == TOPIC))
    found = {path.name for path in folder.glob('*')}
    for row in rows:
        own = {name for name in found if name.startswith(row.id)}
        found -= own
        if row.status != BackupStatus.AVAILABLE:
            continue
        kept = orjson.loads(row.kept_copy or '{}')
        if own != {f'{row.id}.{kept.pop("token", None)}'}:
            yield f'share backup {row.id} is {own}, not {kept}'
            continue
        with trees.opened_directory(folder / own.pop()) as directory:
            there = manifest.read(directory, _UNWATCHED)._asdict()
        if there != kept:
            yield f'share backup {row.id} is {there}, not {kept}'
    for name in found:
        yield f'{name} is in the folder of backups and has no row'


_UNWATCHED = Copying(lambda count: None, lambda: None, lambda: None, 0)


def access_rules(session: Session, clients: Mapping[str, Clients]) -> Iterator[str]:
    """Rules are at rest; back ends enforce the active ones and no others."""
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
    by_instance: dict[str, list[sa.Row]] = {}
    for row in rows:
        if row.status not in access_rule.LEAVING and row.host:
            by_instance.setdefault(row.id, []).append(row)
    for id, of_instance in by_instance.items():
        yield from _rules_of(
            id, [row for row in of_instance if row.state], of_instance[0], clients
        )
    unmapped = session.value(
        sa.select(sa.func.count())
        .select_from(RULE)
        .where(~sa.exists().where(MAPPING.c.access_id == RULE.c.id))
    )
    if unmapped:
        yield f'{unmapped} access rules are on no instance'


def _rules_of(
    id: str, mapped: list[sa.Row], instance: sa.Row, clients: Mapping[str, Clients]
) -> Iterator[str]:
    states = {row.state for row in mapped}
    if states & access_rule.ACCESS_RULE.in_flight.keys():
        yield f'{id} has rules in {states}, without work'
    service = instance.host.partition('#')[0]
    actual = clients[service].get(id, set())
    if (
        instance.status == InstanceStatus.ERROR
        and instance.access_rules_status == RulesStatus.ERROR
        and not actual
    ):
        return  # the share is not there, and rules cannot be sent
    status = RulesStatus.ERROR if RuleState.ERROR in states else RulesStatus.ACTIVE
    if instance.access_rules_status != status:
        yield (
            f'{id} has rules in {states} and access_rules_status '
            f'{instance.access_rules_status}'
        )
    if instance.access_stale:
        yield f'the rules of {id} are stale, without work'
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
    if actual != wanted:
        yield f'{id} allows {actual} instead of {wanted}'


def journal(session: Session, is_whole: bool) -> Iterator[str]:
    """Every move is legal and starts in the status where the last ended."""
    last: dict[tuple[str, str], str | None] = {}
    for row in session.rows(
        sa.select(JOURNAL)
        .where(JOURNAL.c.resource != commits.RESOURCE)
        .order_by(JOURNAL.c.id)
    ):
        key = row.resource, row.resource_id
        expected = last.get(key, UNRECORDED_INITIAL_STATUS.get(row.resource))
        if (
            row.resource == share_replica.SHARE_REPLICA.resource
            and key not in last
            and row.from_status in share_replica.SHARE_REPLICA.initial.values()
        ):
            # It has two initial statuses, and the journal has neither.
            expected = row.from_status
        is_first = key not in last and not is_whole
        if row.from_status != expected and not is_first:
            yield (f'{key} was {expected}, the journal says {row.from_status}')
        last[key] = row.to_status
        if not _is_legal(MACHINES[row.resource], row):
            yield (
                f'{key}: illegal move {row.event} from {row.from_status} to '
                f'{row.to_status}'
            )


def _is_legal(machine: Machine, row: sa.Row) -> bool:
    if row.from_status is None:
        return machine.initial.get(row.event) == row.to_status
    move = machine[row.event]
    return move.can_leave(row.from_status) and move.target == row.to_status
