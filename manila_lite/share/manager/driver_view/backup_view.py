"""Share backups as read for work, and as given to drivers."""

import typing

import orjson

from manila_lite.db.queries.shares import shares
from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import ShareBackupForDriver
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance


class LoadedBackup(typing.NamedTuple):
    """A backup, and the share that is read or written."""

    row: ShareBackupRow
    share: LoadedInstance

    def for_driver(self, name_template: str) -> ShareBackupForDriver:
        row = self.row
        return ShareBackupForDriver(
            id=row.id,
            share_id=row.share_id,
            name=name_template % row.id,
            project_id=row.project_id,
            user_id=row.user_id,
            display_name=row.name,
            display_description=row.description,
            status=row.status,
            size=row.size,
            host=row.host,
            topic=row.topic,
            backup_type=row.backup_type,
            backup_options=orjson.loads(row.backup_options or '{}'),
            availability_zone=row.availability_zone,
            progress=str(row.progress),
            restore_progress=str(row.restore_progress),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


def load_backup(session: Session, row: ShareBackupRow, share_id: str) -> LoadedBackup:
    """Read the share that a backup is made of or restored to."""
    target = shares.get_target(session, share_id)
    return LoadedBackup(row, share_view.load_instance(session, target.instance_id))
