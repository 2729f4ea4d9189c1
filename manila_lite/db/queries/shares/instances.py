"""Share instances: the rows that managers and schedulers act on."""

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import (
    DetailedInstance,
    ExportLocationRow,
    IdStatusRow,
    InstanceRow,
    NewExportLocation,
    OwnedInstanceRow,
    PathClaimRow,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    EXPORT,
    EXPORT_METADATA,
    INSTANCE,
    SHARE,
    SHARE_METADATA as METADATA,
    SPEC,
    WORK,
    ZONE,
)
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus

_ALL = sa.select(
    INSTANCE,
    SHARE.c.project_id,
    SHARE.c.user_id,
    SHARE.c.size,
    SHARE.c.share_proto,
    SHARE.c.display_name,
    SHARE.c.snapshot_id,
    SHARE.c.replication_type,
    SHARE.c.share_group_id,
    SHARE.c.source_share_group_snapshot_member_id,
    SHARE.c.is_public,
    SHARE.c.is_soft_deleted,
    SHARE.c.task_state,
    ZONE.c.name.label('availability_zone'),
).select_from(INSTANCE.join(SHARE).outerjoin(ZONE))
_FULL = _ALL.where(INSTANCE.c.id == sa.bindparam('instance_id'))
_WITH_METADATA = _FULL.add_columns(
    METADATA.c.key.label('metadata_key'), METADATA.c.value.label('metadata_value')
).outerjoin(METADATA, METADATA.c.share_id == SHARE.c.id)
_WITH_SPECS = _FULL.add_columns(SPEC.c.spec_key, SPEC.c.spec_value).outerjoin(
    SPEC, SPEC.c.share_type_id == INSTANCE.c.share_type_id
)
_SET_SHARE_TYPE = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('of_instance'))
    .values(share_type_id=sa.bindparam('new_type'))
)
_WITH_METADATA_LOCKED = _WITH_METADATA.with_for_update(read=True, of=INSTANCE)
# Each export location once for each key of the metadata: both are few.
_EXPORT_COLUMNS = tuple(column.label(f'export_{column.name}') for column in EXPORT.c)
_WITH_DETAILS = (
    _WITH_METADATA.add_columns(*_EXPORT_COLUMNS)
    .outerjoin(EXPORT, EXPORT.c.share_instance_id == INSTANCE.c.id)
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_WITH_DETAILS_LOCKED = _WITH_DETAILS.with_for_update(read=True, of=INSTANCE)
_namedtuple: Callable[..., typing.Any] = collections.namedtuple
_Export = _namedtuple('_Export', EXPORT.c.keys())
_EXPORTS = (
    sa.select(EXPORT)
    .where(EXPORT.c.share_instance_id == sa.bindparam('of_instance'))
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_BY_IDS = _ALL.where(INSTANCE.c.id.in_(sa.bindparam('ids', expanding=True))).order_by(
    INSTANCE.c.id
)
_METADATA_BY_IDS = sa.select(METADATA).where(
    METADATA.c.share_id.in_(sa.bindparam('ids', expanding=True))
)
_EXPORTS_BY_IDS = (
    sa.select(EXPORT)
    .where(EXPORT.c.share_instance_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_RELEASE_HOST = (
    sa.update(INSTANCE)
    .where(
        INSTANCE.c.id == sa.bindparam('instance_id'),
        INSTANCE.c.status == InstanceStatus.CREATING,
        INSTANCE.c.host == sa.bindparam('old_host'),
    )
    .values(
        host=None,
        availability_zone_id=sa.select(ZONE.c.id)
        .where(ZONE.c.name == sa.bindparam('new_zone'))
        .scalar_subquery(),
        share_server_id=None,
        scheduled_at=None,
        updated_at=sa.bindparam('now'),
    )
)
_BEGIN_REMOVAL = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .values(removal_began_at=sa.bindparam('now'))
)
_FORGET_REMOVAL = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .values(removal_began_at=None)
)
_SET_PROGRESS = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .values(progress=sa.bindparam('new_progress'), updated_at=sa.bindparam('now'))
)
WITHOUT_DATA = (
    InstanceStatus.CREATING,
    InstanceStatus.CREATING_FROM_SNAPSHOT,
    InstanceStatus.ERROR,
    InstanceStatus.DELETING,
    InstanceStatus.ERROR_DELETING,
    InstanceStatus.DEFERRED_DELETING,
    InstanceStatus.ERROR_DEFERRED_DELETING,
    InstanceStatus.MANAGE_STARTING,
    InstanceStatus.MANAGE_ERROR,
    InstanceStatus.MIGRATING_TO,
)
"""Statuses of which some data may exist, but no user relies on it."""

_WITH_DATA = (
    sa.select(INSTANCE.c.id)
    .where(
        INSTANCE.c.service_host == sa.bindparam('of_service'),
        INSTANCE.c.status.not_in(WITHOUT_DATA),
    )
    .limit(1)
)
_HAS_PATH = (
    EXPORT.c.path == sa.bindparam('of_path'),
    INSTANCE.c.service_host == sa.bindparam('of_service'),
)
_PATH_CLAIMS = (
    sa.select(*columns(PathClaimRow, INSTANCE, SHARE))
    .select_from(EXPORT.join(INSTANCE).join(SHARE))
    .where(*_HAS_PATH)
    .limit(2)
)
_PATH_OWNED = (
    sa.select(INSTANCE.c.id)
    .select_from(EXPORT.join(INSTANCE))
    .where(
        *_HAS_PATH,
        INSTANCE.c.id != sa.bindparam('except_id'),
        INSTANCE.c.status.not_in(
            [InstanceStatus.MANAGE_STARTING, InstanceStatus.MANAGE_ERROR]
        ),
    )
    .limit(1)
)
# Types without this have no shares with mount point names.
_LOCK_MOUNT_POINTS = (
    sa.select(SPEC.c.share_type_id)
    .where(SPEC.c.spec_key == 'mount_point_name_support')
    .order_by(SPEC.c.share_type_id)
    .with_for_update()
)
_MOUNT_POINT_USED = (
    sa.select(INSTANCE.c.id)
    .where(
        INSTANCE.c.mount_point_name == sa.bindparam('of_mount_point'),
        INSTANCE.c.share_id != sa.bindparam('except_id'),
    )
    .limit(1)
)
_HOSTS_OF = sa.select(INSTANCE.c.share_id, INSTANCE.c.host).where(
    INSTANCE.c.share_id.in_(sa.bindparam('share_ids', expanding=True))
)
_DELETING_FAILED = (
    sa.select(INSTANCE.c.id, SHARE.c.project_id, SHARE.c.user_id)
    .select_from(INSTANCE.join(SHARE))
    .where(
        INSTANCE.c.service_host == sa.bindparam('of_service'),
        INSTANCE.c.status == InstanceStatus.ERROR_DEFERRED_DELETING,
        INSTANCE.c.id > sa.bindparam('after'),
        ~sa.exists().where(
            WORK.c.resource == SHARE_INSTANCE.resource,
            WORK.c.resource_id == INSTANCE.c.id,
        ),
    )
    .order_by(INSTANCE.c.id)
    .limit(sa.bindparam('most'))
)


def get(session: Session, instance_id: str) -> InstanceRow:
    """Return an instance joined with columns of its share and zone."""
    row = find(session, instance_id)
    if row is None:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    return row


def set_share_type(
    session: Session, instance_id: str, share_type_id: str | None
) -> None:
    """Give another share type to an instance, if it still exists."""
    session.run(_SET_SHARE_TYPE, of_instance=instance_id, new_type=share_type_id)


def find(session: Session, instance_id: str) -> InstanceRow | None:
    """Like `get`, but return None if the instance is gone."""
    return session.first(_FULL, instance_id=instance_id)


def get_with_extra_specs(
    session: Session, instance_id: str
) -> tuple[InstanceRow, dict[str, str]]:
    """Return an instance and the extra specs of its type, in one statement."""
    rows = session.rows(_WITH_SPECS, instance_id=instance_id)
    if not rows:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    return rows[0], {
        row.spec_key: row.spec_value for row in rows if row.spec_key is not None
    }


def get_with_metadata(
    session: Session, instance_id: str, *, lock_shared: bool = False
) -> tuple[InstanceRow, dict[str, str]]:
    """Return an instance and the metadata of its share, in one statement.

    With `lock_shared` the instance is locked (shared).
    """
    rows = session.rows(
        _WITH_METADATA_LOCKED if lock_shared else _WITH_METADATA,
        instance_id=instance_id,
    )
    if not rows:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    return rows[0], _metadata_in(rows)


def get_with_details(
    session: Session, instance_id: str, *, lock_shared: bool = False
) -> DetailedInstance:
    """Return the same and the export locations, in one statement."""
    rows = session.rows(
        _WITH_DETAILS_LOCKED if lock_shared else _WITH_DETAILS, instance_id=instance_id
    )
    if not rows:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    exports = {
        row.export_id: _Export(*row[-len(_EXPORT_COLUMNS) :])
        for row in rows
        if row.export_id is not None
    }
    return rows[0], _metadata_in(rows), list(exports.values())


def _metadata_in(rows: Sequence[typing.Any]) -> dict[str, str]:
    return {
        row.metadata_key: row.metadata_value
        for row in rows
        if row.metadata_key is not None
    }


def list_with_details(session: Session, ids: Collection[str]) -> list[DetailedInstance]:
    """Return instances, each with metadata and export locations."""
    rows = session.rows(_BY_IDS, ids=sorted(ids))
    metadata: dict[str, dict[str, str]] = {row.share_id: {} for row in rows}
    for one in session.rows(_METADATA_BY_IDS, ids=sorted(metadata)):
        metadata[one.share_id][one.key] = one.value
    exports: dict[str, list[ExportLocationRow]] = {row.id: [] for row in rows}
    for one in session.rows(_EXPORTS_BY_IDS, ids=sorted(exports)):
        exports[one.share_instance_id].append(one)
    return [(row, metadata[row.share_id], exports[row.id]) for row in rows]


@functools.cache
def _page(statuses: tuple[str, ...]) -> sa.CompoundSelect:
    """Return the selection of a page; of each status by an index."""
    parts = (
        sa.select(INSTANCE.c.id, INSTANCE.c.status)
        .where(
            INSTANCE.c.service_host == sa.bindparam('of_service'),
            INSTANCE.c.status == status,
            INSTANCE.c.id > sa.bindparam('after'),
        )
        .order_by(INSTANCE.c.id)
        .limit(sa.bindparam('page_size'))
        .subquery()
        for status in statuses
    )
    return (
        sa.union_all(*(sa.select(part.c.id, part.c.status) for part in parts))
        .order_by('id')
        .limit(sa.bindparam('page_size'))
    )


def list_service_page(
    session: Session,
    service_host: str,
    statuses: Collection[str],
    after: str,
    size: int,
) -> typing.Sequence[IdStatusRow]:
    """Return id and status of up to `size` instances, ordered by id.

    The page starts after the id `after`; the empty one precedes all.
    """
    return session.rows(
        _page(tuple(sorted(statuses))),
        of_service=service_host,
        after=after,
        page_size=size,
    )


def list_export_locations(
    session: Session, instance_id: str
) -> typing.Sequence[ExportLocationRow]:
    return session.rows(_EXPORTS, of_instance=instance_id)


def list_path_claims(
    session: Session, service_host: str, path: str
) -> Sequence[PathClaimRow]:
    """Return instances on a back end that have or claim a path; two at most.

    They are one if none has been adopted twice.
    """
    return session.rows(_PATH_CLAIMS, of_path=path, of_service=service_host)


def is_mount_point_used(session: Session, name: str, except_id: str = '') -> bool:
    """Whether another share has this mount point name, with its prefix.

    A concurrent transaction that asks this waits for the end of this one.
    """
    session.rows(_LOCK_MOUNT_POINTS)
    found = session.value(_MOUNT_POINT_USED, of_mount_point=name, except_id=except_id)
    return found is not None


def is_path_owned(
    session: Session, service_host: str, path: str, except_id: str
) -> bool:
    """Whether another instance really has the path.

    Instances that are still to be managed, or could not be, only claim it.
    """
    return (
        session.value(
            _PATH_OWNED, of_path=path, of_service=service_host, except_id=except_id
        )
        is not None
    )


def list_hosts(session: Session, share_ids: Collection[str]) -> dict[str, set[str]]:
    """Return the hosts of the instances of these shares, by share id."""
    found: dict[str, set[str]] = {}
    for row in session.rows(_HOSTS_OF, share_ids=sorted(share_ids)):
        found.setdefault(row.share_id, set()).update({row.host} if row.host else ())
    return found


def release_host(
    session: Session, instance_id: str, host: str, zone: str | None
) -> bool:
    """Take a new instance off its host and share server.

    `zone` is the one it was requested in, if any. Returns False if it is
    no longer being created there.
    """
    return bool(
        session.run(
            _RELEASE_HOST,
            instance_id=instance_id,
            old_host=host,
            new_zone=zone,
            now=session.now,
        )
    )


def set_progress(session: Session, instance_id: str, progress: str) -> None:
    """Store the progress that a back end reports, such as '50%'."""
    session.run(
        _SET_PROGRESS, instance_id=instance_id, new_progress=progress, now=session.now
    )


def replace_export_locations(
    session: Session, instance_id: str, locations: Collection[NewExportLocation]
) -> None:
    """Replace the export locations of an instance.

    A location is a dict of path, is_admin_only and metadata. A location
    whose path exists already keeps its id and the metadata of users; what
    the back end reports about it is updated.
    """
    known = {row.path: row for row in list_export_locations(session, instance_id)}
    wanted = {location['path']: location for location in locations}
    gone = [row.id for path, row in known.items() if path not in wanted]
    if gone:
        session.run(sa.delete(EXPORT).where(EXPORT.c.id.in_(gone)))
    insert_export_locations(
        session,
        instance_id,
        [location for path, location in wanted.items() if path not in known],
    )
    kept = [
        (known[path], location) for path, location in wanted.items() if path in known
    ]
    for flag in (False, True):
        changed = [
            row.id
            for row, location in kept
            if location['is_admin_only'] is flag is not row.is_admin_only
        ]
        if changed:
            session.run(
                sa.update(EXPORT)
                .where(EXPORT.c.id.in_(changed))
                .values(is_admin_only=flag, updated_at=session.now)
            )
    _merge_export_metadata(
        session,
        {
            (row.id, key): value
            for row, location in kept
            for key, value in location['metadata'].items()
        },
    )


def _merge_export_metadata(
    session: Session, values: Mapping[tuple[str, str], str]
) -> None:
    """Set metadata by location and key, and leave the other keys."""
    if not values:
        return
    stored = {
        (row.export_location_id, row.key): row.value
        for row in session.rows(
            sa.select(EXPORT_METADATA).where(
                EXPORT_METADATA.c.export_location_id.in_(
                    sorted({id for id, _ in values})
                )
            )
        )
    }
    changed = {
        what: value for what, value in values.items() if stored.get(what) != value
    }
    if changed.keys() & stored.keys():
        session.run(
            sa.delete(EXPORT_METADATA).where(
                sa.or_(
                    *(
                        sa.and_(
                            EXPORT_METADATA.c.export_location_id == id,
                            EXPORT_METADATA.c.key == key,
                        )
                        for id, key in changed
                    )
                )
            )
        )
    session.run_many(
        sa.insert(EXPORT_METADATA),
        [
            {'export_location_id': id, 'key': key, 'value': value}
            for (id, key), value in changed.items()
        ],
    )


def insert_export_locations(
    session: Session, instance_id: str, locations: Collection[NewExportLocation]
) -> None:
    rows = []
    metadata_rows: list[dict[str, object]] = []
    for location in locations:
        export_id = session.new_id()
        rows.append(
            {
                'id': export_id,
                'share_instance_id': instance_id,
                'path': location['path'],
                'is_admin_only': location['is_admin_only'],
                'created_at': session.now,
                'updated_at': session.now,
            }
        )
        metadata_rows += [
            {'export_location_id': export_id, 'key': key, 'value': value}
            for key, value in location['metadata'].items()
        ]
    session.run_many(sa.insert(EXPORT), rows)
    session.run_many(sa.insert(EXPORT_METADATA), metadata_rows)


def list_failed_deferred_deletions(
    session: Session, service_host: str, after: str, most: int
) -> typing.Sequence[OwnedInstanceRow]:
    """Return deferred deletions that failed and have no work, by id.

    They are up to `most` of one back end, after the id `after`.
    """
    return session.rows(
        _DELETING_FAILED, of_service=service_host, after=after, most=most
    )


def begin_removal(session: Session, instance_id: str) -> None:
    """Record that a driver that has the share is asked to remove it."""
    session.run(_BEGIN_REMOVAL, instance_id=instance_id, now=session.now)


def forget_removal(session: Session, instance_id: str) -> None:
    """Record that a share is in use again, so it must be on its back end."""
    session.run(
        _FORGET_REMOVAL.where(INSTANCE.c.removal_began_at.is_not(None)),
        instance_id=instance_id,
    )


def has_data_on_service(session: Session, service_host: str) -> bool:
    """Whether a back end has shares that users rely on."""
    return session.value(_WITH_DATA, of_service=service_host) is not None
