"""Backups of shares."""

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.records import Records
from manila_lite.db.queries.shares import instance_views
from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.db.tables import BACKUP, SHARE, ZONE
from manila_lite.states.share_backup import BackupStatus

FILTERS = (
    'id',
    'name',
    'description',
    'status',
    'share_id',
    'project_id',
    'host',
    'topic',
    'backup_type',
)
"""The columns that a list can be filtered by, by equality."""

SORT_KEYS = (
    *FILTERS,
    'user_id',
    'size',
    'progress',
    'restore_progress',
    'created_at',
    'updated_at',
)

UNKNOWN_POSITION = -1
"""The `restore_position` of a restore while a worker writes."""

_LIST = sa.select(BACKUP, ZONE.c.name.label('availability_zone')).select_from(
    BACKUP.outerjoin(ZONE)
)
RECORDS: Records[ShareBackupRow] = Records(
    BACKUP, exception.ShareBackupNotFound, 'backup_id', _LIST
)
_BY_ID = BACKUP.c.id == sa.bindparam('backup_id')
_RESCUED = (
    sa.select(
        *(column for column in BACKUP.c if column.name != 'host'),
        instance_views.select_column('host').label('host'),
    )
    .select_from(BACKUP.join(SHARE, SHARE.c.id == BACKUP.c.share_id))
    .where(_BY_ID)
)
_OF_SHARE = sa.select(BACKUP.c.id).where(BACKUP.c.share_id == sa.bindparam('of_share'))
_ANY = _OF_SHARE.limit(1)
_OF_OTHER_TYPE = _ANY.where(
    BACKUP.c.backup_type.is_distinct_from(
        sa.bindparam('than_type', type_=BACKUP.c.backup_type.type)
    )
)
_OTHER = BACKUP.c.id != sa.bindparam('than_backup')
_CREATING = _ANY.where(BACKUP.c.status == BackupStatus.CREATING, _OTHER)
_RESTORING = (
    sa.select(BACKUP.c.id)
    .where(
        BACKUP.c.restore_share_id == sa.bindparam('of_share'),
        BACKUP.c.status == BackupStatus.RESTORING,
        _OTHER,
    )
    .limit(1)
)
_PROGRESS = (
    sa.update(BACKUP)
    .where(_BY_ID, BACKUP.c.status == BackupStatus.CREATING)
    .values(progress=sa.bindparam('percent'), updated_at=sa.bindparam('now'))
)
_RESTORE_PROGRESS = (
    sa.update(BACKUP)
    .where(_BY_ID, BACKUP.c.status == BackupStatus.RESTORING)
    .values(restore_progress=sa.bindparam('percent'), updated_at=sa.bindparam('now'))
)
_SET_POSITION = (
    sa.update(BACKUP)
    .where(_BY_ID, BACKUP.c.status == BackupStatus.RESTORING)
    .values(restore_position=sa.bindparam('position'))
)
_SET_SOURCE = (
    sa.update(SHARE)
    .where(SHARE.c.id == sa.bindparam('of_share'))
    .values(source_backup_id=sa.bindparam('from_backup'))
)


get, find, lock_shared = RECORDS.get, RECORDS.find, RECORDS.lock_shared
list_backups, update = RECORDS.list_page, RECORDS.update


def find_for_rescue(session: Session, backup_id: str) -> ShareBackupRow | None:
    """Like `find`, with the host that the share is on now."""
    return session.first(_RESCUED, backup_id=backup_id)


def has_any(session: Session, share_id: str) -> bool:
    """Whether a share has any backup, in any status."""
    return session.value(_ANY, of_share=share_id) is not None


def has_any_of_other_type(
    session: Session, share_id: str, backup_type: str | None
) -> bool:
    """Whether a share has a backup of another type, in any status."""
    return (
        session.value(_OF_OTHER_TYPE, of_share=share_id, than_type=backup_type)
        is not None
    )


def is_backed_up_by_other(session: Session, share_id: str, backup_id: str) -> bool:
    """Whether another backup of a share is being created."""
    return (
        session.value(_CREATING, of_share=share_id, than_backup=backup_id) is not None
    )


def is_restored_from_other(session: Session, share_id: str, backup_id: str) -> bool:
    """Whether another backup is being restored to a share."""
    return (
        session.value(_RESTORING, of_share=share_id, than_backup=backup_id) is not None
    )


def set_progress(session: Session, backup_id: str, percent: int) -> None:
    """Record the progress of a backup, in percent."""
    session.run(_PROGRESS, backup_id=backup_id, percent=percent, now=session.now)


def set_restore_progress(session: Session, backup_id: str, percent: int) -> None:
    """Record the progress of a restore, in percent."""
    session.run(
        _RESTORE_PROGRESS, backup_id=backup_id, percent=percent, now=session.now
    )


def set_restore_position(session: Session, backup_id: str, position: int) -> None:
    """Record how many steps of a restore are done, or UNKNOWN_POSITION."""
    session.run(_SET_POSITION, backup_id=backup_id, position=position)


def set_source(session: Session, share_id: str, backup_id: str) -> None:
    """Record that a share has the content of a backup."""
    session.run(_SET_SOURCE, of_share=share_id, from_backup=backup_id)
