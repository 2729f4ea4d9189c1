"""The status of a share instance.

The statuses and the moves out of them follow statuses.csv of the published
API, the rescues the start-up reconciliation design.
"""

from manila_lite.states.machine import GONE, Ask, GiveUp, Machine, Repeat


class InstanceStatus:
    """The statuses of shares and share instances, spelled once."""

    CREATING = 'creating'
    CREATING_FROM_SNAPSHOT = 'creating_from_snapshot'
    AVAILABLE = 'available'
    ERROR = 'error'
    DELETING = 'deleting'
    ERROR_DELETING = 'error_deleting'
    DEFERRED_DELETING = 'deferred_deleting'
    ERROR_DEFERRED_DELETING = 'error_deferred_deleting'
    EXTENDING = 'extending'
    EXTENDING_ERROR = 'extending_error'
    SHRINKING = 'shrinking'
    SHRINKING_ERROR = 'shrinking_error'
    SNAPSHOTTING = 'snapshotting'
    REVERTING = 'reverting'
    REVERTING_ERROR = 'reverting_error'
    MANAGE_STARTING = 'manage_starting'
    MANAGE_ERROR = 'manage_error'
    UNMANAGE_STARTING = 'unmanage_starting'
    MANAGE_ERROR_UNMANAGE_STARTING = 'manage_error_unmanage_starting'
    UNMANAGE_ERROR = 'unmanage_error'
    ENSURING = 'ensuring'
    MIGRATING = 'migrating'
    MIGRATING_TO = 'migrating_to'
    SERVER_MIGRATING = 'server_migrating'
    REPLICATION_CHANGE = 'replication_change'
    AWAITING_TRANSFER = 'awaiting_transfer'
    BACKUP_CREATING = 'backup_creating'
    BACKUP_RESTORING = 'backup_restoring'
    BACKUP_RESTORING_ERROR = 'backup_restoring_error'


# Short in the table only.
S = InstanceStatus


HIDDEN_FROM_TENANTS = frozenset({S.DEFERRED_DELETING, S.ERROR_DEFERRED_DELETING})
"""Deferred deletion hides a share in these statuses from its project.

Its quota has been given back, so no move may make it available again.
"""

DELETABLE = frozenset({S.AVAILABLE, S.ERROR})

DELETABLE_UNSERVED = frozenset(
    {S.CREATING, S.CREATING_FROM_SNAPSHOT, S.EXTENDING, S.SHRINKING}
)
"""What its project may delete, too, while the back end is down."""

SNAPSHOT_BY_FORCE = frozenset(
    {
        S.ERROR,
        S.EXTENDING,
        S.EXTENDING_ERROR,
        S.SHRINKING,
        S.SHRINKING_ERROR,
        S.REVERTING_ERROR,
        S.ENSURING,
        S.BACKUP_CREATING,
        S.BACKUP_RESTORING_ERROR,
    }
)
"""In which a snapshot is attempted by force; the status stays."""

OVERRIDING_STATUSES = (S.REVERTING, S.REPLICATION_CHANGE)
"""A share is shown with these if any of its instances is in one.

Otherwise active replicas come before others, then the better status.
"""

_BY_RANK = (*OVERRIDING_STATUSES, S.MIGRATING, S.SERVER_MIGRATING, S.AVAILABLE, S.ERROR)


def display_rank(status: str) -> int:
    """Return the rank of a status for display; the lowest one is shown.

    The order is that of statuses.csv.
    """
    if status in _BY_RANK:
        return _BY_RANK.index(status)
    return len(_BY_RANK) + (status in SHARE_INSTANCE.in_flight)


_CREATING = frozenset({S.CREATING, S.CREATING_FROM_SNAPSHOT})

_UNMANAGEABLE = frozenset(
    {
        S.AVAILABLE,
        S.ERROR,
        S.ERROR_DELETING,
        S.EXTENDING_ERROR,
        S.SHRINKING_ERROR,
        S.REVERTING_ERROR,
        S.UNMANAGE_ERROR,
    }
)

_UNMANAGING = frozenset({S.UNMANAGE_STARTING, S.MANAGE_ERROR_UNMANAGE_STARTING})

_VISIBLE = (
    frozenset(
        status
        for name, status in vars(InstanceStatus).items()
        if not name.startswith('_')
    )
    - HIDDEN_FROM_TENANTS
)

# fmt: off
SHARE_INSTANCE = Machine(
    'share_instance', 'share_instances',
    initial={'create': S.CREATING, 'manage': S.MANAGE_STARTING,
             'migrate_here': S.MIGRATING_TO},
    moves=[
        # event            from                           to
        # A driver may go on copying a snapshot after its call returned.
        ('copy',           {S.CREATING},        S.CREATING_FROM_SNAPSHOT),
        ('created',        _CREATING,                   S.AVAILABLE),
        ('create_failed',  _CREATING,                   S.ERROR),

        ('extend',         {S.AVAILABLE},                 S.EXTENDING),
        ('extended',       {S.EXTENDING},                 S.AVAILABLE),
        ('extend_refused', {S.EXTENDING},                 S.AVAILABLE),
        ('extend_failed',  {S.EXTENDING},                 S.EXTENDING_ERROR),

        ('shrink',         {S.AVAILABLE},                 S.SHRINKING),
        ('shrunk',         {S.SHRINKING},                 S.AVAILABLE),
        ('shrink_refused', {S.SHRINKING},                 S.AVAILABLE),
        ('shrink_failed',  {S.SHRINKING},                 S.SHRINKING_ERROR),

        ('snapshot',       {S.AVAILABLE},                 S.SNAPSHOTTING),
        ('snapshotted',    {S.SNAPSHOTTING},              S.AVAILABLE),

        ('revert',         {S.AVAILABLE},                 S.REVERTING),
        ('reverted',       {S.REVERTING},                 S.AVAILABLE),
        ('revert_failed',  {S.REVERTING},                 S.REVERTING_ERROR),
        ('revert_lost',    {S.REVERTING},                 S.ERROR),
        # After `revert_lost` the same may be requested again.
        ('revert_again',   {S.ERROR},                     S.REVERTING),

        ('back_up',        {S.AVAILABLE},               S.BACKUP_CREATING),
        ('backed_up',      {S.BACKUP_CREATING},           S.AVAILABLE),

        # After a restore that has failed, another may be requested.
        ('restore_backup', {S.AVAILABLE, S.BACKUP_RESTORING_ERROR},
                                                  S.BACKUP_RESTORING),
        ('backup_restored', {S.BACKUP_RESTORING},         S.AVAILABLE),
        ('backup_restore_failed', {S.BACKUP_RESTORING},
                                            S.BACKUP_RESTORING_ERROR),

        ('managed',        {S.MANAGE_STARTING},           S.AVAILABLE),
        ('manage_failed',  {S.MANAGE_STARTING},           S.MANAGE_ERROR),
        ('manage_again',   {S.MANAGE_ERROR},              S.MANAGE_STARTING),

        ('unmanage',       _UNMANAGEABLE,             S.UNMANAGE_STARTING),
        # A share that was never managed is unmanaged by its own status.
        ('abandon', {S.MANAGE_ERROR}, S.MANAGE_ERROR_UNMANAGE_STARTING),
        ('unmanaged',      _UNMANAGING,              GONE),
        ('unmanage_failed', _UNMANAGING,             S.UNMANAGE_ERROR),

        # Offered to another project, whose acceptance is work on the share
        # transfer.
        ('offer',          {S.AVAILABLE},             S.AWAITING_TRANSFER),
        ('withdraw_offer', {S.AWAITING_TRANSFER},         S.AVAILABLE),
        ('transferred',    {S.AWAITING_TRANSFER},         S.AVAILABLE),

        ('ensure',         {S.AVAILABLE},                 S.ENSURING),
        ('ensured',        {S.ENSURING},                  S.AVAILABLE),
        ('ensure_failed',  {S.ENSURING},                  S.ERROR),

        ('delete',         DELETABLE,                     S.DELETING),
        ('force_delete',   _VISIBLE,                         S.DELETING),
        # No process of its back end is up to end what it is in.
        ('delete_unserved', DELETABLE_UNSERVED,           S.DELETING),
        ('delete_failed',  {S.DELETING},                  S.ERROR_DELETING),
        ('defer_delete',   DELETABLE,             S.DEFERRED_DELETING),
        ('retry_deferred', {S.ERROR_DEFERRED_DELETING},
                                                  S.DEFERRED_DELETING),
        ('deferred_delete_failed', {S.DEFERRED_DELETING},
                                            S.ERROR_DEFERRED_DELETING),
        ('deleted',        {S.DELETING, S.DEFERRED_DELETING}, GONE),

        # Moves with its share server: to the destination, or back.
        ('migrate_server', {S.AVAILABLE},           S.SERVER_MIGRATING),
        ('server_migrated', {S.SERVER_MIGRATING},         S.AVAILABLE),
        ('server_returned', {S.SERVER_MIGRATING},         S.AVAILABLE),
        ('server_migration_failed', {S.SERVER_MIGRATING}, S.ERROR),

        # The share server could not follow a change of its network.
        ('network_failed', {S.AVAILABLE},                 S.ERROR),

        # Moves to another instance, or stays.
        ('migrate',        {S.AVAILABLE},                 S.MIGRATING),
        ('migrate_returned', {S.MIGRATING},               S.AVAILABLE),
        # Where its data is does not depend on what an administrator has
        # reset: the previous release accepts that during a migration.
        ('migrated_away',  _VISIBLE,                      GONE),
        ('arrived',        _VISIBLE,                      S.AVAILABLE),
        ('migration_withdrawn', _VISIBLE,                 GONE),
        ('migration_failed', _VISIBLE - {S.ERROR},        S.ERROR),

        ('migration_lost', {S.MIGRATING, S.MIGRATING_TO,
                            S.SERVER_MIGRATING},          S.ERROR),

        # The replica that is to become active. When promotion fails, all
        # replicas of the share are in error until each is healthy again.
        ('promote',        {S.AVAILABLE},           S.REPLICATION_CHANGE),
        ('promoted',       {S.REPLICATION_CHANGE},        S.AVAILABLE),
        ('promote_refused', {S.REPLICATION_CHANGE},       S.AVAILABLE),
        ('promote_failed', {S.REPLICATION_CHANGE},        S.ERROR),
        ('replica_failed', {S.AVAILABLE},                 S.ERROR),
        ('replica_healed', {S.ERROR},                     S.AVAILABLE),
    ],
    resets={
        S.CREATING, S.AVAILABLE, S.DELETING, S.ERROR, S.ERROR_DELETING,
        S.MIGRATING, S.MIGRATING_TO, S.SERVER_MIGRATING,
    },
    final=HIDDEN_FROM_TENANTS,
    at_rest={
        S.AVAILABLE, S.ERROR, S.ERROR_DELETING,
        S.ERROR_DEFERRED_DELETING, S.EXTENDING_ERROR, S.SHRINKING_ERROR,
        S.REVERTING_ERROR, S.MANAGE_ERROR, S.UNMANAGE_ERROR,
        S.AWAITING_TRANSFER, S.BACKUP_RESTORING_ERROR,
    },
    in_flight={
        S.CREATING: Ask(
            'get_share_status', 'created', 'create_failed', repeats=True),
        S.CREATING_FROM_SNAPSHOT: Ask(
            'get_share_status', 'created', 'create_failed', repeats=True),
        S.EXTENDING: Ask('get_share_status', 'extended', 'extend_failed'),
        S.SHRINKING: Ask('get_share_status', 'shrunk', 'shrink_failed'),
        # The snapshot has its own rescue; the share is unchanged.
        S.SNAPSHOTTING: GiveUp('snapshotted'),
        # So has a backup, which only reads the share.
        S.BACKUP_CREATING: GiveUp('backed_up'),
        S.BACKUP_RESTORING: GiveUp('backup_restore_failed'),
        S.REVERTING: GiveUp('revert_lost'),
        S.MANAGE_STARTING: GiveUp('manage_failed'),
        S.UNMANAGE_STARTING: GiveUp('unmanage_failed'),
        S.MANAGE_ERROR_UNMANAGE_STARTING: GiveUp('unmanage_failed'),
        # Ensuring changes no data: the share is as available as before.
        S.ENSURING: GiveUp('ensured'),
        S.DELETING: Repeat('provisioning.delete_share_instance',
                           'deleted', 'delete_failed'),
        S.DEFERRED_DELETING: Repeat(
            'provisioning.delete_share_instance_deferred',
            'deleted', 'deferred_delete_failed'),
        S.MIGRATING: GiveUp('migration_lost'),
        S.MIGRATING_TO: GiveUp('migration_lost'),
        S.SERVER_MIGRATING: GiveUp('migration_lost'),
        # Abandoned work promotes again. Without it the request is unknown,
        # and a late promotion could discard what clients have written.
        S.REPLICATION_CHANGE: GiveUp('promote_failed'),
    },
    stamps={'created': 'launched_at', 'managed': 'launched_at'},
)
# fmt: on
