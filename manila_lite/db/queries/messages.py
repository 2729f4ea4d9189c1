"""User messages: the records."""

from collections.abc import Mapping
import datetime
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.dialects import filter_only
from manila_lite.db.queries import pages
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    BACKUP,
    GROUP,
    GROUP_SNAPSHOT,
    INSTANCE,
    MESSAGE,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
)

_EXPIRES_AT = sa.type_coerce(
    filter_only(MESSAGE.c.expires_at), MESSAGE.c.expires_at.type
)

SORT_KEYS = tuple(
    column.name
    for column in MESSAGE.c
    if column not in (MESSAGE.c.reason, MESSAGE.c.explanation, MESSAGE.c.kept_until)
)
FILTERS = (
    'request_id',
    'resource_type',
    'resource_id',
    'action_id',
    'detail_id',
    'message_level',
)
"""The columns that a list can be filtered by, by equality."""

_BY_ID = MESSAGE.c.id == sa.bindparam('message_id')
_GET = sa.select(MESSAGE).where(_BY_ID)
_HIDE = (
    sa.update(MESSAGE)
    .where(_BY_ID, MESSAGE.c.expires_at > sa.bindparam('at'))
    # MariaDB reads what it has set before.
    .ordered_values(
        (MESSAGE.c.kept_until, MESSAGE.c.expires_at),
        (MESSAGE.c.expires_at, sa.bindparam('at')),
    )
)
_ABOUT = (
    sa.select(MESSAGE)
    .where(
        MESSAGE.c.resource_id.in_(sa.bindparam('ids', expanding=True)),
        sa.or_(
            sa.bindparam('at') < _EXPIRES_AT, MESSAGE.c.kept_until > sa.bindparam('at')
        ),
    )
    .order_by(MESSAGE.c.created_at.desc(), MESSAGE.c.id.desc())
    .limit(sa.bindparam('most', type_=sa.Integer()))
)
_ABOUT_OF_PROJECT = _ABOUT.where(MESSAGE.c.project_id == sa.bindparam('project'))
_INSERT = sa.insert(MESSAGE)
_SHARE_OF = (
    sa.select(SHARE.c.id, SHARE.c.project_id, INSTANCE.c.replica_state)
    .join(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
)
_SNAPSHOT_OF = (
    sa.select(SNAPSHOT.c.id, SNAPSHOT.c.project_id)
    .join(SNAPSHOT_INSTANCE)
    .where(SNAPSHOT_INSTANCE.c.id == sa.bindparam('instance_id'))
)
_GROUP = sa.select(GROUP.c.id, GROUP.c.project_id).where(
    GROUP.c.id == sa.bindparam('group_id')
)
_GROUP_OF_SNAPSHOT = (
    sa.select(GROUP.c.id, GROUP_SNAPSHOT.c.project_id)
    .join(GROUP_SNAPSHOT, GROUP_SNAPSHOT.c.share_group_id == GROUP.c.id)
    .where(GROUP_SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
)

_SHARE_OF_BACKUP = sa.select(
    sa.func.coalesce(BACKUP.c.restore_share_id, BACKUP.c.share_id).label('id'),
    BACKUP.c.project_id,
).where(BACKUP.c.id == sa.bindparam('backup_id'))


def find_share(session: Session, instance_id: str) -> rows.MessageShareRow | None:
    """Return the share of an instance; users know the instance by it."""
    return session.first(_SHARE_OF, instance_id=instance_id)


def find_snapshot(session: Session, instance_id: str) -> rows.MessageSnapshotRow | None:
    """Return the snapshot of a snapshot instance."""
    return session.first(_SNAPSHOT_OF, instance_id=instance_id)


def find_group(session: Session, group_id: str) -> rows.MessageShareGroupRow | None:
    """Return a share group; None if it is gone."""
    return session.first(_GROUP, group_id=group_id)


def find_group_of_snapshot(
    session: Session, snapshot_id: str
) -> rows.MessageShareGroupRow | None:
    """Return the group of a snapshot; None if it is gone."""
    return session.first(_GROUP_OF_SNAPSHOT, snapshot_id=snapshot_id)


def find_share_of_backup(
    session: Session, backup_id: str
) -> rows.MessageShareGroupRow | None:
    """Return the share that a backup is made of or restored to."""
    return session.first(_SHARE_OF_BACKUP, backup_id=backup_id)


def insert_message(session: Session, values: Mapping[str, object]) -> None:
    session.run(_INSERT, **values)


def get_message(session: Session, message_id: str) -> rows.MessageRow:
    """Return a message of any project; raises MessageNotFound."""
    row = session.first(_GET, message_id=message_id)
    if row is None:
        raise exception.MessageNotFound(message_id=message_id)
    return row


def list_messages(
    session: Session,
    page: rows.Page,
    *,
    project_id: str | None = None,
    filters: Mapping[str, str] | None = None,
    created_since: datetime.datetime | None = None,
    created_before: datetime.datetime | None = None,
) -> typing.Sequence[rows.MessageRow]:
    """Return a page of the messages of a project, or of all projects.

    `filters` are values of columns in FILTERS; the sort key of the page is
    one of SORT_KEYS. Messages with equal keys are ordered by id.
    """
    conditions = [
        # Nearly all are still kept; the newest are wanted.
        session.now < _EXPIRES_AT,
        *(MESSAGE.c[name] == text for name, text in (filters or {}).items()),
    ]
    if project_id is not None:
        conditions.append(MESSAGE.c.project_id == project_id)
    if created_since is not None:
        conditions.append(MESSAGE.c.created_at >= created_since)
    if created_before is not None:
        conditions.append(MESSAGE.c.created_at <= created_before)
    pages.check_length(session, page, MESSAGE, conditions, count=False)
    statement = sa.select(MESSAGE).where(*conditions)
    return session.rows(pages.select_page(statement, page, MESSAGE))


def list_about(
    session: Session,
    resource_ids: typing.Collection[str],
    project_id: str | None,
    *,
    most: int,
) -> typing.Sequence[rows.MessageRow]:
    """Return the newest messages about resources, also those that users deleted.

    With None as the project, those of all projects.
    """
    values = {'ids': sorted(resource_ids), 'at': session.now, 'most': most}
    if project_id is None:
        return session.rows(_ABOUT, **values)
    return session.rows(_ABOUT_OF_PROJECT, **values, project=project_id)


def delete_message(session: Session, message_id: str) -> None:
    """Remove a message from the lists; raises MessageNotFound.

    It is kept as long as it would have been, for the page of its resource.
    Processes of the previous release treat it as expired.
    """
    if session.run(_HIDE, message_id=message_id, at=session.now) != 1:
        raise exception.MessageNotFound(message_id=message_id)
