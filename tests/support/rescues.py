"""The status in which each status in flight ends when it has no work.

As designed, per state table, on a healthy back end that has what it should
have. A new status fails the tests that read this until it is listed here.
"""

from collections.abc import Iterable
import typing

import sqlalchemy as sa

from manila_lite.db import models
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.session import Database
from manila_lite.db.transitions import fire
from manila_lite.states.machine import GONE, Machine
from manila_lite.states.share_instance import SHARE_INSTANCE

EXPECTED_ENDS: dict[str, dict[str, str | None]] = {
    'share_instance': {
        'creating': 'available',
        'creating_from_snapshot': 'available',
        'extending': 'available',
        'shrinking': 'available',
        'snapshotting': 'available',
        'backup_creating': 'available',
        'backup_restoring': 'backup_restoring_error',
        'reverting': 'error',
        'manage_starting': 'manage_error',
        'unmanage_starting': 'unmanage_error',
        'manage_error_unmanage_starting': 'unmanage_error',
        'ensuring': 'available',
        'deleting': GONE,
        'deferred_deleting': GONE,
        'migrating': 'error',
        'migrating_to': 'error',
        'server_migrating': 'error',
        'replication_change': 'error',
    },
    'snapshot_instance': {
        'creating': 'available',
        'restoring': 'error',
        'deleting': GONE,
        'deferred_deleting': GONE,
        'manage_starting': 'manage_error',
        'unmanage_starting': 'unmanage_error',
        'migrating': 'error',
        'migrating_to': 'error',
        'server_migrating': 'error',
    },
    'access_rule': {
        'queued_to_apply': 'active',
        'queued_to_update': 'active',
        'queued_to_deny': GONE,
        'applying': 'active',
        'updating': 'active',
        'denying': GONE,
    },
    'share_instance_access': {'out_of_sync': 'active'},
    'snapshot_access_rule': {
        'queued_to_apply': 'active',
        'queued_to_deny': GONE,
        'applying': 'active',
        'denying': GONE,
    },
}

CASES = [
    (resource, status) for resource, ends in EXPECTED_ENDS.items() for status in ends
]

EXPECTED_SERVER_ENDS: dict[str, dict[str, str | None]] = {
    'share_server': {
        'creating': 'error',
        'deleting': GONE,
        'manage_starting': 'manage_error',
        'unmanage_starting': 'unmanage_error',
        'network_change': 'error',
        'server_migrating': 'active',
        'server_migrating_to': 'error',
    },
    # Of a migration without any record.
    'share_server_task': dict.fromkeys(
        (
            'server_migration_starting',
            'server_migrating',
            'server_migration_completing',
            'server_migration_cancelling',
        ),
        'server_migration_error',
    ),
}
"""The same for resources of back ends that handle share servers."""

EXPECTED_NETWORK_ENDS: dict[str, dict[str, str | None]] = {
    # If none of its share servers is changing.
    'share_network': {'network_change': 'error'}
}
"""The same for resources without a host; schedulers rescue them."""

EXPECTED_TRANSFER_ENDS: dict[str, dict[str, str | None]] = {
    'share_transfer': {'accepting': 'pending'}
}
"""The same for the transfer of a share."""

EXPECTED_GROUP_ENDS: dict[str, dict[str, str | None]] = {
    'share_group': {'creating': 'available', 'deleting': GONE},
    'share_group_snapshot': {'creating': 'available', 'deleting': GONE},
}
"""The same for share groups and their snapshots."""

EXPECTED_BACKUP_ENDS: dict[str, dict[str, str | None]] = {
    'share_backup': {
        'creating': 'available',
        'restoring': 'available',
        'deleting': GONE,
    }
}
"""The same for share backups."""

SERVER_CASES = [
    (resource, status)
    for resource, ends in EXPECTED_SERVER_ENDS.items()
    for status in ends
]


def instance_of(cloud: typing.Any, share_id: str) -> str:
    """Return the id of the only instance of a share."""
    shown = cloud.api.get(f'/shares/{share_id}/instances')
    (found,) = shown['share_instances']
    return found['id']


def strand(cloud: typing.Any, share_id: str, event: str) -> str:
    """Put a share into flight without work, as only a bug would.

    Returns the id of its instance.
    """
    id = instance_of(cloud, share_id)
    cloud.db.write(fire, SHARE_INSTANCE, id, event)
    return id


def status_of(db: Database, resource: str, id: str) -> str | None:
    """Return the status of a row; GONE when there is none."""
    machine, table = _table(resource)
    return db.read(
        lambda session: session.value(
            sa.select(table.c[machine.column]).where(table.c.id == id)
        )
    )


def only_id(db: Database, resource: str) -> str:
    """Return the id of the only row of a resource."""
    _, table = _table(resource)
    ((id,),) = db.read(lambda session: session.rows(sa.select(table.c.id)))
    return id


def force_status(db: Database, resource: str, id: str, status: str) -> bool:
    """Bring a row into a status without work; return whether by moves.

    If no moves lead there, as to a status that is only initial, the status
    is written to the row directly.
    """
    machine, table = _table(resource)
    events = shortest_path(machine, status_of(db, resource, id), status)
    if events is None:
        db.write(
            lambda session: session.run(
                sa.update(table)
                .where(table.c.id == id)
                .values({machine.column: status})
            )
        )
    for event in events or ():
        db.write(fire, machine, id, event)
    return events is not None


def _table(resource: str) -> tuple[Machine, sa.Table]:
    machine = recovery.KINDS[resource].machine
    return machine, models.metadata.tables[machine.table]


def shortest_path(
    machine: Machine, start: str | None, end: str
) -> Iterable[str] | None:
    """Return the events from one status to another, or None."""
    paths: dict[typing.Any, tuple[str, ...]] = {start: ()}
    for status in (queue := [start]):
        for move in machine.moves:
            if (
                status is not GONE
                and move.can_leave(status)
                and move.target not in paths
                and move.target is not GONE
            ):
                paths[move.target] = (*paths[status], move.event)
                queue.append(move.target)
    return paths.get(end)


EXPECTED_MIGRATION_ENDS: dict[str, dict[str, str | None]] = {
    'share_task': {
        'migration_starting': 'migration_error',
        'migration_in_progress': 'migration_driver_phase1_done',
        'migration_driver_in_progress': 'migration_driver_phase1_done',
        # The driver copies, not the data service.
        'data_copying_starting': 'migration_error',
        'data_copying_in_progress': 'migration_error',
        # The second phase was not requested.
        'migration_completing': 'migration_error',
        'migration_cancel_in_progress': 'migration_cancelled',
    }
}
"""The same for the migration of a share whose first phase is done."""
