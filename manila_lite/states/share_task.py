"""The state of the migration of a share, its `task_state`.

The values follow statuses.csv of the published API. That has none for a
migration that is being cancelled; it is shown as that of a share server.
"""

from manila_lite.states.machine import Machine, Resume


class ShareTask:
    """The values of `task_state`, spelled once; NONE is stored as null."""

    NONE = 'none'
    STARTING = 'migration_starting'
    IN_PROGRESS = 'migration_in_progress'
    DRIVER_IN_PROGRESS = 'migration_driver_in_progress'
    PHASE1_DONE = 'migration_driver_phase1_done'
    COPY_STARTING = 'data_copying_starting'
    COPYING = 'data_copying_in_progress'
    COPIED = 'data_copying_completed'
    COMPLETING = 'migration_completing'
    CANCELLING = 'migration_cancel_in_progress'
    SUCCESS = 'migration_success'
    ERROR = 'migration_error'
    CANCELLED = 'migration_cancelled'


# Short in the table only.
T = ShareTask


NO_MIGRATION = frozenset({T.NONE, T.SUCCESS, T.ERROR, T.CANCELLED})
"""The states without a running migration, in which one may be started."""

# fmt: off
SHARE_TASK = Machine(
    'share_task', 'shares', column='task_state',
    null=T.NONE,
    initial={'create': T.NONE},
    moves=[
        # event         from                            to
        ('start',       NO_MIGRATION,                   T.STARTING),
        # The share is already there.
        ('skip',        NO_MIGRATION,                   T.SUCCESS),
        ('placed',      {T.STARTING},                   T.IN_PROGRESS),
        ('started',     {T.IN_PROGRESS},            T.DRIVER_IN_PROGRESS),
        ('phase1_done', {T.DRIVER_IN_PROGRESS},         T.PHASE1_DONE),
        # The data service copies if the driver cannot.
        ('copy',        {T.IN_PROGRESS},                T.COPY_STARTING),
        ('copying',     {T.COPY_STARTING},              T.COPYING),
        ('copied',      {T.COPYING},                    T.COPIED),
        ('complete',    {T.PHASE1_DONE, T.COPIED},      T.COMPLETING),
        ('completed',   {T.COMPLETING},                 T.SUCCESS),
        ('cancel',      {T.DRIVER_IN_PROGRESS, T.PHASE1_DONE,
                         T.COPY_STARTING, T.COPYING, T.COPIED},
                                                        T.CANCELLING),
        # What an unsuccessful first phase has copied is removed.
        ('clean_up',    {T.IN_PROGRESS, T.DRIVER_IN_PROGRESS,
                         T.COPY_STARTING, T.COPYING},
                                                        T.CANCELLING),
        ('cancelled',   {T.CANCELLING},                 T.CANCELLED),
        ('failed',      {T.STARTING, T.IN_PROGRESS, T.DRIVER_IN_PROGRESS,
                         T.PHASE1_DONE, T.COPY_STARTING, T.COPYING, T.COPIED,
                         T.COMPLETING, T.CANCELLING},   T.ERROR),
    ],
    resets={T.NONE, T.STARTING, T.IN_PROGRESS, T.DRIVER_IN_PROGRESS,
            T.PHASE1_DONE, T.COPY_STARTING, T.COPYING, T.COPIED, T.COMPLETING,
            T.SUCCESS, T.ERROR, T.CANCELLED},
    # After phase one an administrator owes the next move, not a service.
    at_rest={*NO_MIGRATION, T.PHASE1_DONE, T.COPIED},
    in_flight={
        T.STARTING: Resume('share_migration.settle_share_migration'),
        T.IN_PROGRESS: Resume('share_migration.start_share_migration'),
        T.DRIVER_IN_PROGRESS: Resume(
            'share_migration.continue_share_migration'),
        T.COPY_STARTING: Resume(
            'host_assisted_migration.resume_share_copy'),
        T.COPYING: Resume('host_assisted_migration.resume_share_copy'),
        T.COMPLETING: Resume('share_migration.complete_share_migration'),
        T.CANCELLING: Resume('share_migration.cancel_share_migration'),
    },
)
# fmt: on

OF_DRIVER = frozenset({T.DRIVER_IN_PROGRESS, T.PHASE1_DONE})
"""The states in which the driver copies or has copied."""

OF_COPY = frozenset({T.COPY_STARTING, T.COPYING, T.COPIED})
"""The states in which the data service copies or has copied."""

WAITING = frozenset({T.PHASE1_DONE, T.COPIED})
"""The states after phase one."""

RUNNING = frozenset({*SHARE_TASK.in_flight, *WAITING})
"""The states in which the rows of a migration wait for its task."""
