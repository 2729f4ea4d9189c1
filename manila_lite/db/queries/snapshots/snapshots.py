"""Snapshots: the rows that operations act on, and their plain records."""

from collections.abc import Iterable, Mapping
import datetime
import types
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.queries.records import Records
from manila_lite.db.rows import (
    OwnedInstanceRow,
    RankedRow,
    SnapshotInstanceRow,
    SnapshotOnInstanceRow,
    SnapshotParentRow,
    SnapshotTarget,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    GROUP_MEMBER,
    GROUP_SNAPSHOT,
    INSTANCE as SHARE_INSTANCE,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE as INSTANCE,
    SNAPSHOT_METADATA,
    WORK,
)
from manila_lite.states import snapshot_instance as states
from manila_lite.states.share_group import GroupSnapshotStatus
from manila_lite.states.share_replica import UP_TO_DATE, ReplicaState
from manila_lite.states.snapshot_instance import (
    HIDDEN_FROM_TENANTS,
    SNAPSHOT_INSTANCE,
    SnapshotStatus,
)

update = Records[typing.Any](
    SNAPSHOT, exception.ShareSnapshotNotFound, 'snapshot_id'
).update
METADATA = MetadataTable(SNAPSHOT_METADATA, 'share_snapshot_id', SNAPSHOT)

TICK = datetime.timedelta(microseconds=1)

_TARGET = (
    sa.select(
        *columns(
            SnapshotTarget,
            SNAPSHOT,
            SHARE_INSTANCE,
            INSTANCE,
            instance_id=INSTANCE.c.id,
            status=INSTANCE.c.status,
        )
    )
    .select_from(
        SNAPSHOT.outerjoin(INSTANCE).outerjoin(
            SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id
        )
    )
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
    .order_by(INSTANCE.c.id)
)
_OF_SHARE = (
    sa.select(SNAPSHOT.c.created_at)
    .where(SNAPSHOT.c.share_id == SHARE.c.id)
    .correlate(SHARE)
)
_NEWEST_FIRST = (SNAPSHOT.c.created_at.desc(), SNAPSHOT.c.id.desc())
_PARENT = (
    sa.select(
        *columns(
            SnapshotParentRow,
            SHARE,
            SHARE_INSTANCE,
            newest_at=_OF_SHARE.order_by(*_NEWEST_FIRST).limit(1).scalar_subquery(),
            newest_id=_OF_SHARE.with_only_columns(SNAPSHOT.c.id)
            .order_by(*_NEWEST_FIRST)
            .limit(1)
            .scalar_subquery(),
            newest_member_at=sa.select(sa.func.max(GROUP_MEMBER.c.created_at))
            .where(GROUP_MEMBER.c.share_id == SHARE.c.id)
            .correlate(SHARE)
            .scalar_subquery(),
            id=SHARE_INSTANCE.c.id,
        )
    )
    .select_from(SHARE_INSTANCE.join(SHARE))
    .where(SHARE_INSTANCE.c.id == sa.bindparam('instance_id'))
)
_FULL = sa.select(
    INSTANCE,
    SNAPSHOT.c.project_id,
    SNAPSHOT.c.user_id,
    SNAPSHOT.c.share_id,
    SNAPSHOT.c.size,
    SNAPSHOT.c.share_size,
    SHARE_INSTANCE.c.host,
    SHARE_INSTANCE.c.share_type_id,
    SHARE_INSTANCE.c.replica_state,
    SHARE_INSTANCE.c.status.label('share_status'),
    SHARE.c.mount_snapshot_support,
).select_from(
    INSTANCE.join(SNAPSHOT)
    .join(SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id)
    .join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id)
)
_ONE = _FULL.where(INSTANCE.c.id == sa.bindparam('instance_id'))
_ONE_ON_SHARE_INSTANCE = _FULL.where(
    INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot'),
    INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'),
)
_ON_SHARE_INSTANCE = _FULL.where(
    INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance')
).order_by(INSTANCE.c.id)
_OF_SNAPSHOT = _FULL.where(
    INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot')
).order_by(INSTANCE.c.id)
_ONE_WITH_METADATA = _ONE.add_columns(
    SNAPSHOT_METADATA.c.key.label('metadata_key'),
    SNAPSHOT_METADATA.c.value.label('metadata_value'),
).outerjoin(SNAPSHOT_METADATA, SNAPSHOT_METADATA.c.share_snapshot_id == SNAPSHOT.c.id)
_ONE_WITH_METADATA_LOCKED = _ONE_WITH_METADATA.with_for_update(read=True, of=INSTANCE)
_LOCK_SHARE_INSTANCE = (
    sa.select(SHARE_INSTANCE.c.status)
    .where(SHARE_INSTANCE.c.id == sa.bindparam('instance_id'))
    .with_for_update()
)
IN_PROGRESS = sa.or_(
    sa.exists().where(
        INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'),
        INSTANCE.c.status == SnapshotStatus.CREATING,
        INSTANCE.c.id != sa.bindparam('except_id'),
    ),
    sa.exists().where(
        GROUP_MEMBER.c.share_instance_id == sa.bindparam('of_share_instance'),
        GROUP_MEMBER.c.share_group_snapshot_id == GROUP_SNAPSHOT.c.id,
        GROUP_SNAPSHOT.c.status == GroupSnapshotStatus.CREATING,
        GROUP_SNAPSHOT.c.id != sa.bindparam('except_id'),
    ),
)
"""Whether a snapshot other than `except_id` of a share instance is creating."""
_IS_IN_PROGRESS = sa.select(IN_PROGRESS)
_IDS: sa.BindParameter[str] = sa.bindparam('ids', expanding=True)
_LOCK_MANY = (
    sa.select(SHARE_INSTANCE.c.id)
    .where(SHARE_INSTANCE.c.id.in_(_IDS))
    .order_by(SHARE_INSTANCE.c.id)
    .with_for_update()
)
_MANY_IN_PROGRESS = (
    sa.select(INSTANCE.c.share_instance_id.label('id'))
    .where(
        INSTANCE.c.share_instance_id.in_(_IDS),
        INSTANCE.c.status == SnapshotStatus.CREATING,
        INSTANCE.c.id != sa.bindparam('except_id'),
    )
    .union_all(
        sa.select(GROUP_MEMBER.c.share_instance_id)
        .join(
            GROUP_SNAPSHOT,
            GROUP_SNAPSHOT.c.id == GROUP_MEMBER.c.share_group_snapshot_id,
        )
        .where(
            GROUP_MEMBER.c.share_instance_id.in_(_IDS),
            GROUP_SNAPSHOT.c.status == GroupSnapshotStatus.CREATING,
            GROUP_SNAPSHOT.c.id != sa.bindparam('except_id'),
        )
    )
)
_ANY_ON_SHARE_INSTANCE = sa.select(
    sa.or_(
        sa.exists().where(
            INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance')
        ),
        sa.exists().where(
            GROUP_MEMBER.c.share_instance_id == sa.bindparam('of_share_instance')
        ),
    )
)
_IN_DEFERRED_DELETION = _ON_SHARE_INSTANCE.where(
    INSTANCE.c.status.in_(sorted(HIDDEN_FROM_TENANTS))
)
_DELETING_FAILED = (
    sa.select(INSTANCE.c.id, SNAPSHOT.c.project_id, SNAPSHOT.c.user_id)
    .select_from(INSTANCE.join(SNAPSHOT).join(SHARE_INSTANCE))
    .where(
        SHARE_INSTANCE.c.service_host == sa.bindparam('of_service'),
        INSTANCE.c.status == SnapshotStatus.ERROR_DEFERRED_DELETING,
        INSTANCE.c.id > sa.bindparam('after'),
        ~sa.exists().where(
            WORK.c.resource == SNAPSHOT_INSTANCE.resource,
            WORK.c.resource_id == INSTANCE.c.id,
        ),
    )
    .order_by(INSTANCE.c.id)
    .limit(sa.bindparam('most'))
)
_IDS_ON_SHARE_INSTANCES = (
    sa.select(INSTANCE.c.id)
    .where(INSTANCE.c.share_instance_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(INSTANCE.c.id)
)
_RESIZE = (
    sa.update(SNAPSHOT)
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
    .values(size=sa.bindparam('new_size'), updated_at=sa.bindparam('now'))
)
_SET_LOCATION = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .values(provider_location=sa.bindparam('new_location'))
)
_SUM_UP = sa.select(
    sa.func.count(), sa.func.coalesce(sa.func.sum(SNAPSHOT.c.size), 0)
).where(SNAPSHOT.c.share_id == sa.bindparam('of_share'))
_INSERT = sa.insert(SNAPSHOT)
_METADATA_OF = sa.select(
    SNAPSHOT_METADATA.c.share_snapshot_id,
    SNAPSHOT_METADATA.c.key,
    SNAPSHOT_METADATA.c.value,
).where(SNAPSHOT_METADATA.c.share_snapshot_id.in_(_IDS))
_REMOVE = sa.delete(SNAPSHOT).where(
    SNAPSHOT.c.id == sa.bindparam('snapshot_id'),
    ~sa.exists().where(INSTANCE.c.snapshot_id == SNAPSHOT.c.id),
)
_LOCK = (
    sa.select(SNAPSHOT.c.id)
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
    .with_for_update()
)


def get_target(session: Session, snapshot_id: str) -> SnapshotTarget:
    """Return what an action needs to authorize and check a snapshot.

    The status is the one that the snapshot is shown with. Of several
    instances the row has the one on the active replica, if there is one.
    Raises ShareSnapshotNotFound.
    """
    found = session.rows(_TARGET, snapshot_id=snapshot_id)
    if not found:
        raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)
    status = displayed_status(found)
    row = next(
        (row for row in found if row.replica_state == ReplicaState.ACTIVE), None
    ) or min(found, key=instance_rank)
    if row.status == status:
        return row
    return types.SimpleNamespace(**{**row._mapping, 'status': status})


def displayed_status(rows: Iterable[RankedRow]) -> str | None:
    """Return the status that a snapshot with such instances is shown with.

    Instances on replicas that are not up to date are ignored unless there
    are no others. Rows have `status` and `replica_state`.
    """
    found = list(rows)
    counting = [row for row in found if row.replica_state in UP_TO_DATE]
    return states.aggregate_status(row.status for row in counting or found)


def instance_rank(instance: RankedRow) -> tuple[bool, int]:
    """Return the rank of an instance; the lowest one is displayed."""
    return (
        instance.replica_state not in UP_TO_DATE,
        states.display_rank(instance.status),
    )


def list_instances(
    session: Session, snapshot_id: str
) -> typing.Sequence[SnapshotTarget]:
    """Return a target row for every instance, each with its own status."""
    return [
        row for row in session.rows(_TARGET, snapshot_id=snapshot_id) if row.instance_id
    ]


def get_parent(session: Session, share_instance_id: str) -> SnapshotParentRow:
    """Return a share instance as the parent of its next snapshot.

    The row also has `newest_at` and `newest_id` of its newest snapshot.
    They are reliable while the caller holds the share instance by a move:
    every insert of a snapshot moves its share instance first.
    """
    row = session.first(_PARENT, instance_id=share_instance_id)
    if row is None:
        raise exception.ShareInstanceNotFound(share_instance_id=share_instance_id)
    return row


def next_created_at(session: Session, parent: SnapshotParentRow) -> datetime.datetime:
    """Return `created_at` of the next snapshot, later than all others.

    The clocks of services may disagree, but the order of snapshots must
    be kept, also of those of its share group.
    """
    earlier = (parent.newest_at, parent.newest_member_at)
    return max([session.now, *(at + TICK for at in earlier if at is not None)])


def insert(
    session: Session, values: Mapping[str, object], metadata: Mapping[str, str]
) -> None:
    session.run(_INSERT, **values)
    METADATA.insert(session, str(values['id']), metadata)


def remove(session: Session, snapshot_id: str) -> bool:
    """Delete a snapshot unless it has instances; return whether it was deleted."""
    return session.run(_REMOVE, snapshot_id=snapshot_id) == 1


def lock(session: Session, snapshot_id: str) -> None:
    """Lock a snapshot, so that others wait to remove its instances."""
    session.value(_LOCK, snapshot_id=snapshot_id)


# Rows that work acts on


def find(session: Session, snapshot_instance_id: str) -> SnapshotInstanceRow | None:
    """Return an instance joined with its snapshot and share, or None."""
    return session.first(_ONE, instance_id=snapshot_instance_id)


def get_with_metadata(
    session: Session, snapshot_instance_id: str, *, lock_shared: bool = False
) -> tuple[SnapshotInstanceRow, dict[str, str]]:
    """Return an instance and the metadata of its snapshot, at once.

    With `lock_shared` the instance is locked (shared). Raises
    SnapshotInstanceNotFound.
    """
    rows = session.rows(
        _ONE_WITH_METADATA_LOCKED if lock_shared else _ONE_WITH_METADATA,
        instance_id=snapshot_instance_id,
    )
    if not rows:
        raise exception.SnapshotInstanceNotFound(
            snapshot_instance_id=snapshot_instance_id
        )
    return rows[0], {
        row.metadata_key: row.metadata_value
        for row in rows
        if row.metadata_key is not None
    }


def list_metadata(
    session: Session, snapshot_ids: typing.Collection[str]
) -> dict[str, dict[str, str]]:
    """Return the metadata of snapshots by their ids."""
    found: dict[str, dict[str, str]] = {id: {} for id in snapshot_ids}
    if found:
        for row in session.rows(_METADATA_OF, ids=sorted(found)):
            found[row.share_snapshot_id][row.key] = row.value
    return found


def list_for_snapshot(
    session: Session, snapshot_id: str
) -> typing.Sequence[SnapshotOnInstanceRow]:
    """Return all instances of a snapshot as rows of `find`, by id."""
    return session.rows(_OF_SNAPSHOT, of_snapshot=snapshot_id)


def find_on_share_instance(
    session: Session, snapshot_id: str, share_instance_id: str
) -> SnapshotInstanceRow | None:
    """Return the instance of a snapshot on a share instance, or None."""
    return session.first(
        _ONE_ON_SHARE_INSTANCE,
        of_snapshot=snapshot_id,
        of_share_instance=share_instance_id,
    )


def list_on_share_instance(
    session: Session, share_instance_id: str
) -> typing.Sequence[SnapshotInstanceRow]:
    """Return all snapshot instances of a share instance, by id."""
    return session.rows(_ON_SHARE_INSTANCE, of_share_instance=share_instance_id)


def lock_share_instance(session: Session, share_instance_id: str) -> str | None:
    """Lock a share instance; return its status, or None if it is gone."""
    return session.value(_LOCK_SHARE_INSTANCE, instance_id=share_instance_id)


def is_snapshot_in_progress(
    session: Session, share_instance_id: str, except_id: str = ''
) -> bool:
    """Whether another snapshot of the share instance is being created."""
    return bool(
        session.value(
            _IS_IN_PROGRESS, of_share_instance=share_instance_id, except_id=except_id
        )
    )


def lock_share_instances(session: Session, ids: typing.Collection[str]) -> list[str]:
    """Lock share instances; return the ids of those that exist."""
    return [row.id for row in session.rows(_LOCK_MANY, ids=sorted(ids))]


def list_in_progress(
    session: Session, share_instance_ids: typing.Collection[str], except_id: str = ''
) -> set[str]:
    """Return the share instances of which a snapshot is being created."""
    values = {'ids': sorted(share_instance_ids), 'except_id': except_id}
    return {row.id for row in session.rows(_MANY_IN_PROGRESS, **values)}


def has_snapshots(session: Session, share_instance_id: str) -> bool:
    """Whether it has any snapshot, also as one of its group."""
    return bool(
        session.value(_ANY_ON_SHARE_INSTANCE, of_share_instance=share_instance_id)
    )


def list_in_deferred_deletion(
    session: Session, share_instance_id: str
) -> typing.Sequence[SnapshotInstanceRow]:
    """Return those snapshots of a share instance, as rows of `find`."""
    return session.rows(_IN_DEFERRED_DELETION, of_share_instance=share_instance_id)


def list_failed_deferred_deletions(
    session: Session, service_host: str, after: str, most: int
) -> typing.Sequence[OwnedInstanceRow]:
    """Return deferred deletions that failed and have no work, by id.

    They are up to `most` of one back end, after the id `after`.
    """
    return session.rows(
        _DELETING_FAILED, of_service=service_host, after=after, most=most
    )


def list_ids_on_share_instances(
    session: Session, ids: typing.Collection[str]
) -> list[str]:
    """Return the ids of the snapshot instances of some share instances."""
    return [row.id for row in session.rows(_IDS_ON_SHARE_INSTANCES, ids=sorted(ids))]


def sum_up(session: Session, share_id: str) -> tuple[int, int]:
    """Return the number of snapshots of a share, and their size in GiB."""
    count, gigabytes = session.rows(_SUM_UP, of_share=share_id)[0]
    return count, int(gigabytes)


def resize(session: Session, snapshot_id: str, size: int) -> None:
    session.run(_RESIZE, snapshot_id=snapshot_id, new_size=size, now=session.now)


def set_provider_location(
    session: Session, snapshot_instance_id: str, provider_location: str | None
) -> None:
    """Store the provider location of an instance, if there is one."""
    if provider_location:
        session.run(
            _SET_LOCATION,
            instance_id=snapshot_instance_id,
            new_location=provider_location,
        )
