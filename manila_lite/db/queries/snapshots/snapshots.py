"""Snapshots: the rows that operations decide on, and their records."""

from collections.abc import Iterable, Mapping
import datetime
import types
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import transitions
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.session import Session
from manila_lite.states import snapshot_instance as states
from manila_lite.states.share_replica import UP_TO_DATE
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus

SNAPSHOT = snapshots.Snapshot.__table__
INSTANCE = snapshots.SnapshotInstance.__table__
SHARE = shares.Share.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__
METADATA = MetadataTable(
    snapshots.SnapshotMetadata.__table__, 'share_snapshot_id', SNAPSHOT
)

_TICK = datetime.timedelta(microseconds=1)

_TARGET = (
    sa.select(
        SNAPSHOT.c.id,
        SNAPSHOT.c.project_id,
        SNAPSHOT.c.user_id,
        SNAPSHOT.c.share_id,
        SNAPSHOT.c.size,
        SNAPSHOT.c.share_size,
        INSTANCE.c.id.label('instance_id'),
        INSTANCE.c.status,
        INSTANCE.c.share_instance_id,
        SHARE_INSTANCE.c.host,
        SHARE_INSTANCE.c.share_server_id,
        SHARE_INSTANCE.c.replica_state,
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
        SHARE_INSTANCE.c.id,
        SHARE_INSTANCE.c.share_id,
        SHARE_INSTANCE.c.host,
        SHARE_INSTANCE.c.share_type_id,
        SHARE_INSTANCE.c.access_rules_status,
        SHARE.c.project_id,
        SHARE.c.user_id,
        SHARE.c.size,
        SHARE.c.share_proto,
        SHARE.c.replication_type,
        SHARE.c.is_soft_deleted,
        _OF_SHARE.order_by(*_NEWEST_FIRST)
        .limit(1)
        .scalar_subquery()
        .label('newest_at'),
        _OF_SHARE.with_only_columns(SNAPSHOT.c.id)
        .order_by(*_NEWEST_FIRST)
        .limit(1)
        .scalar_subquery()
        .label('newest_id'),
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
_OF_PARENT = _FULL.where(
    INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot'),
    INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'),
)
_ALL_OF_PARENT = _FULL.where(
    INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance')
).order_by(INSTANCE.c.id)
_OF_SNAPSHOT = _FULL.where(
    INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot')
).order_by(INSTANCE.c.id)
_TAGS = snapshots.SnapshotMetadata.__table__
_ONE_WITH_METADATA = _ONE.add_columns(
    _TAGS.c.key.label('metadata_key'), _TAGS.c.value.label('metadata_value')
).outerjoin(_TAGS, _TAGS.c.share_snapshot_id == SNAPSHOT.c.id)
_KEPT_WITH_METADATA = _ONE_WITH_METADATA.with_for_update(
    read=True, of=INSTANCE
)
_HOLD = (
    sa.select(SHARE_INSTANCE.c.status)
    .where(SHARE_INSTANCE.c.id == sa.bindparam('instance_id'))
    .with_for_update()
)
_IS_TAKEN = sa.select(
    sa.exists().where(
        INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'),
        INSTANCE.c.status == SnapshotStatus.CREATING,
        INSTANCE.c.id != sa.bindparam('but'),
    )
)
_A_CHILD = (
    sa.select(INSTANCE.c.id)
    .where(INSTANCE.c.share_instance_id == sa.bindparam('of_share_instance'))
    .limit(1)
)
_OF_ALL = (
    sa.select(INSTANCE.c.id)
    .where(
        INSTANCE.c.share_instance_id.in_(sa.bindparam('ids', expanding=True))
    )
    .order_by(INSTANCE.c.id)
)
_RESIZE = (
    sa.update(SNAPSHOT)
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
    .values(size=sa.bindparam('new_size'), updated_at=sa.bindparam('now'))
)
_LOCATE = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .values(provider_location=sa.bindparam('new_location'))
)
_INSERT = sa.insert(SNAPSHOT)
_LEFT = (
    sa.select(sa.func.count())
    .select_from(INSTANCE)
    .where(INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot'))
)
_REMOVE = sa.delete(SNAPSHOT).where(
    SNAPSHOT.c.id == sa.bindparam('snapshot_id')
)
_KEEP = (
    sa.select(SNAPSHOT.c.id)
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
    .with_for_update()
)


def get_target(session: Session, snapshot_id: str) -> typing.Any:
    """What an action needs to authorise and check, in one statement.

    Its status is what the snapshot shows; the instance is that of the
    active replica, where there are several and it has one.
    """
    found = session.rows(_TARGET, snapshot_id=snapshot_id)
    if not found:
        raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)
    status = displayed_status(found)
    row = next(
        (row for row in found if row.replica_state == ReplicaState.ACTIVE),
        None,
    ) or min(found, key=instance_rank)
    if row.status == status:
        return row
    return types.SimpleNamespace(**{**row._mapping, 'status': status})


def displayed_status(rows: Iterable[typing.Any]) -> typing.Any:
    """What a snapshot shows of its instances.

    Those on replicas that follow badly say nothing, unless there are no
    others. Rows have `status` and `replica_state`.
    """
    found = list(rows)
    counting = [row for row in found if row.replica_state in UP_TO_DATE]
    return states.aggregate_status(row.status for row in counting or found)


def instance_rank(instance: typing.Any) -> tuple[bool, int]:
    """How well an instance represents its snapshot; least is best."""
    return (
        instance.replica_state not in UP_TO_DATE,
        states.display_rank(instance.status),
    )


def list_instances(
    session: Session, snapshot_id: str
) -> typing.Sequence[sa.Row]:
    """The same row for every instance of the snapshot."""
    return [
        row
        for row in session.rows(_TARGET, snapshot_id=snapshot_id)
        if row.instance_id
    ]


def get_parent(session: Session, share_instance_id: str) -> sa.Row:
    """What a share instance gives its next snapshot, and the newest one.

    It is true for as long as the caller has the instance under its guard:
    whoever inserts a snapshot has moved its share instance before.
    """
    row = session.one(_PARENT, instance_id=share_instance_id)
    if row is None:
        raise exception.ShareInstanceNotFound(
            share_instance_id=share_instance_id
        )
    return row


def next_created_at(session: Session, parent: sa.Row) -> datetime.datetime:
    """When the next snapshot is taken: later than every one before it.

    The clocks of several services may disagree, the order of snapshots
    may not.
    """
    if parent.newest_at is None:
        return session.now
    return max(session.now, parent.newest_at + _TICK)


def insert(
    session: Session, values: Mapping[str, object], metadata: Mapping[str, str]
) -> None:
    session.run(_INSERT, **values)
    METADATA.insert(session, str(values['id']), metadata)


def update(
    session: Session, snapshot_id: str, values: Mapping[str, object]
) -> None:
    """Change plain columns of a snapshot; never a status."""
    if (
        session.run(
            sa.update(SNAPSHOT)
            .where(SNAPSHOT.c.id == snapshot_id)
            .values(updated_at=session.now, **values)
        )
        != 1
    ):
        raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)


def remove_instance(
    session: Session, instance: sa.Row, event: str = 'deleted'
) -> bool:
    """Make the last move of an instance; True when its snapshot went too.

    `instance` is a row as `find` reads it. What hangs on the rows goes
    with them. Of instances on replicas, which several back ends remove at
    one moment, one is the last.
    """
    if instance.replica_state is not None:
        lock(session, instance.snapshot_id)
    rules = (
        snapshot_rules.remove_all(session, instance.id)
        if instance.mount_snapshot_support
        else ()
    )
    transitions.fire(session, SNAPSHOT_INSTANCE, instance.id, event)
    if session.value(_LEFT, of_snapshot=instance.snapshot_id):
        snapshot_rules.remove_unmapped(session, rules)
        return False
    return session.run(_REMOVE, snapshot_id=instance.snapshot_id) == 1


def lock(session: Session, snapshot_id: str) -> None:
    """Have others wait who remove instances of the snapshot."""
    session.value(_KEEP, snapshot_id=snapshot_id)


# What work decides on


def find(session: Session, snapshot_instance_id: str) -> sa.Row | None:
    """The instance with what its snapshot and share say of it, or None."""
    return session.one(_ONE, instance_id=snapshot_instance_id)


def get_with_metadata(
    session: Session, snapshot_instance_id: str, *, lock_shared: bool = False
) -> tuple[sa.Row, dict[str, str]]:
    """The same and the metadata of its snapshot, in one statement.

    With `keep` the instance stays as it is until the transaction ends.
    """
    rows = session.rows(
        _KEPT_WITH_METADATA if lock_shared else _ONE_WITH_METADATA,
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


def list_for_snapshot(
    session: Session, snapshot_id: str
) -> typing.Sequence[sa.Row]:
    """The same row for every instance of a snapshot, in their order."""
    return session.rows(_OF_SNAPSHOT, of_snapshot=snapshot_id)


def find_on_share_instance(
    session: Session, snapshot_id: str, share_instance_id: str
) -> sa.Row | None:
    """The instance of a snapshot that was taken of a share instance."""
    return session.one(
        _OF_PARENT,
        of_snapshot=snapshot_id,
        of_share_instance=share_instance_id,
    )


def list_on_share_instance(
    session: Session, share_instance_id: str
) -> typing.Sequence[sa.Row]:
    """All snapshot instances of a share instance, as `find` reads them."""
    return session.rows(_ALL_OF_PARENT, of_share_instance=share_instance_id)


def lock_share_instance(
    session: Session, share_instance_id: str
) -> str | None:
    """The status of a share instance, which now stays as it is."""
    return session.value(_HOLD, instance_id=share_instance_id)


def is_snapshot_in_progress(
    session: Session, share_instance_id: str, but: str = ''
) -> bool:
    """Whether a snapshot of the share instance, another, is creating."""
    return bool(
        session.value(_IS_TAKEN, of_share_instance=share_instance_id, but=but)
    )


def has_snapshots(session: Session, share_instance_id: str) -> bool:
    """Whether there is any snapshot of the share instance."""
    return (
        session.value(_A_CHILD, of_share_instance=share_instance_id)
        is not None
    )


def list_ids_on_share_instances(
    session: Session, ids: typing.Collection[str]
) -> list[str]:
    """The ids of the snapshots of some share instances, in their order."""
    return [row.id for row in session.rows(_OF_ALL, ids=sorted(ids))]


def resize(session: Session, snapshot_id: str, size: int) -> None:
    session.run(
        _RESIZE, snapshot_id=snapshot_id, new_size=size, now=session.now
    )


def set_provider_location(
    session: Session, snapshot_instance_id: str, provider_location: str | None
) -> None:
    """Note where a back end has it, if it has said so."""
    if provider_location:
        session.run(
            _LOCATE,
            instance_id=snapshot_instance_id,
            new_location=provider_location,
        )
