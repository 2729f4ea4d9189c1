"""The status of a backup of a share.

The statuses follow statuses.csv of the published API. A share is
backup_creating or backup_restoring while its backup is in flight. All work
on backups may be repeated, so a lost one is carried out once more.
"""

from manila_lite.states.machine import GONE, Machine, Repeat


class BackupStatus:
    """The statuses of share backups, spelled once."""

    CREATING = 'creating'
    AVAILABLE = 'available'
    ERROR = 'error'
    RESTORING = 'restoring'
    DELETING = 'deleting'
    ERROR_DELETING = 'error_deleting'


# Short in the table only.
S = BackupStatus

# fmt: off
SHARE_BACKUP = Machine(
    'share_backup', 'share_backups',
    initial={'create': S.CREATING},
    moves=[
        # event            from                           to
        ('created',        {S.CREATING},                  S.AVAILABLE),
        ('create_failed',  {S.CREATING},                  S.ERROR),

        # A failed restore leaves the backup as it was: it is only read.
        ('restore',        {S.AVAILABLE},                 S.RESTORING),
        ('restored',       {S.RESTORING},                 S.AVAILABLE),
        ('restore_failed', {S.RESTORING},                 S.AVAILABLE),

        ('delete',         {S.AVAILABLE, S.ERROR},        S.DELETING),
        ('deleted',        {S.DELETING},                  GONE),
        ('delete_failed',  {S.DELETING},                  S.ERROR_DELETING),
    ],
    resets={
        S.CREATING, S.AVAILABLE, S.ERROR, S.DELETING, S.ERROR_DELETING,
    },
    at_rest={S.AVAILABLE, S.ERROR, S.ERROR_DELETING},
    in_flight={
        S.CREATING: Repeat('backups.create_backup',
                           'created', 'create_failed'),
        S.RESTORING: Repeat('backups.restore_backup',
                            'restored', 'restore_failed'),
        S.DELETING: Repeat('backups.delete_backup',
                           'deleted', 'delete_failed'),
    },
)
# fmt: on
