"""Backups that the driver of a share makes and keeps.

As in the data service, a share is in flight as long as its backup is. The
driver starts what it is asked for, and is then polled.
"""

import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.moves import shares as moves
from manila_lite.db.queries import share_backups
from manila_lite.db.session import Session
from manila_lite.messages import Detail
from manila_lite.quota.snapshots import remove_backup
from manila_lite.rpc.contract import implements, work, work_kinds
from manila_lite.rpc.share import DriverBackupsRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedBackup
from manila_lite.share.manager.endpoint import require_status, undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.migration_checks import read_progress
from manila_lite.states.share_backup import SHARE_BACKUP, BackupStatus
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

_WORK = work_kinds(DriverBackupsRpc)
_CONTINUE_BACKUP = _WORK['driver_backups.continue_backup']
_CONTINUE_RESTORE = _WORK['driver_backups.continue_restore']


class _DriverValues(typing.NamedTuple):
    """A loaded backup in the form given to drivers."""

    share: base.ShareForDriver
    backup: base.ShareBackupForDriver
    server: base.ShareServerForDriver | None


@implements(DriverBackupsRpc)
@dataclasses.dataclass(eq=False)
class DriverBackupsEndpoint:
    """Carries out work on the backups that one back end keeps."""

    driver: base.ShareDriver
    share_names: Annotated[str, Option('share_name_template')]
    backup_names: Annotated[str, Option('share_backup_name_template')]
    backup_interval: Annotated[float, Option('driver_backup_continue_update_interval')]
    restore_interval: Annotated[
        float, Option('driver_restore_continue_update_interval')
    ]

    # Create

    @work(expects=BackupStatus.CREATING, dropped='_release_source')
    def create_backup(self, job: JobContext, share_backup_id: str) -> None:
        driver, given = self._supporting_driver(), self._values(job.prepared)
        driver.create_backup(driver_context(), given.share, given.backup, given.server)
        with undo_if_gone(
            job,
            share_backups.find,
            share_backup_id,
            lambda: driver.delete_backup(
                driver_context(), given.backup, given.share, given.server
            ),
            given_up=(BackupStatus.DELETING,),
        ):
            job.hand_over(_hand_over, job.claim, _CONTINUE_BACKUP)

    def _release_source(self, session: Session, job: Claim) -> None:
        moves.release_source_of(session, job.resource_id)

    @work(expects=BackupStatus.CREATING, dropped='_release_source')
    def continue_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        given = self._values(backup)
        done = _percent(
            self._supporting_driver().create_backup_continue(
                driver_context(), given.share, given.backup, given.server
            )
        )
        if done == moves.DONE:
            job.finish(moves.end_creation, backup.row)
        else:
            job.pause(
                self.backup_interval, share_backups.set_progress, share_backup_id, done
            )

    # Restore

    @work(expects=BackupStatus.RESTORING, dropped='_fail_target')
    def restore_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        driver, given = self._supporting_driver(), self._values(backup)
        if (
            backup.share.row.share_id != backup.row.share_id
            and not self.driver.restore_to_target_support
        ):
            raise exception.TargetedRestoreUnsupported(
                backup_id=share_backup_id,
                message_detail=Detail.TARGETED_RESTORE_UNSUPPORTED,
            )
        driver.restore_backup(driver_context(), given.backup, given.share, given.server)
        job.hand_over(_hand_over, job.claim, _CONTINUE_RESTORE)

    def _fail_target(self, session: Session, job: Claim) -> None:
        moves.fail_target_of(session, job.resource_id)

    @work(expects=BackupStatus.RESTORING, dropped='_fail_target')
    def continue_restore(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        given = self._values(backup)
        done = _percent(
            self._supporting_driver().restore_backup_continue(
                driver_context(), given.backup, given.share, given.server
            )
        )
        if done == moves.DONE:
            job.finish(moves.end_restore, backup.row)
        else:
            job.pause(
                self.restore_interval,
                share_backups.set_restore_progress,
                share_backup_id,
                done,
            )

    # Delete

    @work(expects=BackupStatus.DELETING)
    def delete_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        given = self._values(backup)
        self._supporting_driver().delete_backup(
            driver_context(), given.backup, given.share, given.server
        )
        job.finish(remove_backup, backup.row)

    # All of them

    def expect(self, session: Session, job: Claim, status: str) -> LoadedBackup:
        """Return the locked backup, with its share, if it waits for this work."""
        row = share_backups.lock_shared(session, job.resource_id)
        require_status(job, SHARE_BACKUP, row.id, row.status, status)
        restored = row.restore_share_id if status == BackupStatus.RESTORING else None
        return share_view.load_backup(session, row, restored or row.share_id)

    def _supporting_driver(self) -> base.BackupSupport:
        if not isinstance(self.driver, base.BackupSupport):
            raise exception.DriverBackupsUnsupported
        return self.driver

    def _values(self, backup: LoadedBackup) -> _DriverValues:
        return _DriverValues(
            share_view.share_for_driver(backup.share, self.share_names),
            backup.for_driver(self.backup_names),
            backup.share.share_server,
        )


def _hand_over(session: Session, job: Claim, work: typing.Any) -> None:
    """Let the work that polls the driver follow."""
    table.hand_over(session, job, work, job.queue, {'share_backup_id': job.resource_id})


def _percent(reply: base.BackupProgress) -> int:
    """Return the progress in a reply; raises if it has none."""
    percent = read_progress(reply).percent
    if percent is None:
        raise exception.ShareBackendException(
            msg='the driver returned no valid total_progress of a backup'
        )
    return percent
