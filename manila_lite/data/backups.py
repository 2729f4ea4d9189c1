"""Create, restore and delete backups of shares."""

from collections.abc import Callable, Collection
import typing

import orjson

from manila_lite import exception
from manila_lite.data.backup_driver import BackupDriver, KeptCopy
from manila_lite.data.copying import ShareContents, TreeCopier
from manila_lite.data.gate import Copying
from manila_lite.data.progress import Position, copying_of, waiting_for_earlier
from manila_lite.db import errors
from manila_lite.db.moves import shares as moves
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.shares import shares
from manila_lite.db.rows import ShareBackupRow, ShareTarget
from manila_lite.db.session import Session
from manila_lite.quota.snapshots import remove_backup
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

    def prepare_create_backup(self, session: Session, job: Claim) -> LoadedBackup:
        row = _expect(session, job, BackupStatus.CREATING)
        return LoadedBackup(row, shares.get_target(session, row.share_id))

    def create_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        kept = _kept_copy(backup.row)
        with waiting_for_earlier(job):
            if kept is None:
                kept = self._create(job, backup)
            else:  # its status was reset
                how = self._copying(job, 0, share_backups.set_progress)
                self.driver.verify(share_backup_id, kept, how)
            job.finish(moves.end_creation, backup.row, _dump(kept))

    def _create(self, job: JobContext, backup: LoadedBackup) -> KeptCopy:
        with self._opened(job, backup.share) as share:
            how = self._copying(
                job, self.copier.size_of(share), share_backups.set_progress
            )
            return _in_order(
                job, how, lambda how: self.driver.create(backup.row.id, share, how)
            )

    def dropped_create_backup(self, session: Session, job: Claim) -> None:
        moves.release_source_of(session, job.resource_id)

    # Restore

    def prepare_restore_backup(self, session: Session, job: Claim) -> LoadedBackup:
        row = _expect(session, job, BackupStatus.RESTORING)
        target = row.restore_share_id or row.share_id
        return LoadedBackup(row, shares.get_target(session, target))

    def restore_backup(self, job: JobContext, share_backup_id: str) -> None:
        backup: LoadedBackup = job.prepared
        if backup.row.restore_position == share_backups.UNKNOWN_POSITION:
            self._give_up_restore(job, backup)
            return
        kept = _kept_copy(backup.row)
        if kept is None:
            raise exception.InvalidBackup(
                reason=f'no content of {share_backup_id} was recorded'
            )
        how = self._copying(
            job,
            self.driver.size_of(share_backup_id, kept),
            share_backups.set_restore_progress,
        )
        self.driver.verify(share_backup_id, kept, how)
        with waiting_for_earlier(job):
            with self._opened(job, backup.share) as share:
                self._restore(job, backup.row, kept, share, how)
            job.finish(moves.end_restore, backup.row)

    def _give_up_restore(self, job: JobContext, backup: LoadedBackup) -> None:
        """Raise RestoreInterrupted once the earlier worker changes no more."""
        with waiting_for_earlier(job), self._opened(job, backup.share) as share:
            self.copier.await_steps(share)
            raise exception.RestoreInterrupted(backup_id=backup.row.id)

    def _restore(
        self,
        job: JobContext,
        row: ShareBackupRow,
        kept: KeptCopy,
        share: int,
        how: Copying,
    ) -> None:
        """Write to the share; the position is unknown only meanwhile."""

        def record(position: int) -> None:
            job.checkpoint(
                'restore_content', share_backups.set_restore_position, row.id, position
            )

        position = Position(row.restore_position or 0)
        record(share_backups.UNKNOWN_POSITION)
        try:
            self.driver.restore(row.id, kept, share, how, position)
        except (exception.WorkHandedOn, *errors.UNAVAILABLE):
            record(position.done)
            raise
        record(position.done)  # the end of the work may not be written

    def dropped_restore_backup(self, session: Session, job: Claim) -> None:
        moves.fail_target_of(session, job.resource_id)

    # Delete

    def prepare_delete_backup(self, session: Session, job: Claim) -> ShareBackupRow:
        return _expect(session, job, BackupStatus.DELETING)

    def delete_backup(self, job: JobContext, share_backup_id: str) -> None:
        with waiting_for_earlier(job):
            _in_order(
                job,
                self._copying(job, 0, share_backups.set_progress),
                lambda how: self.driver.delete(share_backup_id, how),
            )
            job.finish(remove_backup, job.prepared)

    # Both directions

    def _opened(
        self, job: JobContext, share: ShareTarget
    ) -> typing.ContextManager[int]:
        return self.contents.opened(job, share.instance_id, share.host or '')

    def _copying(
        self, job: JobContext, total: int, write: Callable[[Session, str, int], None]
    ) -> Copying:
        """Half of what is reported is the copy, the other half its check."""
        return copying_of(
            job,
            2 * total,
            lambda session, percent: write(session, job.claim.resource_id, percent),
            self.callable_here,
            self.ignored,
        )


def _in_order(job: JobContext, how: Copying, call: Callable[[Copying], T]) -> T:
    """Call the driver; if the clock was set back, with a larger token."""
    try:
        return call(how)
    except exception.StaleFencingToken as error:
        job.raise_fence(error.seen)
        return call(how._replace(token=job.claim.fence))


def _kept_copy(row: ShareBackupRow) -> KeptCopy | None:
    if row.kept_copy is None:
        return None
    return KeptCopy(**orjson.loads(row.kept_copy))


def _dump(kept: KeptCopy) -> str:
    return orjson.dumps(kept._asdict()).decode()


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
