"""The status of a snapshot instance.

The statuses and the moves out of them follow statuses.csv of the published
API, the rescues the start-up reconciliation design.
"""

from collections.abc import Iterable

from manila_lite.states.machine import GONE, Ask, GiveUp, Machine, Repeat


class SnapshotStatus:
    """The statuses of snapshots and snapshot instances, spelled once."""

    CREATING = 'creating'
    AVAILABLE = 'available'
    ERROR = 'error'
    DELETING = 'deleting'
    ERROR_DELETING = 'error_deleting'
    DEFERRED_DELETING = 'deferred_deleting'
    ERROR_DEFERRED_DELETING = 'error_deferred_deleting'
    MANAGE_STARTING = 'manage_starting'
    MANAGE_ERROR = 'manage_error'
    UNMANAGE_STARTING = 'unmanage_starting'
    UNMANAGE_ERROR = 'unmanage_error'
    RESTORING = 'restoring'
    MIGRATING = 'migrating'
    MIGRATING_TO = 'migrating_to'
    SERVER_MIGRATING = 'server_migrating'


# Short in the table only.
S = SnapshotStatus


ALL = frozenset(
    status for name, status in vars(SnapshotStatus).items() if not name.startswith('_')
)
HIDDEN_FROM_TENANTS = frozenset({S.DEFERRED_DELETING, S.ERROR_DEFERRED_DELETING})
"""Deferred deletion hides a snapshot in these statuses from its project.

Its quota has been given back, so no move may make it available again. All of
its instances are in one of them.
"""
DELETABLE = frozenset({S.AVAILABLE, S.ERROR, S.MANAGE_ERROR})
LEAVING = HIDDEN_FROM_TENANTS | {S.DELETING, S.UNMANAGE_STARTING}
"""The statuses in which an instance is removed together with its rules."""
MOVING = frozenset({S.MIGRATING, S.MIGRATING_TO})
"""The statuses of the instances of a snapshot whose share is migrated."""
BEING_DELETED = frozenset({S.DELETING, S.DEFERRED_DELETING})
"""The statuses in which a back end is deleting an instance."""
DELETION_FAILURES = {
    S.DELETING: 'delete_failed',
    S.DEFERRED_DELETING: 'deferred_delete_failed',
}
KNOWN_TO_DRIVERS = {
    S.DEFERRED_DELETING: S.DELETING,
    S.ERROR_DEFERRED_DELETING: S.ERROR_DELETING,
}
"""The statuses that drivers see in place of those they do not know."""
SYNC_EXCLUDED = LEAVING | {S.CREATING}
"""The statuses in which access rules are not sent to the back end."""

_BY_RANK = (
    S.DELETING,
    S.CREATING,
    S.ERROR,
    S.MIGRATING,
    S.SERVER_MIGRATING,
    S.AVAILABLE,
)


def aggregate_status(statuses: Iterable[str]) -> str | None:
    """Return the status that a snapshot with such instances is shown with.

    None when there are no instances.
    """
    found = sorted(set(statuses))
    return min(found, key=display_rank, default=None)


def display_rank(status: str) -> int:
    """Return the rank of a status for display; the lowest one is shown."""
    return _BY_RANK.index(status) if status in _BY_RANK else len(_BY_RANK)


# The statuses an administrator may set; the published lists differ.
SNAPSHOT_RESETS = ALL - HIDDEN_FROM_TENANTS - {S.SERVER_MIGRATING}
INSTANCE_RESETS = frozenset(
    {
        S.AVAILABLE,
        S.ERROR,
        S.CREATING,
        S.DELETING,
        S.ERROR_DELETING,
        S.MIGRATING,
        S.MIGRATING_TO,
        S.SERVER_MIGRATING,
    }
)

# fmt: off
SNAPSHOT_INSTANCE = Machine(
    'snapshot_instance', 'share_snapshot_instances',
    initial={'create': S.CREATING, 'manage': S.MANAGE_STARTING,
             'migrate_here': S.MIGRATING_TO},
    moves=[
        # event            from                           to
        ('created',        {S.CREATING},                  S.AVAILABLE),
        ('create_failed',  {S.CREATING},                  S.ERROR),

        ('restore',        {S.AVAILABLE},                 S.RESTORING),
        ('restored',       {S.RESTORING},                 S.AVAILABLE),
        # The status of the share says what became of its data.
        ('restore_failed', {S.RESTORING},                 S.AVAILABLE),
        ('restore_lost',   {S.RESTORING},                 S.ERROR),
        ('restore_again',  {S.ERROR},                     S.RESTORING),

        ('managed',        {S.MANAGE_STARTING},           S.AVAILABLE),
        ('manage_failed',  {S.MANAGE_STARTING},           S.MANAGE_ERROR),
        ('unmanage',       {S.AVAILABLE, S.ERROR, S.ERROR_DELETING,
                            S.MANAGE_ERROR,
                            S.UNMANAGE_ERROR},        S.UNMANAGE_STARTING),
        ('unmanaged',      {S.UNMANAGE_STARTING},         GONE),
        ('unmanage_failed', {S.UNMANAGE_STARTING},        S.UNMANAGE_ERROR),

        ('delete',         DELETABLE,                     S.DELETING),
        # Not while one of its two instances is to take over from the other.
        ('force_delete',   ALL - MOVING - HIDDEN_FROM_TENANTS,
                                                      S.DELETING),
        # No process of its back end is up to create it.
        ('delete_unserved', {S.CREATING},                 S.DELETING),
        ('delete_failed',  {S.DELETING},                  S.ERROR_DELETING),
        ('deleted',        {S.DELETING},                  GONE),
        ('defer_delete',   DELETABLE,             S.DEFERRED_DELETING),
        ('retry_deferred', {S.ERROR_DEFERRED_DELETING},
                                                  S.DEFERRED_DELETING),
        ('deferred_delete_failed', {S.DEFERRED_DELETING},
                                            S.ERROR_DEFERRED_DELETING),
        # Not `deleted`, which gives back quota.
        ('deferred_deleted', {S.DEFERRED_DELETING},       GONE),
        # Its replica has been removed, or its share has moved or returned.
        ('removed',        ALL,                           GONE),

        # Moves with its share to another instance, or stays.
        ('migrate',        {S.AVAILABLE},                 S.MIGRATING),
        ('migrate_returned', {S.MIGRATING},               S.AVAILABLE),
        ('arrived',        {S.MIGRATING_TO},              S.AVAILABLE),
        ('migration_failed', MOVING,                      S.ERROR),

        # Moves with the share server of its share.
        ('migrate_server', {S.AVAILABLE},           S.SERVER_MIGRATING),
        ('server_migrated', {S.SERVER_MIGRATING},         S.AVAILABLE),
        ('server_returned', {S.SERVER_MIGRATING},         S.AVAILABLE),
        ('server_migration_failed', {S.SERVER_MIGRATING}, S.ERROR),

        # The share server could not follow a change of its network.
        ('network_failed', {S.AVAILABLE},                 S.ERROR),

        ('migration_lost', {S.MIGRATING, S.MIGRATING_TO,
                            S.SERVER_MIGRATING},          S.ERROR),
    ],
    resets=SNAPSHOT_RESETS | INSTANCE_RESETS,
    final=HIDDEN_FROM_TENANTS,
    at_rest={
        S.AVAILABLE, S.ERROR, S.ERROR_DELETING, S.ERROR_DEFERRED_DELETING,
        S.MANAGE_ERROR, S.UNMANAGE_ERROR,
    },
    in_flight={
        S.CREATING: Ask('get_snapshot_status', 'created', 'create_failed'),
        S.RESTORING: GiveUp('restore_lost'),
        S.DELETING: Repeat('snapshots.delete_snapshot_instance',
                           'deleted', 'delete_failed'),
        S.DEFERRED_DELETING: Repeat(
            'snapshots.delete_snapshot_instance_deferred',
            'deferred_deleted', 'deferred_delete_failed'),
        S.MANAGE_STARTING: GiveUp('manage_failed'),
        S.UNMANAGE_STARTING: GiveUp('unmanage_failed'),
        S.MIGRATING: GiveUp('migration_lost'),
        S.MIGRATING_TO: GiveUp('migration_lost'),
        S.SERVER_MIGRATING: GiveUp('migration_lost'),
    },
)
# fmt: on
