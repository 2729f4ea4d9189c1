"""Backups of shares."""

from manila_lite.exception.families import Invalid
from manila_lite.exception.families import ManilaLiteError
from manila_lite.exception.transitions import ResourceNotFound


class ShareBackupNotFound(ResourceNotFound):
    message = 'Share backup {backup_id} could not be found.'


class InvalidBackup(Invalid):
    message = 'Invalid share backup: {reason}'


class DriverBackupsUnsupported(ManilaLiteError):
    """Also written to the user, whose request has the options."""

    message = (
        'The storage of the share makes no backups itself; backup_options '
        'are for storage that does, and a backup without them is made by '
        'the data service.'
    )


class TargetedRestoreUnsupported(ManilaLiteError):
    message = (
        'The driver restores backup {backup_id} only to the share that it '
        'was made from.'
    )
