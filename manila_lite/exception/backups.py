"""Backups of shares."""

from manila_lite.exception.families import Invalid
from manila_lite.exception.transitions import ResourceNotFound


class ShareBackupNotFound(ResourceNotFound):
    message = 'Share backup {backup_id} could not be found.'


class InvalidBackup(Invalid):
    message = 'Invalid share backup: {reason}'
