"""Counts of the resources that quota is charged for."""

from collections.abc import Iterator, Mapping, Sequence

import sqlalchemy as sa

from manila_lite.db.queries.quotas.quotas import Owner
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    BACKUP,
    GROUP,
    GROUP_SNAPSHOT,
    INSTANCE,
    KEY,
    NETWORK,
    SHARE,
    SHARE_MIGRATION as MIGRATION,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    WORK,
)
from manila_lite.states import snapshot_instance
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS, InstanceStatus

Charge = tuple[Owner, Mapping[str, int]]
"""An owner and amounts of resources."""

# Deferred deletion gives back the quota when the request is accepted. The
# destination of a migration may have another type, which is counted apart.
UNCOUNTED = sorted({*HIDDEN_FROM_TENANTS, InstanceStatus.MIGRATING_TO})
# A value and not `exists`, which PostgreSQL would answer for all snapshots.
_IS_COUNTED_SNAPSHOT = (
    sa.select(sa.func.count())
    .where(
        SNAPSHOT_INSTANCE.c.snapshot_id == SNAPSHOT.c.id,
        SNAPSHOT_INSTANCE.c.status.in_(sorted(snapshot_instance.HIDDEN_FROM_TENANTS)),
    )
    .scalar_subquery()
) == 0
_IS_CHANGE_OF_TYPE = (
    # Not null, in a form for which the index is used.
    MIGRATION.c.open_for >= '',
    MIGRATION.c.new_share_type_id.is_not(None),
)
_OWED = sa.select(WORK.c.charges).where(WORK.c.charges.is_not(None))


def count_shares(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by shares of a project, or of all."""
    return _used(session, _shares(project_id))


def count_changes_of_type(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by shares whose migrations change their type.

    They count for their new types already, in addition to their own types,
    and so do their snapshots.
    """
    for table, share_id, resources in (
        (SHARE, SHARE.c.id, ('shares', 'gigabytes')),
        (SNAPSHOT, SNAPSHOT.c.share_id, ('snapshots', 'snapshot_gigabytes')),
    ):
        for row in session.rows(_changes_of_type(table, share_id, project_id)):
            owner = Owner(
                row.project_id,
                share_type_id=row.new_share_type_id,
                only_share_type=True,
            )
            counted = int(row.number), int(row.gigabytes)
            yield owner, dict(zip(resources, counted, strict=True))


def count_snapshots(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by snapshots of a project, or of all."""
    return _used(session, _snapshots(project_id))


def count_networks(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by share networks of a project, or of all."""
    return _used(session, _count(NETWORK, 'share_networks', project_id))


def count_groups(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by share groups of a project, or of all."""
    return _used(session, _count(GROUP, 'share_groups', project_id))


def count_group_snapshots(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by snapshots of share groups."""
    return _used(session, _count(GROUP_SNAPSHOT, 'share_group_snapshots', project_id))


def count_encryption_keys(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by encryption keys of shares."""
    owner = (KEY.c.project_id, KEY.c.user_id, KEY.c.share_type_id)
    return _used(
        session,
        sa.select(*owner, sa.func.count().label('encryption_keys'))
        .where(*_of_project(KEY, project_id))
        .group_by(*owner),
    )


def count_backups(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by backups of shares."""
    return _used(
        session,
        _count(BACKUP, 'backups', project_id).add_columns(
            sa.func.sum(BACKUP.c.size).label('backup_gigabytes')
        ),
    )


def list_charges(session: Session, containing: str | None = None) -> list[str]:
    """Return the reservations of work, each as JSON text.

    `containing` selects those with a part of this text.
    """
    statement = _OWED
    if containing is not None:
        statement = statement.where(
            WORK.c.charges.contains(containing, autoescape=True)
        )
    return [row.charges for row in session.rows(statement)]


def _shares(project_id: str | None) -> sa.Select:
    counting = (
        sa.select(
            INSTANCE.c.share_id,
            sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
            sa.func.count().label('instances'),
        )
        .where(
            INSTANCE.c.status.not_in(UNCOUNTED),
            *_of_shares(SHARE.c.id, SHARE, project_id),
        )
        .group_by(INSTANCE.c.share_id)
        .subquery()
    )
    replicas = sa.case(
        (SHARE.c.replication_type.is_(None), 0), else_=counting.c.instances
    )
    return (
        sa.select(
            SHARE.c.project_id,
            SHARE.c.user_id,
            counting.c.share_type_id,
            sa.func.count().label('shares'),
            sa.func.sum(SHARE.c.size).label('gigabytes'),
            sa.func.sum(replicas).label('share_replicas'),
            sa.func.sum(replicas * SHARE.c.size).label('replica_gigabytes'),
        )
        .join(counting, counting.c.share_id == SHARE.c.id)
        # Resources that were never successfully managed have no size.
        .where(SHARE.c.size > 0, *_of_project(SHARE, project_id))
        .group_by(SHARE.c.project_id, SHARE.c.user_id, counting.c.share_type_id)
    )


def _changes_of_type(
    table: sa.Table, share_id: sa.Column, project_id: str | None
) -> sa.Select:
    """Sum up the rows of a table that are of such shares."""
    return (
        sa.select(
            table.c.project_id,
            MIGRATION.c.new_share_type_id,
            sa.func.count().label('number'),
            sa.func.sum(table.c.size).label('gigabytes'),
        )
        .select_from(MIGRATION.join(table, share_id == MIGRATION.c.open_for))
        .where(*_IS_CHANGE_OF_TYPE, *_of_project(table, project_id))
        .group_by(table.c.project_id, MIGRATION.c.new_share_type_id)
    )


def _snapshots(project_id: str | None) -> sa.Select:
    # A snapshot is charged to the share type of its share; the destination
    # of a migration may have another one.
    types = (
        sa.select(
            INSTANCE.c.share_id,
            sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
        )
        .where(
            INSTANCE.c.status != InstanceStatus.MIGRATING_TO,
            *_of_shares(SNAPSHOT.c.share_id, SNAPSHOT, project_id),
        )
        .group_by(INSTANCE.c.share_id)
        .subquery()
    )
    return (
        sa.select(
            SNAPSHOT.c.project_id,
            SNAPSHOT.c.user_id,
            types.c.share_type_id,
            sa.func.count().label('snapshots'),
            sa.func.sum(SNAPSHOT.c.size).label('snapshot_gigabytes'),
        )
        .join(types, types.c.share_id == SNAPSHOT.c.share_id)
        # Resources that were never successfully managed have no size.
        .where(
            SNAPSHOT.c.size > 0,
            _IS_COUNTED_SNAPSHOT,
            *_of_project(SNAPSHOT, project_id),
        )
        .group_by(SNAPSHOT.c.project_id, SNAPSHOT.c.user_id, types.c.share_type_id)
    )


def _count(table: sa.Table, resource: str, project_id: str | None) -> sa.Select:
    """Count the rows of a table whose resources have no share type."""
    return (
        sa.select(
            table.c.project_id,
            table.c.user_id,
            sa.null().label('share_type_id'),
            sa.func.count().label(resource),
        )
        .where(*_of_project(table, project_id))
        .group_by(table.c.project_id, table.c.user_id)
    )


def _of_project(
    table: sa.Table, project_id: str | None
) -> Sequence[sa.ColumnElement[bool]]:
    return [] if project_id is None else [table.c.project_id == project_id]


def _of_shares(
    share_id: sa.Column, table: sa.Table, project_id: str | None
) -> Sequence[sa.ColumnElement[bool]]:
    """Return the condition that an instance belongs to a share of a project.

    Databases group the instances of all shares without it.
    """
    if project_id is None:
        return []
    these = table.alias()
    return [
        INSTANCE.c.share_id.in_(
            sa.select(these.c[share_id.name]).where(these.c.project_id == project_id)
        )
    ]


_OWNER = ('project_id', 'user_id', 'share_type_id')


def _used(session: Session, statement: sa.Select) -> Iterator[Charge]:
    for row in session.rows(statement):
        counted = row._asdict()
        owner = Owner(*(counted.pop(name) for name in _OWNER))
        yield owner, {name: int(n) for name, n in counted.items()}
