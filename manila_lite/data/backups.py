"""Create, restore and delete backups of shares."""

from collections.abc import Callable, Collection
import typing

from manila_lite import exception
from manila_lite.data.backup_driver import BackupDriver
from manila_lite.data.backup_driver import Copying
from manila_lite.data.copying import TreeCopier
from manila_lite.data.progress import CopyProgress
from manila_lite.data.shares import ShareContents
from manila_lite.db.moves import backups as moves
from manila_lite.db.queries.backups import share_backups
from manila_lite.db.queries.shares import shares
from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.rows import ShareTarget
from manila_lite.db.session import Session
from manila_lite.quota.backups import remove_and_credit
from manila_lite.rpc.contract import implements
from manila_lite.rpc.data import BackupsRpc
from manila_lite.states.share_backup import BackupStatus
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

T = typing.TypeVar('T')


class LoadedBackup(typing.NamedTuple):
    """A backup, and the share that is read or written."""

    row: ShareBackupRow
    share: ShareTarget


@implements(BackupsRpc)
class BackupsEndpoint:
    """Carries out work on backups; every method may run twice.

    `callable_here` makes an object whose methods `driver` may call.
    """

    def __init__(
        self,
        driver: BackupDriver,
        copier: TreeCopier,
        contents: ShareContents,
        ignored: Collection[str],
        *,
        callable_here: Callable[[T], T],
    ):
        self.driver = driver
        self.copier = copier
        self.contents = contents
        self.ignored = ignored
        self.callable_here: Callable = callable_here

    # Create

    def prepare_create_backup(
        self, session: Session, job: Claim
    ) -> LoadedBackup:
        row = _expect(session, job, BackupStatus.CREATING)
        return LoadedBackup(row, shares.get_target(session, row.share_id))

    def create_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        with self._opened(job, backup.share) as share:
            self.driver.create(
                share_backup_id,
                share,
                self._copying(
                    job, self.copier.size_of(share), share_backups.set_progress
                ),
            )
        job.finish(moves.end_creation, backup.row)

    def dropped_create_backup(self, session: Session, job: Claim) -> None:
        row = share_backups.find(session, job.resource_id)
        if row is not None:
            moves.release_source(session, row.share_id, excluding=row.id)

    # Restore

    def prepare_restore_backup(
        self, session: Session, job: Claim
    ) -> LoadedBackup:
        row = _expect(session, job, BackupStatus.RESTORING)
        target = row.restore_share_id or row.share_id
        return LoadedBackup(row, shares.get_target(session, target))

    def restore_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        total = self.driver.size_of(share_backup_id)
        with self._opened(job, backup.share) as share:
            self.driver.restore(
                share_backup_id,
                share,
                self._copying(job, total, share_backups.set_restore_progress),
            )
        job.finish(moves.end_restore, backup.row)

    def dropped_restore_backup(self, session: Session, job: Claim) -> None:
        row = share_backups.find(session, job.resource_id)
        if row is not None and row.restore_share_id is not None:
            moves.fail_target(session, row.restore_share_id, excluding=row.id)

    # Delete

    def prepare_delete_backup(
        self, session: Session, job: Claim
    ) -> ShareBackupRow:
        return _expect(session, job, BackupStatus.DELETING)

    def delete_backup(self, job: JobContext, share_backup_id: str) -> None:
        self.driver.delete(share_backup_id, job.claim.fence)
        job.finish(remove_and_credit, job.prepared)

    # Both directions

    def _opened(
        self, job: JobContext, share: ShareTarget
    ) -> typing.ContextManager[int]:
        return self.contents.opened(
            job.request_context(), share.instance_id, share.host or ''
        )

    def _copying(
        self,
        job: JobContext,
        total: int,
        write: Callable[[Session, str, int], None],
    ) -> Copying:
        progress = self.callable_here(
            CopyProgress(
                job,
                total,
                lambda session, percent: write(
                    session, job.claim.resource_id, percent
                ),
            )
        )
        return Copying(
            progress.add, progress.check, job.claim.fence, self.ignored
        )


def _expect(session: Session, job: Claim, status: str) -> ShareBackupRow:
    """Return the locked backup if it still waits for this work."""
    row = share_backups.lock_shared(session, job.resource_id)
    if row.status != status:
        raise exception.InvalidStatus(
            resource='share backup',
            id=row.id,
            status=row.status,
            event=job.kind,
            allowed=status,
        )
    return row
