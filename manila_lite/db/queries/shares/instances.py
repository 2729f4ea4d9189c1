"""Share instances: reads for managers, schedulers and views."""

from collections.abc import Collection
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.models import types
from manila_lite.db.session import Session
from manila_lite.states.share_instance import InstanceStatus

INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
EXPORT = shares.ExportLocation.__table__
EXPORT_METADATA = shares.ExportLocationMetadata.__table__
METADATA = shares.ShareMetadata.__table__
ZONE = services.AvailabilityZone.__table__
POOL = services.Pool.__table__
SERVICE = services.Service.__table__
SPEC = types.ShareTypeExtraSpec.__table__
WORK = engine.Work.__table__

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
    SHARE.c.is_public,
    SHARE.c.is_soft_deleted,
    ZONE.c.name.label('availability_zone'),
).select_from(INSTANCE.join(SHARE).outerjoin(ZONE))
_FULL = _ALL.where(INSTANCE.c.id == sa.bindparam('instance_id'))
_WITH_METADATA = _FULL.add_columns(
    METADATA.c.key.label('metadata_key'),
    METADATA.c.value.label('metadata_value'),
).outerjoin(METADATA, METADATA.c.share_id == SHARE.c.id)
_KEPT_WITH_METADATA = _WITH_METADATA.with_for_update(read=True, of=INSTANCE)
_EXPORTS = (
    sa.select(EXPORT)
    .where(EXPORT.c.share_instance_id == sa.bindparam('of_instance'))
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_SOME = _ALL.where(
    INSTANCE.c.id.in_(sa.bindparam('ids', expanding=True))
).order_by(INSTANCE.c.id)
_METADATA_OF_SOME = sa.select(METADATA).where(
    METADATA.c.share_id.in_(sa.bindparam('ids', expanding=True))
)
_EXPORTS_OF_SOME = (
    sa.select(EXPORT)
    .where(EXPORT.c.share_instance_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_PLACE = (
    sa.update(INSTANCE)
    .where(
        INSTANCE.c.id == sa.bindparam('instance_id'),
        INSTANCE.c.status == 'creating',
        INSTANCE.c.host.is_(None),
    )
    .values(
        host=sa.bindparam('new_host'),
        availability_zone_id=sa.select(ZONE.c.id)
        .where(ZONE.c.name == sa.bindparam('new_zone'))
        .scalar_subquery(),
        updated_at=sa.bindparam('now'),
    )
)
_PROGRESS = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .values(
        progress=sa.bindparam('new_progress'), updated_at=sa.bindparam('now')
    )
)
_DROP_EXPORTS = sa.delete(EXPORT).where(
    EXPORT.c.share_instance_id == sa.bindparam('of_instance')
)
_EXPORTED = (
    sa.select(INSTANCE.c.id)
    .select_from(EXPORT.join(INSTANCE))
    .where(
        EXPORT.c.path == sa.bindparam('of_path'),
        sa.func.substr(INSTANCE.c.host, 1, sa.bindparam('length'))
        == sa.bindparam('prefix'),
    )
    .limit(1)
)
_HELD = _EXPORTED.where(
    INSTANCE.c.id != sa.bindparam('but'),
    INSTANCE.c.status.not_in(
        [InstanceStatus.MANAGE_STARTING, InstanceStatus.MANAGE_ERROR]
    ),
)
_HOSTS_OF = sa.select(INSTANCE.c.share_id, INSTANCE.c.host).where(
    INSTANCE.c.share_id.in_(sa.bindparam('share_ids', expanding=True))
)
_PAGE = (
    sa.select(INSTANCE.c.id, INSTANCE.c.status)
    .where(
        sa.func.substr(INSTANCE.c.host, 1, sa.bindparam('length'))
        == sa.bindparam('prefix'),
        INSTANCE.c.status.in_(sa.bindparam('statuses', expanding=True)),
        INSTANCE.c.id > sa.bindparam('after'),
    )
    .order_by(INSTANCE.c.id)
    .limit(sa.bindparam('page_size'))
)
_IN_FLIGHT = (
    sa.select(
        INSTANCE.c.id,
        INSTANCE.c.host,
        INSTANCE.c.status,
        INSTANCE.c.share_id,
        SHARE.c.project_id,
        SHARE.c.user_id,
    )
    .select_from(INSTANCE.join(SHARE))
    .where(
        INSTANCE.c.status.in_(sa.bindparam('statuses', expanding=True)),
        ~sa.exists().where(
            WORK.c.resource == 'share_instance',
            WORK.c.resource_id == INSTANCE.c.id,
        ),
        # What is ensured is owed by work of its service.
        sa.or_(
            INSTANCE.c.status != InstanceStatus.ENSURING,
            ~sa.exists().where(
                SERVICE.c.ensuring.is_(True),
                SERVICE.c.host == sa.bindparam('of_service'),
            ),
        ),
    )
    .order_by(INSTANCE.c.id)
)


def get(session: Session, instance_id: str) -> sa.Row:
    """The instance joined with what its share and zone say of it."""
    row = find(session, instance_id)
    if row is None:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    return row


def find(session: Session, instance_id: str) -> sa.Row | None:
    """The same, or None when the instance is gone."""
    return session.one(_FULL, instance_id=instance_id)


def get_with_metadata(
    session: Session, instance_id: str, *, lock_shared: bool = False
) -> tuple[sa.Row, dict[str, str]]:
    """The instance and the metadata of its share, in one statement.

    With `keep` it stays as it is until the transaction ends.
    """
    rows = session.rows(
        _KEPT_WITH_METADATA if lock_shared else _WITH_METADATA,
        instance_id=instance_id,
    )
    if not rows:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    return rows[0], {
        row.metadata_key: row.metadata_value
        for row in rows
        if row.metadata_key is not None
    }


def list_with_details(
    session: Session, ids: Collection[str]
) -> list[tuple[sa.Row, dict[str, str], list[sa.Row]]]:
    """Instances by id, each with its metadata and export locations."""
    rows = session.rows(_SOME, ids=sorted(ids))
    metadata: dict[str, dict[str, str]] = {row.share_id: {} for row in rows}
    for one in session.rows(_METADATA_OF_SOME, ids=sorted(metadata)):
        metadata[one.share_id][one.key] = one.value
    exports: dict[str, list[sa.Row]] = {row.id: [] for row in rows}
    for one in session.rows(_EXPORTS_OF_SOME, ids=sorted(exports)):
        exports[one.share_instance_id].append(one)
    return [(row, metadata[row.share_id], exports[row.id]) for row in rows]


def list_service_page(
    session: Session,
    service_host: str,
    statuses: Collection[str],
    after: str,
    size: int,
) -> typing.Sequence[sa.Row]:
    """Id and status of so many instances of a back end, in order of id.

    It begins with the first after an id; the empty one is before all.
    """
    prefix = f'{service_host}#'
    return session.rows(
        _PAGE,
        prefix=prefix,
        length=len(prefix),
        after=after,
        statuses=sorted(statuses),
        page_size=size,
    )


def list_export_locations(
    session: Session, instance_id: str
) -> typing.Sequence[sa.Row]:
    return session.rows(_EXPORTS, of_instance=instance_id)


def is_path_claimed(session: Session, service_host: str, path: str) -> bool:
    """Whether any instance on a back end has, or claims, this path."""
    return _exports_at(session, _EXPORTED, service_host, path)


def is_path_owned(
    session: Session, service_host: str, path: str, but: str
) -> bool:
    """Whether an instance, another than `but`, has the path for sure.

    What is yet to be taken over, or could not be, has but claimed it.
    """
    return _exports_at(session, _HELD, service_host, path, but=but)


def _exports_at(
    session: Session,
    statement: sa.Select,
    service_host: str,
    path: str,
    **more: str,
) -> bool:
    prefix = f'{service_host}#'
    return (
        session.value(
            statement, of_path=path, prefix=prefix, length=len(prefix), **more
        )
        is not None
    )


def list_hosts(
    session: Session, share_ids: Collection[str]
) -> dict[str, set[str]]:
    """Where the instances of these shares are: hosts by share id."""
    found: dict[str, set[str]] = {}
    for row in session.rows(_HOSTS_OF, share_ids=sorted(share_ids)):
        found.setdefault(row.share_id, set()).update(
            {row.host} if row.host else ()
        )
    return found


def assign_host(
    session: Session, instance_id: str, host: str, zone: str | None
) -> None:
    """Give a new instance its host; only one placement ever passes."""
    if (
        session.run(
            _PLACE,
            instance_id=instance_id,
            new_host=host,
            new_zone=zone,
            now=session.now,
        )
        != 1
    ):
        status = session.value(
            sa.select(INSTANCE.c.status).where(INSTANCE.c.id == instance_id)
        )
        raise exception.InvalidStatus(
            resource='share instance',
            id=instance_id,
            status=status,
            event='place',
            allowed='creating, without a host',
        )


def set_progress(session: Session, instance_id: str, progress: str) -> None:
    """Say how far a back end has come, as it tells it: '50%'."""
    session.run(
        _PROGRESS,
        instance_id=instance_id,
        new_progress=progress,
        now=session.now,
    )


def replace_export_locations(
    session: Session,
    instance_id: str,
    locations: Collection[dict[str, typing.Any]],
) -> None:
    """Make these the export locations of the instance.

    A location is a dict of path, is_admin_only and metadata. One that is
    there already keeps its id and the metadata users gave it.
    """
    known = {
        row.path: row for row in list_export_locations(session, instance_id)
    }
    wanted = {location['path']: location for location in locations}
    gone = [row.id for path, row in known.items() if path not in wanted]
    if gone:
        session.run(sa.delete(EXPORT).where(EXPORT.c.id.in_(gone)))
    insert_export_locations(
        session,
        instance_id,
        [location for path, location in wanted.items() if path not in known],
    )


def insert_export_locations(
    session: Session,
    instance_id: str,
    locations: Collection[dict[str, typing.Any]],
) -> None:
    rows, metadata_rows = [], []
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


def list_without_work(
    session: Session, statuses: Collection[str], service_host: str | None
) -> list[sa.Row]:
    """Instances in these statuses that no work is owed for.

    Of one back end (`host@backend`, its pools included), or with None of
    those that have no host yet.
    """
    rows = session.rows(
        _IN_FLIGHT, statuses=sorted(statuses), of_service=service_host
    )
    return [
        row
        for row in rows
        if (row.host and row.host.partition('#')[0]) == service_host
    ]
