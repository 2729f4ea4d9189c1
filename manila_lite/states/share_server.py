"""The status of a share server, and the state of its migration.

The statuses and the moves out of them follow statuses.csv of the published
API, the rescues the start-up reconciliation design, the values of
`task_state` the share server migration design.
"""

from manila_lite.states.machine import GONE, GiveUp, Machine, Repeat, Resume


class ServerStatus:
    """The statuses of share servers, spelled once."""

    CREATING = 'creating'
    ACTIVE = 'active'
    ERROR = 'error'
    DELETING = 'deleting'
    MANAGE_STARTING = 'manage_starting'
    MANAGE_ERROR = 'manage_error'
    UNMANAGE_STARTING = 'unmanage_starting'
    UNMANAGE_ERROR = 'unmanage_error'
    INACTIVE = 'inactive'
    SERVER_MIGRATING = 'server_migrating'
    SERVER_MIGRATING_TO = 'server_migrating_to'
    NETWORK_CHANGE = 'network_change'


# Short in the table only.
S = ServerStatus


DELETABLE = frozenset({S.ACTIVE, S.ERROR, S.INACTIVE})
UNMANAGEABLE = frozenset({S.ACTIVE, S.ERROR, S.MANAGE_ERROR, S.UNMANAGE_ERROR})

_MIGRATING = frozenset({S.SERVER_MIGRATING, S.SERVER_MIGRATING_TO})

# fmt: off
SHARE_SERVER = Machine(
    'share_server', 'share_servers',
    initial={'create': S.CREATING, 'manage': S.MANAGE_STARTING,
             'migrate_here': S.SERVER_MIGRATING_TO},
    moves=[
        # event            from                           to
        ('created',        {S.CREATING},                  S.ACTIVE),
        ('create_failed',  {S.CREATING},                  S.ERROR),

        ('delete',         DELETABLE,                     S.DELETING),
        ('deleted',        {S.DELETING},                  GONE),
        ('delete_failed',  {S.DELETING},                  S.ERROR),

        ('managed',        {S.MANAGE_STARTING},           S.ACTIVE),
        ('manage_failed',  {S.MANAGE_STARTING},           S.MANAGE_ERROR),

        ('unmanage',       UNMANAGEABLE,              S.UNMANAGE_STARTING),
        ('unmanaged',      {S.UNMANAGE_STARTING},         GONE),
        ('unmanage_failed', {S.UNMANAGE_STARTING},        S.UNMANAGE_ERROR),

        ('change_network', {S.ACTIVE},                    S.NETWORK_CHANGE),
        ('network_changed', {S.NETWORK_CHANGE},           S.ACTIVE),
        ('network_change_failed', {S.NETWORK_CHANGE},     S.ERROR),

        ('migrate',        {S.ACTIVE},                  S.SERVER_MIGRATING),
        ('migrate_returned', {S.SERVER_MIGRATING},        S.ACTIVE),
        ('migrated_away',  {S.SERVER_MIGRATING},          S.INACTIVE),
        ('arrived',        {S.SERVER_MIGRATING_TO},       S.ACTIVE),
        ('migration_withdrawn', {S.SERVER_MIGRATING_TO},  S.INACTIVE),
        # A driver may choose an existing server as the destination.
        ('adopt',          {S.ACTIVE},               S.SERVER_MIGRATING_TO),
        ('let_go',         {S.SERVER_MIGRATING_TO},       S.ACTIVE),
        ('migration_failed', _MIGRATING,                  S.ERROR),
    ],
    resets={status for name, status in vars(S).items()
            if not name.startswith('_')},
    at_rest={S.ACTIVE, S.ERROR, S.MANAGE_ERROR, S.UNMANAGE_ERROR,
             S.INACTIVE},
    in_flight={
        # Shares that wait for it are rescued like others in creating.
        S.CREATING: GiveUp('create_failed'),
        S.DELETING: Repeat('share_servers.delete_share_server',
                           'deleted', 'delete_failed'),
        S.MANAGE_STARTING: GiveUp('manage_failed'),
        S.UNMANAGE_STARTING: GiveUp('unmanage_failed'),
        S.NETWORK_CHANGE: GiveUp('network_change_failed'),
        # Waits for its task; without a task the work brings it to rest.
        S.SERVER_MIGRATING: Resume(
            'server_migration.settle_server_migration'),
        S.SERVER_MIGRATING_TO: GiveUp('migration_failed'),
    },
)
# fmt: on


class TaskState:
    """The values of `task_state`, spelled once; NONE is stored as null."""

    NONE = 'none'
    STARTING = 'server_migration_starting'
    MIGRATING = 'server_migrating'
    PHASE1_DONE = 'server_migrating_phase1_done'
    COMPLETING = 'server_migration_completing'
    CANCELLING = 'server_migration_cancelling'
    COMPLETED = 'server_migration_completed'
    CANCELLED = 'server_migration_cancelled'
    ERROR = 'server_migration_error'


# Short in the table only.
T = TaskState


NO_MIGRATION = frozenset({T.NONE, T.COMPLETED, T.CANCELLED, T.ERROR})
"""The states without a running migration, in which one may be started."""

# fmt: off
SHARE_SERVER_TASK = Machine(
    'share_server_task', 'share_servers', column='task_state',
    null=T.NONE,
    initial={'create': T.NONE},
    moves=[
        # event         from                             to
        ('start',       NO_MIGRATION,                    T.STARTING),
        ('started',     {T.STARTING},                    T.MIGRATING),
        ('phase1_done', {T.MIGRATING},                   T.PHASE1_DONE),
        ('complete',    {T.PHASE1_DONE},                 T.COMPLETING),
        ('completed',   {T.COMPLETING},                  T.COMPLETED),
        # Fired on the destination; the source is removed soon.
        ('arrived',     NO_MIGRATION,                    T.COMPLETED),
        ('cancel',      {T.MIGRATING, T.PHASE1_DONE},    T.CANCELLING),
        ('cancelled',   {T.CANCELLING},                  T.CANCELLED),
        ('failed',      {T.STARTING, T.MIGRATING, T.PHASE1_DONE,
                         T.COMPLETING, T.CANCELLING},    T.ERROR),
    ],
    # The published values that have a name in the design.
    resets={T.NONE, T.STARTING, T.MIGRATING, T.PHASE1_DONE, T.COMPLETING,
            T.CANCELLING, T.COMPLETED, T.CANCELLED, T.ERROR},
    # After phase one an administrator owes the next move, not a service.
    at_rest={*NO_MIGRATION, T.PHASE1_DONE},
    in_flight={
        T.STARTING: Resume('server_migration.start_server_migration'),
        T.MIGRATING: Resume('server_migration.continue_server_migration'),
        T.COMPLETING: Resume('server_migration.complete_server_migration'),
        T.CANCELLING: Resume('server_migration.cancel_server_migration'),
    },
)
# fmt: on

RUNNING = frozenset({*SHARE_SERVER_TASK.in_flight, TaskState.PHASE1_DONE})
"""The states in which the rows of a migration wait for its task."""
