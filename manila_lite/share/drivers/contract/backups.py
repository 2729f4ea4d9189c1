"""Driver methods for backups that the back end keeps itself.

Names, parameters and replies are the published ones (driver-interface.csv).
A backup is started by one call and then polled by another until it is
complete, and so is a restore. Every method may be called twice and must lead
to the same state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
import datetime
from typing import Any

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import interfaces
from manila_lite.share.drivers.contract.values import ShareForDriver, StoredRecord

BackupProgress = Mapping[str, Any]
"""`total_progress` in percent, as a string; 100 is the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBackupForDriver(StoredRecord):
    """A backup; `host` is where its share was when it was requested.

    `backup_options` are those of the request, among them `backup_type`.
    """

    id: str
    share_id: str
    name: str
    project_id: str
    user_id: str | None = None
    display_name: str | None = None
    display_description: str | None = None
    status: str | None = None
    size: int
    host: str | None = None
    topic: str | None = None
    backup_type: str | None = None
    backup_options: Mapping[str, Any] = field(default_factory=dict)
    availability_zone: str | None = None
    progress: str = '0'
    restore_progress: str = '0'
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


class BackupDefaults:
    """Defaults that every driver inherits: it makes no backups."""

    restore_to_target_support = False
    """Whether backups can be restored to shares they were not made from."""

    def create_backup(
        self,
        context: RequestContext,
        share_instance: ShareForDriver,
        backup: ShareBackupForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Start a backup and return; one that was started is kept."""
        raise NotImplementedError

    def create_backup_continue(
        self,
        context: RequestContext,
        share_instance: ShareForDriver,
        backup: ShareBackupForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> BackupProgress:
        """Return the progress of a backup; an error means failure.

        Called repeatedly until it is complete.
        """
        raise NotImplementedError

    def restore_backup(
        self,
        context: RequestContext,
        backup: ShareBackupForDriver,
        share_instance: ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Start to give a share the content of a backup, and return.

        The share is the one that was backed up, or any other on the back end
        if `restore_to_target_support` is set.
        """
        raise NotImplementedError

    def restore_backup_continue(
        self,
        context: RequestContext,
        backup: ShareBackupForDriver,
        share_instance: ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> BackupProgress:
        """Return the progress of a restore; an error means failure.

        Called repeatedly until it is complete.
        """
        raise NotImplementedError

    def delete_backup(
        self,
        context: RequestContext,
        backup: ShareBackupForDriver,
        share_instance: ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Delete a backup, complete or not; a missing one is success.

        `share_instance` is the share that was backed up.
        """
        raise NotImplementedError


@interfaces.requires(
    'create_backup',
    'create_backup_continue',
    'restore_backup',
    'restore_backup_continue',
    'delete_backup',
)
class BackupSupport(BackupDefaults, interfaces.DefaultedInterface):
    """Backups that the back end makes and keeps."""
