"""Backups of shares."""

from manila_lite.exception.families import Invalid, ManilaLiteError
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


class RestoreInterrupted(ManilaLiteError):
    """Also written to the user, who may request it again."""

    message = (
        'The restore of backup {backup_id} was interrupted. It does not begin '
        'again by itself, which would undo what clients have written since; '
        'the share may have the content of the backup in part.'
    )
